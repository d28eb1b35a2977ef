/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_patterns.c - every spelling of a value is looked for, in bounds
 */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <openssl/evp.h>

#include "gateway/redact/forms.h"
#include "tests/unit/gateway/redact_kit.h"

static bool kit_has(const struct kit *k, struct span text)
{
	unsigned i;

	for (i = 0; i < patterns_count(k->patterns); i++)
		if (span_eq(patterns_text(k->patterns, i), text))
			return true;
	return false;
}

/* What the field's encoders make of one awkward value. */
static void forms__of_an_awkward_value(void **state)
{
	static const char *const forms[] = {
		"p\xc3\xa4ss/<w&o>r\"d'=+ \\~!",
		/* percent: quote(), encodeURIComponent(), encodeURI(), forms */
		"p%C3%A4ss/%3Cw%26o%3Er%22d%27%3D%2B%20%5C~%21",
		"p%C3%A4ss%2F%3Cw%26o%3Er%22d%27%3D%2B%20%5C~%21",
		"p%c3%a4ss%2f%3cw%26o%3er%22d%27%3d%2b%20%5c~%21",
		"p%C3%A4ss%2F%3Cw%26o%3Er%22d'%3D%2B%20%5C~!",
		"p%C3%A4ss/%3Cw&o%3Er%22d'=+%20%5C~!",
		"p%C3%A4ss%2F%3Cw%26o%3Er%22d%27%3D%2B+%5C%7E%21",
		"p%C3%A4ss%2F%3Cw%26o%3Er%22d%27%3D%2B+%5C~%21",
		"%70%C3%A4%73%73%2F%3C%77%26%6F%3E%72%22%64%27%3D%2B%20%5C%7E"
		"%21",
		"%70%c3%a4%73%73%2f%3c%77%26%6f%3e%72%22%64%27%3d%2b%20%5c%7e"
		"%21",
		/* JSON: plain, slashes, ASCII only, safe in pages, all of it */
		"p\xc3\xa4ss/<w&o>r\\\"d'=+ \\\\~!",
		"p\xc3\xa4ss\\/<w&o>r\\\"d'=+ \\\\~!",
		"p\\u00e4ss/<w&o>r\\\"d'=+ \\\\~!",
		"p\\u00e4ss\\/<w&o>r\\\"d'=+ \\\\~!",
		"p\xc3\xa4ss/\\u003cw\\u0026o\\u003er\\\"d'=+ \\\\~!",
		"p\xc3\xa4ss/\\u003cw\\u0026o\\u003er\\\"d\\u0027\\u003d+ "
		"\\\\~!",
		"p\\u00E4ss/\\u003Cw\\u0026o\\u003Er\\u0022d\\u0027=\\u002B "
		"\\\\~!",
		"p\\u00E4ss\\/\\u003Cw\\u0026o\\u003Er\\u0022d\\u0027=+ "
		"\\\\~!",
		/* pages */
		"p\xc3\xa4ss/&lt;w&amp;o&gt;r&quot;d&#39;=+ \\~!",
		"p\xc3\xa4ss/&lt;w&amp;o&gt;r&quot;d&#x27;=+ \\~!",
		"p\xc3\xa4ss/&lt;w&amp;o&gt;r&#34;d&#39;=+ \\~!",
		/* hex */
		"70C3A473732F3C77266F3E722264273D2B205C7E21",
		"70c3a473732f3c77266f3e722264273d2b205c7e21",
		/* base64: whole, and after one and two bytes */
		"cMOkc3MvPHcmbz5yImQnPSsgXH4h",
		"DDpHNzLzx3Jm8-ciJkJz0rIFx-I",
		"DDpHNzLzx3Jm8+ciJkJz0rIFx+I",
		"DDpHNzLzx3Jm8%2BciJkJz0rIFx%2BI",
		"DDpHNzLzx3Jm8\\u002BciJkJz0rIFx\\u002BI",
		"ww6Rzcy88dyZvPnIiZCc9KyBcfi",
	};
	struct kit k = { 0 };
	size_t i;

	(void)state;
	kit_add(&k, "", span_str(forms[0]));
	for (i = 0; i < ARRAY_LEN(forms); i++)
		if (!kit_has(&k, span_str(forms[i])))
			fail_msg("no pattern %s", forms[i]);
	kit_fini(&k);
}

static void forms__beyond_the_plane(void **state)
{
	struct kit k = { 0 };

	(void)state;
	kit_add(&k, "", SPAN("\xf0\x9f\x94\x91key\x01\n\xff\xe2\x82"));
	assert_true(kit_has(&k, SPAN("\\ud83d\\udd11key\\u0001\\n\xff\xe2"
				     "\x82")));
	assert_true(kit_has(&k, SPAN("\\uD83D\\uDD11key\\u0001\\n\xff\xe2"
				     "\x82")));
	kit_fini(&k);
}

/* Base64 of anything around the value: what it alone decides is masked. */
static void forms__base64_anywhere(void **state)
{
	char plain[64], code[96], expected[96];
	struct buf out = BUF_INIT(128);
	struct kit k = { 0 };
	size_t before, after, from, end, i, len;
	uint64_t hits;

	(void)state;
	kit_add(&k, "", SPAN("s3cr3t-V\xfe\xff>?lue"));
	kit_build(&k);
	for (before = 0; before < 7; before++)
		for (after = 0; after < 7; after++) {
			for (i = 0; i < before; i++)
				plain[i] = (char)(before * 41 + i * 91);
			memcpy(plain + before, "s3cr3t-V\xfe\xff>?lue", 15);
			for (i = before + 15; i < before + 15 + after; i++)
				plain[i] = (char)(after * 37 + i * 53 + 80);
			len = (size_t)EVP_EncodeBlock(
				(unsigned char *)code, (unsigned char *)plain,
				(int)(before + 15 + after));
			from = (before * 8 + 5) / 6;
			end = (before + 15) * 8 / 6;
			if (!after) /* then the padded one too */
				end = ((before + 15) * 8 + 5) / 6;
			memcpy(expected, code, len);
			naive_mask(expected + from, end - from);
			buf_clear(&out);
			hits = kit_redact(&k, span_of(code, len), 5, &out);
			assert_int_equal(hits, 1);
			/* one character more when zeros follow by chance */
			assert_memory_equal(buf_peek(&out).ptr, expected, end);
			assert_true(span_eq(
				span_from(buf_peek(&out), end + 1),
				span_of(expected + end + 1,
					len > end ? len - end - 1 : 0)));
		}
	buf_fini(&out);
	kit_fini(&k);
}

static void patterns__of_basic(void **state)
{
	static const struct {
		const char *value, *has[3], *has_not;
	} rows[] = {
		/* alice:wonderland */
		{ "YWxpY2U6d29uZGVybGFuZA==",
		  { "alice:wonderland", "wonderland", "alice%3Awonderland" },
		  "alice" },
		/* sk_live_token: */
		{ "c2tfbGl2ZV90b2tlbjo=",
		  { "sk_live_token:", "sk_live_token", "sk_live_token%3A" },
		  "" },
		/* ghp_token:x-oauth-basic */
		{ "Z2hwX3Rva2VuOngtb2F1dGgtYmFzaWM=",
		  { "ghp_token:x-oauth-basic", "ghp_token",
		    "676870"
		    "5f746f6b656e" },
		  "x-oauth-basic" },
		/* unpadded, other alphabet: user:pass?>pass? */
		{ "dXNlcjpwYXNzPz5wYXNzPw",
		  { "user:pass?>pass?", "pass?>pass?", "pass%3F%3Epass%3F" },
		  "user" },
	};
	struct kit k = { 0 };
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		kit_add(&k, "Basic ", span_str(rows[i].value));
		assert_true(kit_has(&k, span_str(rows[i].value)));
		for (j = 0; j < 3; j++)
			if (!kit_has(&k, span_str(rows[i].has[j])))
				fail_msg("no %s", rows[i].has[j]);
		assert_false(kit_has(&k, span_str(rows[i].has_not)));
		kit_fini(&k);
	}
	/* not base64: as it stands, no more */
	kit_add(&k, "basic ", SPAN("not*base64"));
	assert_true(kit_has(&k, SPAN("not*base64")));
	kit_fini(&k);
	/* not basic: nothing is decoded */
	kit_add(&k, "Bearer ", SPAN("YWxpY2U6d29uZGVybGFuZA=="));
	assert_false(kit_has(&k, SPAN("wonderland")));
	kit_fini(&k);
}

static void patterns__short(void **state)
{
	struct patterns *p = patterns_new();
	struct secret *s, *empty;

	(void)state;
	assert_int_equal(secret_dup(SPAN("12345"), &s), 0);
	assert_int_equal(secret_dup(SPAN(""), &empty), 0);
	assert_int_equal(patterns_add(p, SPAN(""), s), PATTERNS_E_SHORT);
	assert_int_equal(patterns_add(p, SPAN("Bearer "), empty),
			 PATTERNS_E_SHORT);
	assert_int_equal(patterns_count(p), 0);
	assert_int_equal(patterns_add(p, SPAN("Bearer "), s), 0);
	assert_true(span_eq(patterns_text(p, 0), SPAN("Bearer 12345")));
	(void)patterns_free(p);
	(void)secret_free(s);
	(void)secret_free(empty);
	(void)patterns_free(NULL);
}

static int count_forms(void *ctx, struct span text)
{
	assert_true(text.len >= FORM_MIN_BYTES);
	return ++*(int *)ctx == 100 ? 7 : 0;
}

static void patterns__bounds(void **state)
{
	struct patterns *p = patterns_new();
	struct secret *s;
	char *value;
	size_t i;
	int r = 0, count = 0;

	(void)state;
	/* the longest value, whose base64 is '+' and '/' only */
	assert_int_equal(secret_new(FORM_VALUE_MAX, &s), 0);
	value = secret_fill(s);
	for (i = 0; i < FORM_VALUE_MAX; i++)
		value[i] = "\xfb\xef\xbe"[i % 3];
	assert_int_equal(forms_each(secret_open(s), count_forms, &count), 7);
	assert_int_equal(count, 100);
	assert_int_equal(patterns_add(p, SPAN(""), s), 0);
	(void)secret_free(s);
	assert_int_equal(secret_new(FORM_VALUE_MAX + 1, &s), 0);
	assert_int_equal(forms_each(secret_open(s), count_forms, &count),
			 -E2BIG);
	assert_int_equal(patterns_add(p, SPAN(""), s), PATTERNS_E_FULL);
	(void)secret_free(s);
	p = patterns_free(p);

	p = patterns_new();
	for (i = 0; !r; i++) {
		assert_int_equal(secret_new(8, &s), 0);
		memcpy(secret_fill(s), "v\"/+", 4);
		memcpy(secret_fill(s) + 4, &i, 4);
		r = patterns_add(p, SPAN(""), s);
		(void)secret_free(s);
	}
	assert_int_equal(r, PATTERNS_E_FULL);
	assert_int_equal(patterns_count(p), PATTERNS_MAX);
	(void)patterns_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forms__of_an_awkward_value),
		cmocka_unit_test(forms__beyond_the_plane),
		cmocka_unit_test(forms__base64_anywhere),
		cmocka_unit_test(patterns__of_basic),
		cmocka_unit_test(patterns__short),
		cmocka_unit_test(patterns__bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
