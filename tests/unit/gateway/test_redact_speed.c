/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_speed.c - memory stays flat through a gibibyte; prints MB/s */

#include <malloc.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#include "gateway/redact/redact_body.h"
#include "tests/unit/gateway/redact_encode.h"
#include "tests/unit/gateway/redact_kit.h"

enum {
	PIECE = 64 * 1024,
	PIECES = 16 * 1024, /* one GiB */
	CODED_PIECES = 200,
	TIMED_MS = 30,
};

static uint64_t seed = 1;

static unsigned pick(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

/* Of this thread: other tests may run beside this one. */
static uint64_t cpu_us(void)
{
	struct timespec t;

	must(!clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t));
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static int count_bytes(void *ctx, struct span bytes)
{
	*(uint64_t *)ctx += bytes.len;
	return 0;
}

static const char alnum[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "abcdefghijklmnopqrstuvwxyz0123456789+/";

static void token_make(char *token, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		token[i] = alnum[pick(62)];
}

/* As many credentials as a set of bindings may have. */
static void kit_make(struct kit *k, unsigned tokens)
{
	char token[44] = "ghp_";

	*k = (struct kit){ 0 };
	for (; tokens; tokens--) {
		token_make(token + 4, sizeof(token) - 4);
		kit_add(k, "Bearer ", span_of(token, sizeof(token)));
	}
	kit_build(k);
}

static void fill_text(const struct kit *k, char *p)
{
	static const char words[] =
		"The quick brown fox jumps over the lazy dog and tells it that "
		"a body without any secret is the usual case, by far.\r\n";
	size_t i;

	(void)k;
	for (i = 0; i < PIECE; i++)
		p[i] = words[i % (sizeof(words) - 1)];
}

static void fill_json(const struct kit *k, char *p)
{
	size_t at = 0;

	(void)k;
	while (at < PIECE - 160)
		at += (size_t)sprintf(
			p + at,
			"{\"id\":%u,\"name\":\"user-%x\",\"url\":\"https:\\/\\/"
			"example.com\\/"
			"a%%2Fb?x=%u\",\"note\":\"caf\\u00e9\"},\n",
			pick(1000000), pick(65536), pick(100));
	memset(p + at, ' ', PIECE - at);
}

static void fill_binary(const struct kit *k, char *p)
{
	size_t i;

	(void)k;
	for (i = 0; i < PIECE; i++)
		p[i] = (char)pick(256);
}

static void fill_base64(const struct kit *k, char *p)
{
	size_t i;

	(void)k;
	for (i = 0; i < PIECE; i++)
		p[i] = alnum[pick(64)];
}

/* Begins of patterns only: what an origin could do to be slow. */
static void fill_begins(const struct kit *k, char *p)
{
	struct span text;
	size_t i = 0;

	while (i < PIECE) {
		text = patterns_text(k->patterns,
				     pick(patterns_count(k->patterns)));
		text.len = MIN(text.len - 1, PIECE - i);
		memcpy(p + i, text.ptr, text.len);
		i += text.len;
	}
}

/* The middles of patterns: windows of the filter nearly everywhere, and never
 * the begin of anything. */
static void fill_windows(const struct kit *k, char *p)
{
	struct span text;
	size_t i;

	for (i = 0; i + 7 <= PIECE; i += 7) {
		text = patterns_text(k->patterns,
				     pick(patterns_count(k->patterns)));
		memcpy(p + i, text.ptr + 8 + pick(4), 7);
	}
}

/* Nothing but secrets. */
static void fill_hits(const struct kit *k, char *p)
{
	struct span text = patterns_text(k->patterns, 0);
	size_t i;

	for (i = 0; i < PIECE; i++)
		p[i] = text.ptr[i % text.len];
}

static double speed(const struct kit *k, const char *piece)
{
	uint64_t bytes = 0, began = cpu_us(), now;
	const struct redact_sink sink = { count_bytes, &bytes };
	struct redact_stream s;

	redact_stream_init(&s, k->automaton);
	do {
		must(!redact_stream_feed(&s, span_of(piece, PIECE), &sink));
		now = cpu_us();
	} while (now - began < TIMED_MS * 1000);
	return (double)bytes / (double)(now - began);
}

static void speed__is_printed(void **state)
{
	static const struct {
		const char *name;
		void (*fill)(const struct kit *k, char *p);
	} bodies[] = {
		{ "text", fill_text },	   { "json", fill_json },
		{ "binary", fill_binary }, { "base64", fill_base64 },
		{ "begins", fill_begins }, { "windows", fill_windows },
		{ "secrets", fill_hits },
	};
	static const unsigned tokens[] = { 1, 10, 100 };
	char *piece = must_alloc(PIECE);
	struct kit k;
	uint64_t began;
	size_t i, j;

	(void)state;
	for (i = 0; i < ARRAY_LEN(tokens); i++) {
		began = cpu_us();
		kit_make(&k, tokens[i]);
		printf("%u credentials: %u patterns, %zu bytes, built in %.1f "
		       "ms; MB/s:",
		       tokens[i], patterns_count(k.patterns),
		       automaton_size(k.automaton),
		       (double)(cpu_us() - began) / 1000);
		for (j = 0; j < ARRAY_LEN(bodies); j++) {
			bodies[j].fill(&k, piece);
			printf(" %s %.0f", bodies[j].name, speed(&k, piece));
		}
		printf("\n");
		kit_fini(&k);
	}
	free(piece);
}

/* What the process has from malloc(). */
static size_t memory_used(void)
{
	const struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

static void stream__memory_is_flat(void **state)
{
	uint64_t bytes = 0;
	const struct redact_sink sink = { count_bytes, &bytes };
	char *piece = must_alloc(PIECE), *begins = must_alloc(PIECE);
	struct redact_stream s;
	size_t before, i;
	struct kit k;

	(void)state;
	kit_make(&k, 3);
	fill_begins(&k, begins);
	fill_text(&k, piece);
	memcpy(piece + PIECE / 2, begins, PIECE / 32);
	memcpy(piece + PIECE - 9, patterns_text(k.patterns, 0).ptr, 9);
	redact_stream_init(&s, k.automaton);
	before = memory_used();
	for (i = 0; i < PIECES; i++)
		must(!redact_stream_feed(&s, span_of(piece, PIECE), &sink));
	assert_int_equal(memory_used(), before);
	assert_int_equal(redact_stream_flush(&s, &sink), 0);
	assert_int_equal(bytes, (uint64_t)PIECE * PIECES);
	kit_fini(&k);
	free(begins);
	free(piece);
}

/* Memory of a body that goes on and on, per coding; printed with the speed. */
static void body__memory_is_flat(void **state)
{
	static const struct {
		const char *name;
		enum encode_kind kind;
	} rows[] = {
		{ "gzip", ENCODE_GZIP },
		{ "deflate", ENCODE_ZLIB },
		{ "br", ENCODE_BROTLI_STORED },
		{ "zstd", ENCODE_ZSTD },
	};
	uint64_t bytes = 0, began, busy;
	const struct redact_sink sink = { count_bytes, &bytes };
	char *piece = must_alloc(PIECE);
	size_t none, settled = 0, i, j;
	struct buf in = BUF_INIT(PIECE * 2);
	struct encode_stream e;
	struct redact_body *b;
	struct span rest;
	struct kit k;

	(void)state;
	kit_make(&k, 1);
	fill_binary(&k, piece);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		encode_begin(&e, rows[i].kind);
		buf_clear(&in);
		encode_put(&e, span_of(piece, PIECE), &in);
		none = memory_used();
		busy = 0;
		must(!redact_body_new(k.automaton, span_str(rows[i].name), &b));
		for (j = 0; j < CODED_PIECES; j++) {
			rest = buf_peek(&in);
			began = cpu_us();
			must(!redact_body_feed(b, &rest, SIZE_MAX, &sink));
			busy += cpu_us() - began;
			buf_clear(&in);
			encode_put(&e, span_of(piece, PIECE), &in);
			if (j == CODED_PIECES / 2)
				settled = memory_used();
		}
		assert_int_equal(memory_used(), settled);
		printf("%s: %zu bytes of memory, %.0f MB/s\n", rows[i].name,
		       settled - none, (double)CODED_PIECES * PIECE / busy);
		(void)redact_body_free(b);
		encode_end(&e, &in);
	}
	buf_fini(&in);
	kit_fini(&k);
	free(piece);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speed__is_printed),
		cmocka_unit_test(stream__memory_is_flat),
		cmocka_unit_test(body__memory_is_flat),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
