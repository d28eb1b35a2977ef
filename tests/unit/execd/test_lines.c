/* SPDX-License-Identifier: Apache-2.0 */
/* test_lines.c - the texts of output, the same however its bytes were split */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/lines.h"

/* Texts told, each behind a '|'. */
static void note(void *ctx, struct span text)
{
	struct buf *told = ctx;

	assert_false(buf_put(told, SPAN("|")));
	assert_false(buf_put(told, text));
}

static void cut_at(struct span bytes, size_t cut, struct buf *told)
{
	struct lines l;

	lines_init(&l);
	lines_feed(&l, span_of(bytes.ptr, cut), note, told);
	lines_feed(&l, span_from(bytes, cut), note, told);
	lines_end(&l, note, told);
	lines_fini(&l);
}

static void one_by_one(struct span bytes, struct buf *told)
{
	struct lines l;
	size_t i;

	lines_init(&l);
	for (i = 0; i < bytes.len; i++)
		lines_feed(&l, span_of(bytes.ptr + i, 1), note, told);
	lines_end(&l, note, told);
	lines_fini(&l);
}

static void assert_told(struct buf *told, struct span expected)
{
	if (!span_eq(buf_peek(told), expected))
		fail_msg("told \"%.*s\", expected \"%.*s\"",
			 SPAN_FMT(buf_peek(told)), SPAN_FMT(expected));
	buf_clear(told);
}

static const struct {
	struct span output, told;
} vectors[] = {
	{ SPAN_INIT(""), SPAN_INIT("") },
	{ SPAN_INIT("a"), SPAN_INIT("|a") },
	{ SPAN_INIT("a\n"), SPAN_INIT("|a") },
	{ SPAN_INIT("\n"), SPAN_INIT("|\n") },
	{ SPAN_INIT("a\n\nb\n\n\nc\n"), SPAN_INIT("|a|\n|b|\n|\n|c") },
	{ SPAN_INIT("a\r\nb"), SPAN_INIT("|a|b") },
	{ SPAN_INIT("\r\n\r\n"), SPAN_INIT("|\n|\n") },
	{ SPAN_INIT("10%\r20%\r\n"), SPAN_INIT("|10%|20%") },
	{ SPAN_INIT("a\r\r\nb"), SPAN_INIT("|a|\n|b") },
	{ SPAN_INIT("\n\r\n"), SPAN_INIT("|\n|\n") },
	{ SPAN_INIT("\r"), SPAN_INIT("|\n") },
	{ SPAN_INIT("h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\n\xff\x00z"),
	  SPAN_INIT("|h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80|\xff\x00z") },
};

static void lines__are_the_same_at_every_split(void **state)
{
	struct buf told = BUF_INIT(1 << 20);
	size_t i, cut;

	(void)state;
	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		for (cut = 0; cut <= vectors[i].output.len; cut++) {
			cut_at(vectors[i].output, cut, &told);
			assert_told(&told, vectors[i].told);
		}
		one_by_one(vectors[i].output, &told);
		assert_told(&told, vectors[i].told);
	}
	buf_fini(&told);
}

/* A line of `count` three-byte sequences behind `lead` other bytes. */
static struct span wide_line(char *dst, size_t lead, size_t count)
{
	size_t i;

	memset(dst, '.', lead);
	for (i = 0; i < count; i++)
		memcpy(dst + lead + 3 * i, "\xe2\x82\xac", 3);
	return span_of(dst, lead + 3 * count);
}

struct pieces {
	size_t count, bytes, longest;
	bool torn;
};

static void count_piece(void *ctx, struct span text)
{
	struct pieces *p = ctx;

	p->count++;
	p->bytes += text.len;
	p->longest = MAX(p->longest, text.len);
	if (((unsigned char)text.ptr[0] & 0xc0) == 0x80 ||
	    lines_whole(text) != text.len)
		p->torn = true;
}

static void lines__long_ones_are_told_in_whole_sequences(void **state)
{
	char *bytes = malloc(4 + 3 * LINES_MAX);
	const size_t steps[] = { 1, 2, 1000, LINES_MAX, 4 * LINES_MAX };
	struct pieces p;
	struct span line, rest;
	struct lines l;
	size_t lead, i;

	(void)state;
	assert_non_null(bytes);
	for (lead = 0; lead < 4; lead++)
		for (i = 0; i < ARRAY_LEN(steps); i++) {
			line = wide_line(bytes, lead, LINES_MAX);
			p = (struct pieces){ 0 };
			lines_init(&l);
			for (rest = line; rest.len;
			     rest = span_from(rest, steps[i])) {
				lines_feed(&l,
					   span_of(rest.ptr,
						   MIN(steps[i], rest.len)),
					   count_piece, &p);
				assert_true(buf_len(&l.held) <= LINES_MAX);
			}
			lines_end(&l, count_piece, &p);
			lines_fini(&l);
			assert_int_equal(p.bytes, line.len);
			assert_true(p.longest <= LINES_MAX);
			assert_true(p.longest >= LINES_MAX - 3);
			assert_int_equal(p.count, 4);
			assert_false(p.torn);
		}
	free(bytes);
}

/* The end of a line of exactly the maximum tells nothing more. */
static void lines__at_the_limit_make_no_empty_text(void **state)
{
	char *bytes = malloc(2 * LINES_MAX + 2);
	struct buf told = BUF_INIT(4 * LINES_MAX);
	size_t len;

	(void)state;
	assert_non_null(bytes);
	for (len = LINES_MAX - 1; len <= LINES_MAX + 1; len++) {
		memset(bytes, 'x', len);
		bytes[len] = '\n';
		cut_at(span_of(bytes, len + 1), len, &told);
		assert_int_equal(buf_len(&told),
				 len + (len > LINES_MAX ? 2 : 1));
		buf_clear(&told);
		cut_at(span_of(bytes, len + 1), 0, &told);
		assert_int_equal(buf_len(&told),
				 len + (len > LINES_MAX ? 2 : 1));
		buf_clear(&told);
	}
	buf_fini(&told);
	free(bytes);
}

static void whole__finds_a_cut_sequence(void **state)
{
	static const struct {
		const char *bytes;
		size_t whole;
	} cases[] = {
		{ "", 0 },
		{ "abc", 3 },
		{ "ab\xc3", 2 },
		{ "ab\xc3\xa9", 4 },
		{ "ab\xe2\x82", 2 },
		{ "ab\xe2", 2 },
		{ "\xf0\x9f\x98", 0 },
		{ "\xf0\x9f\x98\x80", 4 },
		{ "\x80\x80\x80\x80", 4 }, /* belongs to nothing */
		{ "\xff", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(lines_whole(span_str(cases[i].bytes)),
				 cases[i].whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines__are_the_same_at_every_split),
		cmocka_unit_test(lines__long_ones_are_told_in_whole_sequences),
		cmocka_unit_test(lines__at_the_limit_make_no_empty_text),
		cmocka_unit_test(whole__finds_a_cut_sequence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
