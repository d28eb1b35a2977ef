/* SPDX-License-Identifier: Apache-2.0 */
/* test_h2_abuse.c - floods are answered with ENHANCE_YOUR_CALM, in little room
 */

#include "tests/unit/wire/h2_frames.h"

#include <errno.h>

enum { T0 = 1000000, MEMORY_MAX = 1 << 20 };

static const uint8_t eight[8] = { 0 };

/* One round of abuse, appended to b. */
typedef void round_fn(struct buf *b, uint32_t n);

static void ping(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, H2F_PING, 0, 0, span_of(eight, 8));
}

static void settings(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, H2F_SETTINGS, 0, 0, SPAN_NONE);
}

static void priority(struct buf *b, uint32_t n)
{
	h2_put_frame(b, H2F_PRIORITY, 0, 2 * n + 3, span_of(eight, 5));
}

static void unknown(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, 0x77, 0, 0, SPAN("anything"));
}

static void window(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, H2F_WINDOW_UPDATE, 0, 0, SPAN("\0\0\0\1"));
}

static void empty_data(struct buf *b, uint32_t n)
{
	if (!n)
		h2_put_head(b, 1, 0, H2_GET);
	h2_put_frame(b, H2F_DATA, 0, 1, SPAN_NONE);
}

static void padding(struct buf *b, uint32_t n)
{
	if (!n)
		h2_put_head(b, 1, 0, H2_GET);
	h2_put_frame(b, H2F_DATA, H2F_PADDED, 1, SPAN("\3\0\0\0"));
}

static void tiny_data(struct buf *b, uint32_t n)
{
	if (!n)
		h2_put_head(b, 1, 0, H2_GET);
	h2_put_frame(b, H2F_DATA, 0, 1, SPAN("x"));
}

static void rapid_reset(struct buf *b, uint32_t n)
{
	h2_put_head(b, 2 * n + 1, H2F_END, H2_GET);
	h2_put_frame(b, H2F_RST_STREAM, 0, 2 * n + 1, SPAN("\0\0\0\x8"));
}

/* MadeYouReset: a stream error of the client's own making. */
static void window_overflow(struct buf *b, uint32_t n)
{
	h2_put_head(b, 2 * n + 1, H2F_END, H2_GET);
	h2_put_frame(b, H2F_WINDOW_UPDATE, 0, 2 * n + 1,
		     SPAN("\x7f\xff\xff\xff"));
}

static void malformed(struct buf *b, uint32_t n)
{
	h2_put_head(b, 2 * n + 1, H2F_END, H2_GET "connection x");
}

static void wrong_length(struct buf *b, uint32_t n)
{
	h2_put_head(b, 2 * n + 1, 0, H2_GET "content-length 1");
	h2_put_frame(b, H2F_DATA, H2F_END, 2 * n + 1, SPAN("xy"));
}

/* More streams than were offered, never ended. */
static void too_many(struct buf *b, uint32_t n)
{
	h2_put_head(b, 2 * n + 1, 0, H2_GET);
}

static void large_heads(struct buf *b, uint32_t n)
{
	unsigned i;
	struct buf block = BUF_INIT(16384);

	h2_put_block(&block, H2_GET);
	for (i = 0; i <= HEADERS_MAX; i++)
		h2_put_block(&block, "a b");
	h2_put_frame(b, H2F_HEADERS, H2F_END | H2F_END_HEADERS, 2 * n + 1,
		     buf_peek(&block));
	buf_fini(&block);
}

/* How many rounds pass, all at one time; at most `most`. Output is taken after
 * every `batch` rounds. */
static uint32_t rounds_pass(round_fn *fn, uint32_t most, uint32_t batch,
			    struct h2_end *e)
{
	struct buf b = BUF_INIT(1 << 20);
	uint32_t n;

	/* before its ACK a client may not know our limits yet */
	h2_server_meet(e, NULL, fn != too_many);
	e->quiet = true;
	for (n = 0; n < most && !e->failed; n++) {
		fn(&b, n);
		if (n % batch == 0)
			(void)h2_play(e, T0, &b);
		assert_in_range(h2_memory(e->h), 1, MEMORY_MAX);
	}
	if (e->failed) {
		assert_int_equal(e->failed, -EPROTO);
		assert_int_equal(h2_error_code(e->h), H2_ENHANCE_YOUR_CALM);
		assert_true(h2_error(e->h)[0]);
		assert_true(h2_is_over(e->h));
		assert_false(h2_wants_read(e->h));
		assert_int_equal(h2_input(e->h, T0, SPAN("x")), -EPROTO);
	}
	h2_drop(e->h, H2_CANCEL);
	h2_end_close(e);
	buf_fini(&b);
	return n;
}

static void abuse__floods(void **state)
{
	static const struct {
		round_fn *fn;
		uint32_t least, most;
	} floods[] = {
		{ ping, 900, 1100 },	    { settings, 100, 150 },
		{ priority, 900, 1100 },    { unknown, 900, 1100 },
		{ window, 900, 1100 },	    { empty_data, 900, 1100 },
		{ padding, 900, 1100 },	    { tiny_data, 15000, 17000 },
		{ rapid_reset, 490, 510 },  { malformed, 490, 510 },
		{ wrong_length, 490, 510 }, { too_many, 590, 610 },
		{ large_heads, 490, 510 },  { window_overflow, 490, 510 },
	};
	uint32_t n, batched;
	struct h2_end e;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(floods); i++) {
		n = rounds_pass(floods[i].fn, 100000, 1, &e);
		batched = rounds_pass(floods[i].fn, 100000, 10, &e);
		print_message("flood %zu: %u rounds, %u in batches\n", i, n,
			      batched);
		assert_in_range(n, floods[i].least, floods[i].most);
		assert_in_range(batched, floods[i].least, floods[i].most + 10);
	}
}

/* The same at a rate that honest peers have is fine for ever. */
static void slow_pass(round_fn *fn, unsigned per_second)
{
	struct buf b = BUF_INIT(1 << 20);
	struct h2_end e;
	uint32_t n;

	h2_server_open(&e, NULL);
	e.quiet = true;
	for (n = 0; n < 5000; n++) {
		fn(&b, n);
		(void)h2_play(&e, T0 + n * 1000ull / per_second, &b);
	}
	if (e.failed)
		fail_msg("%u: %s", n, h2_error(e.h));
	h2_end_close(&e);
	buf_fini(&b);
}

static void abuse__honest_rates_pass(void **state)
{
	(void)state;
	slow_pass(ping, 900);
	slow_pass(settings, 100);
	slow_pass(priority, 900);
	slow_pass(window, 900);
	slow_pass(tiny_data, 15000);
	slow_pass(rapid_reset, 45);
}

static void abuse__continuation(void **state)
{
	struct buf b = BUF_INIT(100000), block = BUF_INIT(1000);
	struct h2_end e;
	unsigned i;

	(void)state;
	h2_put_block(&block, H2_GET);
	/* eight are fine */
	h2_server_open(&e, NULL);
	h2_put_frame(&b, H2F_HEADERS, H2F_END, 1, buf_peek(&block));
	for (i = 0; i < 8; i++)
		h2_put_frame(&b, H2F_CONTINUATION, i == 7 ? H2F_END_HEADERS : 0,
			     1, SPAN_NONE);
	(void)h2_play(&e, T0, &b);
	assert_log(&e, "1 head. GET https a /\n1 end\n");
	/* a head that waits is seen */
	h2_put_frame(&b, H2F_HEADERS, H2F_END, 3, buf_peek(&block));
	(void)h2_play(&e, T0 + 7, &b);
	assert_int_equal(h2_head_since(e.h), T0 + 7);
	/* the ninth is one too many */
	for (i = 0; i < 9; i++)
		h2_put_frame(&b, H2F_CONTINUATION, 0, 3, SPAN_NONE);
	(void)h2_play(&e, T0 + 8, &b);
	assert_int_equal(e.failed, -EPROTO);
	assert_string_equal(h2_error(e.h), "too many CONTINUATION frames");
	assert_int_equal(h2_error_code(e.h), H2_ENHANCE_YOUR_CALM);
	h2_end_close(&e);
	buf_fini(&block);
	buf_fini(&b);
}

/* One indexed byte stands for 4 KB: 15,000 of them would be 60 MB. */
static void abuse__hpack_bomb(void **state)
{
	static char large[3900], bombs[15000];
	struct buf b = BUF_INIT(100000), block = BUF_INIT(100000);
	struct h2_end e;

	(void)state;
	h2_server_open(&e, NULL);
	memset(large, 'x', sizeof(large));
	h2_put_block(&block, H2_GET);
	h2_put_byte(&block, 0x40); /* with indexing */
	h2_put_hpack_string(&block, SPAN("a"));
	h2_put_hpack_string(&block, span_of(large, sizeof(large)));
	h2_put_frame(&b, H2F_HEADERS, H2F_END | H2F_END_HEADERS, 1,
		     buf_peek(&block));
	e.quiet = true;
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.heads, 1);
	buf_clear(&block);
	h2_put_block(&block, H2_GET);
	memset(bombs, 0x80 | 62, sizeof(bombs));
	h2_put(&block, span_of(bombs, 50));
	h2_put_frame(&b, H2F_HEADERS, H2F_END | H2F_END_HEADERS, 3,
		     buf_peek(&block));
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, 0); /* only a large head: 431 */
	assert_int_equal(e.refusals, 1);
	h2_put(&block, span_of(bombs, sizeof(bombs)));
	h2_put_frame(&b, H2F_HEADERS, H2F_END | H2F_END_HEADERS, 5,
		     buf_peek(&block));
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, -EPROTO);
	assert_int_equal(h2_error_code(e.h), H2_ENHANCE_YOUR_CALM);
	assert_in_range(h2_memory(e.h), 1, 64 * 1024);
	h2_end_close(&e);
	buf_fini(&block);
	buf_fini(&b);
}

/* A client that asks and never reads: nothing grows without bound. */
static void abuse__client_that_does_not_read(void **state)
{
	struct buf b = BUF_INIT(1 << 20);
	struct h2_end e;
	uint32_t n;

	(void)state;
	h2_server_open(&e, NULL);
	e.quiet = true;
	for (n = 0; n < 100000 && !e.failed; n++) {
		ping(&b, n);
		h2_feed(&e, T0 + n, 0, buf_peek(&b));
		buf_clear(&b);
		if (!h2_wants_read(e.h))
			break;
	}
	assert_int_equal(e.failed, 0);
	assert_in_range(n, 1000, 20000);
	assert_in_range(h2_memory(e.h), 1, MEMORY_MAX);
	h2_end_close(&e);
	buf_fini(&b);
}

/* Data beyond the window, and a frame larger than was offered. */
static void abuse__protocol_errors(void **state)
{
	static char large[16385];
	struct buf b = BUF_INIT(1 << 20);
	const struct h2_limits small = { .window = 1000 };
	struct h2_end e;

	(void)state;
	h2_server_open(&e, NULL);
	h2_put_frame(&b, H2F_DATA, 0, 1, span_of(large, sizeof(large)));
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, -EPROTO);
	assert_int_equal(h2_error_code(e.h), H2_FRAME_SIZE_ERROR);
	assert_string_equal(h2_error(e.h), "too large frame size");
	h2_end_close(&e);

	h2_server_open(&e, &small);
	h2_put_head(&b, 1, 0, H2_GET);
	h2_put_frame(&b, H2F_DATA, 0, 1, span_of(large, 1001));
	(void)h2_play(&e, T0, &b);
	assert_log(&e, "1 head GET https a /\n1 data 1001\n"
		       "1 closed FLOW_CONTROL_ERROR\n");
	h2_end_close(&e);

	h2_end_open(&e, H2_SERVER, NULL);
	h2_put(&b, SPAN("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, -EPROTO);
	assert_string_equal(h2_error(e.h),
			    "Received bad client magic byte string");
	h2_end_close(&e);

	/* a client is pushed nothing */
	h2_end_open(&e, H2_CLIENT, NULL);
	h2_put_frame(&b, H2F_SETTINGS, 0, 0, SPAN_NONE);
	h2_put_frame(&b, H2F_PUSH_PROMISE, H2F_END_HEADERS, 1,
		     SPAN("\0\0\0\2\x82"));
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, -EPROTO);
	assert_int_equal(h2_error_code(e.h), H2_PROTOCOL_ERROR);
	h2_end_close(&e);
	buf_fini(&b);
}

/* What nghttp2 would pass over. */
static void stray(const char *what, void (*put)(struct buf *b), uint32_t code)
{
	struct buf b = BUF_INIT(1000);
	struct h2_end e;
	size_t step;

	for (step = 0; step < 20; step++) {
		h2_server_open(&e, NULL);
		h2_put_head(&b, 5, 0, H2_GET);
		h2_put_frame(&b, H2F_RST_STREAM, 0, 5, SPAN("\0\0\0\x8"));
		put(&b);
		h2_feed(&e, T0, step, buf_peek(&b));
		if (h2_error_code(e.h) != code)
			fail_msg("%s: %s", what, h2_error(e.h));
		assert_int_equal(e.failed, code ? -EPROTO : 0);
		buf_clear(&b);
		h2_end_close(&e);
	}
	buf_fini(&b);
}

/* What a peer does while the connection is being shut down counts as ever: the
 * owner hears of it. `put` is one frame of a flood, or one that is wrong. */
static void closing_is(struct h2_end *e, void (*put)(struct buf *b, uint32_t n),
		       uint32_t rounds, uint32_t code)
{
	struct buf b = BUF_INIT(1 << 20);
	uint32_t n;

	h2_server_open(e, NULL);
	e->quiet = true;
	h2_put_head(&b, 1, H2F_END, H2_GET);
	(void)h2_play(e, T0, &b);
	h2_shutdown(e->h);
	h2_shutdown(e->h); /* GOAWAY NO_ERROR; stream 1 may end */
	(void)h2_play(e, T0, &b);
	assert_int_equal(h2_error_code(e->h), H2_NO_ERROR);
	assert_false(h2_is_over(e->h));
	for (n = 0; n < rounds && !e->failed; n++) {
		put(&b, n);
		(void)h2_play(e, T0, &b);
	}
	assert_int_equal(e->failed, -EPROTO);
	assert_int_equal(h2_error_code(e->h), code);
	assert_true(h2_error(e->h)[0]);
	assert_true(h2_is_over(e->h));
	h2_drop(e->h, H2_CANCEL);
	assert_int_equal(e->closes, 1);
	h2_end_close(e);
	buf_fini(&b);
}

static void data_on_none(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, H2F_DATA, 0, 0, SPAN("x"));
}

static void stray_continuation(struct buf *b, uint32_t n)
{
	(void)n;
	h2_put_frame(b, H2F_CONTINUATION, H2F_END_HEADERS, 1, SPAN("x"));
}

static void abuse__while_closing(void **state)
{
	struct h2_end e;

	(void)state;
	closing_is(&e, ping, 2000, H2_ENHANCE_YOUR_CALM);
	closing_is(&e, settings, 2000, H2_ENHANCE_YOUR_CALM);
	closing_is(&e, data_on_none, 1, H2_PROTOCOL_ERROR);
	closing_is(&e, stray_continuation, 1, H2_PROTOCOL_ERROR);
}

/* A GOAWAY of our own wish is no failure of the peer's, whatever its code. */
static void abuse__own_goaway_is_no_failure(void **state)
{
	struct buf b = BUF_INIT(1000);
	struct h2_end e;

	(void)state;
	h2_server_open(&e, NULL);
	h2_put_head(&b, 1, H2F_END, H2_GET);
	(void)h2_play(&e, T0, &b);
	h2_goaway(e.h, H2_ENHANCE_YOUR_CALM);
	(void)h2_play(&e, T0, &b);
	assert_int_equal(h2_error_code(e.h), H2_NO_ERROR);
	assert_string_equal(h2_error(e.h), "");
	assert_true(h2_is_over(e.h));
	h2_drop(e.h, H2_CANCEL);
	h2_end_close(&e);
	buf_fini(&b);
}

static void late_data(struct buf *b)
{
	h2_put_frame(b, H2F_DATA, H2F_END, 5, SPAN("x"));
}

static void late_head(struct buf *b)
{
	h2_put_head(b, 5, H2F_END, "x y");
}

static void id_back(struct buf *b)
{
	h2_put_head(b, 3, H2F_END, H2_GET);
}

static void priority_of_none(struct buf *b)
{
	h2_put_frame(b, H2F_PRIORITY, 0, 0, SPAN("\0\0\0\1\0"));
}

static void priority_on_itself(struct buf *b)
{
	h2_put_frame(b, H2F_PRIORITY, 0, 7, SPAN("\x80\0\0\7\0"));
}

static void priority_fine(struct buf *b)
{
	h2_put_frame(b, H2F_PRIORITY, 0, 7, SPAN("\0\0\0\5\0"));
	h2_put_frame(b, H2F_WINDOW_UPDATE, 0, 5, SPAN("\0\0\0\1"));
	h2_put_head(b, 9, H2F_END, H2_GET);
}

static void abuse__stray_frames(void **state)
{
	(void)state;
	stray("DATA after RST_STREAM", late_data, H2_STREAM_CLOSED);
	stray("HEADERS after RST_STREAM", late_head, H2_STREAM_CLOSED);
	stray("id goes back", id_back, H2_PROTOCOL_ERROR);
	stray("PRIORITY of 0", priority_of_none, H2_PROTOCOL_ERROR);
	stray("PRIORITY on itself", priority_on_itself, H2_PROTOCOL_ERROR);
	stray("fine", priority_fine, H2_NO_ERROR);
}

/* What was sent before our RST_STREAM came is no error. */
static void abuse__frames_in_flight_pass(void **state)
{
	struct buf b = BUF_INIT(1000);
	struct h2_end e;

	(void)state;
	h2_server_open(&e, NULL);
	h2_put_head(&b, 1, 0, H2_GET);
	(void)h2_play(&e, T0, &b);
	h2_reset(e.h, 1, H2_CANCEL);
	(void)h2_play(&e, T0, &b);
	h2_put_frame(&b, H2F_DATA, 0, 1, SPAN("x"));
	h2_put_head(&b, 1, H2F_END, "x y");
	h2_put_head(&b, 3, H2F_END, H2_GET);
	(void)h2_play(&e, T0, &b);
	assert_int_equal(e.failed, 0);
	assert_log(&e, "1 head GET https a /\n1 closed CANCEL\n"
		       "3 head. GET https a /\n3 end\n");
	h2_end_close(&e);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(abuse__floods),
		cmocka_unit_test(abuse__honest_rates_pass),
		cmocka_unit_test(abuse__continuation),
		cmocka_unit_test(abuse__hpack_bomb),
		cmocka_unit_test(abuse__client_that_does_not_read),
		cmocka_unit_test(abuse__protocol_errors),
		cmocka_unit_test(abuse__stray_frames),
		cmocka_unit_test(abuse__while_closing),
		cmocka_unit_test(abuse__own_goaway_is_no_failure),
		cmocka_unit_test(abuse__frames_in_flight_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
