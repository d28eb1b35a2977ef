/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_stream.c - masking a stream equals masking the whole, always */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/gateway/redact_kit.h"

enum { BODY_MAX = 700, ROUNDS = 400 };

static uint64_t seed = 0x5a11;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

/* A body of pieces of patterns, whole ones, and single bytes. */
static size_t body_make(const struct kit *k, char *body, const char *alphabet)
{
	size_t len = 0, from, end;
	struct span text;

	while (len < BODY_MAX - 250 || pick(4)) {
		text = patterns_text(k->patterns,
				     pick(patterns_count(k->patterns)));
		from = pick(3) ? 0 : pick((unsigned)text.len);
		end = pick(2) ? text.len : pick((unsigned)text.len + 1);
		if (pick(3) == 0)
			text = span_of(
				&alphabet[pick((unsigned)strlen(alphabet))], 1),
			from = 0, end = 1;
		if (from >= end)
			continue;
		if (len + end - from > BODY_MAX)
			break;
		memcpy(body + len, text.ptr + from, end - from);
		len += end - from;
	}
	return len;
}

static void compare(const struct kit *k, struct span body, size_t step)
{
	struct buf out = BUF_INIT(BODY_MAX);
	char whole[BODY_MAX];
	uint64_t hits, expected;

	memcpy(whole, body.ptr, body.len);
	expected = naive_redact(k, whole, body.len);
	hits = kit_redact(k, body, step, &out);
	if (buf_len(&out) != body.len ||
	    memcmp(buf_peek(&out).ptr, whole, body.len) != 0)
		fail_msg("step %zu\nbody %.*s\nmust %.*s\nis   %.*s", step,
			 SPAN_FMT(body), (int)body.len, whole,
			 SPAN_FMT(buf_peek(&out)));
	assert_int_equal(hits, expected);
	buf_fini(&out);
}

static void value_make(char *value, size_t len, const char *alphabet)
{
	size_t i;

	for (i = 0; i < len; i++)
		value[i] = alphabet[pick((unsigned)strlen(alphabet))];
}

/* Small alphabets: everything overlaps everything. */
static void stream__equals_the_whole(void **state)
{
	static const char *const alphabets[] = {
		"a", "ab", "ab/", "abcdef0123456789", "x%2F\\u\"<&+=:", "\\",
	};
	struct kit k = { 0 };
	char value[24], body[BODY_MAX];
	unsigned round, values;
	const char *alphabet;
	size_t len, step;

	(void)state;
	for (round = 0; round < ROUNDS; round++) {
		alphabet = alphabets[round % ARRAY_LEN(alphabets)];
		for (values = 1 + pick(3); values; values--) {
			len = 6 + pick(sizeof(value) - 6);
			value_make(value, len, alphabet);
			kit_add(&k, "", span_of(value, len));
		}
		kit_build(&k);
		len = body_make(&k, body, alphabet);
		compare(&k, span_of(body, len), len);
		for (step = 1; step < 12; step++)
			compare(&k, span_of(body, len), step);
		compare(&k, span_of(body, len), 12 + pick(100));
		kit_fini(&k);
	}
}

static void stream__any_single_split(void **state)
{
	static const char text[] =
		"{\"token\":\"ghp_R4nd0mT0kenOf40Characters+0123/9a=\",\"b64\""
		":\"Z2hwX1I0bmQwbVQwa2VuT2Y0MENoYXJhY3RlcnMrMDEyMy85YT0=\"}";
	struct buf out = BUF_INIT(sizeof(text));
	const struct redact_sink sink = { kit_emit, &out };
	struct redact_stream s;
	struct kit k = { 0 };
	char whole[sizeof(text)];
	size_t cut, len = sizeof(text) - 1;

	(void)state;
	kit_add(&k, "Bearer ", SPAN("ghp_R4nd0mT0kenOf40Characters+0123/9a="));
	kit_build(&k);
	memcpy(whole, text, sizeof(text));
	assert_int_equal(naive_redact(&k, whole, len), 2);
	for (cut = 0; cut <= len; cut++) {
		buf_clear(&out);
		redact_stream_init(&s, k.automaton);
		assert_int_equal(
			redact_stream_feed(&s, span_of(text, cut), &sink), 0);
		assert_int_equal(
			redact_stream_feed(&s, span_of(text + cut, len - cut),
					   &sink),
			0);
		assert_int_equal(redact_stream_flush(&s, &sink), 0);
		assert_memory_equal(buf_peek(&out).ptr, whole, len);
		assert_int_equal(s.hits, 2);
	}
	buf_fini(&out);
	kit_fini(&k);
}

/* What cannot be the begin of a pattern leaves in the call that brought it. */
static void stream__holds_back_only_begins(void **state)
{
	static const struct {
		const char *piece, *out;
	} rows[] = {
		{ "data: hello\n\n", "data: hello\n\n" },
		{ "data: @", "data: " },
		{ "!-1", "@!-1" },
		{ "@zjkv", "" },
		{ "@zjkw", "@zjkv@zjkw" },
		{ "@zj", "" },
		{ "kvx!", "@zjkvx!" },
		{ "?@@zjkvxyw", "?@" },
		{ "", "" },
		{ "mm.", "[REDACTED]." },
		{ "@", "" },
	};
	struct buf out = BUF_INIT(4096);
	const struct redact_sink sink = { kit_emit, &out };
	struct redact_stream s;
	struct kit k = { 0 };
	size_t i;

	(void)state;
	kit_add(&k, "", SPAN("@zjkvxywmm"));
	kit_build(&k);
	redact_stream_init(&s, k.automaton);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&out);
		assert_int_equal(
			redact_stream_feed(&s, span_str(rows[i].piece), &sink),
			0);
		assert_true(span_eq(buf_peek(&out), span_str(rows[i].out)));
	}
	assert_int_equal(s.hits, 1);
	buf_clear(&out);
	assert_int_equal(redact_stream_flush(&s, &sink), 0);
	assert_true(span_eq(buf_peek(&out), SPAN("@")));
	buf_fini(&out);
	kit_fini(&k);
}

static int emit_fail(void *ctx, struct span bytes)
{
	(void)ctx;
	(void)bytes;
	return -EPIPE;
}

static void stream__passes_on_errors(void **state)
{
	const struct redact_sink sink = { emit_fail, NULL };
	struct redact_stream s;
	struct kit k = { 0 };

	(void)state;
	kit_add(&k, "", SPAN("secret-value"));
	kit_build(&k);
	redact_stream_init(&s, k.automaton);
	assert_int_equal(redact_stream_feed(&s, SPAN("secret-v"), &sink), 0);
	assert_int_equal(redact_stream_feed(&s, SPAN("alue"), &sink), -EPIPE);
	redact_stream_init(&s, k.automaton);
	assert_int_equal(redact_stream_feed(&s, SPAN("secret-v"), &sink), 0);
	assert_int_equal(redact_stream_flush(&s, &sink), -EPIPE);
	kit_fini(&k);
}

static void stream__endless_chain(void **state)
{
	struct buf out = BUF_INIT(1 << 16);
	char body[4096], whole[4096];
	struct kit k = { 0 };

	(void)state;
	kit_add(&k, "", SPAN("aaaaaaa"));
	kit_build(&k);
	memset(body, 'a', sizeof(body));
	memcpy(whole, body, sizeof(body));
	assert_int_equal(naive_redact(&k, whole, sizeof(whole)), 1);
	assert_int_equal(kit_redact(&k, span_of(body, sizeof(body)), 7, &out),
			 1);
	assert_memory_equal(buf_peek(&out).ptr, whole, sizeof(whole));
	buf_fini(&out);
	kit_fini(&k);
}

/* More matches than have a place, in the begin of a longer one that never
 * ends: what stands between the last is masked too, in every cut alike. */
static void stream__too_many_pending(void **state)
{
	struct buf first = BUF_INIT(1024), out = BUF_INIT(1024);
	char value[7 * 20 + 1], body[7 * 20 + 1];
	struct kit k = { 0 };
	size_t step, i;

	(void)state;
	for (i = 0; i < 20; i++)
		memcpy(value + i * 7, "secret.", 7);
	memcpy(body, value, sizeof(body));
	value[sizeof(value) - 1] = '!';
	body[sizeof(body) - 1] = '?';
	kit_add(&k, "", span_of(value, sizeof(value)));
	kit_add(&k, "", SPAN("secret"));
	kit_build(&k);
	(void)kit_redact(&k, span_of(body, sizeof(body)), 1, &first);
	assert_int_equal(buf_len(&first), sizeof(body));
	for (i = 0; i < sizeof(body) - 1; i++)
		assert_true(buf_peek(&first).ptr[i] != 's');
	assert_int_equal(buf_peek(&first).ptr[6], '.');
	assert_int_equal(buf_peek(&first).ptr[sizeof(body) - 1], '?');
	for (step = 2; step < sizeof(body); step++) {
		buf_clear(&out);
		(void)kit_redact(&k, span_of(body, sizeof(body)), step, &out);
		assert_true(span_eq(buf_peek(&out), buf_peek(&first)));
	}
	buf_fini(&first);
	buf_fini(&out);
	kit_fini(&k);
}

static void text__masks_a_header(void **state)
{
	struct buf out = BUF_INIT(64);
	struct kit k = { 0 };
	uint64_t hits = 1;

	(void)state;
	kit_add(&k, "Bearer ", SPAN("secret-value"));
	kit_build(&k);
	assert_int_equal(redact_text(k.automaton, SPAN("a=secret-value; b"),
				     &out, &hits),
			 0);
	assert_int_equal(hits, 2);
	assert_true(span_eq(buf_peek(&out), SPAN("a=[REDACTED]**; b")));
	out.max = 20;
	assert_int_equal(redact_text(k.automaton, SPAN("a=secret-value; b"),
				     &out, &hits),
			 -ENOBUFS);
	buf_fini(&out);
	kit_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stream__equals_the_whole),
		cmocka_unit_test(stream__any_single_split),
		cmocka_unit_test(stream__holds_back_only_begins),
		cmocka_unit_test(stream__passes_on_errors),
		cmocka_unit_test(stream__endless_chain),
		cmocka_unit_test(stream__too_many_pending),
		cmocka_unit_test(text__masks_a_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
