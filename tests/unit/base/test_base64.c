/* SPDX-License-Identifier: Apache-2.0 */
/* test_base64.c - RFC 4648's vectors both ways, and what is no base64 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/base64.h"

static void base64__vectors(void **state)
{
	static const struct {
		struct span bytes, text;
	} rows[] = {
		{ SPAN_INIT(""), SPAN_INIT("") },
		{ SPAN_INIT("f"), SPAN_INIT("Zg==") },
		{ SPAN_INIT("fo"), SPAN_INIT("Zm8=") },
		{ SPAN_INIT("foo"), SPAN_INIT("Zm9v") },
		{ SPAN_INIT("foob"), SPAN_INIT("Zm9vYg==") },
		{ SPAN_INIT("fooba"), SPAN_INIT("Zm9vYmE=") },
		{ SPAN_INIT("foobar"), SPAN_INIT("Zm9vYmFy") },
		{ SPAN_INIT("\xff\xef\xbe\0"), SPAN_INIT("/+++AA==") },
	};
	char text[16];
	uint8_t bytes[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		base64_encode(rows[i].bytes, text);
		assert_int_equal(BASE64_SIZE(rows[i].bytes.len),
				 rows[i].text.len);
		assert_memory_equal(text, rows[i].text.ptr, rows[i].text.len);
		assert_true(base64_decode(rows[i].text, bytes, sizeof(bytes),
					  &len));
		assert_true(span_eq(span_of(bytes, len), rows[i].bytes));
	}
}

static void base64__refusals(void **state)
{
	static const struct span rows[] = {
		SPAN_INIT("Z"),	     SPAN_INIT("Zg"),
		SPAN_INIT("Zg="),    SPAN_INIT("Zg=g"),
		SPAN_INIT("Z==="),   SPAN_INIT("===="),
		SPAN_INIT("Zh=="), /* bits of the padding are set */
		SPAN_INIT("Zm9="),   SPAN_INIT("Zg==Zg=="),
		SPAN_INIT("Zm 9"),   SPAN_INIT("Zm-_"),
		SPAN_INIT("Zm9v\n"), SPAN_INIT("Zm9v\0\0\0\0"),
	};
	uint8_t bytes[16];
	size_t len;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_false(
			base64_decode(rows[i], bytes, sizeof(bytes), &len));
	assert_true(base64_decode(SPAN("Zm9v"), bytes, 3, &len));
	assert_false(base64_decode(SPAN("Zm9v"), bytes, 2, &len));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(base64__vectors),
		cmocka_unit_test(base64__refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
