/* SPDX-License-Identifier: Apache-2.0 */
/* test_ws.c - WebSocket frames: RFC 6455's examples, every split of each */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/wire/ws.h"

/* What came of some bytes, as text: "T:Hello." is a whole text, "9:x." a ping;
 * pieces of one message run together. error: the last ws_next(). */
struct heard {
	struct buf text;
	int error;
	size_t left; /* bytes the parser did not take */
};

static void hear(struct heard *h, const struct ws_event *ev, bool *ret_inside)
{
	const bool control = ev->opcode >= WS_CLOSE;

	if (control || !*ret_inside)
		assert_int_equal(buf_putf(&h->text, "%c:",
					  control ? '0' + (int)ev->opcode
					  : ev->opcode == WS_TEXT ? 'T'
								  : 'B'),
				 0);
	assert_int_equal(buf_put(&h->text, ev->bytes), 0);
	if (ev->last)
		assert_int_equal(buf_put(&h->text, SPAN(".")), 0);
	if (!control)
		*ret_inside = !ev->last;
}

/* Feeds in pieces whose ends are at `cuts` (ascending), each an exact heap
 * copy. Pieces of one message stand together only while no control frame is
 * between them, so that the text is the same for every split. */
static void parse(struct span in, bool is_server, uint64_t max,
		  const size_t *cuts, size_t count, struct heard *ret)
{
	struct ws w = { .is_server = is_server, .message_max = max };
	size_t at = 0, end, len;
	struct ws_event ev;
	bool inside = false;
	char *copy, *p;

	*ret = (struct heard){ .text = BUF_INIT(1 << 20) };
	for (size_t i = 0; i <= count && ret->error >= 0; i++) {
		end = i < count ? cuts[i] : in.len;
		copy = malloc(end - at + 1);
		assert_non_null(copy);
		memcpy(copy, in.ptr + at, end - at);
		p = copy;
		len = end - at;
		while ((ret->error = ws_next(&w, &p, &len, &ev)) > 0)
			hear(ret, &ev, &inside);
		assert_true(ret->error < 0 || !len);
		ret->left = len + in.len - end;
		free(copy);
		at = end;
	}
}

static void expect(struct span in, bool is_server, uint64_t max, int error,
		   struct span text)
{
	struct heard h;

	parse(in, is_server, max, NULL, 0, &h);
	assert_int_equal(h.error, error);
	assert_true(span_eq(buf_peek(&h.text), text));
	buf_fini(&h.text);
	for (size_t i = 0; i <= in.len; i++) {
		for (size_t j = i; j <= in.len; j++) {
			const size_t cuts[] = { i, j };

			parse(in, is_server, max, cuts, 2, &h);
			assert_int_equal(h.error, error);
			if (!error)
				assert_true(span_eq(buf_peek(&h.text), text));
			buf_fini(&h.text);
		}
	}
}

/* -- reading --------------------------------------------------------------- */

/* The examples of RFC 6455 5.7. */
static void ws__examples(void **state)
{
	(void)state;
	expect(SPAN("\x81\x05Hello"), false, 0, 0, SPAN("T:Hello."));
	expect(SPAN("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, 0, 0,
	       SPAN("T:Hello."));
	expect(SPAN("\x01\x03Hel\x80\x02lo"), false, 0, 0, SPAN("T:Hello."));
	expect(SPAN("\x89\x05Hello"), false, 0, 0, SPAN("9:Hello."));
	expect(SPAN("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), true, 0, 0,
	       SPAN("::Hello."));
}

static void ws__long_examples(void **state)
{
	static char big[10 + 65536] = "\x82\x7f\0\0\0\0\0\x01\0\0";
	static char middle[4 + 256] = "\x82\x7e\x01\0";
	const size_t cuts[] = { 1, 3, 9, 10, 11, 40000 };
	struct heard h;

	(void)state;
	memset(middle + 4, 'm', 256);
	parse(span_of(middle, sizeof(middle)), false, 0, cuts, 5, &h);
	assert_int_equal(h.error, 0);
	assert_int_equal(buf_len(&h.text), 2 + 256 + 1);
	buf_fini(&h.text);
	memset(big + 10, 'b', 65536);
	parse(span_of(big, sizeof(big)), false, 0, cuts, 6, &h);
	assert_int_equal(h.error, 0);
	assert_int_equal(buf_len(&h.text), 2 + 65536 + 1);
	buf_fini(&h.text);
}

static void ws__control_between_fragments(void **state)
{
	(void)state;
	expect(SPAN("\x02\x02"
		    "ab\x89\x01p\x00\x00\x80\x01"
		    "c"),
	       false, 0, 0, SPAN("B:ab9:p.c."));
	expect(SPAN("\x81\x00\x82\x00\x88\x00"), false, 0, 0,
	       SPAN("T:.B:.8:."));
}

static void ws__close(void **state)
{
	(void)state;
	expect(SPAN("\x88\x02\x03\xe8"), false, 0, 0, SPAN("8:\x03\xe8."));
	expect(SPAN("\x88\x05\x0f\xa1"
		    "bye"),
	       false, 0, 0,
	       SPAN("8:\x0f\xa1"
		    "bye."));
	expect(SPAN("\x88\x01x"), false, 0, -1002, SPAN(""));
	expect(SPAN("\x88\x02\x03\xe7"), false, 0, -1002, SPAN("")); /* 999 */
	expect(SPAN("\x88\x02\x03\xed"), false, 0, -1002, SPAN("")); /* 1005 */
	expect(SPAN("\x88\x02\x03\xf7"), false, 0, -1002, SPAN("")); /* 1015 */
	expect(SPAN("\x88\x02\x13\x88"), false, 0, -1002, SPAN("")); /* 5000 */
	expect(SPAN("\x88\x03\x03\xe8\xff"), false, 0, -1007, SPAN(""));
	expect(SPAN("\x88\x03\x03\xe8\xc3"), false, 0, -1007, SPAN(""));
}

static void ws__refusals(void **state)
{
	static const struct {
		struct span in;
		bool is_server;
	} rows[] = {
		{ SPAN_INIT("\xc1\x00"), false }, /* reserved bits */
		{ SPAN_INIT("\xa1\x00"), false },
		{ SPAN_INIT("\x91\x00"), false },
		{ SPAN_INIT("\x83\x00"), false }, /* opcodes */
		{ SPAN_INIT("\x8b\x00"), false },
		{ SPAN_INIT("\x8f\x00"), false },
		{ SPAN_INIT("\x81\x00"), true },	  /* no mask */
		{ SPAN_INIT("\x81\x80\1\2\3\4"), false }, /* a mask */
		{ SPAN_INIT("\x09\x00"), false },	  /* cut control */
		{ SPAN_INIT("\x89\x7e\0\x7e"), false },	  /* long control */
		{ SPAN_INIT("\x80\x00"), false }, /* continues nothing */
		{ SPAN_INIT("\x01\x00\x01\x00"), false }, /* inside another */
		{ SPAN_INIT("\x01\x00\x82\x00"), false },
		{ SPAN_INIT("\x82\x7e\x00\x7d"), false }, /* longer forms */
		{ SPAN_INIT("\x82\x7f\0\0\0\0\0\0\xff\xff"), false },
		{ SPAN_INIT("\x82\x7f\x80\0\0\0\0\0\0\0"), false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(rows[i].in, rows[i].is_server, 0, -1002, SPAN(""));
}

static void ws__text_is_utf8(void **state)
{
	static const struct span good[] = {
		SPAN_INIT("\x81\x02\xc2\x80"),
		SPAN_INIT("\x81\x03\xe0\xa0\x80"),
		SPAN_INIT("\x81\x03\xed\x9f\xbf"),
		SPAN_INIT("\x81\x04\xf0\x90\x80\x80"),
		SPAN_INIT("\x81\x04\xf4\x8f\xbf\xbf"),
		SPAN_INIT("\x01\x01\xe2\x00\x01\x82\x80\x01\xac"),
	};
	static const struct span bad[] = {
		SPAN_INIT("\x81\x01\x80"),
		SPAN_INIT("\x81\x02\xc0\xaf"),
		SPAN_INIT("\x81\x02\xc1\xbf"),
		SPAN_INIT("\x81\x02\xc3("),
		SPAN_INIT("\x81\x03\xe0\x9f\x80"),
		SPAN_INIT("\x81\x03\xed\xa0\x80"),
		SPAN_INIT("\x81\x04\xf0\x8f\x80\x80"),
		SPAN_INIT("\x81\x04\xf4\x90\x80\x80"),
		SPAN_INIT("\x81\x01\xf5"),
		SPAN_INIT("\x81\x01\xff"),
		SPAN_INIT("\x81\x02\xe2\x82"), /* ends inside */
		SPAN_INIT("\x01\x02\xe2\x82\x80\x00"),
	};
	struct heard h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		parse(good[i], false, 0, NULL, 0, &h);
		assert_int_equal(h.error, 0);
		expect(good[i], false, 0, 0, buf_peek(&h.text));
		buf_fini(&h.text);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect(bad[i], false, 0, -1007,
		       i + 1 < ARRAY_LEN(bad) ? SPAN("") : SPAN("T:\xe2\x82"));
	/* what is binary may be anything */
	expect(SPAN("\x82\x02\xff\xfe"), false, 0, 0, SPAN("B:\xff\xfe."));
}

static void ws__message_max(void **state)
{
	(void)state;
	expect(SPAN("\x82\x03"
		    "abc"),
	       false, 3, 0, SPAN("B:abc."));
	expect(SPAN("\x82\x04"), false, 3, -1009, SPAN(""));
	expect(SPAN("\x02\x02"
		    "ab\x80\x01"
		    "c"),
	       false, 3, 0, SPAN("B:abc."));
	expect(SPAN("\x02\x02"
		    "ab\x80\x02"),
	       false, 3, -1009, SPAN("B:ab"));
	/* control frames do not count, the next message begins anew */
	expect(SPAN("\x89\x04ping\x82\x03"
		    "abc\x82\x03"
		    "def"),
	       false, 3, 0, SPAN("9:ping.B:abc.B:def."));
}

/* -- writing --------------------------------------------------------------- */

static void ws__put(void **state)
{
	const uint8_t mask[4] = { 0x37, 0xfa, 0x21, 0x3d };
	struct buf out = BUF_INIT(64);

	(void)state;
	assert_int_equal(ws_put(&out, WS_TEXT, SPAN("Hello"), NULL), 0);
	assert_true(span_eq(buf_peek(&out), SPAN("\x81\x05Hello")));
	buf_clear(&out);
	assert_int_equal(ws_put(&out, WS_PONG, SPAN("Hello"), mask), 0);
	assert_true(
		span_eq(buf_peek(&out),
			SPAN("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58")));
	assert_int_equal(ws_put(&out, WS_BINARY,
				span_of("0123456789012345678901234567890123456"
					"7890123456789012345",
					56),
				NULL),
			 -ENOBUFS);
	assert_int_equal(buf_len(&out), 11);
	buf_fini(&out);
}

/* Every length around a change of form, through both roles. */
static void ws__round_trip(void **state)
{
	static const size_t lengths[] = { 0,   1,   7,	   8,	  9,	125,
					  126, 127, 65535, 65536, 70001 };
	const uint8_t mask[4] = { 1, 0x80, 0, 0xfe };
	struct buf out = BUF_INIT(1 << 20);
	char *bytes = malloc(70001);
	size_t cuts[8];
	struct heard h;

	(void)state;
	assert_non_null(bytes);
	for (size_t i = 0; i < 70001; i++)
		bytes[i] = (char)(i * 31 + i / 256);
	for (size_t i = 0; i < 2 * ARRAY_LEN(lengths); i++) {
		const size_t len = lengths[i / 2];

		buf_clear(&out);
		assert_int_equal(ws_put(&out, WS_BINARY, span_of(bytes, len),
					i % 2 ? mask : NULL),
				 0);
		for (size_t c = 0; c < ARRAY_LEN(cuts); c++)
			cuts[c] = MIN(buf_len(&out), c * c * c * 200 + c);
		parse(buf_peek(&out), i % 2, 0, cuts, ARRAY_LEN(cuts), &h);
		assert_int_equal(h.error, 0);
		assert_int_equal(buf_len(&h.text), len + 3);
		assert_memory_equal(buf_peek(&h.text).ptr + 2, bytes, len);
		buf_fini(&h.text);
	}
	free(bytes);
	buf_fini(&out);
}

static void ws__accept(void **state)
{
	char dst[WS_ACCEPT_SIZE];

	(void)state;
	assert_true(ws_accept(SPAN("dGhlIHNhbXBsZSBub25jZQ=="), dst));
	assert_memory_equal(dst, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", sizeof(dst));
	assert_false(ws_accept(SPAN(""), dst));
	assert_false(ws_accept(SPAN("dGhlIHNhbXBsZSBub25jZQ="), dst));
	assert_false(ws_accept(SPAN("dGhlIHNhbXBsZSBub25jZXh4"), dst));
	assert_false(ws_accept(SPAN("dGhlIHNhbXBsZSBub25j!Q=="), dst));
	assert_false(ws_accept(SPAN("dGhlIHNhbXBsZSBub25jZR=="), dst));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ws__examples),
		cmocka_unit_test(ws__long_examples),
		cmocka_unit_test(ws__control_between_fragments),
		cmocka_unit_test(ws__close),
		cmocka_unit_test(ws__refusals),
		cmocka_unit_test(ws__text_is_utf8),
		cmocka_unit_test(ws__message_max),
		cmocka_unit_test(ws__put),
		cmocka_unit_test(ws__round_trip),
		cmocka_unit_test(ws__accept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
