/* SPDX-License-Identifier: Apache-2.0 */
/* test_map.c - random work held against a plain table, and its tombstones */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/map.h"

enum { KEYS = 600 };

static int values[8];

static struct span key_of(int i, char dst[32])
{
	return span_of(dst, (size_t)snprintf(dst, 32, "key-%d", i));
}

static void map__basics(void **state)
{
	struct map m;

	(void)state;
	map_init(&m);
	assert_null(map_find(&m, SPAN("a")));
	assert_null(map_take(&m, SPAN("a")));
	assert_null(map_set(&m, SPAN("a"), &values[0]));
	assert_ptr_equal(map_set(&m, SPAN("a"), &values[1]), &values[0]);
	assert_null(map_set(&m, SPAN(""), &values[2]));
	assert_null(map_set(&m, SPAN("a\0b"), &values[3]));
	assert_null(map_set(&m, SPAN("A"), &values[4]));
	assert_int_equal(map_count(&m), 4);
	assert_ptr_equal(map_find(&m, SPAN("a")), &values[1]);
	assert_ptr_equal(map_find(&m, SPAN_NONE), &values[2]);
	assert_ptr_equal(map_find(&m, SPAN("a\0b")), &values[3]);
	assert_null(map_find(&m, SPAN("a\0c")));
	assert_ptr_equal(map_take(&m, SPAN("")), &values[2]);
	assert_null(map_take(&m, SPAN("")));
	assert_int_equal(map_count(&m), 3);
	map_fini(&m);
	assert_int_equal(map_count(&m), 0);
	map_fini(&m);
}

static void map__keys_are_copied(void **state)
{
	char key[4] = "abc";
	struct map m;

	(void)state;
	map_init(&m);
	map_set(&m, span_of(key, 3), &values[0]);
	memset(key, 'x', 3);
	assert_ptr_equal(map_find(&m, SPAN("abc")), &values[0]);
	map_fini(&m);
}

static void check_walk(const struct map *m, void *const model[KEYS])
{
	bool seen[KEYS] = { false };
	size_t cursor = 0, count = 0;
	struct span key;
	void *value;
	uint64_t i;

	while ((value = map_next(m, &cursor, &key))) {
		assert_true(span_parse_u64(span_from(key, 4), &i));
		assert_in_range(i, 0, KEYS - 1);
		assert_false(seen[i]);
		seen[i] = true;
		assert_ptr_equal(value, model[i]);
		count++;
	}
	assert_int_equal(count, map_count(m));
}

static void map__random_against_a_model(void **state)
{
	static void *model[KEYS];
	size_t count = 0;
	char text[32];
	struct map m;
	void *value;
	int round, i;

	(void)state;
	map_init(&m);
	srandom(4);
	for (round = 0; round < 60000; round++) {
		i = (int)(random() % KEYS);
		value = &values[random() % 8];
		/* long phases that fill, and long ones that empty */
		if (random() % 100 < (round / 10000 % 2 ? 30 : 70)) {
			count += !model[i];
			assert_ptr_equal(map_set(&m, key_of(i, text), value),
					 model[i]);
			model[i] = value;
		} else {
			count -= !!model[i];
			assert_ptr_equal(map_take(&m, key_of(i, text)),
					 model[i]);
			model[i] = NULL;
		}
		assert_int_equal(map_count(&m), count);
		i = (int)(random() % KEYS);
		assert_ptr_equal(map_find(&m, key_of(i, text)), model[i]);
		if (round % 1000 == 0)
			check_walk(&m, model);
	}
	map_fini(&m);
}

/* One key in and out for ever must neither grow the table nor fill it up with
 * tombstones, which would make a lookup endless. */
static void map__tombstones_are_cleared(void **state)
{
	char text[32];
	struct map m;
	int i;

	(void)state;
	map_init(&m);
	for (i = 0; i < 100000; i++) {
		assert_null(map_set(&m, key_of(i, text), &values[0]));
		assert_ptr_equal(map_take(&m, key_of(i, text)), &values[0]);
		assert_true(m.size <= 16);
		assert_true((m.used + m.dead) * 4 <= m.size * 3);
	}
	map_fini(&m);
}

static void map__walk_may_take_what_it_returned(void **state)
{
	size_t cursor = 0, taken = 0;
	struct span key;
	char text[32];
	struct map m;
	int i;

	(void)state;
	map_init(&m);
	for (i = 0; i < 100; i++)
		map_set(&m, key_of(i, text), &values[0]);
	while (map_next(&m, &cursor, &key)) {
		assert_non_null(map_take(&m, key));
		taken++;
	}
	assert_int_equal(taken, 100);
	assert_int_equal(map_count(&m), 0);
	map_fini(&m);
}

static void map__hash(void **state)
{
	char bytes[64] = { 0 };
	size_t len;

	(void)state;
	assert_int_equal(map_hash(SPAN("a")), map_hash(SPAN("a")));
	assert_int_not_equal(map_hash(SPAN("a")), map_hash(SPAN("b")));
	/* the length counts: zeros are not all alike */
	for (len = 1; len < sizeof(bytes); len++)
		assert_int_not_equal(map_hash(span_of(bytes, len)),
				     map_hash(span_of(bytes, len - 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map__basics),
		cmocka_unit_test(map__keys_are_copied),
		cmocka_unit_test(map__random_against_a_model),
		cmocka_unit_test(map__tombstones_are_cleared),
		cmocka_unit_test(map__walk_may_take_what_it_returned),
		cmocka_unit_test(map__hash),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
