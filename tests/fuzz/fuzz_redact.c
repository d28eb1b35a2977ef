/* fuzz: gateway */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_redact.c - a masked body is the same whole, in pieces and done slowly
 *
 * Input: lengths of two values, piece length, the values, the body.
 */

#include "tests/unit/gateway/redact_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4096 };

static void compare(const struct kit *k, struct span body, size_t step)
{
	struct buf out = BUF_INIT(BODY_MAX);
	char *whole = must_alloc(body.len + 1);
	uint64_t hits, slow;

	if (body.len)
		memcpy(whole, body.ptr, body.len);
	slow = naive_redact(k, whole, body.len);
	hits = kit_redact(k, body, step, &out);
	if (hits != slow || !span_eq(buf_peek(&out), span_of(whole, body.len)))
		abort();
	buf_fini(&out);
	free(whole);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = span_of(data, size), value;
	struct kit k = { 0 };
	size_t lens[2], step, i;

	if (size < 3)
		return 0;
	lens[0] = data[0] % 32;
	lens[1] = data[1] % 32;
	step = 1 + data[2] % 64;
	rest = span_from(rest, 3);
	for (i = 0; i < 2; i++) {
		value = span_of(rest.ptr, MIN(lens[i], rest.len));
		kit_add(&k, i ? "Basic " : "Bearer ", value);
		rest = span_from(rest, value.len);
	}
	rest.len = MIN(rest.len, (size_t)BODY_MAX);
	kit_build(&k);
	compare(&k, rest, step);
	compare(&k, rest, BODY_MAX);
	kit_fini(&k);
	return 0;
}
