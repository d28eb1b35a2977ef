/* SPDX-License-Identifier: Apache-2.0 */
/* test_body.c - bodies that are read piece by piece, over real sockets */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/httpd/rig.h"

enum manner {
	READ_ALL,
	PAUSE_AT_FIRST, /* until the test resumes */
	PAUSE_EACH,	/* and resume in the same call */
	REPLY_AT_FIRST,
	REPLY_AT_ONCE, /* without reading */
	STREAM_REPLY,  /* the reply has begun before the body is read */
	HOLD,	       /* the test calls httpd_body_read() */
};

struct fixture {
	struct rig rig;
	enum manner manner;
	struct httpd_request *request;
	struct buf body;
	int64_t length;
	unsigned calls, pieces, ends, cuts, gone;
	bool inside; /* a call of ours is on the stack */
};

static void on_gone(void *user, struct httpd_request *r)
{
	struct fixture *f = user;

	assert_false(f->inside);
	f->gone++;
	f->request = NULL;
	httpd_stream_end(r);
}

static void finish(struct fixture *f, struct httpd_request *r, bool whole)
{
	f->request = NULL;
	if (f->manner == STREAM_REPLY && whole)
		httpd_stream_end(r);
	else if (f->manner == STREAM_REPLY)
		httpd_stream_abort(r);
	else if (whole)
		httpd_reply(r, 200, "text/plain", SPAN("whole"));
	else
		httpd_reply_error(r, 400, "CUT", "the body was cut");
}

static void on_piece(void *user, struct httpd_request *r, enum httpd_piece kind,
		     struct span bytes)
{
	struct fixture *f = user;

	assert_false(f->inside);
	assert_int_equal(f->ends + f->cuts, 0);
	f->inside = true;
	f->calls++;
	switch (kind) {
	case HTTPD_PIECE:
		assert_in_range(bytes.len, 1, 256 * 1024);
		assert_int_equal(buf_put(&f->body, bytes), 0);
		if (!f->pieces++ && f->manner == PAUSE_AT_FIRST)
			httpd_body_pause(r);
		if (f->manner == PAUSE_EACH) {
			httpd_body_pause(r);
			httpd_body_resume(r);
		}
		if (f->manner == REPLY_AT_FIRST)
			finish(f, r, true);
		break;
	case HTTPD_PIECE_END:
		assert_int_equal(bytes.len, 0);
		f->ends++;
		finish(f, r, true);
		break;
	case HTTPD_PIECE_CUT:
		f->cuts++;
		finish(f, r, false);
		break;
	}
	f->inside = false;
}

static void on_upload(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	httpd_set_user(r, f);
	f->length = httpd_body_length(r);
	f->request = r;
	buf_clear(&f->body);
	f->calls = f->pieces = f->ends = f->cuts = 0;
	f->inside = true;
	if (f->manner == STREAM_REPLY)
		httpd_stream_start(r, 200, "text/plain", on_gone);
	if (f->manner == REPLY_AT_ONCE)
		finish(f, r, true);
	else if (f->manner != HOLD)
		httpd_body_read(r, on_piece);
	f->inside = false;
}

static void on_get(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply(r, 200, "text/plain", SPAN("got"));
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	(void)r;
	return 0;
}

static const struct httpd_route routes[] = {
	{ "POST", "/up", HTTPD_AUTH_REQUIRED, on_upload, HTTPD_BODY_STREAMED },
	{ "GET", "/get", HTTPD_AUTH_REQUIRED, on_get, HTTPD_BODY_WHOLE },
};

static int set_up(void **state)
{
	static const struct httpd_ops ops = { .authorise = on_authorise };
	struct fixture *f = must_alloc(sizeof(*f));

	buf_init(&f->body, 64 * 1024 * 1024);
	rig_open(&f->rig, routes, ARRAY_LEN(routes), &ops, f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rig_close(&f->rig);
	buf_fini(&f->body);
	free(f);
	return 0;
}

static char *pattern_new(size_t len)
{
	char *bytes = must_alloc(len + 1);
	size_t i;

	for (i = 0; i < len; i++)
		bytes[i] = (char)('a' + (i * 7 + i / 251) % 26);
	return bytes;
}

#define NEXT "GET /get HTTP/1.1\r\n" CLOSE

static const char by_length[] = "POST /up HTTP/1.1\r\nHost: x\r\n"
				"Content-Length: 11\r\n\r\nhello world" NEXT;
static const char by_chunks[] =
	"POST /up HTTP/1.1\r\nHost: x\r\n"
	"Transfer-Encoding: chunked\r\n\r\n"
	"6\r\nhello \r\n5;a=b\r\nworld\r\n0\r\nX: y\r\n\r\n" NEXT;

/* -- tests ---------------------------------------------------------------- */

static void splits_check(struct fixture *f, struct span all, int64_t length)
{
	const char *text;
	size_t cut;
	int fd;

	for (cut = 1; cut < all.len; cut++) {
		fd = client_open(&f->rig);
		client_send(&f->rig, fd, span_of(all.ptr, cut));
		client_send(&f->rig, fd, span_from(all, cut));
		text = client_read(&f->rig, fd, NULL);
		if (count_of(text, "200 OK") != 2 ||
		    !strstr(text, "\r\n\r\nwholeHTTP/1.1") ||
		    !strstr(text, "\r\n\r\ngot"))
			fail_msg("cut at %zu: %s", cut, text);
		assert_int_equal(f->length, length);
		assert_int_equal(f->ends, 1);
		assert_int_equal(f->cuts, 0);
		assert_true(span_eq(buf_peek(&f->body), SPAN("hello world")));
		close(fd);
	}
}

/* Whatever the split, with another request right behind the body. */
static void body__is_the_same_at_every_split(void **state)
{
	struct fixture *f = *state;

	splits_check(f, SPAN(by_length), 11);
	splits_check(f, SPAN(by_chunks), -1);
	f->manner = PAUSE_EACH;
	splits_check(f, SPAN(by_length), 11);
	splits_check(f, SPAN(by_chunks), -1);
}

static void body__may_be_absent(void **state)
{
	static const char *const rows[] = {
		"POST /up HTTP/1.1\r\n" CLOSE,
		"POST /up HTTP/1.1\r\nContent-Length: 0\r\n" CLOSE,
		"POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n" CLOSE
		"0\r\n\r\n",
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_has(ask(&f->rig, rows[i]), "\r\n\r\nwhole");
		assert_int_equal(f->calls, 1);
		assert_int_equal(f->ends, 1);
		assert_int_equal(f->length, i < 2 ? 0 : -1);
	}
}

/* No limit of size, and no piece larger than promised. */
static void body__of_many_megabytes_arrives(void **state)
{
	const size_t len = 20 * 1000 * 1000 + 1;
	struct fixture *f = *state;
	char *bytes = pattern_new(len);
	int fd = client_open(&f->rig);
	char head[128];

	snprintf(head, sizeof(head),
		 "POST /up HTTP/1.1\r\nContent-Length: %zu\r\n" CLOSE, len);
	client_send(&f->rig, fd, span_str(head));
	client_send(&f->rig, fd, span_of(bytes, len));
	assert_has(client_read(&f->rig, fd, NULL), "\r\n\r\nwhole");
	assert_true(span_eq(buf_peek(&f->body), span_of(bytes, len)));
	close(fd);

	/* one chunk, and the same again by pieces with pauses */
	for (int i = 0; i < 2; i++) {
		f->manner = i ? PAUSE_EACH : READ_ALL;
		fd = client_open(&f->rig);
		snprintf(head, sizeof(head),
			 "POST /up HTTP/1.1\r\nTransfer-Encoding: "
			 "chunked\r\n" CLOSE "%zx\r\n",
			 len);
		client_send(&f->rig, fd, span_str(head));
		client_send(&f->rig, fd, span_of(bytes, len));
		client_send(&f->rig, fd, SPAN("\r\n0\r\n\r\n"));
		assert_has(client_read(&f->rig, fd, NULL), "\r\n\r\nwhole");
		assert_true(span_eq(buf_peek(&f->body), span_of(bytes, len)));
		close(fd);
	}
	free(bytes);
}

/* A paused body makes the client wait and the server hold next to nothing. */
static void body__that_is_paused_is_not_read(void **state)
{
	const size_t len = 16 * 1024 * 1024;
	struct fixture *f = *state;
	char *bytes = pattern_new(len);
	int fd = client_open(&f->rig);
	char head[128];
	size_t sent;

	f->manner = PAUSE_AT_FIRST;
	snprintf(head, sizeof(head),
		 "POST /up HTTP/1.1\r\nContent-Length: %zu\r\n" CLOSE, len);
	client_send(&f->rig, fd, span_str(head));
	sent = client_send_for(&f->rig, fd, span_of(bytes, len), 200);
	assert_true(sent < 2 * 1024 * 1024);
	assert_int_equal(f->pieces, 1);
	httpd_body_resume(f->request);
	assert_int_equal(f->pieces, 1); /* from the loop, not from there */
	client_send(&f->rig, fd, span_of(bytes + sent, len - sent));
	assert_has(client_read(&f->rig, fd, NULL), "\r\n\r\nwhole");
	assert_true(span_eq(buf_peek(&f->body), span_of(bytes, len)));
	close(fd);
	free(bytes);
}

static void body__is_cut_when_the_client_leaves(void **state)
{
	static const char *const heads[] = {
		"POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: "
		"100\r\n\r\nabc",
		"POST /up HTTP/1.1\r\nHost: x\r\n"
		"Transfer-Encoding: chunked\r\n\r\n9\r\nabc",
	};
	struct fixture *f = *state;
	size_t i;
	int fd;

	for (i = 0; i < 4; i++) {
		fd = client_open(&f->rig);
		client_send(&f->rig, fd, span_str(heads[i % 2]));
		assert_int_equal(f->pieces, 1);
		if (i < 2) {
			/* he may still listen */
			shutdown(fd, SHUT_WR);
			assert_has(client_read(&f->rig, fd, NULL),
				   "400 Bad Request");
		}
		close(fd);
		while (httpd_connection_count(f->rig.httpd))
			turn(&f->rig);
		assert_int_equal(f->cuts, 1);
		assert_int_equal(f->ends, 0);
		assert_true(span_eq(buf_peek(&f->body), SPAN("abc")));
	}
}

static void body__is_cut_by_broken_chunks(void **state)
{
	struct fixture *f = *state;

	assert_has(ask(&f->rig, "POST /up HTTP/1.1\r\nHost: x\r\n"
				"Transfer-Encoding: chunked\r\n\r\n"
				"3\r\nabc\r\nzz\r\n"),
		   "400 Bad Request");
	assert_int_equal(f->cuts, 1);
	assert_true(span_eq(buf_peek(&f->body), SPAN("abc")));
}

/* Nobody reads it, so nobody notices; then it is told once. */
static void body__is_cut_while_it_is_paused(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	f->manner = PAUSE_AT_FIRST;
	client_send(&f->rig, fd,
		    SPAN("POST /up HTTP/1.1\r\nHost: x\r\n"
			 "Content-Length: 100\r\n\r\nabc"));
	close(fd);
	turns(&f->rig, 20);
	assert_int_equal(f->cuts, 0);
	httpd_body_resume(f->request);
	assert_int_equal(f->cuts, 0);
	while (httpd_connection_count(f->rig.httpd))
		turn(&f->rig);
	assert_int_equal(f->cuts, 1);
}

/* A reply has begun and its client leaves: the body is cut, and that is all. */
static void body__is_cut_amid_a_streamed_reply(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	f->manner = STREAM_REPLY;
	client_send(&f->rig, fd,
		    SPAN("POST /up HTTP/1.1\r\nHost: x\r\n"
			 "Content-Length: 100\r\n\r\nabc"));
	close(fd);
	while (httpd_connection_count(f->rig.httpd))
		turn(&f->rig);
	assert_int_equal(f->cuts, 1);
	assert_int_equal(f->gone, 0);
}

static void body__may_be_read_behind_the_begin_of_the_reply(void **state)
{
	struct fixture *f = *state;
	const char *text;

	f->manner = STREAM_REPLY;
	text = ask(&f->rig, by_length);
	assert_has(text, "\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK");
	assert_has(text, "\r\n\r\ngot");
	assert_true(span_eq(buf_peek(&f->body), SPAN("hello world")));
}

/* The rest of a short body is dropped and the connection goes on. */
static void body__that_nobody_wants_is_dropped(void **state)
{
	struct fixture *f = *state;
	const char *text;
	int fd;

	f->manner = REPLY_AT_ONCE;
	text = ask(&f->rig, by_chunks);
	assert_has(text, "\r\n\r\nwholeHTTP/1.1 200 OK");
	assert_has(text, "\r\n\r\ngot");

	f->manner = REPLY_AT_FIRST;
	fd = client_open(&f->rig);
	client_send(&f->rig, fd,
		    SPAN("POST /up HTTP/1.1\r\nHost: x\r\n"
			 "Content-Length: 11\r\n\r\nhello"));
	assert_has(client_read(&f->rig, fd, "whole"), "200 OK");
	client_send(&f->rig, fd, SPAN(" world" NEXT));
	assert_has(client_read(&f->rig, fd, NULL), "\r\n\r\ngot");
	assert_int_equal(f->calls, 1);
	close(fd);
}

static void body__that_is_long_costs_the_connection(void **state)
{
	struct fixture *f = *state;
	char *bytes = pattern_new(4 * 1024 * 1024);
	const char *text;
	int fd;

	f->manner = REPLY_AT_ONCE;
	text = ask(&f->rig, "POST /up HTTP/1.1\r\nHost: x\r\n"
			    "Content-Length: 2000000\r\n\r\n");
	assert_has(text, "Connection: close\r\n");
	assert_has(text, "\r\n\r\nwhole");

	/* chunks do not say beforehand */
	fd = client_open(&f->rig);
	client_send(&f->rig, fd,
		    SPAN("POST /up HTTP/1.1\r\nHost: x\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n400000\r\n"));
	assert_has(client_read(&f->rig, fd, "whole"), "200 OK");
	(void)client_send_for(&f->rig, fd, span_of(bytes, 4 * 1024 * 1024),
			      1000);
	assert_string_equal(client_read(&f->rig, fd, NULL), "");
	close(fd);
	free(bytes);
}

static void body__is_asked_for_when_it_is_read(void **state)
{
	static const char head[] = "POST /up HTTP/1.1\r\nHost: x\r\n"
				   "Content-Length: 3\r\n"
				   "Expect: 100-continue\r\n\r\n";
	struct fixture *f = *state;
	int fd = client_open(&f->rig);
	const char *text;

	f->manner = HOLD;
	client_send(&f->rig, fd, SPAN(head));
	assert_true(recv(fd, &f->manner, 1, MSG_PEEK) < 0);
	httpd_body_read(f->request, on_piece);
	text = client_read(&f->rig, fd, "\r\n\r\n");
	assert_string_equal(text, "HTTP/1.1 100 Continue\r\n\r\n");
	client_send(&f->rig, fd, SPAN("abc" NEXT));
	text = client_read(&f->rig, fd, NULL);
	assert_has(text, "\r\n\r\nwhole");
	assert_has(text, "\r\n\r\ngot");
	close(fd);

	/* who is refused does not know whether to send it: the end */
	f->manner = REPLY_AT_ONCE;
	text = ask(&f->rig, head);
	assert_lacks(text, "100 Continue");
	assert_has(text, "Connection: close\r\n");
}

/* The server is gone before its client: the handler hears that too. */
static void body__is_cut_by_the_end_of_the_server(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	client_send(&f->rig, fd,
		    SPAN("POST /up HTTP/1.1\r\nHost: x\r\n"
			 "Content-Length: 100\r\n\r\nabc"));
	f->rig.httpd = httpd_free(f->rig.httpd);
	for (int i = 0; i < 1000 && !f->cuts; i++) {
		usleep(100);
		turn(&f->rig);
	}
	assert_int_equal(f->cuts, 1);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(body__is_the_same_at_every_split),
		TEST(body__may_be_absent),
		TEST(body__of_many_megabytes_arrives),
		TEST(body__that_is_paused_is_not_read),
		TEST(body__is_cut_when_the_client_leaves),
		TEST(body__is_cut_by_broken_chunks),
		TEST(body__is_cut_while_it_is_paused),
		TEST(body__is_cut_amid_a_streamed_reply),
		TEST(body__may_be_read_behind_the_begin_of_the_reply),
		TEST(body__that_nobody_wants_is_dropped),
		TEST(body__that_is_long_costs_the_connection),
		TEST(body__is_asked_for_when_it_is_read),
		TEST(body__is_cut_by_the_end_of_the_server),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
