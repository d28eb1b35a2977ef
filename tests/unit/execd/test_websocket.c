/* SPDX-License-Identifier: Apache-2.0 */
/* test_websocket.c - WebSocket connections over a socket pair, both sides
 *
 * The peer is the other end of the pair, spoken to in bytes. The server's
 * handshake over HTTP is a scene's; here its connection begins open.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/clock.h"
#include "src/execd/websocket_inside.h"
#include "src/wire/ws.h"

static struct loop *loop;

/* What the owner heard, as text, and what it does about it. */
struct owner {
	struct websocket *w;
	struct buf heard;
	unsigned code; /* of .closed; 0: not closed */
	char why[128];
	unsigned rooms, opens;
	bool hold_next, close_next;
};

static void owner_open(void *ctx)
{
	((struct owner *)ctx)->opens++;
}

static void owner_message(void *ctx, enum ws_opcode opcode, struct span bytes,
			  bool last)
{
	struct owner *o = ctx;

	assert_int_equal(buf_putf(&o->heard,
				  "%c%s:", opcode == WS_TEXT ? 'T' : 'B',
				  last ? "" : "+"),
			 0);
	assert_int_equal(buf_put(&o->heard, bytes), 0);
	if (o->hold_next)
		websocket_hold(o->w, true);
	if (o->close_next)
		o->w = websocket_close(o->w, 4001, "enough");
	o->hold_next = o->close_next = false;
}

static void owner_room(void *ctx)
{
	((struct owner *)ctx)->rooms++;
}

static void owner_closed(void *ctx, unsigned code, const char *why)
{
	struct owner *o = ctx;

	assert_int_equal(o->code, 0);
	o->code = code;
	(void)snprintf(o->why, sizeof(o->why), "%s", why);
	o->w = NULL;
}

static const struct websocket_ops ops = {
	.open = owner_open,
	.message = owner_message,
	.room = owner_room,
	.closed = owner_closed,
};

static int setup(void **state)
{
	(void)state;
	return loop_new(&loop);
}

static int teardown(void **state)
{
	(void)state;
	loop = loop_free(loop);
	return 0;
}

static void turns(int n)
{
	while (n--)
		loop_run_once(loop, false);
}

/* Runs the loop until cond, at most so many ms. */
#define run_until(cond, ms)                              \
	do {                                             \
		const uint64_t end_ = clock_ms() + (ms); \
		while (!(cond) && clock_ms() < end_) {   \
			loop_run_once(loop, false);      \
			usleep(500);                     \
		}                                        \
		assert_true(cond);                       \
	} while (0)

static struct stream *pair(int *peer)
{
	struct stream *s = NULL;
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, fds),
			 0);
	assert_int_equal(stream_new(loop, fds[0], &s), 0);
	*peer = fds[1];
	return s;
}

static int serve(struct owner *o, const struct websocket_limits *limits)
{
	int peer;

	*o = (struct owner){ .heard = BUF_INIT(8 << 20) };
	o->w = websocket_new(pair(&peer), true, limits, &ops, o);
	websocket_set_open(o->w);
	return peer;
}

static void say(int peer, struct span bytes)
{
	assert_int_equal(write(peer, bytes.ptr, bytes.len), bytes.len);
}

static void say_frame(int peer, enum ws_opcode opcode, struct span bytes)
{
	const uint8_t mask[4] = { 9, 8, 7, 6 };
	struct buf out = BUF_INIT(bytes.len + 16);

	assert_int_equal(ws_put(&out, opcode, bytes, mask), 0);
	say(peer, buf_peek(&out));
	buf_fini(&out);
}

/* All that is there now. */
static struct span listen_to(int peer, char *dst, size_t size)
{
	ssize_t n;

	turns(4);
	n = read(peer, dst, size);
	return span_of(dst, n < 0 ? 0 : (size_t)n);
}

static void finish(struct owner *o, int peer)
{
	o->w = websocket_close(o->w, WEBSOCKET_NORMAL, "");
	buf_fini(&o->heard);
	(void)close(peer);
	turns(4);
}

/* -- messages -------------------------------------------------------------- */

static void websocket__messages_both_ways(void **state)
{
	char bytes[256];
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	say_frame(peer, WS_TEXT, SPAN("hi"));
	say_frame(peer, WS_BINARY, SPAN("\0\xff"));
	turns(4);
	assert_true(span_eq(buf_peek(&o.heard), SPAN("T:hiB:\0\xff")));
	assert_int_equal(websocket_send(o.w, WS_TEXT, SPAN("yes")), 0);
	assert_int_equal(websocket_send(o.w, WS_BINARY, SPAN_NONE), 0);
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x81\x03yes\x82\x00")));
	finish(&o, peer);
}

static void websocket__pieces_or_whole(void **state)
{
	const struct websocket_limits whole = { .whole = true };
	const struct span first = SPAN("\x02\x82\0\0\0\0"
				       "ab"),
			  second = SPAN("\x80\x81\0\0\0\0"
					"c");
	struct owner o;
	int peer;

	(void)state;
	for (int i = 0; i < 2; i++) {
		peer = serve(&o, i ? &whole : NULL);
		say(peer, first);
		turns(4);
		say(peer, second);
		turns(4);
		assert_true(span_eq(buf_peek(&o.heard),
				    i ? SPAN("B:abc") : SPAN("B+:abB:c")));
		finish(&o, peer);
	}
}

static void websocket__answers_pings(void **state)
{
	char bytes[256];
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	say_frame(peer, WS_PING, SPAN("there?"));
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x8a\x06there?")));
	assert_int_equal(buf_len(&o.heard), 0);
	finish(&o, peer);
}

/* What comes behind the message at which the owner holds is kept, in order,
 * and a message may be cut there. */
static void websocket__holds_back(void **state)
{
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	o.hold_next = true;
	say_frame(peer, WS_TEXT, SPAN("1"));
	say_frame(peer, WS_TEXT, SPAN("2"));
	turns(4);
	say_frame(peer, WS_TEXT, SPAN("3"));
	turns(8);
	assert_true(span_eq(buf_peek(&o.heard), SPAN("T:1")));
	websocket_hold(o.w, false);
	turns(8);
	assert_true(span_eq(buf_peek(&o.heard), SPAN("T:1T:2T:3")));
	finish(&o, peer);
}

/* A peer that reads nothing: messages stop at the limit, memory with them; room
 * is told once it reads again, and nothing was lost or torn. */
static void websocket__pushes_back(void **state)
{
	static char piece[30000], bytes[1 << 20];
	struct ws w = { 0 };
	size_t sent = 0, got = 0, len;
	struct ws_event ev;
	struct owner o;
	int peer = serve(&o, NULL), r;
	char *p;
	ssize_t n;

	(void)state;
	while ((r = websocket_send(o.w, WS_BINARY,
				   span_of(piece, sizeof(piece)))) == 0)
		sent++;
	assert_int_equal(r, -EAGAIN);
	turns(4);
	assert_true(stream_unsent(o.w->stream) <
		    WEBSOCKET_UNSENT_MAX + sizeof(piece) + 16);
	/* pings and the Close still find room */
	say_frame(peer, WS_PING, SPAN("x"));
	turns(4);
	assert_int_equal(o.rooms, 0);

	for (int i = 0; i < 200; i++) {
		n = read(peer, bytes, sizeof(bytes));
		p = bytes;
		len = n > 0 ? (size_t)n : 0;
		while ((r = ws_next(&w, &p, &len, &ev)) > 0)
			got += ev.last && ev.opcode == WS_BINARY ? 1 : 0;
		assert_int_equal(r, 0);
		turns(2);
	}
	assert_int_equal(got, sent);
	assert_int_equal(o.rooms, 1);
	assert_int_equal(
		websocket_send(o.w, WS_BINARY, span_of(piece, sizeof(piece))),
		0);
	finish(&o, peer);
}

/* Pings without end from one that reads nothing cost no memory. */
static void websocket__ping_flood(void **state)
{
	struct owner o;
	int peer = serve(&o, NULL);
	char payload[100];

	(void)state;
	memset(payload, 'p', sizeof(payload));
	for (int i = 0; i < 20000; i++) {
		say_frame(peer, WS_PING, span_of(payload, sizeof(payload)));
		if (i % 50 == 0)
			turns(2);
	}
	turns(8);
	assert_int_equal(o.code, 0);
	assert_true(stream_unsent(o.w->stream) < STREAM_UNSENT_MAX + 256);
	finish(&o, peer);
}

/* -- ends ------------------------------------------------------------------ */

static void websocket__peer_closes(void **state)
{
	char bytes[256];
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	say_frame(peer, WS_CLOSE, SPAN("\x0f\xa2so long"));
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x88\x02\x0f\xa2")));
	assert_int_equal(o.code, 4002);
	assert_string_equal(o.why, "so long");
	finish(&o, peer);

	peer = serve(&o, NULL);
	say_frame(peer, WS_CLOSE, SPAN_NONE);
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x88\x00")));
	assert_int_equal(o.code, WEBSOCKET_NO_STATUS);
	finish(&o, peer);
}

static void websocket__peer_breaks(void **state)
{
	char bytes[256];
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	say(peer, SPAN("\x82\x00"));
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x88\x02\x03\xea")));
	assert_int_equal(o.code, WEBSOCKET_PROTOCOL);
	finish(&o, peer);

	peer = serve(&o, &(struct websocket_limits){ .message_max = 10 });
	say_frame(peer, WS_BINARY, SPAN("01234567890"));
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x88\x02\x03\xf1")));
	assert_int_equal(o.code, WEBSOCKET_TOO_BIG);
	finish(&o, peer);

	peer = serve(&o, NULL);
	assert_int_equal(shutdown(peer, SHUT_WR), 0);
	turns(4);
	assert_int_equal(o.code, WEBSOCKET_ABNORMAL);
	finish(&o, peer);
}

static void websocket__owner_closes(void **state)
{
	char bytes[256];
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	o.close_next = true;
	say_frame(peer, WS_TEXT, SPAN("1"));
	say_frame(peer, WS_TEXT, SPAN("2"));
	assert_true(span_eq(listen_to(peer, bytes, sizeof(bytes)),
			    SPAN("\x88\x08\x0f\xa1"
				 "enough")));
	assert_true(span_eq(buf_peek(&o.heard), SPAN("T:1")));
	assert_int_equal(o.code, 0);
	/* then FIN, and patience until the peer ends too */
	assert_int_equal(read(peer, bytes, sizeof(bytes)), 0);
	finish(&o, peer);
}

/* The owner learns of a broken connection from the loop, not from his send. */
static void websocket__breaks_while_sending(void **state)
{
	struct owner o;
	int peer = serve(&o, NULL);

	(void)state;
	(void)close(peer);
	while (websocket_send(o.w, WS_TEXT, SPAN("anyone?")) == 0 && o.w)
		if (stream_flush(o.w->stream))
			break;
	assert_int_equal(o.code, 0);
	run_until(o.code, 1000);
	assert_int_equal(o.code, WEBSOCKET_ABNORMAL);
	finish(&o, -1);
}

static void websocket__silence(void **state)
{
	const struct websocket_limits limits = { .ping_ms = 40,
						 .silence_ms = 120 };
	const uint64_t began = clock_ms();
	char bytes[256];
	struct span heard;
	struct owner o;
	int peer = serve(&o, &limits);

	(void)state;
	/* a peer that answers pings is not silent */
	while (clock_ms() < began + 300) {
		heard = listen_to(peer, bytes, sizeof(bytes));
		if (heard.len) {
			assert_true(span_eq(heard, SPAN("\x89\x00")));
			say_frame(peer, WS_PONG, SPAN_NONE);
		}
		usleep(2000);
	}
	assert_int_equal(o.code, 0);
	/* one that does not is given up; while held it is not asked */
	websocket_hold(o.w, true);
	while (clock_ms() < began + 600)
		turns(1);
	assert_int_equal(o.code, 0);
	websocket_hold(o.w, false);
	run_until(o.code, 1000);
	assert_int_equal(o.code, WEBSOCKET_ABNORMAL);
	finish(&o, peer);
}

/* -- the client's handshake ------------------------------------------------ */

static const struct websocket_target target = {
	.host = SPAN_INIT("127.0.0.1:8888"),
	.path = SPAN_INIT("/api/kernels/1/channels?session_id=2"),
	.headers = SPAN_INIT("Authorization: token abc\r\nX-A: b\r\n"),
};

/* Begins a client; `accept` gets what the server must answer. */
static int dial(struct owner *o, char accept[WS_ACCEPT_SIZE + 1])
{
	char bytes[2048], *key;
	struct span request;
	int peer;

	*o = (struct owner){ .heard = BUF_INIT(1 << 20) };
	assert_int_equal(
		websocket_connect(pair(&peer), &target, NULL, &ops, o, &o->w),
		0);
	request = listen_to(peer, bytes, sizeof(bytes) - 1);
	bytes[request.len] = 0;
	assert_true(span_starts(request,
				SPAN("GET /api/kernels/1/channels?session_id=2 "
				     "HTTP/1.1\r\nHost: 127.0.0.1:8888\r\n")));
	assert_non_null(strstr(bytes, "\r\nAuthorization: token abc\r\n"));
	assert_non_null(strstr(bytes, "\r\nSec-WebSocket-Version: 13\r\n"));
	assert_true(span_ends(request, SPAN("\r\nX-A: b\r\n\r\n")));
	key = strstr(bytes, "\r\nSec-WebSocket-Key: ");
	assert_non_null(key);
	assert_true(ws_accept(span_of(key + 21, WS_KEY_SIZE), accept));
	accept[WS_ACCEPT_SIZE] = 0;
	return peer;
}

static void websocket__client_opens(void **state)
{
	char accept[WS_ACCEPT_SIZE + 1], reply[512], bytes[256];
	struct ws w = { .is_server = true };
	struct ws_event ev;
	struct span sent;
	struct owner o;
	char *p = bytes;
	int peer, len;

	(void)state;
	/* the first frame right behind the head, and every cut of both */
	for (int cut = 1; cut < 130; cut += 9) {
		peer = dial(&o, accept);
		len = snprintf(reply, sizeof(reply),
			       "HTTP/1.1 101 Switching Protocols\r\n"
			       "upgrade: WebSocket\r\nconnection: foo, "
			       "upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n"
			       "\x81\x05hello",
			       accept);
		say(peer, span_of(reply, (size_t)cut));
		turns(4);
		assert_int_equal(o.opens, 0);
		say(peer, span_of(reply + cut, (size_t)(len - cut)));
		turns(4);
		assert_int_equal(o.opens, 1);
		assert_true(span_eq(buf_peek(&o.heard), SPAN("T:hello")));
		assert_int_equal(websocket_send(o.w, WS_TEXT, SPAN("ok")), 0);
		sent = listen_to(peer, bytes, sizeof(bytes));
		p = bytes;
		assert_int_equal(ws_next(&w, &p, &sent.len, &ev), 1);
		assert_true(ev.last && span_eq(ev.bytes, SPAN("ok")));
		finish(&o, peer);
	}
}

static void websocket__client_is_refused(void **state)
{
	static const struct {
		const char *reply, *why;
	} rows[] = {
		{ "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
		  "the server answered 403" },
		{ "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: "
		  "upgrade\r\nSec-WebSocket-Accept: "
		  "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
		  "the server's Sec-WebSocket-Accept is wrong" },
		{ "HTTP/1.1 101 X\r\nUpgrade: h2c\r\nConnection: "
		  "upgrade\r\n\r\n",
		  "the server switched to another protocol" },
		{ "SSH-2.0-OpenSSH_9\r\n\r\n",
		  "the server's reply is not HTTP" },
	};
	char accept[WS_ACCEPT_SIZE + 1];
	struct owner o;
	int peer;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		peer = dial(&o, accept);
		assert_int_equal(websocket_send(o.w, WS_TEXT, SPAN("early")),
				 -EPIPE);
		say(peer, span_str(rows[i].reply));
		turns(4);
		assert_int_equal(o.code, WEBSOCKET_ABNORMAL);
		assert_string_equal(o.why, rows[i].why);
		assert_int_equal(o.opens, 0);
		finish(&o, peer);
	}
}

static void websocket__client_head_without_end(void **state)
{
	char accept[WS_ACCEPT_SIZE + 1], junk[1024];
	struct owner o;
	int peer = dial(&o, accept);

	(void)state;
	memset(junk, 'j', sizeof(junk));
	say(peer, SPAN("HTTP/1.1 101 X\r\nX: "));
	for (int i = 0; i < 20 && !o.code; i++) {
		say(peer, span_of(junk, sizeof(junk)));
		turns(4);
	}
	assert_int_equal(o.code, WEBSOCKET_ABNORMAL);
	finish(&o, peer);
}

static void websocket__client_target_is_checked(void **state)
{
	static const struct websocket_target rows[] = {
		{ SPAN_INIT(""), SPAN_INIT("/"), SPAN_INIT("") },
		{ SPAN_INIT("h"), SPAN_INIT("/a b"), SPAN_INIT("") },
		{ SPAN_INIT("h\r\nX: y"), SPAN_INIT("/"), SPAN_INIT("") },
		{ SPAN_INIT("h"), SPAN_INIT("/"), SPAN_INIT("A: b") },
		{ SPAN_INIT("h"), SPAN_INIT("/"), SPAN_INIT("A: b\n") },
		{ SPAN_INIT("h"), SPAN_INIT("/"), SPAN_INIT("\r\n") },
		{ SPAN_INIT("h"), SPAN_INIT("/"), SPAN_INIT("A\r\n") },
		{ SPAN_INIT("h"), SPAN_INIT("/"), SPAN_INIT("A b: c\r\n") },
	};
	struct owner o = { 0 };
	int peer;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(websocket_connect(pair(&peer), &rows[i], NULL,
						   &ops, &o, &o.w),
				 -EINVAL);
		(void)close(peer);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(websocket__messages_both_ways),
		cmocka_unit_test(websocket__pieces_or_whole),
		cmocka_unit_test(websocket__answers_pings),
		cmocka_unit_test(websocket__holds_back),
		cmocka_unit_test(websocket__pushes_back),
		cmocka_unit_test(websocket__ping_flood),
		cmocka_unit_test(websocket__peer_closes),
		cmocka_unit_test(websocket__peer_breaks),
		cmocka_unit_test(websocket__owner_closes),
		cmocka_unit_test(websocket__breaks_while_sending),
		cmocka_unit_test(websocket__silence),
		cmocka_unit_test(websocket__client_opens),
		cmocka_unit_test(websocket__client_is_refused),
		cmocka_unit_test(websocket__client_head_without_end),
		cmocka_unit_test(websocket__client_target_is_checked),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
