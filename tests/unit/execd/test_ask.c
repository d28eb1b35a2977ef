/* SPDX-License-Identifier: Apache-2.0 */
/* test_ask.c - what clients of terminals ask for, at every split */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/execd/pty/ask.h"

/* As text: "i:bytes" (pieces run together), "s15", "r80x24", "p", "!why". */
static void hear(void *ctx, const struct ask *ask)
{
	struct buf *out = ctx;
	int r = 0;

	switch (ask->kind) {
	case ASK_STDIN:
		r = buf_put(out, ask->data);
		break;
	case ASK_SIGNAL:
		r = buf_putf(out, "<s%d>", ask->signal);
		break;
	case ASK_RESIZE:
		r = buf_putf(out, "<r%ux%u>", ask->cols, ask->rows);
		break;
	case ASK_PING:
		r = buf_putf(out, "<p>");
		break;
	case ASK_BAD:
		r = buf_putf(out, "<!%s>", ask->why);
		break;
	}
	assert_int_equal(r, 0);
}

static void expect(enum ws_opcode opcode, struct span in, struct span text)
{
	struct buf out = BUF_INIT(1 << 16);
	struct asks a;

	asks_init(&a);
	for (size_t cut = 0; cut <= in.len; cut++) {
		buf_clear(&out);
		if (cut)
			asks_feed(&a, opcode, span_of(in.ptr, cut), false, hear,
				  &out);
		asks_feed(&a, opcode, span_from(in, cut), true, hear, &out);
		/* the next message begins anew, whatever this one was */
		asks_feed(&a, WS_BINARY, SPAN("\0!"), true, hear, &out);
		assert_int_equal(buf_put(&out, SPAN("")), 0);
		if (!span_eq(span_of(buf_peek(&out).ptr, text.len), text) ||
		    buf_len(&out) != text.len + 1)
			fail_msg("cut %zu: %.*s", cut,
				 SPAN_FMT(buf_peek(&out)));
	}
	asks_fini(&a);
	buf_fini(&out);
}

static void ask__stdin(void **state)
{
	(void)state;
	expect(WS_BINARY, SPAN("\0ls -l\n"), SPAN("ls -l\n"));
	expect(WS_BINARY, SPAN("\0\0\1\xff"), SPAN("\0\1\xff"));
	expect(WS_BINARY, SPAN("\0"), SPAN(""));
	expect(WS_TEXT, SPAN("{\"type\":\"stdin\",\"data\":\"a\\u0003\\n\"}"),
	       SPAN("a\3\n"));
	expect(WS_TEXT, SPAN("{\"data\":\"\xc3\xa4\",\"type\":\"stdin\"}"),
	       SPAN("\xc3\xa4"));
}

static void ask__wishes(void **state)
{
	(void)state;
	expect(WS_TEXT, SPAN("{\"type\":\"signal\",\"signal\":\"SIGINT\"}"),
	       SPAN("<s2>"));
	expect(WS_TEXT, SPAN("{\"type\":\"signal\",\"signal\":\"SIGKILL\"}"),
	       SPAN("<s9>"));
	expect(WS_TEXT, SPAN("{\"type\":\"resize\",\"cols\":132,\"rows\":43}"),
	       SPAN("<r132x43>"));
	expect(WS_TEXT, SPAN("{\"type\":\"resize\",\"cols\":65535,\"rows\":1}"),
	       SPAN("<r65535x1>"));
	expect(WS_TEXT, SPAN("{\"type\":\"ping\",\"more\":[1]}"), SPAN("<p>"));
}

static void ask__refusals(void **state)
{
	static const struct {
		enum ws_opcode opcode;
		struct span in, text;
	} rows[] = {
		{ WS_BINARY, SPAN_INIT("\1ls"),
		  SPAN_INIT("<!a binary frame does not begin with 0x00>") },
		{ WS_TEXT, SPAN_INIT("ls"),
		  SPAN_INIT("<!a text frame is not JSON>") },
		{ WS_TEXT, SPAN_INIT("{}"),
		  SPAN_INIT("<!unknown frame type \"\">") },
		{ WS_TEXT, SPAN_INIT("[]"),
		  SPAN_INIT("<!unknown frame type \"\">") },
		{ WS_TEXT, SPAN_INIT("{\"type\":\"dance\"}"),
		  SPAN_INIT("<!unknown frame type \"dance\">") },
		{ WS_TEXT, SPAN_INIT("{\"type\":\"a\\nb\\u0000\"}"),
		  SPAN_INIT("<!unknown frame type \"a\\x0ab\\x00\">") },
		{ WS_TEXT, SPAN_INIT("{\"type\":\"stdin\"}"),
		  SPAN_INIT("<!stdin without \"data\">") },
		{ WS_TEXT, SPAN_INIT("{\"type\":\"stdin\",\"data\":3}"),
		  SPAN_INIT("<!stdin without \"data\">") },
		{ WS_TEXT,
		  SPAN_INIT("{\"type\":\"signal\",\"signal\":\"SIGSEGV\"}"),
		  SPAN_INIT("<!unknown signal \"SIGSEGV\">") },
		{ WS_TEXT, SPAN_INIT("{\"type\":\"signal\"}"),
		  SPAN_INIT("<!unknown signal \"\">") },
		{ WS_TEXT,
		  SPAN_INIT("{\"type\":\"resize\",\"cols\":0,\"rows\":24}"),
		  SPAN_INIT("<!cols and rows are not between 1 and 65535>") },
		{ WS_TEXT,
		  SPAN_INIT("{\"type\":\"resize\",\"cols\":80,\"rows\":65536}"),
		  SPAN_INIT("<!cols and rows are not between 1 and 65535>") },
		{ WS_TEXT,
		  SPAN_INIT("{\"type\":\"resize\",\"cols\":-80,\"rows\":24}"),
		  SPAN_INIT("<!cols and rows are not between 1 and 65535>") },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		expect(rows[i].opcode, rows[i].in, rows[i].text);
}

/* A text too long is refused once, and the rest of it skipped. */
static void ask__long_text(void **state)
{
	struct buf out = BUF_INIT(1 << 12);
	static char bytes[100000];
	struct asks a;

	(void)state;
	memset(bytes, ' ', sizeof(bytes));
	asks_init(&a);
	for (int i = 0; i < 6; i++)
		asks_feed(&a, WS_TEXT, span_of(bytes, sizeof(bytes)), i == 5,
			  hear, &out);
	asks_feed(&a, WS_TEXT, SPAN("{\"type\":\"ping\"}"), true, hear, &out);
	assert_true(span_eq(buf_peek(&out),
			    SPAN("<!a text frame is over 262144 bytes><p>")));
	asks_fini(&a);
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ask__stdin),
		cmocka_unit_test(ask__wishes),
		cmocka_unit_test(ask__refusals),
		cmocka_unit_test(ask__long_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
