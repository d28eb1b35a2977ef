/* SPDX-License-Identifier: Apache-2.0 */
/* test_body.c - a body is the same on the other side, whatever the framings */

#include "tests/unit/gateway/fixture.h"

#include <fcntl.h>
#include <sys/socket.h>

#include "gateway/session/body.h"
#include "src/io/stream.h"

enum { WIRE_MAX = 4 * 1024 * 1024, OUT_BYTES = 256 * 1024, ROUNDS = 200 };

/* A sink over one end of a socket pair; all that was sent is in `got`. */
struct drain {
	struct loop *loop;
	struct stream *stream;
	int far;
	struct buf out, got;
	struct body_sink sink;
};

static int drain_open(void **state)
{
	struct drain *d = must_alloc(sizeof(*d));
	int fds[2];

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds));
	must(!loop_new(&d->loop));
	must(!stream_new(d->loop, fds[0], &d->stream));
	d->far = fds[1];
	buf_init(&d->out, OUT_BYTES);
	buf_init(&d->got, WIRE_MAX);
	*state = d;
	return 0;
}

static int drain_close(void **state)
{
	struct drain *d = *state;

	d->stream = stream_free(d->stream);
	d->loop = loop_free(d->loop);
	(void)fd_close(d->far);
	buf_fini(&d->out);
	buf_fini(&d->got);
	free(d);
	return 0;
}

static void drain_begin(struct drain *d)
{
	buf_clear(&d->got);
	d->sink = (struct body_sink){ .out = &d->out, .to = d->stream };
}

/* Takes what the far end has; sends what the near end could not. */
static void drain_read(struct drain *d)
{
	char *room;
	ssize_t n;

	do {
		(void)stream_flush(d->stream);
		must(!buf_reserve(&d->got, 64 * 1024, &room));
		n = read(d->far, room, 64 * 1024);
		if (n > 0)
			buf_commit(&d->got, (size_t)n);
		loop_run_once(d->loop, false);
	} while (n > 0 || stream_unsent(d->stream));
}

static void drain_all(struct drain *d)
{
	assert_int_equal(sink_flush(&d->sink), 0);
	drain_read(d);
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

static void assert_bytes(struct span found, struct span expected)
{
	assert_int_equal(found.len, expected.len);
	assert_memory_equal(found.ptr, expected.ptr, expected.len);
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

static void assert_out(struct drain *d, const struct shape *shape,
		       struct span content)
{
	CLEANUP(buf_fini) struct buf found = BUF_INIT(WIRE_MAX);
	CLEANUP(buf_fini) struct buf trailers = BUF_INIT(WIRE_MAX);

	if (!shape->out_chunked) {
		/* trailers have no place there */
		assert_bytes(buf_peek(&d->got), content);
		return;
	}
	dechunk(buf_peek(&d->got), &found, &trailers);
	assert_bytes(buf_peek(&found), content);
	assert_span(buf_peek(&trailers), shape->trailers);
}

/* Feeds wire in pieces that `piece` chooses; what follows the body stays. */
static void feed(struct drain *d, struct body *b, struct span wire,
		 size_t (*piece)(size_t left, size_t at), size_t at)
{
	struct span in;
	size_t len;

	while (wire.len) {
		len = piece(wire.len, at);
		in = span_of(wire.ptr, len);
		assert_int_equal(body_feed(b, &in, &d->sink), H1_OK);
		len -= in.len;
		if (!len)
			return; /* not the body's any more */
		wire = span_from(wire, len);
		if (random_below(2))
			drain_all(d);
	}
}

static void pass(struct drain *d, const struct shape *shape,
		 struct span content, size_t (*piece)(size_t, size_t),
		 size_t at)
{
	CLEANUP(buf_fini) struct buf wire = BUF_INIT(WIRE_MAX);
	bool until_end =
		shape->in == H1_BODY_CLOSE || shape->in == H1_BODY_TUNNEL;
	struct body b;

	if (shape->in == H1_BODY_CHUNKED)
		chunk(&wire, content, shape->trailers);
	else
		must(!buf_put(&wire, content));
	if (!until_end)
		must(!buf_put_str(&wire, "GET / HTTP/1.1\r\n"));
	drain_begin(d);
	body_init(&b, shape->in, content.len, shape->out_chunked);
	feed(d, &b, buf_peek(&wire), piece, at);
	if (until_end) {
		assert_false(b.done);
		assert_true(body_end(&b, &d->sink));
	}
	assert_true(b.done);
	assert_int_equal(b.bytes, content.len);
	drain_all(d);
	assert_out(d, shape, content);
	body_fini(&b);
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

static void body__an_empty_one_is_done_at_once(void **state)
{
	struct drain *d = *state;
	struct span in = SPAN("GET / HTTP/1.1\r\n");
	struct body b;

	drain_begin(d);
	body_init(&b, H1_BODY_NONE, 0, false);
	assert_true(b.done);
	assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
	assert_int_equal(in.len, 16);
	assert_true(body_end(&b, &d->sink));
	body_fini(&b);

	body_init(&b, H1_BODY_LENGTH, 0, false);
	assert_true(b.done);
	assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
	assert_int_equal(in.len, 16);
	body_fini(&b);
	drain_all(d);
	assert_int_equal(buf_len(&d->got), 0);
}

static void body__knows_when_it_was_cut(void **state)
{
	static const enum h1_body kinds[] = { H1_BODY_LENGTH, H1_BODY_CHUNKED };
	struct drain *d = *state;
	struct body b;
	size_t i;

	for (i = 0; i < ARRAY_LEN(kinds); i++) {
		struct span in = SPAN("5\r\nabc");

		drain_begin(d);
		body_init(&b, kinds[i], 100, true);
		assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
		assert_false(body_end(&b, &d->sink));
		assert_false(b.done);
		drain_all(d);
		/* nobody downstream can take it for whole */
		assert_null(memmem(buf_peek(&d->got).ptr, buf_len(&d->got),
				   "0\r\n\r\n", 5));
		body_fini(&b);
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
	struct drain *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		struct span in = span_str(bad[i]);
		struct body b;

		drain_begin(d);
		body_init(&b, H1_BODY_CHUNKED, 0, true);
		if (body_feed(&b, &in, &d->sink) == H1_OK)
			fail_msg("accepted: %s", bad[i]);
		assert_false(b.done);
		body_fini(&b);
		drain_all(d);
	}
}

static void body__bounds_trailers(void **state)
{
	CLEANUP(buf_fini) struct buf wire = BUF_INIT(WIRE_MAX);
	struct drain *d = *state;
	enum h1_error error;
	struct span in;
	struct body b;

	must(!buf_put_str(&wire, "0\r\n"));
	while (buf_len(&wire) < 20 * 1024)
		must(!buf_put_str(&wire, "X-Filler: aaaaaaaaaaaaaaaaaaaa\r\n"));
	must(!buf_put_str(&wire, "\r\n"));
	drain_begin(d);
	body_init(&b, H1_BODY_CHUNKED, 0, true);
	in = buf_peek(&wire);
	error = body_feed(&b, &in, &d->sink);
	assert_int_equal(error, H1_E_TRAILER_TOO_LARGE);
	assert_false(b.done);
	body_fini(&b);
	drain_all(d);
}

static int upper_trailers(void *ctx, struct span trailers, struct buf *out)
{
	(*(unsigned *)ctx)++;
	assert_span(trailers, "X-Sum: abc\r\n");
	return buf_put_str(out, "X-Sum: [hidden]\r\n");
}

static void body__trailers_pass_the_filter(void **state)
{
	struct drain *d = *state;
	struct span in = SPAN("3\r\nabc\r\n0\r\nX-Sum: abc\r\n\r\n");
	unsigned called = 0;
	struct body b;

	drain_begin(d);
	d->sink.trailers = upper_trailers;
	d->sink.ctx = &called;
	body_init(&b, H1_BODY_CHUNKED, 0, true);
	assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
	assert_true(b.done);
	drain_all(d);
	assert_int_equal(called, 1);
	assert_span(buf_peek(&d->got),
		    "3\r\nabc\r\n0\r\nX-Sum: [hidden]\r\n\r\n");
	body_fini(&b);
}

static void body__an_error_of_the_stream_sticks(void **state)
{
	static char large[32 * 1024];
	struct drain *d = *state;
	struct span in = span_of(large, sizeof(large));
	struct body b;

	stream_shutdown_write(d->stream);
	drain_begin(d);
	body_init(&b, H1_BODY_CLOSE, 0, false);
	assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
	assert_int_equal(in.len, 0); /* consumed all the same */
	assert_true(sink_flush(&d->sink) < 0);
	in = SPAN("more");
	assert_int_equal(body_feed(&b, &in, &d->sink), H1_OK);
	assert_true(sink_flush(&d->sink) < 0);
	body_fini(&b);
}

#define DRAIN_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, drain_open, drain_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DRAIN_TEST(body__survives_every_framing),
		DRAIN_TEST(body__survives_every_split),
		DRAIN_TEST(body__survives_large_pieces),
		DRAIN_TEST(body__an_empty_one_is_done_at_once),
		DRAIN_TEST(body__knows_when_it_was_cut),
		DRAIN_TEST(body__refuses_what_is_malformed),
		DRAIN_TEST(body__bounds_trailers),
		DRAIN_TEST(body__trailers_pass_the_filter),
		DRAIN_TEST(body__an_error_of_the_stream_sticks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
