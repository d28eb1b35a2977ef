/* SPDX-License-Identifier: Apache-2.0 */
/* test_url.c - canonical paths, and the paths that have none */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/wire/url.h"

static const struct {
	const char *target, *canonical;
} good[] = {
	{ "/", "/" },
	{ "/?", "/" },
	{ "/#x", "/" },
	{ "/a/b", "/a/b" },
	{ "/a/b/", "/a/b/" },
	{ "/a/b?x=/../%2f%00", "/a/b" },
	{ "/a#b?c", "/a" },
	{ "/a?b#c", "/a" },
	{ "/%61%7E%2d%5F%30", "/a~-_0" },
	{ "/a%2eb", "/a.b" },
	{ "/%c3%a9", "/%C3%A9" },
	{ "/a%20b%3a", "/a%20b%3A" },
	{ "/100%25", "/100%25" },
	{ "/100%25/x", "/100%25/x" },
	{ "/%25g1%254", "/%25g1%254" },
	{ "/.", "/" },
	{ "/./", "/" },
	{ "/./a", "/a" },
	{ "/a/.", "/a/" },
	{ "/a/./b", "/a/b" },
	{ "/a/..", "/" },
	{ "/a/../", "/" },
	{ "/a/../b", "/b" },
	{ "/a/b/../c", "/a/c" },
	{ "/a/b/..", "/a/" },
	{ "/a/b/../..", "/" },
	{ "/a/./../b", "/b" },
	{ "/a/b/c/./../../g", "/a/g" },
	{ "//", "//" },
	{ "//a", "//a" },
	{ "/a//b", "/a//b" },
	{ "/a//./b", "/a//b" },
	{ "/a//b/..", "/a//" },
	{ "/...", "/..." },
	{ "/..a/.b", "/..a/.b" },
	{ "/a;v=1/b", "/a;v=1/b" },
	{ "/a|b^c{d}", "/a|b^c{d}" },
	{ "/@scope/pkg:1,2(3)'!$&+=*", "/@scope/pkg:1,2(3)'!$&+=*" },
};

static const struct span ambiguous[] = {
	SPAN_INIT("/%2541"),
	/* found by fuzzing: a digit of the inner escape escaped too */
	SPAN_INIT("/a%252%66b"),
	SPAN_INIT("/a%25%32fb"),
	SPAN_INIT("/a%25%32%46b"),
	SPAN_INIT("/a%25%32%65"),
	SPAN_INIT("/a%2fb"),
	SPAN_INIT("/a%2Fb"),
	SPAN_INIT("/a%5cb"),
	SPAN_INIT("/a\\b"),
	SPAN_INIT("/%2e"),
	SPAN_INIT("/%2e/a"),
	SPAN_INIT("/a/%2e%2e/b"),
	SPAN_INIT("/a/.%2e/b"),
	SPAN_INIT("/a/%2E./b"),
	SPAN_INIT("/a%252fb"),
	SPAN_INIT("/a%255Cb"),
	SPAN_INIT("/%252e%252e/a"),
	SPAN_INIT("/a%25252fb"),
	SPAN_INIT("/a/..;/b"),
	SPAN_INIT("/a/..;x=1"),
	SPAN_INIT("/a/.;x/b"),
	SPAN_INIT("/a/..%3bx/b"),
	SPAN_INIT("/a/%2e%2e;/b"),
	SPAN_INIT("/%c0%af"),
	SPAN_INIT("/%C1%9C"),
	SPAN_INIT("/%e0%80%af"),
	SPAN_INIT("/%f0%80%80%af"),
	SPAN_INIT("/.."),
	SPAN_INIT("/../a"),
	SPAN_INIT("/a/../../b"),
	SPAN_INIT("/./../b"),
	SPAN_INIT("/a//../b"),
	SPAN_INIT("//.."),
	SPAN_INIT("/%"),
	SPAN_INIT("/%4"),
	SPAN_INIT("/%4g"),
	SPAN_INIT("/%g4"),
	SPAN_INIT("/%%41"),
	SPAN_INIT("/%-1"),
	SPAN_INIT("/%00"),
	SPAN_INIT("/%0d%0aX:"),
	SPAN_INIT("/%7f"),
	SPAN_INIT("/a b"),
	SPAN_INIT("/a\0b"),
	SPAN_INIT("/a\r"),
	SPAN_INIT("/a\x7f"),
	SPAN_INIT("/\xc3\xa9"),
};

static void url__canonical(void **state)
{
	struct arena arena;
	struct span path;
	size_t i;

	(void)state;
	arena_init(&arena, 64 * 1024);
	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_int_equal(
			url_canon_path(&arena, span_str(good[i].target), &path),
			URL_PATH_OK);
		/* arena copies end in NUL */
		assert_string_equal(path.ptr, good[i].canonical);
		assert_int_equal(path.len, strlen(good[i].canonical));
		/* and again: a fixed point */
		assert_int_equal(url_canon_path(&arena, path, &path),
				 URL_PATH_OK);
		assert_string_equal(path.ptr, good[i].canonical);
	}
	arena_fini(&arena);
}

static void url__ambiguous(void **state)
{
	struct span path = SPAN("before");
	struct arena arena;
	size_t i;

	(void)state;
	arena_init(&arena, 64 * 1024);
	for (i = 0; i < ARRAY_LEN(ambiguous); i++) {
		if (url_canon_path(&arena, ambiguous[i], &path) !=
		    URL_PATH_AMBIGUOUS)
			fail_msg("not ambiguous: %s", ambiguous[i].ptr);
		assert_string_equal(path.ptr, "before");
	}
	arena_fini(&arena);
}

static void url__no_path(void **state)
{
	static const char *const rows[] = { "",	 "*",  "a",   "?a",
					    "#", "\\", "%2f", "http://a/" };
	struct arena arena;
	struct span path;
	size_t i;

	(void)state;
	arena_init(&arena, 4096);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
			url_canon_path(&arena, span_str(rows[i]), &path),
			URL_PATH_BAD);
	assert_int_equal(url_canon_path(&arena, SPAN_NONE, &path),
			 URL_PATH_BAD);
	arena_fini(&arena);
}

static void url__no_memory(void **state)
{
	char target[8192];
	struct arena arena;
	struct span path;

	(void)state;
	arena_init(&arena, sizeof(target) / 2);
	memset(target, '/', sizeof(target));
	assert_int_equal(
		url_canon_path(&arena, span_of(target, sizeof(target)), &path),
		URL_PATH_NO_MEMORY);
	assert_true(arena_overflowed(&arena));
	arena_fini(&arena);
}

static void url__matches(void **state)
{
	(void)state;
	assert_true(url_path_matches(SPAN("/v1/x"), SPAN("/v1/x")));
	assert_false(url_path_matches(SPAN("/v1/x"), SPAN("/v1/x/")));
	assert_false(url_path_matches(SPAN("/v1/x"), SPAN("/v1")));
	assert_true(url_path_matches(SPAN("/v1/*"), SPAN("/v1/")));
	assert_true(url_path_matches(SPAN("/v1/*"), SPAN("/v1/a/b")));
	assert_false(url_path_matches(SPAN("/v1/*"), SPAN("/v1")));
	assert_false(url_path_matches(SPAN("/v1/*"), SPAN("/v10/a")));
	assert_true(url_path_matches(SPAN("/*"), SPAN("/")));
	assert_true(url_path_matches(SPAN("*"), SPAN("/a")));
	assert_false(url_path_matches(SPAN("/a*b"), SPAN("/axb")));
	assert_false(url_path_matches(SPAN(""), SPAN("/")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(url__canonical),
		cmocka_unit_test(url__ambiguous),
		cmocka_unit_test(url__no_path),
		cmocka_unit_test(url__no_memory),
		cmocka_unit_test(url__matches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
