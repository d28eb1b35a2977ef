/* SPDX-License-Identifier: Apache-2.0 */
/* test_disposition.c - names of downloads in heads */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/files/disposition.h"

static const struct {
	struct span name;
	const char *value;
} rows[] = {
	{ SPAN_INIT("a b.txt"), "attachment; filename=\"a b.txt\"" },
	{ SPAN_INIT("a\"b\\c"),
	  "attachment; filename=\"a_b_c\"; filename*=UTF-8''a%22b%5Cc" },
	{ SPAN_INIT("\xc3\xbc.txt"),
	  "attachment; filename=\"_.txt\"; filename*=UTF-8''%C3%BC.txt" },
	{ SPAN_INIT("100%"),
	  "attachment; filename=\"100_\"; filename*=UTF-8''100%25" },
	{ SPAN_INIT("a\r\nX: y"), "attachment; filename=\"a__X: y\"; "
				  "filename*=UTF-8''a%0D%0AX%3A%20y" },
	{ SPAN_INIT("\xff\xfe"), "attachment; filename=\"__\"" },
	{ SPAN_INIT(""), "attachment; filename=\"\"" },
};

static void disposition__rows(void **state)
{
	struct buf out = BUF_INIT(256);
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&out);
		assert_int_equal(disposition_put(&out, rows[i].name), 0);
		assert_true(span_eq(buf_peek(&out), span_str(rows[i].value)));
	}
	buf_fini(&out);
}

static void disposition__longest(void **state)
{
	struct buf out = BUF_INIT(2048);
	char name[255];

	(void)state;
	memset(name, '"', sizeof(name));
	assert_int_equal(disposition_put(&out, span_of(name, sizeof(name))), 0);
	buf_fini(&out);
	buf_init(&out, 100);
	assert_true(disposition_put(&out, span_of(name, sizeof(name))) < 0);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(disposition__rows),
		cmocka_unit_test(disposition__longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
