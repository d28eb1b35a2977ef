/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_body.c - bodies of every coding come out clean, or not at all */

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/redact/redact_body.h"
#include "tests/unit/gateway/redact_encode.h"
#include "tests/unit/gateway/redact_kit.h"

enum { BODY = 60 * 1000, ROUNDS = 12 };

#define VALUE "ghp_R4nd0mT0kenOf40Characters/+=\"&"

static uint64_t seed = 99;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

static void kit_make(struct kit *k)
{
	*k = (struct kit){ 0 };
	kit_add(k, "Bearer ", SPAN(VALUE));
	kit_add(k, "Basic ", SPAN("YWxpY2U6d29uZGVybGFuZA=="));
	kit_add(k, "", SPAN("overlapoverlap"));
	kit_build(k);
}

static void body_make(const struct kit *k, char *body)
{
	struct span text;
	size_t len = 0, some;

	while (len < BODY) {
		text = patterns_text(k->patterns,
				     pick(patterns_count(k->patterns)));
		some = pick(2) ? text.len : pick((unsigned)text.len);
		some = MIN(some, BODY - len);
		memcpy(body + len, text.ptr, some);
		len += some;
		some = pick(200);
		some = MIN(some, BODY - len);
		memset(body + len, (int)pick(256), some);
		len += some;
	}
}

/* Feeds all of data in random pieces with random room; the first error. */
static int body_run(struct redact_body *b, struct span data, struct buf *out)
{
	const struct redact_sink sink = { kit_emit, out };
	struct span piece;
	size_t some;
	int r;

	while (data.len) {
		some = 1 + pick(5000);
		some = MIN(some, data.len);
		piece = span_of(data.ptr, some);
		do
			r = redact_body_feed(b, &piece, 1 + pick(40000), &sink);
		while (r == REDACT_MORE);
		if (r)
			return r;
		assert_int_equal(piece.len, 0);
		data = span_from(data, some);
	}
	return redact_body_finish(b, &sink);
}

static void body__of_every_coding(void **state)
{
	static const struct {
		const char *name;
		enum encode_kind kinds[3];
	} rows[] = {
		{ "", { ENCODE_NONE } },
		{ "identity", { ENCODE_NONE } },
		{ "gzip", { ENCODE_GZIP } },
		{ "deflate", { ENCODE_ZLIB } },
		{ "deflate", { ENCODE_RAW } },
		{ "br", { ENCODE_BROTLI_STORED } },
		{ "zstd", { ENCODE_ZSTD } },
		{ "gzip, zstd", { ENCODE_GZIP, ENCODE_ZSTD } },
		{ "zstd, br, gzip",
		  { ENCODE_ZSTD, ENCODE_BROTLI_STORED, ENCODE_GZIP } },
	};
	struct buf in = BUF_INIT(BODY * 2), next = BUF_INIT(BODY * 2),
		   out = BUF_INIT(BODY), swap;
	char *body = must_alloc(BODY);
	struct redact_body *b;
	uint64_t hits;
	struct kit k;
	size_t i, j;

	(void)state;
	kit_make(&k);
	for (i = 0; i < ARRAY_LEN(rows) * ROUNDS; i++) {
		body_make(&k, body);
		buf_clear(&in);
		buf_clear(&out);
		assert_int_equal(buf_put(&in, span_of(body, BODY)), 0);
		for (j = 0; j < 3 && rows[i / ROUNDS].kinds[j]; j++) {
			buf_clear(&next);
			encode(rows[i / ROUNDS].kinds[j], buf_peek(&in), &next);
			swap = in;
			in = next;
			next = swap;
		}
		assert_int_equal(
			redact_body_new(k.automaton,
					span_str(rows[i / ROUNDS].name), &b),
			0);
		assert_int_equal(redact_body_is_decoded(b), i / ROUNDS > 1);
		assert_int_equal(body_run(b, buf_peek(&in), &out), 0);
		hits = naive_redact(&k, body, BODY);
		assert_true(hits > 10);
		assert_int_equal(redact_body_hits(b), hits);
		assert_int_equal(buf_len(&out), BODY);
		assert_memory_equal(buf_peek(&out).ptr, body, BODY);
		(void)redact_body_free(b);
	}
	buf_fini(&in);
	buf_fini(&next);
	buf_fini(&out);
	kit_fini(&k);
	free(body);
}

/* Little room means little at once, whatever a byte grows to. */
static void body__stops_where_asked(void **state)
{
	size_t len = 20 << 20, before;
	struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(len);
	const struct redact_sink sink = { kit_emit, &out };
	char *zeros = calloc(1, len);
	struct redact_body *b;
	struct span piece;
	struct kit k;
	int r = REDACT_MORE;

	(void)state;
	must(zeros != NULL);
	kit_make(&k);
	encode(ENCODE_GZIP, span_of(zeros, len), &in);
	assert_int_equal(redact_body_new(k.automaton, SPAN("gzip"), &b), 0);
	piece = buf_peek(&in);
	while (r == REDACT_MORE) {
		before = buf_len(&out);
		r = redact_body_feed(b, &piece, 30000, &sink);
		assert_true(r == REDACT_MORE || r == 0);
		assert_true(buf_len(&out) - before <= 32768);
	}
	assert_int_equal(piece.len, 0);
	assert_int_equal(redact_body_finish(b, &sink), 0);
	assert_int_equal(buf_len(&out), len);
	(void)redact_body_free(b);
	buf_fini(&in);
	buf_fini(&out);
	kit_fini(&k);
	free(zeros);
}

static int emit_fail(void *ctx, struct span bytes)
{
	(void)ctx;
	(void)bytes;
	return -EPIPE;
}

static void body__errors_stick(void **state)
{
	const struct redact_sink broken = { emit_fail, NULL };
	struct buf in = BUF_INIT(1 << 16), out = BUF_INIT(4096);
	const struct redact_sink sink = { kit_emit, &out };
	struct redact_body *b = NULL;
	struct span piece;
	struct kit k;

	(void)state;
	kit_make(&k);
	assert_int_equal(redact_body_new(k.automaton, SPAN("lzma"), &b),
			 CODEC_E_UNKNOWN);
	assert_null(b);
	assert_null(redact_body_free(b));

	assert_int_equal(redact_body_new(k.automaton, SPAN("gzip"), &b), 0);
	piece = SPAN("plain");
	assert_int_equal(redact_body_feed(b, &piece, 100, &sink),
			 CODEC_E_BROKEN);
	assert_int_equal(redact_body_feed(b, &piece, 100, &sink),
			 CODEC_E_BROKEN);
	assert_int_equal(redact_body_finish(b, &sink), CODEC_E_BROKEN);
	(void)redact_body_free(b);

	encode(ENCODE_GZIP, SPAN("hello"), &in);
	assert_int_equal(redact_body_new(k.automaton, SPAN("gzip"), &b), 0);
	piece = span_of(buf_peek(&in).ptr, buf_len(&in) - 1);
	assert_int_equal(redact_body_feed(b, &piece, 100, &sink), 0);
	assert_int_equal(redact_body_finish(b, &sink), CODEC_E_TRUNCATED);
	(void)redact_body_free(b);

	assert_int_equal(redact_body_new(k.automaton, SPAN(""), &b), 0);
	piece = SPAN("hello");
	assert_int_equal(redact_body_feed(b, &piece, 100, &broken), -EPIPE);
	assert_int_equal(redact_body_finish(b, &sink), -EPIPE);
	(void)redact_body_free(b);
	buf_fini(&in);
	buf_fini(&out);
	kit_fini(&k);
}

static void grpc_put(struct buf *b, struct span text)
{
	const uint8_t head[5] = { 0, 0, 0, (uint8_t)(text.len >> 8),
				  (uint8_t)text.len };

	assert_int_equal(buf_put(b, span_of(head, sizeof(head))), 0);
	assert_int_equal(buf_put(b, text), 0);
}

static struct redact_body *grpc_body(const struct kit *k)
{
	struct redact_body *b;

	assert_int_equal(redact_body_new(k->automaton, SPAN(""), &b), 0);
	redact_body_set_grpc(b);
	return b;
}

/* No message waits for the next one, however it ends and is cut. */
static void body__messages_do_not_wait(void **state)
{
	static const char *const texts[] = {
		"a whole one",
		"",
		"ends with ghp_",
		"g",
		"ghp_R4nd0mT0kenOf40",
		"ends with Z2hw", /* and with the begin of its base64 */
		"before " VALUE " after",
		VALUE,
		"",
		/* 'g' (103) bytes: the length and what follows would match */
		"hp_R4nd0mT0kenOf40Characters/+=\"&"
		"0123456789012345678901234567890123456789"
		"01234567890123456789012345678g",
	};
	struct buf in = BUF_INIT(1000), want = BUF_INIT(1000),
		   clean = BUF_INIT(1000), out = BUF_INIT(1000);
	const struct redact_sink sink = { kit_emit, &out };
	struct redact_body *b;
	struct span piece, rest;
	size_t step, i;
	struct kit k;

	(void)state;
	kit_make(&k);
	assert_int_equal(strlen(texts[ARRAY_LEN(texts) - 1]), 'g');
	for (step = 1; step < 120; step++) {
		b = grpc_body(&k);
		buf_clear(&out);
		buf_clear(&want);
		for (i = 0; i < ARRAY_LEN(texts); i++) {
			buf_clear(&in);
			buf_clear(&clean);
			grpc_put(&in, span_str(texts[i]));
			(void)kit_redact(&k, span_str(texts[i]), 1000, &clean);
			grpc_put(&want, buf_peek(&clean));
			for (rest = buf_peek(&in); rest.len;) {
				piece = span_of(rest.ptr, MIN(step, rest.len));
				rest = span_from(rest, piece.len);
				assert_int_equal(redact_body_feed(b, &piece,
								  1000, &sink),
						 0);
			}
			/* its last byte is there already */
			assert_true(span_eq(buf_peek(&out), buf_peek(&want)));
		}
		assert_int_equal(redact_body_hits(b), 2);
		assert_int_equal(redact_body_finish(b, &sink), 0);
		assert_true(span_eq(buf_peek(&out), buf_peek(&want)));
		(void)redact_body_free(b);
	}
	buf_fini(&in);
	buf_fini(&want);
	buf_fini(&clean);
	buf_fini(&out);
	kit_fini(&k);
}

/* What is compressed is not searched, and not shown. */
static void body__compressed_message_is_refused(void **state)
{
	struct buf out = BUF_INIT(1000);
	const struct redact_sink sink = { kit_emit, &out };
	struct redact_body *b;
	struct span piece = SPAN("\0\0\0\0\2ok\1\0\0\0\3abc");
	struct kit k;

	(void)state;
	kit_make(&k);
	b = grpc_body(&k);
	assert_int_equal(redact_body_feed(b, &piece, 1000, &sink),
			 CODEC_E_UNKNOWN);
	assert_true(span_eq(buf_peek(&out), SPAN("\0\0\0\0\2ok")));
	assert_int_equal(redact_body_finish(b, &sink), CODEC_E_UNKNOWN);
	(void)redact_body_free(b);
	buf_fini(&out);
	kit_fini(&k);
}

/* A message that breaks off: all of it goes, and no more is held. */
static void body__message_that_breaks_off(void **state)
{
	struct buf out = BUF_INIT(1000);
	const struct redact_sink sink = { kit_emit, &out };
	struct span whole = SPAN("\0\0\0\1\0ends with ghp_R4"), piece;
	struct redact_body *b;
	struct kit k;
	size_t len;

	(void)state;
	kit_make(&k);
	for (len = 0; len <= whole.len; len++) {
		b = grpc_body(&k);
		buf_clear(&out);
		piece = span_of(whole.ptr, len);
		assert_int_equal(redact_body_feed(b, &piece, 1000, &sink), 0);
		assert_int_equal(redact_body_finish(b, &sink), 0);
		assert_true(span_eq(buf_peek(&out), span_of(whole.ptr, len)));
		(void)redact_body_free(b);
	}
	buf_fini(&out);
	kit_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(body__of_every_coding),
		cmocka_unit_test(body__stops_where_asked),
		cmocka_unit_test(body__errors_stick),
		cmocka_unit_test(body__messages_do_not_wait),
		cmocka_unit_test(body__compressed_message_is_refused),
		cmocka_unit_test(body__message_that_breaks_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
