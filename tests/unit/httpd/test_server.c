/* SPDX-License-Identifier: Apache-2.0 */
/* test_server.c - the server over real sockets: raw bytes in, raw bytes out
 *
 * The loop runs in the test's own thread; a client is a non-blocking socket
 * whose bytes are written, and whose answer is collected while the loop turns.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"

struct fixture {
	struct loop *loop;
	struct httpd *httpd;
	char folder[64], path[96];
	unsigned refuse; /* what authorise says */
	/* what handlers saw */
	struct buf body;
	char param[128], id[160];
	uid_t uid;
	struct httpd_request *later; /* a request that is answered later */
	struct httpd_request *stream;
	unsigned gone, drained;
};

/* -- handlers ------------------------------------------------------------- */

static void on_echo(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	buf_clear(&f->body);
	assert_int_equal(buf_put(&f->body, httpd_body(r)), 0);
	f->uid = httpd_peer(r)->uid;
	(void)span_copy(httpd_request_id(r), f->id, sizeof(f->id));
	httpd_set_header(r, "X-Extra", SPAN("yes"));
	httpd_reply(r, 200, "text/plain", httpd_body(r));
}

static void on_item(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;
	struct span q = httpd_query(r, "q");

	(void)span_copy(httpd_param(r, "id"), f->param, sizeof(f->param));
	httpd_reply(r, 200, "text/plain", q.ptr ? q : SPAN("none"));
}

static void on_fixed(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_json(r, 201, SPAN("{\"fixed\":true}"));
}

static void on_delete(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_empty(r);
}

static void on_error(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_error(r, 409, "CONFLICT", "found \"%s\"", "x\n");
}

static void on_later(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->later = r;
}

static void on_stream_gone(void *user, struct httpd_request *r)
{
	struct fixture *f = user;

	f->gone++;
	f->stream = NULL;
	httpd_stream_end(r);
}

static void on_stream(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->stream = r;
	httpd_set_user(r, f);
	httpd_stream_start(r, 200, "text/event-stream", on_stream_gone);
	assert_int_equal(httpd_stream_write(r, SPAN("data: 1\n\n")), 0);
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	struct fixture *f = ctx;

	(void)r;
	return f->refuse;
}

static const struct httpd_route routes[] = {
	{ "POST", "/echo", HTTPD_AUTH_REQUIRED, on_echo },
	{ "GET", "/items/{id}", HTTPD_AUTH_REQUIRED, on_item },
	{ "DELETE", "/items/{id}", HTTPD_AUTH_REQUIRED, on_delete },
	{ "POST", "/items/fixed", HTTPD_AUTH_REQUIRED, on_fixed },
	{ "GET", "/error", HTTPD_AUTH_REQUIRED, on_error },
	{ "GET", "/later", HTTPD_AUTH_REQUIRED, on_later },
	{ "GET", "/stream", HTTPD_AUTH_REQUIRED, on_stream },
	{ "GET", "/open", HTTPD_AUTH_OPEN, on_item },
};

/* -- fixture -------------------------------------------------------------- */

static int set_up(void **state)
{
	static const struct httpd_ops ops = { on_authorise };
	struct fixture *f = must_alloc(sizeof(*f));

	strcpy(f->folder, "/tmp/httpd-test-XXXXXX");
	assert_non_null(mkdtemp(f->folder));
	snprintf(f->path, sizeof(f->path), "%s/sock", f->folder);
	buf_init(&f->body, 2 * HTTPD_BODY_MAX);
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(httpd_new(f->loop, routes, ARRAY_LEN(routes), &ops, f,
				   &f->httpd),
			 0);
	assert_int_equal(httpd_listen_unix(f->httpd, f->path, 0600), 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	httpd_free(f->httpd);
	loop_run_once(f->loop, false);
	loop_free(f->loop);
	buf_fini(&f->body);
	unlink(f->path);
	rmdir(f->folder);
	free(f);
	return 0;
}

static int client_open(const struct fixture *f)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(
		span_copy(span_str(f->path), at.sun_path, sizeof(at.sun_path)));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void turn(struct fixture *f)
{
	loop_run_once(f->loop, false);
	usleep(500);
}

static void client_send(struct fixture *f, int fd, struct span bytes)
{
	uint64_t end = clock_ms() + 5000;
	ssize_t n;

	while (bytes.len && clock_ms() < end) {
		n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
		if (n > 0)
			bytes = span_from(bytes, (size_t)n);
		else if (errno != EAGAIN)
			return; /* refused early */
		turn(f);
	}
}

/* Collects until the text holds `until` (NULL: until end of stream). */
static const char *client_read(struct fixture *f, int fd, const char *until)
{
	static char text[4 * 1024 * 1024];
	uint64_t end = clock_ms() + 5000;
	size_t len = 0;
	ssize_t n;

	text[0] = '\0';
	while (clock_ms() < end) {
		turn(f);
		n = recv(fd, text + len, sizeof(text) - len - 1, 0);
		if (n == 0)
			return until ? "(end)" : text;
		if (n < 0)
			continue;
		len += (size_t)n;
		text[len] = '\0';
		if (until && strstr(text, until))
			return text;
	}
	return "(timeout)";
}

/* One exchange on a fresh connection; the request says "close" or is refused.
 */
static const char *ask(struct fixture *f, const char *request)
{
	int fd = client_open(f);
	const char *text;

	client_send(f, fd, span_str(request));
	text = client_read(f, fd, NULL);
	close(fd);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in: %s", part, text);
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"

/* -- tests ---------------------------------------------------------------- */

static void server__answers_with_common_headers(void **state)
{
	struct fixture *f = *state;
	const char *text;

	text = ask(f, "POST /echo HTTP/1.1\r\nContent-Length: 5\r\n"
		      "X-Request-ID: my-id.1\r\n"
		      "Host: x\r\nConnection: close\r\n\r\nhello");
	assert_has(text, "HTTP/1.1 200 OK\r\n");
	assert_has(text, "Content-Type: text/plain\r\n");
	assert_has(text, "Content-Length: 5\r\n");
	assert_has(text, "X-Request-ID: my-id.1\r\n");
	assert_has(text, "X-Extra: yes\r\n");
	assert_has(text, "Cache-Control: no-store\r\n");
	assert_has(text, "Date: ");
	assert_has(text, "Connection: close\r\n");
	assert_has(text, "\r\n\r\nhello");
	assert_int_equal(f->uid, geteuid());
}

static void server__makes_an_id_when_none_is_fit(void **state)
{
	struct fixture *f = *state;

	(void)ask(f, "POST /echo HTTP/1.1\r\nX-Request-ID: a b\r\n" CLOSE);
	assert_int_equal(strlen(f->id), 32);
	(void)ask(f, "POST /echo HTTP/1.1\r\n" CLOSE);
	assert_int_equal(strlen(f->id), 32);
}

static void server__routes_and_decodes(void **state)
{
	struct fixture *f = *state;

	assert_has(
		ask(f, "GET /items/a%20b%2Fc?x=1&q=1%2B1+2 HTTP/1.1\r\n" CLOSE),
		"\r\n\r\n1+1 2");
	assert_string_equal(f->param, "a b/c");
	assert_has(ask(f, "POST /items/fixed HTTP/1.1\r\n" CLOSE),
		   "201 Created");
	assert_has(ask(f, "DELETE /items/fixed HTTP/1.1\r\n" CLOSE),
		   "204 No Content");
	assert_has(ask(f, "GET /items/%zz HTTP/1.1\r\n" CLOSE), "400");
	assert_has(ask(f, "GET /items/%00 HTTP/1.1\r\n" CLOSE), "400");
	assert_has(ask(f, "GET /items/ HTTP/1.1\r\n" CLOSE), "404");
	assert_has(ask(f, "GET /items/a/b HTTP/1.1\r\n" CLOSE), "404");
	assert_has(ask(f, "GET /nothing HTTP/1.1\r\n" CLOSE),
		   "{\"code\":\"NOT_FOUND\",\"message\":");
}

static void server__says_which_methods_there_are(void **state)
{
	struct fixture *f = *state;
	const char *text;

	text = ask(f, "PUT /items/x HTTP/1.1\r\n" CLOSE);
	assert_has(text, "405 Method Not Allowed");
	assert_has(text, "Allow: GET, HEAD, DELETE\r\n");
}

static void server__answers_head_without_a_body(void **state)
{
	struct fixture *f = *state;
	const char *text = ask(f, "HEAD /items/x?q=zyx HTTP/1.1\r\n" CLOSE);

	assert_has(text, "200 OK");
	assert_has(text, "Content-Length: 3\r\n\r\n");
	assert_null(strstr(text, "zyx"));
}

static void server__writes_errors_as_json(void **state)
{
	assert_has(
		ask(*state, "GET /error HTTP/1.1\r\n" CLOSE),
		"{\"code\":\"CONFLICT\",\"message\":\"found \\\"x\\n\\\"\"}");
}

static void server__refuses_whom_it_should(void **state)
{
	struct fixture *f = *state;
	const char *text;

	f->refuse = 401;
	text = ask(f, "GET /items/x HTTP/1.1\r\n" CLOSE);
	assert_has(text, "401 Unauthorized");
	assert_has(text, "WWW-Authenticate: Bearer\r\n");
	/* who may not ask does not learn which paths there are */
	assert_has(ask(f, "GET /nothing HTTP/1.1\r\n" CLOSE), "401");
	f->refuse = 403;
	assert_has(ask(f, "PUT /items/x HTTP/1.1\r\n" CLOSE), "403 Forbidden");
	assert_has(ask(f, "GET /open HTTP/1.1\r\n" CLOSE), "200 OK");
}

/* The body of whom we refuse is not read. */
static void server__refuses_before_the_body(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);

	f->refuse = 403;
	client_send(f, fd,
		    SPAN("POST /echo HTTP/1.1\r\nHost: x\r\n"
			 "Content-Length: 1000\r\n\r\n"));
	assert_has(client_read(f, fd, NULL), "Connection: close\r\n");
	close(fd);
}

static void server__bounds_bodies(void **state)
{
	struct fixture *f = *state;
	char *body = must_alloc(HTTPD_BODY_MAX + 256);
	char head[256];
	int fd;

	assert_has(
		ask(f,
		    "POST /echo HTTP/1.1\r\nContent-Length: 1048577\r\n" CLOSE),
		"413 Content Too Large");

	/* chunks do not say beforehand */
	memset(body, 'a', HTTPD_BODY_MAX + 1);
	fd = client_open(f);
	client_send(f, fd,
		    SPAN("POST /echo HTTP/1.1\r\nHost: x\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n"
			 "100001\r\n"));
	client_send(f, fd, span_of(body, HTTPD_BODY_MAX + 1));
	assert_has(client_read(f, fd, NULL), "413");
	close(fd);

	/* exactly 1 MiB is fine, back too */
	fd = client_open(f);
	snprintf(head, sizeof(head),
		 "POST /echo HTTP/1.1\r\nContent-Length: "
		 "%d\r\n" CLOSE,
		 HTTPD_BODY_MAX);
	client_send(f, fd, span_str(head));
	client_send(f, fd, span_of(body, HTTPD_BODY_MAX));
	assert_int_equal(strlen(strstr(client_read(f, fd, NULL), "\r\n\r\n")),
			 HTTPD_BODY_MAX + 4);
	assert_int_equal(buf_len(&f->body), HTTPD_BODY_MAX);
	close(fd);
	free(body);
}

static void server__reads_chunks_and_continues(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);

	client_send(f, fd,
		    SPAN("POST /echo HTTP/1.1\r\nHost: x\r\n"
			 "Connection: close\r\nExpect: 100-continue\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n"));
	assert_has(client_read(f, fd, "\r\n\r\n"), "HTTP/1.1 100 Continue");
	client_send(f, fd, SPAN("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"));
	assert_has(client_read(f, fd, NULL), "\r\n\r\nabcde");
	close(fd);
}

/* The same answers however the bytes arrive. */
static void server__answers_pipelined_requests_in_order(void **state)
{
	static const char both[] =
		"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\none"
		"GET /items/2?q=two HTTP/1.1\r\nHost: x\r\n\r\n"
		"POST /echo HTTP/1.1\r\nContent-Length: 5\r\n" CLOSE "three";
	struct fixture *f = *state;
	const char *text, *one, *two, *three;
	size_t step, at;
	int fd;

	for (step = 1; step < sizeof(both); step += 40) {
		fd = client_open(f);
		for (at = 0; at < sizeof(both) - 1; at += step) {
			client_send(f, fd,
				    span_of(both + at,
					    MIN(step, sizeof(both) - 1 - at)));
			loop_run_once(f->loop, false);
		}
		text = client_read(f, fd, NULL);
		one = strstr(text, "\r\n\r\none");
		two = one ? strstr(one, "\r\n\r\ntwo") : NULL;
		three = two ? strstr(two, "\r\n\r\nthree") : NULL;
		if (!three)
			fail_msg("step %zu: %s", step, text);
		close(fd);
	}
}

static void server__refuses_broken_requests(void **state)
{
	static const char *const rows[] = {
		"GET / HTTP/1.1\r\n\r\n", /* no Host */
		"GET /\r\n\r\n",
		"GET / HTTP/3.0\r\n" CLOSE,
		"GET / HTTP/1.1\nHost: x\n\n",
		"POST /echo HTTP/1.1\r\nContent-Length: 1\r\n"
		"Content-Length: 1\r\n" CLOSE,
		"POST /echo HTTP/1.1\r\nContent-Length: x\r\n" CLOSE,
		"POST /echo HTTP/1.1\r\nTransfer-Encoding: gzip\r\n" CLOSE,
		"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: x"
		"\r\n\r\nzz\r\n",
	};
	struct fixture *f = *state;
	const char *text;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		text = ask(f, rows[i]);
		if (!strstr(text, "HTTP/1.1 400 ") ||
		    !strstr(text, "\"code\":\"BAD_REQUEST\""))
			fail_msg("%s: %s", rows[i], text);
	}
}

static void server__bounds_heads(void **state)
{
	struct fixture *f = *state;
	char *head = must_alloc(64 * 1024);

	strcpy(head, "GET /items/x HTTP/1.1\r\nHost: x\r\nX: ");
	memset(head + strlen(head), 'a', HTTPD_HEAD_MAX);
	strcat(head, "\r\n\r\n");
	assert_has(ask(f, head), "431 ");
	free(head);
}

static void server__answers_later(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f), other = client_open(f);

	client_send(f, fd,
		    SPAN("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"
			 "GET /items/1?q=next HTTP/1.1\r\n" CLOSE));
	while (!f->later)
		turn(f);
	/* others are served meanwhile, the pipelined request is not */
	client_send(f, other, SPAN("GET /items/1?q=other HTTP/1.1\r\n" CLOSE));
	assert_has(client_read(f, other, NULL), "other");
	assert_true(recv(fd, f->param, 1, MSG_PEEK) < 0);

	httpd_reply(f->later, 200, "text/plain", SPAN("late"));
	assert_has(client_read(f, fd, NULL), "\r\n\r\nlateHTTP/1.1 200 OK");
	close(fd);
	close(other);
}

/* A reply to somebody who left goes nowhere and frees the request. */
static void server__survives_a_client_that_left(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);

	client_send(f, fd, SPAN("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
	while (!f->later)
		turn(f);
	close(fd);
	turn(f);
	httpd_reply_error(f->later, 500, "X", "nobody hears this");
	while (httpd_connection_count(f->httpd))
		turn(f);
}

static void server__streams(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);
	const char *text;

	client_send(f, fd, SPAN("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	text = client_read(f, fd, "data: 1");
	assert_has(text, "Content-Type: text/event-stream\r\n");
	assert_has(text, "Transfer-Encoding: chunked\r\n");
	assert_has(text, "\r\n\r\n9\r\ndata: 1\n\n\r\n");
	assert_int_equal(httpd_stream_write(f->stream, SPAN("data: 2\n\n")), 0);
	assert_has(client_read(f, fd, "data: 2\n\n\r\n"), "9\r\n");
	httpd_stream_end(f->stream);
	assert_has(client_read(f, fd, "0\r\n\r\n"), "0\r\n\r\n");

	/* the connection lives on */
	client_send(f, fd, SPAN("GET /items/1?q=on HTTP/1.1\r\n" CLOSE));
	assert_has(client_read(f, fd, NULL), "\r\n\r\non");
	close(fd);
	assert_int_equal(f->gone, 0);
}

static void server__tells_a_stream_that_the_client_left(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);

	client_send(f, fd, SPAN("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	(void)client_read(f, fd, "data: 1");
	close(fd);
	while (!f->gone)
		turn(f);
	while (httpd_connection_count(f->httpd))
		turn(f);
	assert_int_equal(f->gone, 1);
}

/* A reader that does not read is told from one that is gone, and bounded. */
static void server__bounds_what_a_stream_holds(void **state)
{
	struct fixture *f = *state;
	char *piece = must_alloc(64 * 1024);
	int fd = client_open(f), r = 0;
	size_t taken = 0;

	memset(piece, 'x', 64 * 1024);
	client_send(f, fd, SPAN("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	(void)client_read(f, fd, "data: 1");
	while (!r && taken < 64 * 1024 * 1024) {
		r = httpd_stream_write(f->stream, span_of(piece, 64 * 1024));
		taken += 64 * 1024;
		turn(f);
	}
	assert_int_equal(r, -EAGAIN);
	assert_true(taken < 8 * 1024 * 1024);
	httpd_stream_end(f->stream);
	close(fd);
	free(piece);
}

static void on_drained(void *ctx)
{
	struct fixture *f = ctx;

	f->drained++;
}

static void drain__waits_for_answers(void **state)
{
	struct fixture *f = *state;
	int idle = client_open(f), busy = client_open(f);

	client_send(f, busy, SPAN("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
	while (!f->later)
		turn(f);
	httpd_drain(f->httpd, on_drained, f);
	assert_string_equal(client_read(f, idle, NULL), "");
	assert_int_equal(f->drained, 0);
	httpd_reply(f->later, 200, "text/plain", SPAN("last"));
	assert_has(client_read(f, busy, NULL), "Connection: close\r\n");
	while (!f->drained)
		turn(f);
	close(idle);
	close(busy);
}

static void listen__replaces_only_the_dead(void **state)
{
	struct fixture *f = *state;
	struct stat st;
	int fd;

	assert_int_equal(stat(f->path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* somebody listens */
	assert_int_equal(httpd_bind_unix(f->path, 0600), -EADDRINUSE);
	f->httpd = httpd_free(f->httpd);
	/* a socket nobody listens on */
	fd = httpd_bind_unix(f->path, 0600);
	assert_true(fd >= 0);
	close(fd);
	unlink(f->path);
	/* no socket at all */
	fd = open(f->path, O_CREAT | O_WRONLY, 0600);
	close(fd);
	assert_int_equal(httpd_bind_unix(f->path, 0600), -EADDRINUSE);
}

static void free__leaves_requests_to_their_handlers(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(f);

	client_send(f, fd, SPAN("GET /later HTTP/1.1\r\nHost: x\r\n\r\n"));
	while (!f->later)
		turn(f);
	f->httpd = httpd_free(f->httpd);
	httpd_reply_empty(f->later);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(server__answers_with_common_headers),
		TEST(server__makes_an_id_when_none_is_fit),
		TEST(server__routes_and_decodes),
		TEST(server__says_which_methods_there_are),
		TEST(server__answers_head_without_a_body),
		TEST(server__writes_errors_as_json),
		TEST(server__refuses_whom_it_should),
		TEST(server__refuses_before_the_body),
		TEST(server__bounds_bodies),
		TEST(server__reads_chunks_and_continues),
		TEST(server__answers_pipelined_requests_in_order),
		TEST(server__refuses_broken_requests),
		TEST(server__bounds_heads),
		TEST(server__answers_later),
		TEST(server__survives_a_client_that_left),
		TEST(server__streams),
		TEST(server__tells_a_stream_that_the_client_left),
		TEST(server__bounds_what_a_stream_holds),
		TEST(drain__waits_for_answers),
		TEST(listen__replaces_only_the_dead),
		TEST(free__leaves_requests_to_their_handlers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
