/* SPDX-License-Identifier: Apache-2.0 */
/* test_range.c - ranges of files, satisfiable and not */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/wire/range.h"

static const struct {
	struct span value;
	uint64_t size;
	enum range_kind kind;
	uint64_t first, last;
} rows[] = {
	{ { NULL, 0 }, 10, RANGE_NONE, 0, 0 },
	{ SPAN_INIT("lines=1-2"), 10, RANGE_NONE, 0, 0 },
	{ SPAN_INIT(""), 10, RANGE_NONE, 0, 0 },
	{ SPAN_INIT("bytes=0-0"), 10, RANGE_PART, 0, 0 },
	{ SPAN_INIT("bytes=2-5"), 10, RANGE_PART, 2, 5 },
	{ SPAN_INIT("Bytes = 2 - 5 "), 10, RANGE_PART, 2, 5 },
	{ SPAN_INIT("bytes=2-"), 10, RANGE_PART, 2, 9 },
	{ SPAN_INIT("bytes=2-9"), 10, RANGE_PART, 2, 9 },
	{ SPAN_INIT("bytes=2-10"), 10, RANGE_PART, 2, 9 },
	{ SPAN_INIT("bytes=2-99999999999999999999999"), 10, RANGE_PART, 2, 9 },
	{ SPAN_INIT("bytes=-3"), 10, RANGE_PART, 7, 9 },
	{ SPAN_INIT("bytes=-10"), 10, RANGE_PART, 0, 9 },
	{ SPAN_INIT("bytes=-99999999999999999999"), 10, RANGE_PART, 0, 9 },
	{ SPAN_INIT("bytes=1-2,4-5"), 10, RANGE_PART, 1, 2 },
	{ SPAN_INIT("bytes=0-"), UINT64_MAX, RANGE_PART, 0, UINT64_MAX - 1 },
	{ SPAN_INIT("bytes=10-"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=10-11"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=0-"), 0, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=-1"), 0, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=-0"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=5-2"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=99999999999999999999-"), 10, RANGE_UNSATISFIABLE, 0,
	  0 },
	{ SPAN_INIT("bytes="), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=-"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=a-b"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=1-b"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=+1-2"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=1--2"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=3"), 10, RANGE_UNSATISFIABLE, 0, 0 },
	{ SPAN_INIT("bytes=,1-2"), 10, RANGE_UNSATISFIABLE, 0, 0 },
};

static void range__rows(void **state)
{
	struct range range;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		range = (struct range){ 0 };
		assert_int_equal(
			range_parse(rows[i].value, rows[i].size, &range),
			rows[i].kind);
		assert_true(range.first == rows[i].first);
		assert_true(range.last == rows[i].last);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range__rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
