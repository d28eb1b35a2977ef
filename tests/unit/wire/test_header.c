/* SPDX-License-Identifier: Apache-2.0 */
/* test_header.c - known names, their flags, and walking members */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/wire/header.h"

/* The order that header.c relies on. */
static void header__rows_stand_by_length(void **state)
{
	size_t last = 0;
	int id;

	(void)state;
	for (id = 1; id < HEADER_ID_NUM; id++) {
		struct span name = header_name((enum header_id)id);

		assert_true(name.len >= last);
		assert_true(header_name_is_valid(name));
		last = name.len;
	}
}

static void header__every_name_in_every_case(void **state)
{
	char text[HEADER_KNOWN_MAX + 1];
	struct span name, s;
	size_t i;
	int id;

	(void)state;
	for (id = 1; id < HEADER_ID_NUM; id++) {
		name = header_name((enum header_id)id);
		s = span_of(text, name.len);
		assert_int_equal(header_id_of(name), id);
		for (i = 0; i < name.len; i++)
			text[i] = (char)toupper(name.ptr[i]);
		assert_int_equal(header_id_of(s), id);
		for (i = 0; i < name.len; i++)
			text[i] = (char)tolower(name.ptr[i]);
		assert_int_equal(header_id_of(s), id);

		/* one byte more, one less, one changed */
		text[name.len] = 'x';
		assert_int_not_equal(header_id_of(span_of(text, name.len + 1)),
				     id);
		assert_int_not_equal(header_id_of(span_of(text, name.len - 1)),
				     id);
		for (i = 0; i < name.len; i++) {
			char was = text[i];
			int c;

			for (c = 0; c < 256; c++) {
				text[i] = (char)c;
				if (tolower(c) == was)
					assert_int_equal(header_id_of(s), id);
				else
					assert_int_not_equal(header_id_of(s),
							     id);
			}
			text[i] = was;
		}
	}
}

static void header__unknown_names(void **state)
{
	static const char longer[HEADER_KNOWN_MAX + 8] = "Strict-Transport-"
							 "Security-And-More";

	(void)state;
	assert_int_equal(header_id_of(SPAN("")), HEADER_OTHER);
	assert_int_equal(header_id_of(SPAN_NONE), HEADER_OTHER);
	assert_int_equal(header_id_of(SPAN("X")), HEADER_OTHER);
	assert_int_equal(header_id_of(SPAN("X-Nobody-Knows")), HEADER_OTHER);
	assert_int_equal(header_id_of(SPAN("\0\0\0\0")), HEADER_OTHER);
	assert_int_equal(header_id_of(span_of(longer, sizeof(longer))),
			 HEADER_OTHER);
	assert_int_equal(header_name(HEADER_OTHER).len, 0);
	assert_int_equal(header_name(HEADER_ID_NUM).len, 0);
	assert_int_equal(header_flags_of(HEADER_OTHER), 0);
	assert_int_equal(header_flags_of(HEADER_ID_NUM), 0);
}

static void header__flags(void **state)
{
	static const struct {
		const char *name;
		unsigned flags;
	} rows[] = {
		{ "host", HEADER_RESERVED },
		{ "content-length", HEADER_RESERVED | HEADER_FRAMING },
		{ "content-type", HEADER_RESERVED },
		{ "transfer-encoding",
		  HEADER_RESERVED | HEADER_FRAMING | HEADER_HOP },
		{ "connection", HEADER_RESERVED | HEADER_HOP },
		{ "upgrade", HEADER_RESERVED | HEADER_HOP },
		{ "te", HEADER_RESERVED | HEADER_HOP },
		{ "trailer", HEADER_RESERVED },
		{ "proxy-authorization",
		  HEADER_RESERVED | HEADER_HOP | HEADER_CREDENTIAL },
		{ "proxy-authenticate", HEADER_RESERVED | HEADER_HOP },
		{ "proxy-authentication-info", HEADER_HOP },
		{ "proxy-connection", HEADER_HOP },
		{ "keep-alive", HEADER_HOP },
		{ "http2-settings", HEADER_HOP },
		{ "forwarded", HEADER_RESERVED },
		{ "x-forwarded-for", HEADER_RESERVED },
		{ "x-forwarded-host", HEADER_RESERVED },
		{ "x-forwarded-proto", HEADER_RESERVED },
		{ "authorization", HEADER_CREDENTIAL },
		{ "cookie", HEADER_CREDENTIAL },
		{ "x-api-key", HEADER_CREDENTIAL },
		{ "private-token", HEADER_CREDENTIAL },
		{ "set-cookie", 0 },
		{ "accept", 0 },
		{ "www-authenticate", 0 },
		{ "sec-websocket-key", 0 },
	};
	enum header_id id;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		id = header_id_of(span_str(rows[i].name));
		assert_int_not_equal(id, HEADER_OTHER);
		assert_int_equal(header_flags_of(id), rows[i].flags);
	}
}

static void header__names_and_values(void **state)
{
	char name[257];

	(void)state;
	memset(name, 'n', sizeof(name));
	assert_true(header_name_is_valid(span_of(name, 256)));
	assert_false(header_name_is_valid(span_of(name, 257)));
	assert_true(header_name_is_valid(SPAN("!#$%&'*+-.^_`|~09azAZ")));
	assert_false(header_name_is_valid(SPAN("")));
	assert_false(header_name_is_valid(SPAN("a b")));
	assert_false(header_name_is_valid(SPAN("a:")));
	assert_false(header_name_is_valid(SPAN("a\0")));
	assert_false(header_name_is_valid(SPAN("\xc3\xa4")));

	assert_true(header_value_is_valid(SPAN("")));
	assert_true(header_value_is_valid(SPAN_NONE));
	assert_true(header_value_is_valid(SPAN("a\tb \xff\x80~")));
	assert_false(header_value_is_valid(SPAN("a\r\nb: c")));
	assert_false(header_value_is_valid(SPAN("token\n")));
	assert_false(header_value_is_valid(SPAN("a\0b")));
	assert_false(header_value_is_valid(SPAN("a\x7f")));
	assert_false(header_value_is_valid(SPAN("a\x1b[31m")));
}

/* Members joined with '|'. */
static void check_members(const char *value, const char *expected)
{
	struct span rest = span_str(value), member;
	char text[128] = "";
	size_t at = 0;

	while ((member = header_next_member(&rest)).ptr) {
		if (at)
			text[at++] = '|';
		memcpy(text + at, member.ptr, member.len);
		at += member.len;
		text[at] = '\0';
	}
	assert_string_equal(text, expected);
}

static void header__members(void **state)
{
	(void)state;
	check_members("", "");
	check_members(" , ,\t,", "");
	check_members("close", "close");
	check_members(" close , Upgrade\t,x", "close|Upgrade|x");
	check_members(",,a,,b,", "a|b");
	check_members("a=\"b,c\", d", "a=\"b,c\"|d");
	check_members("a=\"b\\\",c\",d", "a=\"b\\\",c\"|d");
	check_members("a=\"b,c", "a=\"b,c");
	check_members("a\\,b", "a\\|b");
	check_members("a=\"\\", "a=\"\\");
}

static void headers__find(void **state)
{
	static struct headers h = {
		.items = {
			{ SPAN_INIT("Host"), SPAN_INIT("a"), HEADER_HOST },
			{ SPAN_INIT("X-One"), SPAN_INIT("1"), HEADER_OTHER },
			{ SPAN_INIT("Connection"), SPAN_INIT("keep-alive, x"),
			  HEADER_CONNECTION },
			{ SPAN_INIT("connection"), SPAN_INIT("TE,Upgrade"),
			  HEADER_CONNECTION },
		},
		.count = 4,
	};

	(void)state;
	assert_ptr_equal(headers_find(&h, HEADER_HOST), &h.items[0]);
	assert_ptr_equal(headers_find(&h, HEADER_CONNECTION), &h.items[2]);
	assert_null(headers_find(&h, HEADER_COOKIE));
	assert_ptr_equal(headers_find_name(&h, SPAN("x-oNE")), &h.items[1]);
	assert_null(headers_find_name(&h, SPAN("x-two")));
	assert_int_equal(headers_count(&h, HEADER_CONNECTION), 2);
	assert_int_equal(headers_count(&h, HEADER_COOKIE), 0);
	assert_true(headers_have_token(&h, HEADER_CONNECTION, SPAN("upgrade")));
	assert_true(headers_have_token(&h, HEADER_CONNECTION, SPAN("X")));
	assert_false(headers_have_token(&h, HEADER_CONNECTION, SPAN("up")));
	assert_false(headers_have_token(&h, HEADER_HOST, SPAN("te")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(header__rows_stand_by_length),
		cmocka_unit_test(header__every_name_in_every_case),
		cmocka_unit_test(header__unknown_names),
		cmocka_unit_test(header__flags),
		cmocka_unit_test(header__names_and_values),
		cmocka_unit_test(header__members),
		cmocka_unit_test(headers__find),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
