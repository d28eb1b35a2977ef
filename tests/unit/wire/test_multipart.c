/* SPDX-License-Identifier: Apache-2.0 */
/* test_multipart.c - forms whole, at every split, cut short and malformed */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/wire/multipart.h"

#define TYPE SPAN("multipart/form-data; boundary=XyZ")

/* What was told, as text: "<name|filename|type>bytes</>" and "." at the end. */
static void tell(struct buf *out, const struct multipart_event *ev)
{
	switch (ev->kind) {
	case MULTIPART_PART:
		assert_int_equal(
			buf_putf(out, "<%.*s|%s%.*s|%.*s>", SPAN_FMT(ev->name),
				 ev->filename.ptr ? "=" : "-",
				 SPAN_FMT(ev->filename), SPAN_FMT(ev->type)),
			0);
		return;
	case MULTIPART_BYTES:
		assert_true(ev->bytes.len > 0);
		assert_int_equal(buf_put(out, ev->bytes), 0);
		return;
	case MULTIPART_PART_END:
		assert_int_equal(buf_put_str(out, "</>"), 0);
		return;
	case MULTIPART_END:
		assert_int_equal(buf_put_str(out, "."), 0);
		return;
	}
	fail();
}

/* Feeds the body, cut at `cut` and in steps of `step`; the last error. */
static int feed(struct span type, struct span body, size_t cut, size_t step,
		struct buf *out)
{
	struct multipart_event ev;
	struct multipart m;
	struct span piece;
	size_t at = 0, len;
	char *copy;
	int r = 0;

	assert_int_equal(multipart_init(&m, type), MULTIPART_OK);
	buf_clear(out);
	while (at < body.len && r >= 0) {
		len = MIN(step, body.len - at);
		if (at < cut)
			len = MIN(len, cut - at);
		/* an exact copy: not a byte too far, nothing kept of it */
		copy = malloc(len);
		assert_non_null(copy);
		memcpy(copy, body.ptr + at, len);
		piece = span_of(copy, len);
		while ((r = multipart_next(&m, &piece, &ev)) > 0)
			tell(out, &ev);
		assert_true(r < 0 || !piece.len);
		memset(copy, '#', len);
		free(copy);
		at += len;
	}
	if (r >= 0)
		r = -(int)multipart_end(&m);
	multipart_fini(&m);
	return r;
}

static const struct {
	struct span body;
	const char *told;
} good[] = {
	{ SPAN_INIT("--XyZ\r\n"
		    "Content-Disposition: form-data; name=\"metadata\"; "
		    "filename=\"m\"\r\n"
		    "Content-Type: application/json\r\n\r\n"
		    "{\"path\":\"/a\"}\r\n--XyZ\r\n"
		    "content-disposition: form-data;name=file;filename=x\r\n"
		    "\r\nbytes\r\n--XyZ--\r\n"),
	  "<metadata|=m|application/json>{\"path\":\"/a\"}</>"
	  "<file|=x|>bytes</>." },
	/* nothing in it; a preamble and an epilogue */
	{ SPAN_INIT("--XyZ--"), "." },
	{ SPAN_INIT("hello\r\n--XyZ--\r\nbye\r\n--XyZ\r\n"), "." },
	{ SPAN_INIT("--Xy--XyZ\r\n--XyZ \t \r\n"
		    "Content-Disposition: form-data; name=a\r\n\r\n\r\n"
		    "--XyZ--"),
	  "<a|-|></>." },
	/* a part without a body at all */
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=a\r\n\r\n"
		    "--XyZ--"),
	  "<a|-|></>." },
	/* what only looks like the delimiter */
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=a\r\n\r\n"
		    "\r\n--XyZZ\r\n--Xy\r\r\n--XyZ-\r\n--XyZ \r \r\n--XyZ--"),
	  "<a|-|>\r\n--XyZZ\r\n--Xy\r\r\n--XyZ-\r\n--XyZ \r </>." },
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=a\r\n\r\n"
		    "--XyZ2\r\n--XyZ--"),
	  "<a|-|>--XyZ2</>." },
	/* names and file names as clients write them */
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=\"a;\\\"b\";"
		    " filename=\"C:\\dir\\\\f\"\r\n\r\n\r\n--XyZ--"),
	  "<a;\"b|=C:\\dir\\f|></>." },
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=f; "
		    "filename=\"\"\r\n\r\n1\r\n--XyZ--"),
	  "<f|=|>1</>." },
	{ SPAN_INIT("--XyZ\r\nContent-Disposition: form-data; name=f; "
		    "filename=x; filename*=UTF-8''%c3%bc%zz\r\n\r\n1\r\n"
		    "--XyZ--"),
	  "<f|=\xc3\xbc%zz|>1</>." },
	{ SPAN_INIT("--XyZ\r\nX-Other: \r\nContent-Transfer-Encoding: 8BIT\r\n"
		    "Content-Disposition: form-data; name=f\r\n\r\n1\r\n"
		    "--XyZ--"),
	  "<f|-|>1</>." },
};

static void multipart__every_split(void **state)
{
	struct buf out = BUF_INIT(4096);
	size_t i, cut, step;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		for (cut = 0; cut <= good[i].body.len; cut++) {
			assert_int_equal(
				feed(TYPE, good[i].body, cut, SIZE_MAX, &out),
				0);
			assert_true(span_eq(buf_peek(&out),
					    span_str(good[i].told)));
		}
		for (step = 1; step < 9; step++) {
			assert_int_equal(
				feed(TYPE, good[i].body, 0, step, &out), 0);
			assert_true(span_eq(buf_peek(&out),
					    span_str(good[i].told)));
		}
	}
	buf_fini(&out);
}

/* Every body that ends before its closing boundary says so. */
static void multipart__every_truncation(void **state)
{
	struct buf out = BUF_INIT(4096);
	size_t i, len, end;
	const char *last;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		last = memmem(good[i].body.ptr, good[i].body.len, "XyZ--", 5);
		assert_non_null(last);
		end = (size_t)(last - good[i].body.ptr) + 5;
		for (len = 0; len < end; len++)
			assert_int_equal(feed(TYPE,
					      span_of(good[i].body.ptr, len), 0,
					      SIZE_MAX, &out),
					 -MULTIPART_E_CUT);
	}
	buf_fini(&out);
}

static const struct span bad_heads[] = {
	SPAN_INIT("\r\n"),
	SPAN_INIT("Content-Type: text/plain\r\n\r\n"),
	SPAN_INIT("Content-Disposition\r\n\r\n"),
	SPAN_INIT("Content-Disposition: attachment; name=a\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=\"a\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=\"a\"x\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=a\n\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=a\r\n folded\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=a\r\n"
		  "Content-Disposition: form-data; name=b\r\n\r\n"),
	SPAN_INIT("Content-Disposition: form-data; name=a\r\n"
		  "Content-Transfer-Encoding: base64\r\n\r\n"),
};

static void multipart__bad_heads(void **state)
{
	struct buf out = BUF_INIT(4096), body = BUF_INIT(16384);
	size_t i, cut;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad_heads); i++) {
		buf_clear(&body);
		assert_int_equal(buf_put_str(&body, "--XyZ\r\n"), 0);
		assert_int_equal(buf_put(&body, bad_heads[i]), 0);
		assert_int_equal(buf_put_str(&body, "x\r\n--XyZ--\r\n"), 0);
		for (cut = 0; cut < buf_len(&body); cut++)
			assert_int_equal(feed(TYPE, buf_peek(&body), cut,
					      SIZE_MAX, &out),
					 -MULTIPART_E_HEAD);
		assert_int_equal(buf_len(&out), 0);
	}
	buf_fini(&out);
	buf_fini(&body);
}

/* The longest head is taken, one byte more is not. */
static void multipart__head_limit(void **state)
{
	static const char lead[] =
		"Content-Disposition: form-data; name=a\r\nX: ";
	struct buf out = BUF_INIT(4096), body = BUF_INIT(32768);
	size_t over, i, fill;

	(void)state;
	for (over = 0; over < 2; over++) {
		buf_clear(&body);
		assert_int_equal(buf_put_str(&body, "--XyZ\r\n"), 0);
		assert_int_equal(buf_put_str(&body, lead), 0);
		fill = MULTIPART_HEAD_MAX - (sizeof(lead) - 1) - 4 + over;
		for (i = 0; i < fill; i++)
			assert_int_equal(buf_put_str(&body, "x"), 0);
		assert_int_equal(buf_put_str(&body, "\r\n\r\n\r\n--XyZ--"), 0);
		assert_int_equal(feed(TYPE, buf_peek(&body), 0, 1000, &out),
				 over ? -MULTIPART_E_HEAD : 0);
	}
	buf_fini(&out);
	buf_fini(&body);
}

static void multipart__content_types(void **state)
{
	static const struct {
		struct span type;
		bool good;
	} types[] = {
		{ SPAN_INIT("multipart/form-data; boundary=abc"), true },
		{ SPAN_INIT("Multipart/Form-Data;boundary=\"a b?c\""), true },
		{ SPAN_INIT("multipart/form-data; charset=utf-8; BOUNDARY=a"),
		  true },
		{ SPAN_INIT("multipart/form-data; boundary=a;"), true },
		{ SPAN_INIT("multipart/form-data"), false },
		{ SPAN_INIT("multipart/form-data; boundary="), false },
		{ SPAN_INIT("multipart/form-data; boundary=\"a"), false },
		{ SPAN_INIT("multipart/form-data; boundary=\"a \""), false },
		{ SPAN_INIT("multipart/form-data; boundary=a\x80"), false },
		{ SPAN_INIT("multipart/form-data boundary=a"), false },
		{ SPAN_INIT("multipart/mixed; boundary=a"), false },
		{ SPAN_INIT("application/json"), false },
		{ SPAN_INIT(""), false },
		{ { NULL, 0 }, false },
	};
	char longest[128] = "multipart/form-data; boundary=";
	size_t i, len = strlen(longest);
	struct multipart m;

	(void)state;
	for (i = 0; i < ARRAY_LEN(types); i++) {
		assert_int_equal(multipart_init(&m, types[i].type),
				 types[i].good ? MULTIPART_OK
					       : MULTIPART_E_BOUNDARY);
		multipart_fini(&m);
	}
	memset(longest + len, 'b', MULTIPART_BOUNDARY_MAX + 1);
	for (i = 0; i < 2; i++) {
		assert_int_equal(
			multipart_init(
				&m, span_of(longest,
					    len + MULTIPART_BOUNDARY_MAX + i)),
			i ? MULTIPART_E_BOUNDARY : MULTIPART_OK);
		multipart_fini(&m);
	}
}

/* A large body goes through as large pieces, faster than a byte at a time
 * could. */
static void multipart__large_bodies(void **state)
{
	static const char head[] = "--XyZ\r\n"
				   "Content-Disposition: form-data; name=f\r\n"
				   "\r\n";
	enum { SIZE = 1 << 20, ROUNDS = 256 };
	struct timespec from, to;
	struct multipart_event ev;
	struct multipart m;
	uint64_t bytes = 0, pieces = 0;
	struct span in;
	double seconds;
	uint32_t x = 1;
	size_t i;
	char *data = malloc(SIZE);
	int r;

	(void)state;
	assert_non_null(data);
	for (i = 0; i < SIZE; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (char)(x >> 24);
	}
	assert_int_equal(multipart_init(&m, TYPE), MULTIPART_OK);
	in = span_str(head);
	while ((r = multipart_next(&m, &in, &ev)) > 0)
		assert_int_equal(ev.kind, MULTIPART_PART);
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (i = 0; i < ROUNDS; i++) {
		in = span_of(data, SIZE);
		while ((r = multipart_next(&m, &in, &ev)) > 0) {
			assert_int_equal(ev.kind, MULTIPART_BYTES);
			bytes += ev.bytes.len;
			pieces++;
		}
		assert_int_equal(r, 0);
	}
	clock_gettime(CLOCK_MONOTONIC, &to);
	assert_in_range(bytes, (uint64_t)SIZE * ROUNDS - 8,
			(uint64_t)SIZE * ROUNDS);
	assert_in_range(pieces, ROUNDS, 3 * ROUNDS);
	seconds = (double)(to.tv_sec - from.tv_sec) +
		  (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	print_message("%.0f MB/s\n", (double)bytes / 1e6 / seconds);
	multipart_fini(&m);
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(multipart__every_split),
		cmocka_unit_test(multipart__every_truncation),
		cmocka_unit_test(multipart__bad_heads),
		cmocka_unit_test(multipart__head_limit),
		cmocka_unit_test(multipart__content_types),
		cmocka_unit_test(multipart__large_bodies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
