/* SPDX-License-Identifier: Apache-2.0 */
/* test_ring.c - the newest bytes by offset, against a plain array of all */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/execd/pty/ring.h"

static char byte_at(uint64_t offset)
{
	return (char)(offset * 167 + (offset >> 9));
}

static void put(struct ring *r, size_t len)
{
	char *bytes = malloc(len + 1);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(r->end + i);
	ring_put(r, span_of(bytes, len));
	free(bytes);
}

/* Every byte from `from` on is there, in at most two pieces. */
static void check(const struct ring *r, uint64_t from)
{
	const uint64_t oldest = r->end > RING_BYTES ? r->end - RING_BYTES : 0;
	struct span piece;
	uint64_t at = from;
	int pieces = 0;

	assert_true(ring_start(r) <= oldest || r->end < RING_BYTES);
	while ((piece = ring_peek(r, &at)).len) {
		if (!pieces)
			assert_int_equal(at, MAX(from, ring_start(r)));
		for (size_t i = 0; i < piece.len; i++)
			if (piece.ptr[i] != byte_at(at + i))
				fail_msg("the byte at %llu is wrong",
					 (unsigned long long)(at + i));
		at += piece.len;
		pieces++;
	}
	assert_true(pieces <= 2);
	assert_true(at == r->end || from > r->end);
}

static void ring__empty(void **state)
{
	struct ring r;
	uint64_t at = 0;

	(void)state;
	ring_init(&r);
	assert_int_equal(ring_start(&r), 0);
	assert_int_equal(ring_peek(&r, &at).len, 0);
	ring_put(&r, SPAN(""));
	assert_int_equal(r.size, 0);
	at = 77;
	assert_int_equal(ring_peek(&r, &at).len, 0);
	ring_fini(&r);
}

/* Memory follows what was put, nothing is lost before the ring is full. */
static void ring__grows(void **state)
{
	struct ring r;

	(void)state;
	ring_init(&r);
	put(&r, 1);
	assert_int_equal(r.size, 4096);
	for (int i = 0; i < 1000; i++)
		put(&r, 777);
	assert_int_equal(r.end, 777001);
	assert_int_equal(r.size, RING_BYTES);
	assert_int_equal(ring_start(&r), 0);
	check(&r, 0);
	check(&r, 776999);
	ring_fini(&r);
}

static void ring__turns(void **state)
{
	static const size_t steps[] = { 1,
					4095,
					32768,
					65537,
					RING_BYTES,
					RING_BYTES + 1,
					3 * RING_BYTES + 12345 };
	struct ring r;

	(void)state;
	ring_init(&r);
	for (size_t round = 0; round < 12; round++) {
		for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
			put(&r, steps[i]);
			check(&r, 0);
			check(&r, r.end - 1);
			check(&r, r.end);
			check(&r, r.end + 1);
			check(&r, r.end > 500 ? r.end - 500 : 0);
		}
	}
	assert_int_equal(r.end - ring_start(&r), RING_BYTES);
	ring_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ring__empty),
		cmocka_unit_test(ring__grows),
		cmocka_unit_test(ring__turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
