/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_chunked.c - chunked bodies: the same result for every splitting */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/wire/h1.h"

struct result {
	enum h1_error error;
	bool done;
	size_t consumed;
	struct buf data, trailers;
};

/* One piece of input, as an exact heap copy; returns what was consumed. */
static size_t feed(struct h1_chunked *c, struct span piece, struct result *ret)
{
	char *copy = malloc(piece.len);
	struct span in = span_of(copy, piece.len), data;

	assert_non_null(copy);
	memcpy(copy, piece.ptr, piece.len);
	do {
		ret->error = h1_chunked_next(c, &in, &data, &ret->trailers);
		assert_int_equal(buf_put(&ret->data, data), 0);
	} while (!ret->error && !c->done && (in.len || data.len));
	ret->done = c->done;
	free(copy);
	return piece.len - in.len;
}

static void decode(struct span in, size_t max_step, struct result *ret)
{
	struct h1_chunked c = { 0 };
	size_t step, taken;

	*ret = (struct result){ .data = BUF_INIT(1 << 20),
				.trailers = BUF_INIT(1 << 20) };
	while (in.len && !ret->error && !ret->done) {
		step = max_step > 1 ? 1 + (size_t)random() % max_step : 1;
		step = MIN(step, in.len);
		taken = feed(&c, span_of(in.ptr, step), ret);
		ret->consumed += taken;
		assert_true(taken == step || ret->error || ret->done);
		in = span_from(in, taken);
	}
}

static void result_fini(struct result *r)
{
	buf_fini(&r->data);
	buf_fini(&r->trailers);
}

static void check(struct span in, size_t max_step, const struct result *as)
{
	struct result r;

	decode(in, max_step, &r);
	assert_int_equal(r.error, as->error);
	assert_int_equal(r.done, as->done);
	assert_int_equal(r.consumed, as->consumed);
	assert_true(span_eq(buf_peek(&r.data), buf_peek(&as->data)));
	assert_true(span_eq(buf_peek(&r.trailers), buf_peek(&as->trailers)));
	result_fini(&r);
}

/* Decodes in one piece, and holds every other splitting to that. */
static void decode_every_splitting(struct span in, struct result *ret)
{
	int i;

	decode(in, SIZE_MAX, ret);
	check(in, 1, ret);
	for (i = 0; i < 30; i++)
		check(in, 1 + (size_t)i, ret);
}

static const struct good {
	struct span in;
	const char *data, *trailers;
	size_t rest; /* bytes behind the body, not consumed */
} good[] = {
	{ SPAN_INIT("0\r\n\r\n"), "", "", 0 },
	{ SPAN_INIT("000\r\n\r\n"), "", "", 0 },
	{ SPAN_INIT("5\r\nhello\r\n0\r\n\r\n"), "hello", "", 0 },
	{ SPAN_INIT("5\r\nhello\r\n0\r\n\r\nGET /"), "hello", "", 5 },
	{ SPAN_INIT("5\r\nhe\r\nl\r\n1\r\n!\r\n0\r\n\r\n"), "he\r\nl!", "", 0 },
	{ SPAN_INIT("A\r\n0123456789\r\n0b\r\n0123456789a\r\n0\r\n\r\n"),
	  "01234567890123456789a", "", 0 },
	{ SPAN_INIT("0000000000000005\r\nhello\r\n0\r\n\r\n"), "hello", "", 0 },
	{ SPAN_INIT("2;a=b\r\nhi\r\n0;x\r\n\r\n"), "hi", "", 0 },
	{ SPAN_INIT("2;a=\"b ;\t\xff\" \r\nhi\r\n0;\r\n\r\n"), "hi", "", 0 },
	{ SPAN_INIT("1\r\nx\r\n0\r\nGrpc-Status: 0\r\nX:\r\n\r\n"), "x",
	  "Grpc-Status: 0\r\nX:\r\n", 0 },
	{ SPAN_INIT("0\r\nETag: \"a\tb\xff\"\r\n\r\nrest"), "",
	  "ETag: \"a\tb\xff\"\r\n", 4 },
};

static void chunked__good(void **state)
{
	struct result r;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		decode_every_splitting(good[i].in, &r);
		assert_int_equal(r.error, H1_OK);
		assert_true(r.done);
		assert_int_equal(r.consumed, good[i].in.len - good[i].rest);
		assert_true(span_eq(buf_peek(&r.data), span_str(good[i].data)));
		assert_true(span_eq(buf_peek(&r.trailers),
				    span_str(good[i].trailers)));
		result_fini(&r);
	}
}

static void chunked__every_truncation_needs_more(void **state)
{
	struct result r;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		for (len = 0; len < good[i].in.len - good[i].rest; len++) {
			decode(span_of(good[i].in.ptr, len), SIZE_MAX, &r);
			assert_int_equal(r.error, H1_OK);
			assert_false(r.done);
			result_fini(&r);
		}
	}
}

static const struct {
	struct span in;
	enum h1_error error;
} refused[] = {
	{ SPAN_INIT("\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT(";x\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("g\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT(" 5\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("+5\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("-5\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("0x5\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5 \r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5\t\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5 ;x\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5,5\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5\rx"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5\r\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5\0\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5;a\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5;a\0\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("5;a\rb\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("00000000000000005\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("8000000000000000\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("ffffffffffffffff\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("10000000000000000\r\n"), H1_E_CHUNK_SIZE },
	{ SPAN_INIT("2\r\nhello\r\n"), H1_E_CHUNK_END },
	{ SPAN_INIT("2\r\nhi\n0\r\n\r\n"), H1_E_CHUNK_END },
	{ SPAN_INIT("2\r\nhi\rx"), H1_E_CHUNK_END },
	{ SPAN_INIT("2\r\nhi0\r\n\r\n"), H1_E_CHUNK_END },
	{ SPAN_INIT("0\r\n\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\n\rx"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\n x: y\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\n: y\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx : y\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx: y\nz: 1\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx: y\rz"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx: y\r\n folded\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nx: \0\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nGET / HTTP/1.1\r\n"), H1_E_TRAILER },
	{ SPAN_INIT("0\r\nContent-Length: 5\r\n"), H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nx: y\r\ntransfer-encoding: chunked\r\n"),
	  H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nHost: b\r\n"), H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nAUTHORIZATION: b\r\n"), H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nConnection: close\r\n"), H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nProxy-Authentication-Info: x\r\n"),
	  H1_E_TRAILER_FIELD },
	{ SPAN_INIT("0\r\nTrailer: x\r\n"), H1_E_TRAILER_FIELD },
};

static void chunked__refused(void **state)
{
	struct result r;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(refused); i++) {
		decode_every_splitting(refused[i].in, &r);
		if (r.error != refused[i].error)
			fail_msg("%s: %s", refused[i].in.ptr,
				 h1_error_text(r.error));
		assert_false(r.done);
		result_fini(&r);
	}
}

/* A refusal stays, and nothing more is consumed. */
static void chunked__refusal_is_for_ever(void **state)
{
	struct h1_chunked c = { 0 };
	struct span in = SPAN("x"), data;

	(void)state;
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL),
			 H1_E_CHUNK_SIZE);
	in = SPAN("0\r\n\r\n");
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL),
			 H1_E_CHUNK_SIZE);
	assert_int_equal(in.len, 5);
	assert_false(c.done);
}

static void chunked__nothing_after_the_end(void **state)
{
	struct h1_chunked c = { 0 };
	struct span in = SPAN("0\r\n\r\nnext"), data;

	(void)state;
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL), H1_OK);
	assert_true(c.done);
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL), H1_OK);
	assert_true(span_eq(in, SPAN("next")));
	assert_int_equal(data.len, 0);
}

static void chunked__line_bounds(void **state)
{
	char text[H1_CHUNK_LINE_MAX + 16];
	struct result r;
	size_t len;

	(void)state;
	memset(text, 'e', sizeof(text));
	memcpy(text, "1;", 2);
	len = H1_CHUNK_LINE_MAX;
	memcpy(text + len, "\r\nx\r\n", 5);
	decode_every_splitting(span_of(text, len + 5), &r);
	assert_int_equal(r.error, H1_OK);
	result_fini(&r);

	memset(text + len, 'e', 5);
	memcpy(text + len + 1, "\r\nx\r\n", 5);
	decode_every_splitting(span_of(text, len + 6), &r);
	assert_int_equal(r.error, H1_E_CHUNK_LINE);
	result_fini(&r);
}

static void chunked__trailer_bounds(void **state)
{
	static char text[H1_TRAILER_MAX + 64];
	struct result r;
	size_t len;

	(void)state;
	memset(text, 'v', sizeof(text));
	memcpy(text, "0\r\nx:", 5);
	len = 3 + H1_TRAILER_MAX; /* "x:vvv\r\n" is as long as allowed */
	memcpy(text + len - 2, "\r\n\r\n", 4);
	decode(span_of(text, len + 2), 7, &r);
	assert_int_equal(r.error, H1_OK);
	assert_true(r.done);
	assert_int_equal(buf_len(&r.trailers), H1_TRAILER_MAX);
	result_fini(&r);

	memset(text + len - 2, 'v', 4);
	memcpy(text + len - 1, "\r\n\r\n", 4);
	decode(span_of(text, len + 3), 7, &r);
	assert_int_equal(r.error, H1_E_TRAILER_TOO_LARGE);
	result_fini(&r);
}

static void chunked__trailer_name_bounds(void **state)
{
	struct h1_chunked c = { 0 };
	struct span in, data;
	char text[300];
	int len;

	(void)state;
	len = snprintf(text, sizeof(text), "0\r\n%0256d: x\r\n\r\n", 0);
	in = span_of(text, (size_t)len);
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL), H1_OK);
	assert_true(c.done);

	c = (struct h1_chunked){ 0 };
	len = snprintf(text, sizeof(text), "0\r\n%0257d: x\r\n\r\n", 0);
	in = span_of(text, (size_t)len);
	assert_int_equal(h1_chunked_next(&c, &in, &data, NULL), H1_E_TRAILER);
}

static void chunked__caller_may_bound_trailers(void **state)
{
	struct buf trailers = BUF_INIT(8);
	struct h1_chunked c = { 0 };
	struct span in = SPAN("0\r\nx: 12345\r\n\r\n"), data;

	(void)state;
	assert_int_equal(h1_chunked_next(&c, &in, &data, &trailers),
			 H1_E_TRAILER_TOO_LARGE);
	buf_fini(&trailers);
}

static void chunk_head__round_trip(void **state)
{
	static const uint64_t lens[] = { 0,	  1,	      9,
					 15,	  16,	      0x1a2b,
					 0xfffff, 0x80000000, INT64_MAX };
	char head[H1_CHUNK_HEAD_SIZE];
	struct h1_chunked c;
	struct span in, data;
	size_t i;

	(void)state;
	assert_int_equal(h1_chunk_head(0x1a2b, head), 6);
	assert_memory_equal(head, "1a2b\r\n", 6);
	assert_int_equal(h1_chunk_head(UINT64_MAX, head), 18);
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		c = (struct h1_chunked){ 0 };
		in = span_of(head, h1_chunk_head(lens[i], head));
		assert_int_equal(h1_chunked_next(&c, &in, &data, NULL), H1_OK);
		assert_int_equal(in.len, 0);
		assert_int_equal(c.left, lens[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chunked__good),
		cmocka_unit_test(chunked__every_truncation_needs_more),
		cmocka_unit_test(chunked__refused),
		cmocka_unit_test(chunked__refusal_is_for_ever),
		cmocka_unit_test(chunked__nothing_after_the_end),
		cmocka_unit_test(chunked__line_bounds),
		cmocka_unit_test(chunked__trailer_bounds),
		cmocka_unit_test(chunked__trailer_name_bounds),
		cmocka_unit_test(chunked__caller_may_bound_trailers),
		cmocka_unit_test(chunk_head__round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
