/* SPDX-License-Identifier: Apache-2.0 */
/* test_reply.c - replies in pieces, headers, routes, and taken connections */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "src/io/stream.h"
#include "src/wire/h1.h"
#include "tests/unit/httpd/rig.h"

enum { PIECE = 64 * 1024 };

struct fixture {
	struct rig rig;
	struct httpd_request *request;
	uint64_t length, written;
	struct stream *taken;
	char param[64], bytes[PIECE];
	unsigned rooms, gone, refuse;
	bool inside, raw_is_set;
};

/* -- handlers ------------------------------------------------------------- */

static void on_gone(void *user, struct httpd_request *r)
{
	struct fixture *f = user;

	assert_false(f->inside);
	f->gone++;
	f->request = NULL;
	httpd_stream_end(r);
}

/* As a download does: as much as there is room for, again when there is. */
static void on_room(void *user, struct httpd_request *r)
{
	struct fixture *f = user;
	uint64_t left = f->length - f->written;

	assert_false(f->inside);
	f->inside = true;
	f->rooms++;
	while (left &&
	       !httpd_stream_write(
		       r, span_of(f->bytes, (size_t)MIN(left, PIECE)))) {
		f->written += MIN(left, PIECE);
		left = f->length - f->written;
		assert_true(httpd_stream_unsent(r) <
			    HTTPD_STREAM_MAX + PIECE + 64);
	}
	if (!left) {
		f->request = NULL;
		httpd_stream_end(r);
	}
	f->inside = false;
}

static void on_download(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	f->written = 0;
	httpd_set_user(r, f);
	f->inside = true;
	if (span_eq(httpd_query(r, "chunked"), SPAN("1")))
		httpd_stream_start(r, 200, "text/plain", on_gone);
	else
		httpd_stream_start_sized(r, 200, "text/plain", f->length,
					 on_gone);
	httpd_stream_on_room(r, on_room);
	f->inside = false;
}

/* The test writes. */
static void on_sized(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	httpd_set_user(r, f);
	httpd_stream_start_sized(r, 206, "text/plain", 5, on_gone);
}

static void on_chunked(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	httpd_set_user(r, f);
	httpd_set_header(r, "cache-control", SPAN("no-cache"));
	httpd_set_header(r, "Connection", SPAN("keep-alive"));
	httpd_stream_start(r, 200, "text/event-stream", on_gone);
}

static void on_headers(void *ctx, struct httpd_request *r)
{
	char name[16], longer[4000];

	(void)ctx;
	memset(longer, 'v', sizeof(longer));
	for (int i = 0; i < 60; i++) {
		snprintf(name, sizeof(name), "X-%d", i);
		httpd_set_header(r, name, SPAN("a value"));
	}
	httpd_set_header(r, "X-Long", span_of(longer, sizeof(longer)));
	httpd_set_header(r, "Set-Cookie", SPAN("a=1"));
	httpd_set_header(r, "Set-Cookie", SPAN("b=2"));
	httpd_set_header(r, "content-type", SPAN("text/html"));
	httpd_set_header(r, "X-Content-Type-Options", SPAN_NONE);
	httpd_set_header(r, "X-Bad", SPAN("a\r\nX-Worse: b"));
	httpd_set_header(r, "X Bad", SPAN("a"));
	httpd_reply(r, 200, "text/plain", SPAN("body"));
}

static void on_ok(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_ok(r);
}

static void on_reason(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_set_reason(r, SPAN("Quite\r\nX-Bad: a"));
	httpd_set_reason(r, SPAN("Quite Fine"));
	httpd_reply(r, 299, "text/plain", SPAN("body"));
}

/* Waits for something, and would like to know when that is in vain. */
static void on_wait(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	httpd_set_user(r, f);
	httpd_on_gone(r, on_gone);
}

static void on_any(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;
	struct span rest = httpd_param(r, "rest");

	f->raw_is_set = rest.ptr != NULL;
	(void)span_copy(rest, f->param, sizeof(f->param));
	httpd_reply(r, 200, "text/plain", httpd_method(r));
}

static void on_take(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	assert_true(httpd_head(r)->upgrade);
	f->taken = httpd_take_stream(r);
}

static void on_piece_take(void *user, struct httpd_request *r,
			  enum httpd_piece kind, struct span bytes)
{
	struct fixture *f = user;

	(void)bytes;
	assert_int_equal(kind, HTTPD_PIECE);
	f->taken = httpd_take_stream(r);
}

/* Amid the body: what is behind the first chunk stays in the stream. */
static void on_take_body(void *ctx, struct httpd_request *r)
{
	httpd_set_user(r, ctx);
	httpd_body_read(r, on_piece_take);
}

static void on_take_late(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
}

/* An echo: what comes is written, and held back while the reply is full. */
static void on_echo_room(void *user, struct httpd_request *r)
{
	(void)user;
	httpd_body_resume(r);
}

static void on_echo_piece(void *user, struct httpd_request *r,
			  enum httpd_piece kind, struct span bytes)
{
	(void)user;
	if (kind == HTTPD_PIECE_END) {
		httpd_stream_end(r);
		return;
	}
	if (kind == HTTPD_PIECE_CUT) {
		httpd_stream_abort(r);
		return;
	}
	assert_int_equal(httpd_stream_write(r, bytes), 0);
	if (httpd_stream_unsent(r) >= HTTPD_STREAM_MAX / 2)
		httpd_body_pause(r);
}

static void on_echo(void *ctx, struct httpd_request *r)
{
	httpd_set_user(r, ctx);
	httpd_stream_start(r, 200, "text/plain", on_gone);
	httpd_body_read(r, on_echo_piece);
	httpd_stream_on_room(r, on_echo_room);
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	const struct fixture *f = ctx;

	(void)r;
	return f->refuse;
}

static const char *on_refusal(void *ctx, unsigned status)
{
	(void)ctx;
	return status == 401 ? "{\"error\":\"who are you\"}" : NULL;
}

static const struct httpd_route routes[] = {
	{ "GET", "/download", HTTPD_AUTH_REQUIRED, on_download },
	{ "GET", "/sized", HTTPD_AUTH_REQUIRED, on_sized },
	{ "GET", "/chunked", HTTPD_AUTH_REQUIRED, on_chunked },
	{ "GET", "/headers", HTTPD_AUTH_REQUIRED, on_headers },
	{ "GET", "/ok", HTTPD_AUTH_REQUIRED, on_ok },
	{ "GET", "/reason", HTTPD_AUTH_REQUIRED, on_reason },
	{ "GET", "/wait", HTTPD_AUTH_REQUIRED, on_wait },
	{ "GET", "/any/one", HTTPD_AUTH_REQUIRED, on_ok },
	{ "*", "/any/{rest*}", HTTPD_AUTH_REQUIRED, on_any },
	{ "*", "/port/{port}/{rest*}", HTTPD_AUTH_REQUIRED, on_any },
	{ "GET", "/take", HTTPD_AUTH_REQUIRED, on_take },
	{ "GET", "/take/late", HTTPD_AUTH_REQUIRED, on_take_late },
	{ "POST", "/take", HTTPD_AUTH_REQUIRED, on_take_body,
	  HTTPD_BODY_STREAMED },
	{ "POST", "/echo", HTTPD_AUTH_REQUIRED, on_echo, HTTPD_BODY_STREAMED },
};

static int set_up(void **state)
{
	static const struct httpd_ops ops = { .authorise = on_authorise,
					      .refusal = on_refusal };
	struct fixture *f = must_alloc(sizeof(*f));
	size_t i;

	for (i = 0; i < PIECE; i++)
		f->bytes[i] = (char)('a' + i % 23);
	rig_open(&f->rig, routes, ARRAY_LEN(routes), &ops, f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	f->taken = stream_free(f->taken);
	rig_close(&f->rig);
	free(f);
	return 0;
}

/* -- helpers -------------------------------------------------------------- */

#define NEXT "GET /ok HTTP/1.1\r\n" CLOSE

static int ask_open(struct fixture *f, const char *request)
{
	int fd = client_open(&f->rig);

	client_send(&f->rig, fd, span_str(request));
	return fd;
}

/* Reads at most `most` bytes a turn until the end; how many came. */
static uint64_t client_count(struct fixture *f, int fd, size_t most,
			     uint64_t until)
{
	static char bytes[1024 * 1024];
	uint64_t end = clock_ms() + 20000, got = 0;
	ssize_t n;

	while (got < until && clock_ms() < end) {
		turn(&f->rig);
		n = recv(fd, bytes, MIN(most, sizeof(bytes)), 0);
		if (n == 0)
			break;
		if (n > 0)
			got += (uint64_t)n;
	}
	return got;
}

/* -- sized ---------------------------------------------------------------- */

static void sized__says_its_length(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n" NEXT);
	const char *text;

	assert_int_equal(httpd_stream_write(f->request, SPAN("ab")), 0);
	assert_int_equal(httpd_stream_write(f->request, SPAN("cde")), 0);
	httpd_stream_end(f->request);
	text = client_read(&f->rig, fd, NULL);
	assert_has(text, "HTTP/1.1 206 Partial Content\r\n");
	assert_has(text, "Content-Length: 5\r\n\r\nabcdeHTTP/1.1 200 OK");
	assert_lacks(text, "chunked");
	close(fd);
}

static void sized__sends_nothing_for_head(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "HEAD /sized HTTP/1.1\r\nHost: x\r\n\r\n" NEXT);

	assert_int_equal(httpd_stream_write(f->request, SPAN("ab")), 0);
	httpd_stream_end(f->request); /* that was not all, and is fine */
	assert_has(client_read(&f->rig, fd, NULL),
		   "Content-Length: 5\r\n\r\nHTTP/1.1 200 OK");
	close(fd);
}

static void sized__that_is_too_short_is_cut(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n" NEXT);
	const char *text;

	assert_int_equal(httpd_stream_write(f->request, SPAN("abc")), 0);
	httpd_stream_end(f->request);
	text = client_read(&f->rig, fd, NULL);
	assert_has(text, "\r\n\r\nabc");
	assert_int_equal(count_of(text, "HTTP/1.1"), 1);
	assert_int_equal(f->gone, 0);
	close(fd);
}

static void chunked__that_is_aborted_has_no_end(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "GET /chunked HTTP/1.1\r\nHost: x\r\n\r\n");
	const char *text;

	assert_int_equal(httpd_stream_write(f->request, SPAN("abc")), 0);
	httpd_stream_abort(f->request);
	text = client_read(&f->rig, fd, NULL);
	assert_has(text, "3\r\nabc\r\n");
	assert_lacks(text, "0\r\n\r\n");
	while (httpd_connection_count(f->rig.httpd))
		turn(&f->rig);
	assert_int_equal(f->gone, 0);
	close(fd);

	/* of HTTP/1.0 the end of the connection would be the end of the body */
	fd = ask_open(f, "GET /chunked HTTP/1.0\r\nHost: x\r\n\r\n");
	assert_int_equal(httpd_stream_write(f->request, SPAN("abc")), 0);
	turns(&f->rig, 3);
	httpd_stream_abort(f->request);
	assert_has(client_read(&f->rig, fd, NULL), "\r\n\r\nabc");
	close(fd);
}

/* -- room ----------------------------------------------------------------- */

static void room__fills_a_download(void **state)
{
	struct fixture *f = *state;
	uint64_t got;
	int fd;

	f->length = 30 * 1000 * 1000 + 7;
	fd = ask_open(f, "GET /download HTTP/1.1\r\n" CLOSE);
	got = client_count(f, fd, 1024 * 1024, UINT64_MAX);
	assert_in_range(got, f->length + 100, f->length + 400);
	assert_int_equal(f->gone, 0);
	assert_true(f->rooms > 1);
	close(fd);
}

/* Who reads slowly makes the handler wait, and gets everything. */
static void room__waits_for_a_slow_reader(void **state)
{
	struct fixture *f = *state;
	unsigned rooms;
	uint64_t got;
	int fd;

	f->length = 6 * 1024 * 1024;
	fd = ask_open(f, "GET /download?chunked=1 HTTP/1.1\r\n" CLOSE);
	turns(&f->rig, 100);
	assert_true(f->written < 3 * 1024 * 1024);
	assert_true(httpd_stream_unsent(f->request) >= HTTPD_STREAM_MAX / 2);
	rooms = f->rooms;
	turns(&f->rig, 100);
	assert_int_equal(f->rooms, rooms); /* not called in vain */
	got = client_count(f, fd, 9000, UINT64_MAX);
	assert_true(got > f->length);
	assert_int_equal(f->written, f->length);
	assert_true(f->rooms > rooms);
	close(fd);
}

static void room__is_told_to_two_at_once(void **state)
{
	struct fixture *f = *state;
	int fd, slow;

	f->length = 2 * 1024 * 1024;
	slow = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n");
	fd = ask_open(f, "GET /download HTTP/1.1\r\n" CLOSE);
	assert_true(client_count(f, fd, 100000, UINT64_MAX) > f->length);
	close(fd);
	close(slow);
	while (!f->gone)
		turn(&f->rig);
}

static void room__ends_with_the_client(void **state)
{
	struct fixture *f = *state;
	int fd;

	f->length = 64 * 1024 * 1024;
	fd = ask_open(f, "GET /download HTTP/1.1\r\n" CLOSE);
	(void)client_count(f, fd, 100000, 3 * 1000 * 1000);
	close(fd);
	while (httpd_connection_count(f->rig.httpd))
		turn(&f->rig);
	assert_int_equal(f->gone, 1);
	assert_true(f->written < f->length);
}

/* Both directions of one exchange at a time, each at its own pace. */
static void echo__returns_what_it_gets(void **state)
{
	enum { LEN = 8 * 1024 * 1024 };
	struct fixture *f = *state;
	char *sent = must_alloc(LEN), *got = must_alloc(2 * LEN);
	size_t at = 0, len = 0, i;
	uint64_t end = clock_ms() + 20000;
	char head[128], *body;
	ssize_t n;
	int fd;

	for (i = 0; i < LEN; i++)
		sent[i] = (char)('a' + (i * 31 + i / 977) % 26);
	/* HTTP/1.0 answers without chunks: easy to compare */
	snprintf(head, sizeof(head),
		 "POST /echo HTTP/1.0\r\nContent-Length: %d\r\n\r\n", LEN);
	fd = ask_open(f, head);
	while (clock_ms() < end) {
		turn(&f->rig);
		if (at < LEN) {
			n = send(fd, sent + at, MIN(LEN - at, 70000),
				 MSG_NOSIGNAL);
			at += n > 0 ? (size_t)n : 0;
		}
		/* reads nothing until the server reads no more */
		if (at < LEN && at < 3 * 1024 * 1024 && n > 0)
			continue;
		n = recv(fd, got + len, MIN(2 * LEN - len, 50000), 0);
		if (n == 0)
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	body = memmem(got, len, "\r\n\r\n", 4);
	assert_non_null(body);
	assert_int_equal(len - (size_t)(body + 4 - got), LEN);
	assert_memory_equal(body + 4, sent, LEN);
	free(sent);
	free(got);
	close(fd);
}

/* -- headers, routes ------------------------------------------------------ */

static void headers__are_many_and_replace_ours(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(&f->rig, "GET /headers HTTP/1.1\r\n" CLOSE);

	assert_has(text, "X-0: a value\r\n");
	assert_has(text, "X-59: a value\r\n");
	assert_has(text, "X-Long: vvvv");
	assert_has(text, "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n");
	assert_has(text, "content-type: text/html\r\n");
	assert_lacks(text, "Content-Type: text/plain");
	assert_lacks(text, "nosniff");
	assert_lacks(text, "X-Worse");
	assert_lacks(text, "X Bad");
	assert_has(text, "X-Request-ID: ");
	assert_has(text, "\r\n\r\nbody");
}

static void headers__of_an_event_stream(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "GET /chunked HTTP/1.1\r\nHost: x\r\n\r\n");
	const char *text = client_read(&f->rig, fd, "\r\n\r\n");

	assert_has(text, "cache-control: no-cache\r\n");
	assert_has(text, "Connection: keep-alive\r\n");
	assert_lacks(text, "no-store");
	httpd_stream_end(f->request);
	close(fd);

	fd = ask_open(f, "GET /chunked HTTP/1.1\r\n" CLOSE);
	text = client_read(&f->rig, fd, "\r\n\r\n");
	assert_has(text, "Connection: close\r\n");
	assert_lacks(text, "keep-alive");
	httpd_stream_end(f->request);
	close(fd);
}

static void reply__ok_has_a_length(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(&f->rig, NEXT);

	assert_has(text, "HTTP/1.1 200 OK\r\n");
	assert_has(text, "Content-Length: 0\r\n\r\n");
	assert_lacks(text, "Content-Type: ");
	assert_lacks(text, "chunked");
}

static void reply__has_a_reason_of_its_own(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(&f->rig, "GET /reason HTTP/1.1\r\n" CLOSE);

	assert_has(text, "HTTP/1.1 299 Quite Fine\r\n");
	assert_lacks(text, "X-Bad");
}

static void gone__is_told_before_the_reply(void **state)
{
	struct fixture *f = *state;
	int fd;

	for (int half = 0; half < 2; half++) {
		fd = client_open(&f->rig);
		client_send(&f->rig, fd,
			    SPAN("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
		assert_non_null(f->request);
		f->gone = 0;
		if (half)
			assert_int_equal(shutdown(fd, SHUT_WR), 0);
		else
			close(fd);
		for (int i = 0; i < 20 && !f->gone; i++) {
			turns(&f->rig, 3);
			usleep(1000);
		}
		assert_int_equal(f->gone, 1);
		assert_int_equal(httpd_connection_count(f->rig.httpd), 0);
		if (half)
			close(fd);
	}
}

static void gone__is_not_told_of_a_client_that_stays(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	for (int i = 0; i < 2; i++) {
		client_send(&f->rig, fd,
			    SPAN("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n"));
		assert_non_null(f->request);
		httpd_reply(f->request, 200, "text/plain", SPAN("done"));
		assert_has(client_read(&f->rig, fd, "done"), "HTTP/1.1 200");
	}
	close(fd);
	turns(&f->rig, 5);
	assert_int_equal(f->gone, 0);
}

static void routes__take_every_method_and_the_rest(void **state)
{
	static const struct {
		const char *request, *says, *rest;
	} rows[] = {
		{ "PURGE /any/a%2Fb//c?q=1 HTTP/1.1\r\n" CLOSE, "PURGE",
		  "a%2Fb//c" },
		{ "OPTIONS /any/ HTTP/1.1\r\n" CLOSE, "OPTIONS", "" },
		{ "GET /any HTTP/1.1\r\n" CLOSE, "GET", "" },
		{ "POST /any/%zz HTTP/1.1\r\n" CLOSE, "POST", "%zz" },
		{ "POST /any/one HTTP/1.1\r\n" CLOSE, "POST", "one" },
		{ "PUT /port/80/x/y/ HTTP/1.1\r\n" CLOSE, "PUT", "x/y/" },
		{ "PUT /port/80 HTTP/1.1\r\n" CLOSE, "PUT", "" },
	};
	struct fixture *f = *state;
	char says[64];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(says, sizeof(says), "\r\n\r\n%s", rows[i].says);
		assert_has(ask(&f->rig, rows[i].request), says);
		assert_string_equal(f->param, rows[i].rest);
		assert_true(f->raw_is_set);
	}
	assert_has(ask(&f->rig, "HEAD /any/x HTTP/1.1\r\n" CLOSE),
		   "Content-Length: 4\r\n\r\n");
	/* the earlier row wins; an empty parameter is none */
	assert_has(ask(&f->rig, "GET /any/one HTTP/1.1\r\n" CLOSE),
		   "Content-Length: 0\r\n");
	assert_has(ask(&f->rig, "GET /port//x HTTP/1.1\r\n" CLOSE), "404");
	assert_has(ask(&f->rig, "GET /anything HTTP/1.1\r\n" CLOSE), "404");
}

static void refusal__is_in_the_words_of_the_program(void **state)
{
	struct fixture *f = *state;
	const char *text;

	f->refuse = 401;
	text = ask(&f->rig, NEXT);
	assert_has(text, "401 Unauthorized\r\n");
	assert_has(text, "Content-Type: application/json\r\n");
	assert_has(text, "\r\n\r\n{\"error\":\"who are you\"}");
	assert_lacks(text, "Bearer");
	f->refuse = 403;
	assert_has(ask(&f->rig, NEXT), "{\"code\":\"FORBIDDEN\"");
}

static void limits__bound_bodies(void **state)
{
	const struct httpd_limits limits = { .body = 10 };
	struct fixture *f = *state;
	const char *text;

	httpd_set_limits(f->rig.httpd, &limits);
	text = ask(&f->rig,
		   "POST /any/x HTTP/1.1\r\nContent-Length: 11\r\n" CLOSE
		   "hello world");
	assert_has(text, "413 Content Too Large");
	assert_has(text, "larger than 10 bytes");
}

/* Places are for who asks: the silent and the unknown give up theirs first. */
static void limits__favour_who_asks(void **state)
{
	const struct httpd_limits limits = { .connections = 3 };
	struct fixture *f = *state;
	int known, silent, unknown, busy[3];
	char byte;

	httpd_set_limits(f->rig.httpd, &limits);
	known = ask_open(f, "GET /ok HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_has(client_read(&f->rig, known, "\r\n\r\n"), "200 OK");
	silent = client_open(&f->rig);
	turns(&f->rig, 3);
	unknown = ask_open(f, "GET /ok HTT");
	assert_int_equal(httpd_connection_count(f->rig.httpd), 3);

	/* one more: the oldest of those that nobody knows goes */
	assert_has(ask(&f->rig, NEXT), "200 OK");
	assert_int_equal(recv(silent, &byte, 1, 0), 0);
	while (httpd_connection_count(f->rig.httpd) > 2)
		turn(&f->rig);
	busy[0] = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n");
	busy[1] = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(recv(unknown, &byte, 1, 0), 0);
	assert_int_equal(recv(known, &byte, 1, MSG_PEEK), -1);
	busy[2] = ask_open(f, "GET /sized HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_int_equal(recv(known, &byte, 1, 0), 0);

	/* nobody is without a request now */
	assert_string_equal(ask(&f->rig, NEXT), "");
	assert_int_equal(httpd_connection_count(f->rig.httpd), 3);
	for (int i = 0; i < 3; i++)
		close(busy[i]);
	while (f->gone < 3)
		turn(&f->rig);
	assert_has(ask(&f->rig, NEXT), "200 OK");
	close(known);
	close(silent);
	close(unknown);
}

/* -- taken connections ---------------------------------------------------- */

static void taken__has_what_was_sent_behind(void **state)
{
	static const char upgrade[] = "GET /take HTTP/1.1\r\nHost: x\r\n"
				      "Connection: upgrade\r\nUpgrade: any\r\n"
				      "\r\nfirst bytes";
	struct fixture *f = *state;
	int fd = ask_open(f, upgrade);
	char got[64] = "";

	assert_non_null(f->taken);
	assert_int_equal(httpd_connection_count(f->rig.httpd), 0);
	assert_int_equal(stream_read(f->taken, got, sizeof(got)), 11);
	assert_string_equal(got, "first bytes");
	assert_int_equal(stream_write(f->taken, SPAN("hi")), 0);
	assert_string_equal(client_read(&f->rig, fd, "hi"), "hi");
	close(fd);
}

static void taken__amid_a_body(void **state)
{
	struct fixture *f = *state;
	int fd = ask_open(f, "POST /take HTTP/1.1\r\nHost: x\r\n"
			     "Transfer-Encoding: chunked\r\n\r\n"
			     "3\r\nabc\r\n2\r\nde\r\n");
	char got[64] = "";

	assert_non_null(f->taken);
	assert_int_equal(stream_read(f->taken, got, sizeof(got)), 9);
	assert_string_equal(got, "\r\n2\r\nde\r\n");
	close(fd);

	/* the head alone, then a piece from the socket */
	f->taken = stream_free(f->taken);
	fd = ask_open(f, "POST /take HTTP/1.1\r\nHost: x\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n");
	client_send(&f->rig, fd, SPAN("3\r\nabc\r\n2\r\nde\r\n"));
	assert_non_null(f->taken);
	memset(got, 0, sizeof(got));
	assert_int_equal(stream_read(f->taken, got, sizeof(got)), 9);
	assert_string_equal(got, "\r\n2\r\nde\r\n");
	close(fd);
}

static void taken__from_a_client_that_left_is_nothing(void **state)
{
	struct fixture *f = *state;
	const struct linger now = { .l_onoff = 1 };
	int fd = ask_open(f, "GET /take/late HTTP/1.1\r\nHost: x\r\n\r\n");

	assert_non_null(f->request);
	/* unread bytes make it a reset */
	client_send(&f->rig, fd, SPAN("x"));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
	turns(&f->rig, 5);
	f->taken = httpd_take_stream(f->request);
	if (f->taken)
		/* a unix socket only ends: then that is to be read */
		assert_int_equal(stream_read(f->taken, &f->param, 1), 1);
	assert_int_equal(httpd_connection_count(f->rig.httpd), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sized__says_its_length),
		TEST(sized__sends_nothing_for_head),
		TEST(sized__that_is_too_short_is_cut),
		TEST(chunked__that_is_aborted_has_no_end),
		TEST(room__fills_a_download),
		TEST(room__waits_for_a_slow_reader),
		TEST(room__is_told_to_two_at_once),
		TEST(room__ends_with_the_client),
		TEST(echo__returns_what_it_gets),
		TEST(headers__are_many_and_replace_ours),
		TEST(headers__of_an_event_stream),
		TEST(reply__ok_has_a_length),
		TEST(reply__has_a_reason_of_its_own),
		TEST(gone__is_told_before_the_reply),
		TEST(gone__is_not_told_of_a_client_that_stays),
		TEST(routes__take_every_method_and_the_rest),
		TEST(refusal__is_in_the_words_of_the_program),
		TEST(limits__bound_bodies),
		TEST(limits__favour_who_asks),
		TEST(taken__has_what_was_sent_behind),
		TEST(taken__amid_a_body),
		TEST(taken__from_a_client_that_left_is_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
