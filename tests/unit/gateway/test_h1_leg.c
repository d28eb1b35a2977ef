/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_leg.c - bytes of a stream as content, kept whole between turns */

#include "tests/unit/gateway/legs.h"

#include "gateway/session/body.h"

struct desk {
	struct bench *bench;
	struct seat seat, other;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	d->bench = bench_new();
	seat_open(&d->seat, d->bench);
	seat_open(&d->other, d->bench);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	seat_close(&d->seat);
	seat_close(&d->other);
	bench_free(d->bench);
	free(d);
	return 0;
}

static struct seat *seat_of(void **state)
{
	return &((struct desk *)*state)->seat;
}

static void seat_renew(struct seat *s)
{
	struct bench *b = s->bench;

	seat_close(s);
	seat_open(s, b);
}

/* With a peer that resets the connection: it closes on unread bytes. */
static void seat_reset(struct seat *s)
{
	assert_int_equal(stream_write(s->stream, SPAN("unread")), 0);
	(void)stream_flush(s->stream);
	s->far = fd_close(s->far);
	loop_run_once(s->bench->loop, false);
	loop_run_once(s->bench->loop, false);
}

/* Content that comes by reads of at most max, until something else does. */
static enum leg_read drink(struct seat *s, size_t max, struct buf *content)
{
	struct span piece;
	enum leg_read got;

	while ((got = h1_leg_read(&s->h1.leg, max, &piece)) == LEG_PIECE) {
		assert_true(piece.len > 0);
		assert_true(piece.len <= max);
		must(!buf_put(content, piece));
	}
	assert_int_equal(piece.len, 0);
	return got;
}

/* -- receive --------------------------------------------------------------- */

static void receive__is_one_read_of_at_most_max(void **state)
{
	struct seat *s = seat_of(state);
	struct span part;

	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_NOTHING);
	seat_say(s, SPAN("hello, world"));
	assert_int_equal(h1_leg_receive(&s->h1, 5, &part), LEG_PIECE);
	assert_span(part, "hello");
	assert_ptr_equal(part.ptr, s->scratch);
	assert_int_equal(h1_leg_receive(&s->h1, SIZE_MAX, &part), LEG_PIECE);
	assert_span(part, ", world");
	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_NOTHING);
	assert_int_equal(s->h1.raw.len, 0); /* not its business */
	assert_int_equal(buf_len(&s->in), 0);
}

static void receive__knows_the_end_for_ever(void **state)
{
	struct seat *s = seat_of(state);
	struct span part;

	seat_say(s, SPAN("x"));
	seat_say_end(s);
	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_PIECE);
	assert_false(s->h1.ended);
	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_END);
	assert_true(s->h1.ended);
	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_END);
	assert_null(s->h1.leg.why);
}

static void receive__says_why_it_broke(void **state)
{
	struct seat *s = seat_of(state);
	struct span part;

	seat_reset(s);
	assert_int_equal(h1_leg_receive(&s->h1, 100, &part), LEG_BROKEN);
	assert_string_equal(s->h1.leg.why, err_text(ECONNRESET));
	assert_false(s->h1.leg.malformed);
	assert_false(s->h1.ended);
}

/* So that a credential which was echoed is wiped without wiping 256 KiB. */
static void receive__accounts_for_what_it_filled(void **state)
{
	static const size_t sizes[] = { 5, 1000, 3, 70 };
	struct seat *s = seat_of(state);
	char text[1000];
	struct span part;
	size_t most = 0, i;

	memset(text, 'x', sizeof(text));
	assert_int_equal(s->h1.dirty, 0);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		seat_say(s, span_of(text, sizes[i]));
		assert_int_equal(h1_leg_receive(&s->h1, 5000, &part),
				 LEG_PIECE);
		most = MAX(most, sizes[i]);
		assert_int_equal(s->h1.dirty, most);
	}
	s->h1.dirty = 0; /* the owner wiped it */
	assert_int_equal(h1_leg_receive(&s->h1, 5000, &part), LEG_NOTHING);
	assert_int_equal(s->h1.dirty, 0);
	seat_say(s, span_of(text, 7));
	assert_int_equal(h1_leg_fill(&s->h1, 5000), LEG_PIECE);
	assert_int_equal(s->h1.dirty, 7);
	s->h1.dirty = 0;
	seat_say(s, span_of(text, 9));
	assert_int_equal(h1_leg_more(&s->h1), LEG_PIECE);
	assert_int_equal(s->h1.dirty, 9);
}

/* -- fill, settle, more ---------------------------------------------------- */

static void fill__takes_what_is_there_first(void **state)
{
	struct seat *s = seat_of(state);

	must(!buf_put_str(&s->in, "kept"));
	seat_say(s, SPAN("fresh"));
	assert_int_equal(h1_leg_fill(&s->h1, 2), LEG_PIECE);
	assert_span(s->h1.raw, "kept"); /* max is of reads */
	assert_true(s->h1.raw_is_in);
	s->h1.raw = span_from(s->h1.raw, 3);
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_span(s->h1.raw, "t");
	s->h1.raw = span_from(s->h1.raw, 1);
	assert_int_equal(h1_leg_fill(&s->h1, 2), LEG_PIECE);
	assert_span(s->h1.raw, "fr");
	assert_false(s->h1.raw_is_in);
	assert_int_equal(buf_len(&s->in), 0);
	s->h1.raw = SPAN_NONE;
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_span(s->h1.raw, "esh");
	s->h1.raw = SPAN_NONE;
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_NOTHING);
	assert_int_equal(s->h1.raw.len, 0);
}

static void fill__ends_after_what_was_kept(void **state)
{
	struct seat *s = seat_of(state);

	seat_say(s, SPAN("last"));
	seat_say_end(s);
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	seat_settle(s);
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_span(s->h1.raw, "last");
	s->h1.raw = SPAN_NONE;
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_END);
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_END);
}

static void settle__keeps_what_was_not_decoded(void **state)
{
	struct seat *s = seat_of(state);

	seat_settle(s); /* nothing to keep */
	assert_int_equal(buf_len(&s->in), 0);
	seat_say(s, SPAN("abcdef"));
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	s->h1.raw = span_from(s->h1.raw, 2);
	seat_settle(s);
	assert_int_equal(s->h1.raw.len, 0);
	assert_span(buf_peek(&s->in), "cdef");
	seat_settle(s); /* twice is once */
	assert_span(buf_peek(&s->in), "cdef");

	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_span(s->h1.raw, "cdef");
	s->h1.raw = span_from(s->h1.raw, 1);
	seat_settle(s);
	assert_false(s->h1.raw_is_in);
	assert_span(buf_peek(&s->in), "def");

	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	s->h1.raw = span_from(s->h1.raw, 3); /* all of it */
	seat_settle(s);
	assert_int_equal(buf_len(&s->in), 0);
}

static void settle__says_when_it_cannot_keep(void **state)
{
	struct seat *s = seat_of(state);

	buf_init(&s->in, 3);
	seat_say(s, SPAN("abcd"));
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_int_equal(h1_leg_settle(&s->h1), -ENOBUFS);
	assert_int_equal(s->h1.raw.len, 0); /* no view of the scratch stays */
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_NOTHING);
}

static void more__appends(void **state)
{
	struct seat *s = seat_of(state);

	seat_say(s, SPAN("xab"));
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	s->h1.raw = span_from(s->h1.raw, 1);
	assert_int_equal(h1_leg_more(&s->h1), LEG_NOTHING);
	assert_span(buf_peek(&s->in), "ab");
	memset(s->scratch, '#', WORKER_SCRATCH_BYTES);
	assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
	assert_span(s->h1.raw, "ab");
	seat_say(s, SPAN("cd"));
	assert_int_equal(h1_leg_more(&s->h1), LEG_PIECE);
	assert_span(s->h1.raw, "abcd");
	seat_say(s, SPAN("ef"));
	assert_int_equal(h1_leg_more(&s->h1), LEG_PIECE);
	assert_span(s->h1.raw, "abcdef");
	s->h1.raw = span_from(s->h1.raw, 4);
	seat_say(s, SPAN("gh"));
	assert_int_equal(h1_leg_more(&s->h1), LEG_PIECE);
	assert_span(s->h1.raw, "efgh");
	seat_say_end(s);
	assert_int_equal(h1_leg_more(&s->h1), LEG_END);
	assert_span(buf_peek(&s->in), "efgh");
}

static void more__is_bounded(void **state)
{
	struct seat *s = seat_of(state);
	size_t max;

	for (max = 0; max < 8; max++) {
		seat_renew(s);
		buf_init(&s->in, max);
		seat_say(s, SPAN("abcd"));
		assert_int_equal(h1_leg_fill(&s->h1, 100), LEG_PIECE);
		seat_say(s, SPAN("efgh"));
		assert_int_equal(h1_leg_more(&s->h1), LEG_BROKEN);
		assert_string_equal(s->h1.leg.why, "the head is too large");
	}
}

/* A head in two parts, then a body: scanned as legs do it. False: not whole. */
static bool head_take(struct seat *s, struct h1_scan *scan, struct buf *head)
{
	enum leg_read got = h1_leg_fill(&s->h1, SIZE_MAX);
	int len;

	while (got == LEG_PIECE) {
		len = h1_scan(scan, s->h1.raw, 1024);
		assert_true(len >= 0);
		if (len) {
			must(!buf_put(head,
				      span_of(s->h1.raw.ptr, (size_t)len)));
			s->h1.raw = span_from(s->h1.raw, (size_t)len);
			return true;
		}
		got = h1_leg_more(&s->h1);
	}
	assert_int_equal(got, LEG_NOTHING);
	return false;
}

static void head__comes_in_parts(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n";
	static const char whole[] = "HTTP/1.1 200 OK\r\nX-A: 1\r\n\r\n"
				    "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\nNEXT";
	struct seat *s = seat_of(state);
	size_t a, b, len = sizeof(whole) - 1;

	for (a = 1; a < len; a++)
		for (b = a; b < len; b++) {
			CLEANUP(buf_fini) struct buf found = BUF_INIT(1024);
			CLEANUP(buf_fini) struct buf body = BUF_INIT(1024);
			const size_t cuts[] = { a, b - a, len - b };
			struct h1_scan scan = { 0 };
			enum leg_read got = LEG_NOTHING;
			const char *at = whole;
			size_t i;

			seat_renew(s);
			body_init(&s->h1.body, H1_BODY_CHUNKED, 0);
			for (i = 0; i < ARRAY_LEN(cuts); i++) {
				if (!cuts[i])
					continue;
				seat_say(s, span_of(at, cuts[i]));
				at += cuts[i];
				if (!buf_len(&found))
					(void)head_take(s, &scan, &found);
				if (buf_len(&found))
					got = drink(s, 100, &body);
				seat_settle(s);
			}
			assert_span(buf_peek(&found), head);
			assert_span(buf_peek(&body), "abcde");
			assert_int_equal(got, LEG_END);
			assert_rest(s, SPAN("NEXT"));
		}
}

/* -- read ------------------------------------------------------------------ */

static const struct {
	enum h1_body kind;
	const char *wire, *content, *rest;
} bodies[] = {
	{ H1_BODY_LENGTH, "0123456789NEXT", "0123456789", "NEXT" },
	{ H1_BODY_CHUNKED, "4\r\n0123\r\n6;x=y\r\n456789\r\n0\r\n\r\nNEXT",
	  "0123456789", "NEXT" },
	{ H1_BODY_CHUNKED, "a\r\n0123456789\r\n0\r\nA: b\r\n\r\n", "0123456789",
	  "" },
	{ H1_BODY_CLOSE, "0123456789", "0123456789", "" },
	{ H1_BODY_TUNNEL, "0123456789", "0123456789", "" },
};

/* Whether it was read just now or kept in `in`: never more than max. */
static void read__gives_at_most_max(void **state)
{
	struct seat *s = seat_of(state);
	size_t max, i, kept;

	for (i = 0; i < ARRAY_LEN(bodies); i++)
		for (max = 1; max <= 11; max++)
			for (kept = 0; kept < 2; kept++) {
				CLEANUP(buf_fini)
				struct buf content = BUF_INIT(1024);
				enum leg_read got;

				seat_renew(s);
				body_init(&s->h1.body, bodies[i].kind, 10);
				if (kept)
					must(!buf_put_str(&s->in,
							  bodies[i].wire));
				else
					seat_say(s, span_str(bodies[i].wire));
				got = drink(s, max, &content);
				if (got == LEG_NOTHING) {
					seat_say_end(s);
					got = drink(s, max, &content);
				}
				assert_int_equal(got, LEG_END);
				assert_span(buf_peek(&content),
					    bodies[i].content);
				assert_int_equal(s->h1.body.bytes, 10);
			}
}

static void read__leaves_what_follows(void **state)
{
	struct seat *s = seat_of(state);
	size_t i;

	for (i = 0; i < 2; i++) {
		CLEANUP(buf_fini) struct buf content = BUF_INIT(1024);

		seat_renew(s);
		body_init(&s->h1.body, bodies[i].kind, 10);
		seat_say(s, span_str(bodies[i].wire));
		assert_int_equal(drink(s, 1000, &content), LEG_END);
		seat_settle(s);
		assert_int_equal(drink(s, 1000, &content), LEG_END);
		assert_span(buf_peek(&s->in), bodies[i].rest);
	}
}

/* A turn may end anywhere; the scratch is overwritten then. */
static void read__goes_on_after_each_turn(void **state)
{
	struct seat *s = seat_of(state);
	struct span piece;
	size_t i, k;

	for (i = 0; i < ARRAY_LEN(bodies); i++) {
		CLEANUP(buf_fini) struct buf content = BUF_INIT(1024);
		enum leg_read got = LEG_NOTHING;

		seat_renew(s);
		body_init(&s->h1.body, bodies[i].kind, 10);
		for (k = 0; bodies[i].wire[k] && got != LEG_END; k++) {
			seat_say(s, span_of(bodies[i].wire + k, 1));
			got = h1_leg_read(&s->h1.leg, 100, &piece);
			must(!buf_put(&content, piece));
			seat_settle(s);
		}
		seat_say_end(s);
		assert_int_equal(drink(s, 100, &content), LEG_END);
		assert_span(buf_peek(&content), bodies[i].content);
	}
}

static void read__an_end_is_an_end_or_a_break(void **state)
{
	static const struct {
		enum h1_body kind;
		const char *wire;
		enum leg_read last;
	} cases[] = {
		{ H1_BODY_CLOSE, "abc", LEG_END },
		{ H1_BODY_CLOSE, "", LEG_END },
		{ H1_BODY_TUNNEL, "abc", LEG_END },
		{ H1_BODY_LENGTH, "123456789", LEG_BROKEN },
		{ H1_BODY_LENGTH, "", LEG_BROKEN },
		{ H1_BODY_CHUNKED, "", LEG_BROKEN },
		{ H1_BODY_CHUNKED, "5\r\nabcde\r\n", LEG_BROKEN },
		{ H1_BODY_CHUNKED, "0\r\n", LEG_BROKEN },
		{ H1_BODY_CHUNKED, "0\r\nX: y\r\n", LEG_BROKEN },
	};
	struct seat *s = seat_of(state);
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP(buf_fini) struct buf content = BUF_INIT(1024);

		seat_renew(s);
		body_init(&s->h1.body, cases[i].kind, 10);
		if (cases[i].wire[0])
			seat_say(s, span_str(cases[i].wire));
		assert_int_equal(drink(s, 100, &content), LEG_NOTHING);
		seat_say_end(s);
		assert_int_equal(drink(s, 100, &content), cases[i].last);
		assert_int_equal(s->h1.leg.why != NULL,
				 cases[i].last == LEG_BROKEN);
		assert_false(s->h1.leg.malformed);
		assert_true(s->h1.ended);
	}
}

/* Not even a body that ends with the connection ends with a reset. */
static void read__a_reset_is_no_end(void **state)
{
	static const enum h1_body kinds[] = { H1_BODY_LENGTH, H1_BODY_CHUNKED,
					      H1_BODY_CLOSE, H1_BODY_TUNNEL };
	struct seat *s = seat_of(state);
	struct span piece;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		seat_renew(s);
		body_init(&s->h1.body, kinds[i], 10);
		seat_reset(s);
		assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece),
				 LEG_BROKEN);
		assert_string_equal(s->h1.leg.why, err_text(ECONNRESET));
		assert_false(s->h1.leg.malformed);
		assert_false(s->h1.body.done);
	}
}

static void read__says_what_was_malformed(void **state)
{
	struct seat *s = seat_of(state);
	struct span piece;

	body_init(&s->h1.body, H1_BODY_CHUNKED, 0);
	seat_say(s, SPAN("2\r\nab\r\nnonsense\r\n"));
	assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece), LEG_PIECE);
	assert_span(piece, "ab");
	assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece), LEG_BROKEN);
	assert_true(s->h1.leg.malformed);
	assert_string_equal(s->h1.leg.why, h1_error_text(H1_E_CHUNK_SIZE));
}

static void trailers__are_there_after_the_end(void **state)
{
	struct seat *s = seat_of(state);
	const struct headers *trailers;
	struct span piece;

	body_init(&s->h1.body, H1_BODY_CHUNKED, 0);
	assert_null(h1_leg_trailers(&s->h1.leg));
	seat_say(s, SPAN("0\r\nX-A: 1\r\n"));
	assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece), LEG_NOTHING);
	seat_settle(s);
	seat_say(s, SPAN("X-B: 2\r\n\r\n"));
	assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece), LEG_END);
	seat_settle(s);
	trailers = h1_leg_trailers(&s->h1.leg);
	assert_non_null(trailers);
	assert_int_equal(trailers->count, 2);
	assert_span(trailers->items[0].name, "X-A");
	assert_span(trailers->items[1].value, "2");
	assert_ptr_equal(h1_leg_trailers(&s->h1.leg), trailers);

	seat_renew(s);
	body_init(&s->h1.body, H1_BODY_CHUNKED, 0);
	seat_say(s, SPAN("0\r\n\r\n"));
	assert_int_equal(h1_leg_read(&s->h1.leg, 100, &piece), LEG_END);
	assert_null(h1_leg_trailers(&s->h1.leg));
}

/* -- out ------------------------------------------------------------------- */

static void assert_heard(struct seat *s, const char *expected)
{
	assert_int_equal(h1_leg_flush(&s->h1.leg), 0);
	seat_listen(s);
	assert_span(buf_peek(&s->got), expected);
	buf_clear(&s->got);
}

static void write__is_framed(void **state)
{
	struct seat *s = seat_of(state);
	struct leg *l = &s->h1.leg;

	assert_int_equal(h1_leg_write(l, SPAN("abc")), 0);
	assert_int_equal(h1_leg_write(l, SPAN_NONE), 0);
	assert_int_equal(h1_leg_write(l, SPAN("de")), 0);
	assert_int_equal(h1_leg_end(l, NULL), 0);
	assert_heard(s, "abcde");

	s->h1.chunked = true;
	assert_int_equal(h1_leg_write(l, SPAN("abc")), 0);
	assert_int_equal(h1_leg_write(l, SPAN_NONE), 0); /* would be the end */
	assert_int_equal(h1_leg_write(l, SPAN("0123456789abcdef")), 0);
	assert_heard(s, "3\r\nabc\r\n10\r\n0123456789abcdef\r\n");
	assert_int_equal(h1_leg_end(l, NULL), 0);
	assert_heard(s, "0\r\n\r\n");
}

static void end__has_trailers_if_they_have_a_place(void **state)
{
	static const struct headers trailers = {
		.count = 2,
		.items = { { .name = SPAN_INIT("X-A"),
			     .value = SPAN_INIT("1") },
			   { .name = SPAN_INIT("X-B") } },
	};
	struct seat *s = seat_of(state);
	struct leg *l = &s->h1.leg;

	assert_int_equal(h1_leg_end(l, &trailers), 0);
	assert_heard(s, "");
	s->h1.chunked = true;
	assert_int_equal(h1_leg_end(l, &trailers), 0);
	assert_heard(s, "0\r\nX-A: 1\r\nX-B: \r\n\r\n");
}

static void flush__is_when_it_is_sent(void **state)
{
	struct seat *s = seat_of(state);

	assert_int_equal(h1_leg_flush(&s->h1.leg), 0); /* nothing to send */
	assert_int_equal(h1_leg_write(&s->h1.leg, SPAN("abc")), 0);
	seat_listen(s);
	assert_int_equal(buf_len(&s->got), 0);
	assert_int_equal(buf_len(&s->h1.out), 3);
	assert_heard(s, "abc");
	assert_int_equal(buf_len(&s->h1.out), 0);
}

/* Two legs put together their output in the same memory, one after the other.
 */
static void flush__makes_room_for_the_other_leg(void **state)
{
	struct desk *d = *state;
	char text[16];
	int i;

	for (i = 0; i < 100; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(h1_leg_write(&d->seat.h1.leg, span_str(text)),
				 0);
		assert_int_equal(h1_leg_flush(&d->seat.h1.leg), 0);
		assert_int_equal(h1_leg_write(&d->other.h1.leg, SPAN("ZZZZ")),
				 0);
		assert_int_equal(h1_leg_flush(&d->other.h1.leg), 0);
		assert_heard(&d->seat, text);
		assert_heard(&d->other, "ZZZZ");
	}
}

/* Small pieces are copied, large ones are not: in order all the same. */
static void write__keeps_the_order_of_all_sizes(void **state)
{
	static const size_t sizes[] = { 10,   8191, 8192, 3,	 100000, 1,
					8193, 8191, 7,	  65536, 5 };
	static char content[128 * 1024];
	struct seat *s = seat_of(state);
	struct leg *l = &s->h1.leg;
	CLEANUP(buf_fini) struct buf expected = BUF_INIT(LEGS_WIRE_MAX);
	size_t i, k;

	for (k = 0; k < 2; k++) {
		s->h1.chunked = k;
		buf_clear(&expected);
		buf_clear(&s->got);
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			memset(content, 'a' + (int)i, sizes[i]);
			assert_true(h1_leg_room(l) >= sizes[i]);
			assert_int_equal(
				h1_leg_write(l, span_of(content, sizes[i])), 0);
			if (k)
				must(!buf_putf(&expected, "%zx\r\n", sizes[i]));
			must(!buf_put(&expected, span_of(content, sizes[i])));
			if (k)
				must(!buf_put_str(&expected, "\r\n"));
			if (i % 3 == 2) {
				assert_int_equal(h1_leg_flush(l), 0);
				seat_listen(s);
			}
		}
		assert_int_equal(h1_leg_flush(l), 0);
		seat_listen(s);
		assert_bytes(buf_peek(&s->got), buf_peek(&expected));
	}
}

/* -- back-pressure --------------------------------------------------------- */

/* Writes pieces of one size as flow.c does: as much as there was room for and
 * still is, then a flush. Bytes of content. */
static size_t pour(struct seat *s, size_t size)
{
	static char content[128 * 1024];
	struct leg *l = &s->h1.leg;
	size_t room = h1_leg_room(l), sum = 0, len;

	while (room) {
		len = MIN(room, size);
		assert_int_equal(h1_leg_write(l, span_of(content, len)), 0);
		sum += len;
		room = MIN(room - len, h1_leg_room(l));
	}
	assert_int_equal(h1_leg_flush(l), 0);
	return sum;
}

/* However small the pieces are and whatever their framing adds: while there is
 * room a write does not fail, and what waits to be sent is bounded. */
static void room__ends_before_writes_fail(void **state)
{
	static const size_t sizes[] = { 1, 2, 100, 8191, 8192, 128 * 1024 };
	struct seat *s = seat_of(state);
	size_t i, k, n, sum;

	for (i = 0; i < ARRAY_LEN(sizes); i++)
		for (k = 0; k < 2; k++) {
			seat_renew(s);
			s->h1.chunked = k;
			sum = pour(s, sizes[i]);
			while ((n = pour(s, sizes[i])))
				sum += n;
			assert_int_equal(h1_leg_room(&s->h1.leg), 0);
			assert_true(stream_unsent(s->stream) <
				    STREAM_UNSENT_MAX);
			seat_listen(s);
			assert_true(h1_leg_room(&s->h1.leg) > 0);
			assert_true(buf_len(&s->got) >= sum);
			if (!k)
				assert_int_equal(buf_len(&s->got), sum);
		}
}

struct note {
	unsigned calls, events;
};

static void on_event(struct stream *s, void *ctx, unsigned events)
{
	struct note *n = ctx;

	(void)s;
	n->calls++;
	n->events |= events;
}

static void want__calls_for_room_and_for_bytes(void **state)
{
	struct seat *s = seat_of(state);
	struct note note = { 0 };
	int i;

	stream_set_owner(s->stream, on_event, &note);
	h1_leg_want(&s->h1.leg, LEG_READ);
	assert_int_equal(stream_wanted(s->stream), STREAM_READABLE);
	loop_run_once(s->bench->loop, false);
	assert_int_equal(note.calls, 0);
	seat_say(s, SPAN("x"));
	assert_true(note.calls > 0);
	assert_int_equal(note.events, STREAM_READABLE);

	while (pour(s, 64 * 1024))
		;
	note = (struct note){ 0 };
	h1_leg_want(&s->h1.leg, LEG_WRITE);
	assert_int_equal(stream_wanted(s->stream), STREAM_WRITABLE);
	for (i = 0; i < 5; i++)
		loop_run_once(s->bench->loop, false);
	assert_int_equal(h1_leg_room(&s->h1.leg), 0);
	seat_listen(s);
	loop_run_once(s->bench->loop, false);
	assert_int_equal(note.events, STREAM_WRITABLE);
	assert_true(h1_leg_room(&s->h1.leg) > 0);

	h1_leg_want(&s->h1.leg, LEG_READ | LEG_WRITE);
	assert_int_equal(stream_wanted(s->stream),
			 STREAM_READABLE | STREAM_WRITABLE);
	h1_leg_want(&s->h1.leg, 0);
	note = (struct note){ 0 };
	seat_say(s, SPAN("y"));
	assert_int_equal(note.calls, 0);
}

static void write__fails_when_the_peer_is_gone(void **state)
{
	static char content[64 * 1024];
	struct seat *s = seat_of(state);
	struct leg *l = &s->h1.leg;
	int i, r = 0;

	s->far = fd_close(s->far);
	for (i = 0; i < 10 && !r; i++) {
		r = h1_leg_write(l, span_of(content, sizeof(content)));
		if (!r)
			r = h1_leg_flush(l);
		loop_run_once(s->bench->loop, false);
	}
	assert_int_equal(r, -EPIPE);
	assert_int_equal(buf_len(&s->h1.out), 0);
	assert_true(h1_leg_write(l, span_of(content, sizeof(content))) < 0);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(receive__is_one_read_of_at_most_max),
		DESK_TEST(receive__knows_the_end_for_ever),
		DESK_TEST(receive__says_why_it_broke),
		DESK_TEST(receive__accounts_for_what_it_filled),
		DESK_TEST(fill__takes_what_is_there_first),
		DESK_TEST(fill__ends_after_what_was_kept),
		DESK_TEST(settle__keeps_what_was_not_decoded),
		DESK_TEST(settle__says_when_it_cannot_keep),
		DESK_TEST(more__appends),
		DESK_TEST(more__is_bounded),
		DESK_TEST(head__comes_in_parts),
		DESK_TEST(read__gives_at_most_max),
		DESK_TEST(read__leaves_what_follows),
		DESK_TEST(read__goes_on_after_each_turn),
		DESK_TEST(read__an_end_is_an_end_or_a_break),
		DESK_TEST(read__a_reset_is_no_end),
		DESK_TEST(read__says_what_was_malformed),
		DESK_TEST(trailers__are_there_after_the_end),
		DESK_TEST(write__is_framed),
		DESK_TEST(end__has_trailers_if_they_have_a_place),
		DESK_TEST(flush__is_when_it_is_sent),
		DESK_TEST(flush__makes_room_for_the_other_leg),
		DESK_TEST(write__keeps_the_order_of_all_sizes),
		DESK_TEST(room__ends_before_writes_fail),
		DESK_TEST(want__calls_for_room_and_for_bytes),
		DESK_TEST(write__fails_when_the_peer_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
