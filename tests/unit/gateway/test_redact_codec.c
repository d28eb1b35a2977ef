/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_codec.c - codings are undone in any pieces, or refused */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/redact/codec.h"
#include "tests/unit/gateway/redact_encode.h"

enum { BODY = 200 * 1000 };

/* Decodes data in pieces; *error is what came first, or of the end. */
static void decode(const char *encodings, struct span data, size_t step,
		   size_t room, struct buf *out, int *error)
{
	char *text = must_alloc(room), *copy;
	struct span piece;
	struct codec *c;
	size_t len = 1, some;

	must(!codec_new(span_str(encodings), &c) && c);
	*error = 0;
	while (data.len && !*error) {
		some = MIN(step, data.len);
		copy = must_alloc(some);
		memcpy(copy, data.ptr, some);
		piece = span_of(copy, some);
		do {
			*error = codec_read(c, &piece, text, room, &len);
			must(!buf_put(out, span_of(text, len)));
		} while (len);
		must(*error || !piece.len);
		free(copy);
		data = span_from(data, some);
	}
	if (!*error)
		*error = codec_finish(c);
	else
		must(codec_read(c, &piece, text, room, &len) == *error);
	(void)codec_free(c);
	free(text);
}

static void body_fill(char *body, size_t len)
{
	size_t i;
	unsigned x = 7;

	for (i = 0; i < len; i++) {
		x = x * 1103515245 + 12345;
		body[i] = "etaoin shrdlu\n\"{}:,"[(x >> 16) % 19 * (x >> 30) %
						  19];
	}
}

static const struct {
	const char *name;
	enum encode_kind kind;
} codings[] = {
	{ "gzip", ENCODE_GZIP },	{ "X-GZIP", ENCODE_GZIP },
	{ "deflate", ENCODE_ZLIB },	{ "deflate", ENCODE_RAW },
	{ "br", ENCODE_BROTLI_STORED }, { "zstd", ENCODE_ZSTD },
};

static void codec__any_pieces(void **state)
{
	static const size_t steps[] = { 1, 2, 3, 7, 1000, 16384, BODY * 2 };
	struct buf in = BUF_INIT(BODY * 2), out = BUF_INIT(BODY);
	char *body = must_alloc(BODY);
	size_t i, j;
	int error;

	(void)state;
	body_fill(body, BODY);
	for (i = 0; i < ARRAY_LEN(codings); i++) {
		buf_clear(&in);
		encode(codings[i].kind, span_of(body, BODY), &in);
		for (j = 0; j < ARRAY_LEN(steps); j++) {
			buf_clear(&out);
			decode(codings[i].name, buf_peek(&in), steps[j],
			       j & 1 ? 100 : 16384, &out, &error);
			assert_int_equal(error, 0);
			assert_true(
				span_eq(buf_peek(&out), span_of(body, BODY)));
		}
	}
	buf_fini(&in);
	buf_fini(&out);
	free(body);
}

/* Every cut of a short body is told from the whole. */
static void codec__truncated(void **state)
{
	struct buf in = BUF_INIT(BODY), out = BUF_INIT(BODY);
	char body[3000];
	size_t i, cut;
	int error;

	(void)state;
	body_fill(body, sizeof(body));
	for (i = 0; i < ARRAY_LEN(codings); i++) {
		buf_clear(&in);
		encode(codings[i].kind, span_of(body, sizeof(body)), &in);
		for (cut = 0; cut < buf_len(&in); cut++) {
			buf_clear(&out);
			decode(codings[i].name, span_of(buf_peek(&in).ptr, cut),
			       512, 512, &out, &error);
			assert_int_equal(error, cut ? CODEC_E_TRUNCATED : 0);
		}
		buf_clear(&out);
		assert_int_equal(buf_put_str(&in, "x"), 0);
		decode(codings[i].name, buf_peek(&in), 512, 512, &out, &error);
		assert_true(error == CODEC_E_BROKEN ||
			    error == CODEC_E_TRUNCATED);
	}
	buf_fini(&in);
	buf_fini(&out);
}

static void codec__several_members(void **state)
{
	struct buf in = BUF_INIT(BODY), out = BUF_INIT(BODY);
	size_t step;
	int error;

	(void)state;
	for (step = 1; step < 200; step += 13) {
		buf_clear(&in);
		buf_clear(&out);
		encode(ENCODE_GZIP, SPAN("one, "), &in);
		encode(ENCODE_GZIP, SPAN(""), &in);
		encode(ENCODE_GZIP, SPAN("two"), &in);
		decode("gzip", buf_peek(&in), step, 3, &out, &error);
		assert_int_equal(error, 0);
		assert_true(span_eq(buf_peek(&out), SPAN("one, two")));

		buf_clear(&in);
		buf_clear(&out);
		encode(ENCODE_ZSTD, SPAN("one, "), &in);
		assert_int_equal(buf_put(&in, SPAN("\x5a\x2a\x4d\x18\x03\0\0"
						   "\0abc")),
				 0);
		encode(ENCODE_ZSTD, SPAN("two"), &in);
		decode("zstd", buf_peek(&in), step, 3, &out, &error);
		assert_int_equal(error, 0);
		assert_true(span_eq(buf_peek(&out), SPAN("one, two")));
	}
	buf_fini(&in);
	buf_fini(&out);
}

static void codec__lists(void **state)
{
	struct buf one = BUF_INIT(BODY), two = BUF_INIT(BODY),
		   three = BUF_INIT(BODY), out = BUF_INIT(BODY);
	static const size_t steps[] = { 1, 5, 4000, BODY };
	char body[60000];
	size_t i;
	int error;

	(void)state;
	body_fill(body, sizeof(body));
	encode(ENCODE_GZIP, span_of(body, sizeof(body)), &one);
	encode(ENCODE_BROTLI_STORED, buf_peek(&one), &two);
	encode(ENCODE_ZSTD, buf_peek(&two), &three);
	for (i = 0; i < ARRAY_LEN(steps); i++) {
		buf_clear(&out);
		decode("gzip, identity , br ,,\tzstd", buf_peek(&three),
		       steps[i], 1000, &out, &error);
		assert_int_equal(error, 0);
		assert_true(
			span_eq(buf_peek(&out), span_of(body, sizeof(body))));
	}
	buf_fini(&one);
	buf_fini(&two);
	buf_fini(&three);
	buf_fini(&out);
}

static void codec__names(void **state)
{
	static const char *const nothing[] = { "", "identity", " , Identity," };
	static const char *const unknown[] = {
		"compress",
		"gzip;q=1",
		"gzip br",
		"gzip, aes128gcm",
		"gzip,gzip,gzip,gzip",
		",,,,,,,,,",
		"dcb",
		"gzi",
		"gzipp",
	};
	struct codec *c = (void *)"";
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(nothing); i++) {
		assert_int_equal(codec_new(span_str(nothing[i]), &c), 0);
		assert_null(c);
	}
	for (i = 0; i < ARRAY_LEN(unknown); i++)
		assert_int_equal(codec_new(span_str(unknown[i]), &c),
				 CODEC_E_UNKNOWN);
	assert_int_equal(codec_new(SPAN("\0gzip"), &c), CODEC_E_UNKNOWN);
	assert_null(c);
	for (i = 0; i <= CODEC_ERROR_NUM; i++)
		assert_non_null(codec_error_name((enum codec_error)i));
}

static void codec__broken(void **state)
{
	static const char *const names[] = { "gzip", "deflate", "br", "zstd" };
	struct buf out = BUF_INIT(BODY);
	char large_window[] = { 0x11, 0x1e, 0x03 };
	size_t i;
	int error;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		buf_clear(&out);
		decode(names[i],
		       SPAN("\xff\xfe this is not in any way compressed"), 9,
		       64, &out, &error);
		assert_int_equal(error, CODEC_E_BROKEN);
	}
	decode("br", span_of(large_window, sizeof(large_window)), 9, 64, &out,
	       &error);
	assert_int_equal(error, CODEC_E_BROKEN);
	buf_fini(&out);
}

/* Reads all and throws it away; the bytes until the error. */
static uint64_t blow(const char *encodings, struct span data, int *error)
{
	static char text[16384];
	uint64_t bytes = 0;
	struct codec *c;
	size_t len;

	must(!codec_new(span_str(encodings), &c) && c);
	do {
		*error = codec_read(c, &data, text, sizeof(text), &len);
		bytes += len;
	} while (len && !*error);
	(void)codec_free(c);
	return bytes;
}

static void codec__bombs(void **state)
{
	/* 64 MiB of zeros */
	static const unsigned char brotli[] = {
		0xcb, 0xff, 0xff, 0x3f, 0x00, 0x24, 0x00, 0xe2, 0xb1, 0x40,
		0x72, 0xef, 0xff, 0xf8, 0xff, 0xff, 0x07, 0x80, 0x04, 0x40,
		0x1c, 0x16, 0x80, 0xee, 0xfd, 0x1f, 0xff, 0xff, 0xff, 0x00,
		0x90, 0x00, 0x88, 0xc3, 0x02, 0xd0, 0xbd, 0xff, 0xe3, 0xff,
		0xff, 0x1f, 0x00, 0x12, 0x00, 0x71, 0x58, 0x00, 0xba, 0xf7,
		0x7f, 0xfc, 0xff, 0xff, 0x03, 0x40, 0x02, 0x20, 0x0e, 0x0b,
		0x40, 0xf7, 0xfe, 0x8f, 0xff, 0xff, 0x7f, 0x00, 0x48, 0x00,
		0xc4, 0x61, 0x01, 0xe8, 0xde, 0xff, 0xf1, 0xff, 0xff, 0x0f,
		0x00, 0x09, 0x80, 0x38, 0x2c, 0x00, 0xdd, 0xfb, 0x3f, 0xfe,
		0xff, 0xff, 0x01, 0x20, 0x01, 0x10, 0x87, 0x05, 0xa0, 0x7b,
		0xff, 0x37
	};
	size_t len = 96 << 20;
	char *zeros = calloc(1, len);
	struct buf in = BUF_INIT(1 << 20), again = BUF_INIT(1 << 20);
	int error;

	(void)state;
	must(zeros != NULL);
	encode(ENCODE_GZIP, span_of(zeros, len), &in);
	assert_true(blow("gzip", buf_peek(&in), &error) < len / 2);
	assert_int_equal(error, CODEC_E_BOMB);

	/* a stage before the last counts too: it never gets far */
	encode(ENCODE_GZIP, buf_peek(&in), &again);
	assert_true(blow("gzip, gzip", buf_peek(&again), &error) < len / 2);
	assert_int_equal(error, CODEC_E_BOMB);

	buf_clear(&in);
	encode(ENCODE_ZSTD, span_of(zeros, len), &in);
	assert_true(blow("zstd", buf_peek(&in), &error) < len / 2);
	assert_int_equal(error, CODEC_E_BOMB);

	assert_true(blow("br", span_of(brotli, sizeof(brotli)), &error) <
		    len / 2);
	assert_int_equal(error, CODEC_E_BOMB);
	free(zeros);
	buf_fini(&in);
	buf_fini(&again);
}

/* A frame that says it needs a window of 512 MiB. */
static void codec__zstd_window(void **state)
{
	static const unsigned char frame[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x00,
					       0x98, 0x01, 0x00, 0x00 };
	int error;

	(void)state;
	assert_int_equal(blow("zstd", span_of(frame, sizeof(frame)), &error),
			 0);
	assert_int_equal(error, CODEC_E_BOMB);
}

/* What the library knows from before the RFC, whole and in pieces. */
static void codec__zstd_legacy(void **state)
{
	char frame[] = "\x26\xb5\x2f\xfd\x41\x01\0\0\0";
	struct buf out = BUF_INIT(64);
	size_t step;
	int version, error;

	(void)state;
	for (version = 0x22; version < 0x28; version++)
		for (step = 1; step < 6; step++) {
			frame[0] = (char)version;
			decode("zstd", span_of(frame, sizeof(frame) - 1), step,
			       64, &out, &error);
			assert_int_equal(error, CODEC_E_BROKEN);
		}
	assert_int_equal(buf_len(&out), 0);
	buf_fini(&out);
}

static void codec__brotli_window_24(void **state)
{
	static const unsigned char data[] = {
		0x1f, 0xf5, 0x09, 0x90, 0x8d, 0x93, 0x4c, 0xf9, 0x99, 0x77,
		0xff, 0xc7, 0x24, 0xdd, 0x3b, 0x5e, 0x5c, 0xe4, 0xc7, 0x81,
		0xb4, 0x77, 0x61, 0x85, 0x02, 0xe2, 0xe0, 0x00, 0x70, 0x78,
		0x86, 0xa2, 0x58, 0x32, 0x0c, 0x44, 0x83, 0x0d, 0x38, 0x8a,
		0x35, 0x92, 0x10, 0x07, 0xbb, 0xbf, 0xb0, 0x01, 0xd5, 0xe9,
		0xd3, 0xfd, 0x81, 0x06, 0xc3, 0xdd, 0xea, 0xbd, 0x7b, 0x77,
		0x0e, 0xc7, 0xe7, 0x62, 0xaa, 0xf7, 0x2d, 0xde, 0xe6, 0x78,
		0xd9, 0xdd, 0x47, 0x7b, 0xc5, 0x1b, 0x88, 0x63, 0x5d, 0xb8,
		0x43, 0xc3, 0xbf, 0x21, 0x41, 0x86, 0x02, 0x15, 0x1a, 0x74,
		0x18, 0x30, 0x61, 0x6d, 0x12, 0x22, 0x49, 0xb2, 0x14, 0xa9,
		0xd2, 0xa4, 0xcb, 0x90, 0x09, 0x2b, 0xc9, 0x28, 0x49, 0xb2,
		0x14, 0xa9, 0xd2, 0xa4, 0xcb, 0x90, 0x09, 0x2b, 0x29, 0x28,
		0x49, 0xb2, 0x14, 0xa9, 0xd2, 0xa4, 0xcb, 0x90, 0x39, 0xf5,
		0x07
	};
	struct buf out = BUF_INIT(BODY);
	size_t step;
	int error;

	(void)state;
	for (step = 1; step < sizeof(data); step++) {
		buf_clear(&out);
		decode("br", span_of(data, sizeof(data)), step, 100, &out,
		       &error);
		assert_int_equal(error, 0);
		assert_int_equal(buf_len(&out), 2550);
	}
	buf_fini(&out);
}

/* An event leaves with the bytes that bring it. */
static void codec__flushed_events(void **state)
{
	static const enum encode_kind kinds[] = { ENCODE_GZIP, ENCODE_ZLIB,
						  ENCODE_RAW, ENCODE_ZSTD,
						  ENCODE_BROTLI_STORED };
	static const char *const names[] = { "gzip", "deflate", "deflate",
					     "zstd", "br" };
	struct encode_stream e;
	struct buf in = BUF_INIT(1 << 16);
	struct span piece;
	struct codec *c;
	char text[256];
	size_t i, j, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		encode_begin(&e, kinds[i]);
		must(!codec_new(span_str(names[i]), &c));
		for (j = 0; j < 40; j++) {
			buf_clear(&in);
			encode_put(&e, SPAN("data: event\n\n"), &in);
			piece = buf_peek(&in);
			assert_int_equal(
				codec_read(c, &piece, text, sizeof(text), &len),
				0);
			assert_true(span_eq(span_of(text, len),
					    SPAN("data: event\n\n")));
			/* asking again is no error, however often */
			assert_int_equal(
				codec_read(c, &piece, text, sizeof(text), &len),
				0);
			assert_int_equal(len, 0);
		}
		for (j = 0; j < 40; j++)
			assert_int_equal(
				codec_read(c, &piece, text, sizeof(text), &len),
				0);
		(void)codec_free(c);
		encode_end(&e, &in);
	}
	buf_fini(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(codec__any_pieces),
		cmocka_unit_test(codec__truncated),
		cmocka_unit_test(codec__several_members),
		cmocka_unit_test(codec__lists),
		cmocka_unit_test(codec__names),
		cmocka_unit_test(codec__broken),
		cmocka_unit_test(codec__bombs),
		cmocka_unit_test(codec__zstd_window),
		cmocka_unit_test(codec__zstd_legacy),
		cmocka_unit_test(codec__brotli_window_24),
		cmocka_unit_test(codec__flushed_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
