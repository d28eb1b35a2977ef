/* SPDX-License-Identifier: Apache-2.0 */
/* test_body.c - a body is the same on the other side, whatever the framings
 *
 * Content comes in on one leg, which takes the framing off, and goes out on
 * another, which puts its own on: as flow.c does it.
 */

#include "tests/unit/gateway/legs.h"

#include "gateway/session/body.h"

enum { WIRE_MAX = LEGS_WIRE_MAX, ROUNDS = 200 };

/* Two legs: what is said to `from` is heard from `to`. */
struct pass {
	struct bench *bench;
	struct seat from, to;
};

static int pass_open(void **state)
{
	struct pass *p = must_alloc(sizeof(*p));

	p->bench = bench_new();
	seat_open(&p->from, p->bench);
	seat_open(&p->to, p->bench);
	*state = p;
	return 0;
}

static int pass_close(void **state)
{
	struct pass *p = *state;

	seat_close(&p->from);
	seat_close(&p->to);
	bench_free(p->bench);
	free(p);
	return 0;
}

/* Fresh connections, for a body of this kind. */
static void pass_begin(struct pass *p, enum h1_body kind, uint64_t length,
		       bool out_chunked)
{
	seat_close(&p->from);
	seat_close(&p->to);
	seat_open(&p->from, p->bench);
	seat_open(&p->to, p->bench);
	body_init(&p->from.h1.body, kind, length);
	p->to.h1.chunked = out_chunked;
}

/* Moves what is there; what that came to in the end. */
static enum leg_read pass_move(struct pass *p)
{
	struct leg *from = &p->from.h1.leg, *to = &p->to.h1.leg;
	enum leg_read got;
	struct span piece;
	size_t room;

	do {
		room = h1_leg_room(to);
		if (!room) {
			seat_listen(&p->to);
			continue;
		}
		got = h1_leg_read(from, room, &piece);
		if (got == LEG_PIECE) {
			assert_true(piece.len > 0 && piece.len <= room);
			assert_int_equal(h1_leg_write(to, piece), 0);
		}
		if (got == LEG_END)
			assert_int_equal(h1_leg_end(to, h1_leg_trailers(from)),
					 0);
		assert_int_equal(h1_leg_flush(to), 0);
	} while (!room || got == LEG_PIECE);
	return got;
}

/* -- making bodies --------------------------------------------------------- */

static uint32_t random_state = 3;

static uint32_t random_below(uint32_t n)
{
	random_state = random_state * 1103515245u + 12345u;
	return (random_state >> 8) % n;
}

/* content in chunks of random size, extensions and odd cases included. */
static void chunk(struct buf *wire, struct span content, const char *trailers)
{
	static const char *const ends[] = { ";a=b", ";x=\"y\"", ";c" };
	size_t len;

	while (content.len) {
		len = 1 + random_below((uint32_t)content.len);
		must(!buf_putf(wire, "%s%zx%s\r\n", random_below(2) ? "00" : "",
			       len,
			       random_below(3) ? "" : ends[random_below(3)]));
		must(!buf_put(wire, span_of(content.ptr, len)));
		must(!buf_put_str(wire, "\r\n"));
		content = span_from(content, len);
	}
	must(!buf_putf(wire, "0\r\n%s\r\n", trailers));
}

/* All of a chunked body; its trailers too. */
static void dechunk(struct span wire, struct buf *content, struct buf *trailers)
{
	struct h1_chunked c = { 0 };
	struct span data;

	while (!c.done && wire.len) {
		assert_int_equal(h1_chunked_next(&c, &wire, &data, trailers),
				 H1_OK);
		must(!buf_put(content, data));
	}
	assert_true(c.done);
	assert_int_equal(wire.len, 0);
}

struct shape {
	enum h1_body in;
	bool out_chunked;
	const char *trailers;
};

static const struct shape shapes[] = {
	{ H1_BODY_LENGTH, false, "" },
	{ H1_BODY_LENGTH, true, "" },
	{ H1_BODY_CHUNKED, true, "" },
	{ H1_BODY_CHUNKED, true, "X-Sum: abc\r\nX-Two: d\r\n" },
	{ H1_BODY_CHUNKED, false, "" },
	{ H1_BODY_CHUNKED, false, "X-Sum: abc\r\n" },
	{ H1_BODY_CLOSE, false, "" },
	{ H1_BODY_CLOSE, true, "" },
	{ H1_BODY_TUNNEL, false, "" },
};

static void assert_out(struct pass *p, const struct shape *shape,
		       struct span content)
{
	CLEANUP(buf_fini) struct buf found = BUF_INIT(WIRE_MAX);
	CLEANUP(buf_fini) struct buf trailers = BUF_INIT(WIRE_MAX);

	seat_listen(&p->to);
	if (!shape->out_chunked) {
		/* trailers have no place there */
		assert_bytes(buf_peek(&p->to.got), content);
		return;
	}
	dechunk(buf_peek(&p->to.got), &found, &trailers);
	assert_bytes(buf_peek(&found), content);
	assert_span(buf_peek(&trailers), shape->trailers);
}

/* Says wire in pieces that `piece` chooses. What the last move came to. */
static enum leg_read feed(struct pass *p, struct span wire,
			  size_t (*piece)(size_t left, size_t at), size_t at)
{
	enum leg_read got = LEG_NOTHING;
	size_t len;

	while (wire.len) {
		len = piece(wire.len, at);
		seat_say(&p->from, span_of(wire.ptr, len));
		wire = span_from(wire, len);
		if (got == LEG_END)
			continue; /* not the body's any more */
		got = pass_move(p);
		if (random_below(2))
			seat_settle(&p->from);
		if (random_below(2))
			seat_listen(&p->to);
	}
	return got;
}

static void pass(struct pass *p, const struct shape *shape, struct span content,
		 size_t (*piece)(size_t, size_t), size_t at)
{
	CLEANUP(buf_fini) struct buf wire = BUF_INIT(WIRE_MAX);
	bool until_end =
		shape->in == H1_BODY_CLOSE || shape->in == H1_BODY_TUNNEL;
	static const struct span next = SPAN_INIT("GET / HTTP/1.1\r\n");
	enum leg_read got;

	if (shape->in == H1_BODY_CHUNKED)
		chunk(&wire, content, shape->trailers);
	else
		must(!buf_put(&wire, content));
	if (!until_end)
		must(!buf_put(&wire, next));
	pass_begin(p, shape->in, content.len, shape->out_chunked);
	got = feed(p, buf_peek(&wire), piece, at);
	if (until_end) {
		assert_int_equal(got, LEG_NOTHING);
		assert_false(p->from.h1.body.done);
		seat_say_end(&p->from);
		got = pass_move(p);
	}
	assert_int_equal(got, LEG_END);
	assert_true(p->from.h1.body.done);
	assert_int_equal(p->from.h1.body.bytes, content.len);
	assert_out(p, shape, content);
	assert_rest(&p->from, until_end ? SPAN_NONE : next);
}

static size_t piece_random(size_t left, size_t at)
{
	(void)at;
	return 1 + random_below((uint32_t)left);
}

static size_t piece_one(size_t left, size_t at)
{
	(void)left;
	(void)at;
	return 1;
}

static size_t split_total;

/* Two pieces: before and after position `at` of the whole. */
static size_t piece_split(size_t left, size_t at)
{
	if (!split_total)
		split_total = left;
	return left > split_total - at ? left - (split_total - at) : left;
}

/* -- the tests ------------------------------------------------------------- */

static void random_fill(char *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (char)random_below(256);
}

static void body__survives_every_framing(void **state)
{
	static char content[40 * 1024];
	static const uint32_t most[] = { 1, 2, 30, 5000, sizeof(content) };
	unsigned i, k;

	for (i = 0; i < ROUNDS; i++) {
		size_t len = random_below(most[i % ARRAY_LEN(most)]) + 1;

		random_fill(content, len);
		for (k = 0; k < ARRAY_LEN(shapes); k++)
			pass(*state, &shapes[k], span_of(content, len),
			     piece_random, 0);
	}
}

static void body__survives_every_split(void **state)
{
	static const char content[] = "0123456789\r\nabcdef\r\n0\r\n\r\nend";
	size_t at, k;

	for (k = 0; k < ARRAY_LEN(shapes); k++) {
		pass(*state, &shapes[k], span_of(content, sizeof(content)),
		     piece_one, 0);
		for (at = 1; at < 120; at++) {
			split_total = 0;
			pass(*state, &shapes[k],
			     span_of(content, sizeof(content)), piece_split,
			     at);
		}
	}
}

static size_t piece_all(size_t left, size_t at)
{
	(void)at;
	return left;
}

static void body__survives_large_pieces(void **state)
{
	static char content[120 * 1024];
	size_t k;

	random_fill(content, sizeof(content));
	for (k = 0; k < ARRAY_LEN(shapes); k++)
		pass(*state, &shapes[k], span_of(content, sizeof(content)),
		     piece_all, 0);
}

static void assert_empty(struct pass *p, enum h1_body kind)
{
	static const struct span next = SPAN_INIT("GET / HTTP/1.1\r\n");
	struct span in = next, piece;
	struct body b;

	body_init(&b, kind, 0);
	assert_true(b.done);
	assert_int_equal(body_next(&b, &in, &piece), H1_OK);
	assert_int_equal(in.len, 16);
	assert_int_equal(piece.len, 0);
	assert_true(body_end(&b));
	assert_int_equal(b.bytes, 0);
	body_fini(&b);

	pass_begin(p, kind, 0, false);
	assert_int_equal(pass_move(p), LEG_END); /* before a byte came */
	seat_say(&p->from, next);
	assert_int_equal(pass_move(p), LEG_END);
	assert_rest(&p->from, next);
	seat_listen(&p->to);
	assert_int_equal(buf_len(&p->to.got), 0);
}

static void body__an_empty_one_is_done_at_once(void **state)
{
	assert_empty(*state, H1_BODY_NONE);
	assert_empty(*state, H1_BODY_LENGTH);
}

static void body__knows_when_it_was_cut(void **state)
{
	static const enum h1_body kinds[] = { H1_BODY_LENGTH, H1_BODY_CHUNKED };
	struct pass *p = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		pass_begin(p, kinds[i], 100, true);
		seat_say(&p->from, SPAN("5\r\nabc"));
		assert_int_equal(pass_move(p), LEG_NOTHING);
		seat_say_end(&p->from);
		assert_int_equal(pass_move(p), LEG_BROKEN);
		assert_non_null(p->from.h1.leg.why);
		assert_false(p->from.h1.leg.malformed);
		assert_false(body_end(&p->from.h1.body));
		assert_false(p->from.h1.body.done);
		seat_listen(&p->to);
		/* nobody downstream can take it for whole */
		assert_true(buf_len(&p->to.got) > 0);
		assert_null(memmem(buf_peek(&p->to.got).ptr,
				   buf_len(&p->to.got), "0\r\n\r\n", 5));
	}
}

static void body__refuses_what_is_malformed(void **state)
{
	static const char *const bad[] = {
		"x\r\n",
		"5\r\nabcdeX\r\n",
		"-1\r\n",
		"0x5\r\n",
		"5\nabcde\r\n",
		"0\r\nContent-Length: 5\r\n\r\n",
		"11111111111111111\r\n",
		"0\r\nAuthorization: x\r\n\r\n",
		"0\r\nbad header\r\n\r\n",
	};
	struct pass *p = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		pass_begin(p, H1_BODY_CHUNKED, 0, true);
		seat_say(&p->from, span_str(bad[i]));
		if (pass_move(p) != LEG_BROKEN)
			fail_msg("accepted: %s", bad[i]);
		assert_true(p->from.h1.leg.malformed);
		assert_non_null(p->from.h1.leg.why);
		assert_false(p->from.h1.body.done);
		/* for ever */
		seat_say(&p->from, SPAN("0\r\n\r\n"));
		assert_int_equal(pass_move(p), LEG_BROKEN);
		seat_listen(&p->to);
		assert_null(memmem(buf_peek(&p->to.got).ptr,
				   buf_len(&p->to.got), "0\r\n\r\n", 5));
	}
}

static void body__bounds_trailers(void **state)
{
	CLEANUP(buf_fini) struct buf wire = BUF_INIT(WIRE_MAX);
	struct span in, piece;
	struct body b;

	must(!buf_put_str(&wire, "0\r\n"));
	while (buf_len(&wire) < 20 * 1024)
		must(!buf_put_str(&wire, "X-Filler: aaaaaaaaaaaaaaaaaaaa\r\n"));
	must(!buf_put_str(&wire, "\r\n"));
	body_init(&b, H1_BODY_CHUNKED, 0);
	in = buf_peek(&wire);
	assert_int_equal(body_next(&b, &in, &piece), H1_E_TRAILER_TOO_LARGE);
	assert_int_equal(piece.len, 0);
	assert_false(b.done);
	assert_false(body_end(&b));
	body_fini(&b);

	pass_begin(*state, H1_BODY_CHUNKED, 0, true);
	seat_say(&((struct pass *)*state)->from, buf_peek(&wire));
	assert_int_equal(pass_move(*state), LEG_BROKEN);
}

static void body__gives_trailers_as_fields(void **state)
{
	struct span in = SPAN("0\r\nX-Sum: abc\r\nx-Empty:\r\n"
			      "X-Two:\t a:b  c \r\n\r\nrest");
	struct headers fields = { 0 };
	struct span piece;
	struct body b;

	(void)state;
	body_init(&b, H1_BODY_CHUNKED, 0);
	assert_false(body_trailers(&b, &fields));
	assert_int_equal(body_next(&b, &in, &piece), H1_OK);
	assert_true(b.done);
	assert_span(in, "rest");
	assert_true(body_trailers(&b, &fields));
	assert_int_equal(fields.count, 3);
	assert_span(fields.items[0].name, "X-Sum");
	assert_span(fields.items[0].value, "abc");
	assert_span(fields.items[1].name, "x-Empty");
	assert_span(fields.items[1].value, "");
	assert_span(fields.items[2].name, "X-Two");
	assert_span(fields.items[2].value, "a:b  c");
	body_fini(&b);
	assert_false(body_trailers(&b, &fields));
}

/* Whoever passes them on may change them; flow.c redacts. */
static void body__trailers_can_be_changed(void **state)
{
	struct pass *p = *state;
	const struct headers *trailers;
	struct headers changed;
	struct span piece;

	pass_begin(p, H1_BODY_CHUNKED, 0, true);
	seat_say(&p->from, SPAN("3\r\nabc\r\n0\r\nX-Sum: abc\r\n\r\n"));
	assert_int_equal(h1_leg_read(&p->from.h1.leg, 100, &piece), LEG_PIECE);
	assert_span(piece, "abc");
	assert_int_equal(h1_leg_write(&p->to.h1.leg, piece), 0);
	assert_int_equal(h1_leg_read(&p->from.h1.leg, 100, &piece), LEG_END);
	assert_true(p->from.h1.body.done);
	trailers = h1_leg_trailers(&p->from.h1.leg);
	assert_non_null(trailers);
	assert_int_equal(trailers->count, 1);
	assert_span(trailers->items[0].name, "X-Sum");
	assert_span(trailers->items[0].value, "abc");
	changed = *trailers;
	changed.items[0].value = SPAN("[hidden]");
	assert_int_equal(h1_leg_end(&p->to.h1.leg, &changed), 0);
	assert_int_equal(h1_leg_flush(&p->to.h1.leg), 0);
	seat_listen(&p->to);
	assert_span(buf_peek(&p->to.got),
		    "3\r\nabc\r\n0\r\nX-Sum: [hidden]\r\n\r\n");
}

static void body__an_error_of_the_stream_sticks(void **state)
{
	static char large[32 * 1024];
	struct span in = span_of(large, sizeof(large)), piece;
	struct pass *p = *state;
	struct leg *to = &p->to.h1.leg;
	struct body b;

	body_init(&b, H1_BODY_CLOSE, 0);
	assert_int_equal(body_next(&b, &in, &piece), H1_OK);
	assert_int_equal(in.len, 0);
	assert_int_equal(piece.len, sizeof(large));
	body_fini(&b);

	stream_shutdown_write(p->to.stream);
	assert_true(h1_leg_write(to, piece) < 0);
	assert_int_equal(h1_leg_write(to, SPAN("more")), 0);
	assert_true(h1_leg_flush(to) < 0);
	assert_int_equal(h1_leg_write(to, SPAN("more")), 0);
	assert_true(h1_leg_flush(to) < 0);
	assert_true(h1_leg_write(to, piece) < 0);
}

#define PASS_TEST(fn) cmocka_unit_test_setup_teardown(fn, pass_open, pass_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PASS_TEST(body__survives_every_framing),
		PASS_TEST(body__survives_every_split),
		PASS_TEST(body__survives_large_pieces),
		PASS_TEST(body__an_empty_one_is_done_at_once),
		PASS_TEST(body__knows_when_it_was_cut),
		PASS_TEST(body__refuses_what_is_malformed),
		PASS_TEST(body__bounds_trailers),
		cmocka_unit_test(body__gives_trailers_as_fields),
		PASS_TEST(body__trailers_can_be_changed),
		PASS_TEST(body__an_error_of_the_stream_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
