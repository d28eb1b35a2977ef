/* SPDX-License-Identifier: Apache-2.0 */
/* test_h2.c - exchanges between our own two sides of HTTP/2 */

#include "tests/unit/wire/h2_pair.h"

#include <errno.h>

static void respond(struct h2_end *e, int32_t id, unsigned status, bool end)
{
	struct h2_head head = { .status = (uint16_t)status };

	h2_put_field(&head.headers, "Server", "test");
	assert_int_equal(h2_respond(e->h, id, &head, end), 0);
}

static void answer_ok(struct h2_end *e, int32_t id)
{
	struct headers trailers = { .count = 0 };

	respond(e, id, 200, false);
	assert_int_equal(h2_write(e->h, id, SPAN("hello")), 0);
	h2_put_field(&trailers, "grpc-status", "0");
	assert_int_equal(h2_end(e->h, id, &trailers), 0);
}

static void exchange(size_t step)
{
	struct h2_pair p = { .step = step };
	struct h2_head head;
	int data;

	h2_pair_open(&p, NULL, NULL);
	p.server.on_end = answer_ok;
	h2_get_head(&head, "POST", "/x?y=1");
	h2_put_field(&head.headers, "Content-Type", "application/grpc");
	h2_put_field(&head.headers, "Authorization", "Bearer s3cret");
	h2_put_field(&head.headers, "Connection", "keep-alive");
	h2_put_field(&head.headers, "TE", "trailers");
	h2_put_field(&head.headers, "Host", "other.example");
	assert_int_equal(h2_request(p.client.h, &head, false, &data), 1);
	assert_ptr_equal(h2_stream_data(p.client.h, 1), &data);
	assert_int_equal(h2_write(p.client.h, 1, SPAN("body")), 0);
	assert_int_equal(h2_end(p.client.h, 1, NULL), 0);
	h2_talk(&p);
	assert_int_equal(p.server.bytes, 4);
	assert_int_equal(p.client.bytes, 5);
	if (!step) {
		assert_log(&p.server,
			   "1 head POST https a.example /x?y=1 "
			   "content-type=application/grpc "
			   "authorization=Bearer s3cret! te=trailers\n"
			   "1 data 4\n1 end\n1 closed NO_ERROR\n");
		assert_log(&p.client, "1 head 200 server=test\n1 data 5\n"
				      "1 trailers grpc-status=0\n1 end\n"
				      "1 closed NO_ERROR\n");
	}
	assert_int_equal(p.server.ends + p.client.ends, 2);
	assert_int_equal(p.server.closes + p.client.closes, 2);
	assert_null(h2_stream_data(p.client.h, 1));
	assert_int_equal(h2_open_streams(p.client.h), 0);
	h2_pair_close(&p);
}

static void h2__exchange_in_any_pieces(void **state)
{
	size_t step;

	(void)state;
	for (step = 0; step < 40; step++)
		exchange(step);
}

static void answer_heads(struct h2_end *e, int32_t id,
			 const struct h2_head *req, bool end)
{
	struct h2_head head = { .status = 103 };

	(void)req;
	(void)end;
	h2_put_field(&head.headers, "Link", "</a>");
	assert_int_equal(h2_interim(e->h, id, &head), 0);
	assert_int_equal(h2_respond(e->h, id, &head, true), -EINVAL);
	respond(e, id, 404, true);
	assert_int_equal(h2_respond(e->h, id, &head, true), -EINVAL);
	assert_int_equal(h2_interim(e->h, id, &head), -EINVAL);
	assert_int_equal(h2_write(e->h, id, SPAN("x")), -EPIPE);
	assert_int_equal(h2_end(e->h, id, NULL), -EPIPE);
	assert_int_equal(h2_room(e->h, id), 0);
}

static void h2__heads_only_and_interim(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	p.server.on_head = answer_heads;
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "GET", "/"),
				    true, NULL),
			 1);
	h2_talk(&p);
	assert_log(&p.server, "1 head. GET https a.example /\n1 end\n"
			      "1 closed NO_ERROR\n");
	assert_log(&p.client, "1 head 103 link=</a>\n"
			      "1 head. 404 server=test\n1 end\n"
			      "1 closed NO_ERROR\n");
	assert_int_equal(h2_respond(p.server.h, 1, &head, true), -ENOENT);
	assert_int_equal(h2_write(p.server.h, 1, SPAN("x")), -ENOENT);
	h2_pair_close(&p);
}

/* The response ends before the request: the client is told to stop. */
static void h2__early_answer(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	p.server.on_head = answer_heads;
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "POST", "/"),
				    false, NULL),
			 1);
	h2_talk(&p);
	assert_log(&p.client, "1 head 103 link=</a>\n"
			      "1 head. 404 server=test\n1 end\n"
			      "1 closed NO_ERROR\n");
	assert_int_equal(h2_write(p.client.h, 1, SPAN("x")), -ENOENT);
	h2_pair_close(&p);
}

static void h2__reset_codes(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	h2_get_head(&head, "POST", "/");
	/* before it was ever sent: the server hears nothing */
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), 1);
	h2_reset(p.client.h, 1, H2_CANCEL);
	h2_talk(&p);
	assert_log(&p.server, "");
	assert_log(&p.client, "1 closed CANCEL\n");
	/* by the client */
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), 3);
	h2_talk(&p);
	h2_reset(p.client.h, 3, H2_CANCEL);
	h2_talk(&p);
	assert_log(&p.server,
		   "3 head POST https a.example /\n3 closed CANCEL\n");
	assert_log(&p.client, "3 closed CANCEL\n");
	/* by the server */
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), 5);
	h2_talk(&p);
	h2_reset(p.server.h, 5, H2_REFUSED_STREAM);
	h2_reset(p.server.h, 5, H2_CANCEL);
	h2_talk(&p);
	assert_log(&p.client, "5 closed REFUSED_STREAM\n");
	assert_int_equal(p.server.closes, 2);
	h2_pair_close(&p);
}

static void h2__shutdown_lets_streams_finish(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "GET", "/"),
				    true, NULL),
			 1);
	h2_talk(&p);
	h2_shutdown(p.server.h);
	h2_talk(&p);
	assert_false(h2_is_open(p.client.h));
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), -ESHUTDOWN);
	h2_shutdown(p.server.h);
	h2_talk(&p);
	assert_false(h2_is_over(p.server.h));
	assert_true(h2_wants_read(p.server.h));
	answer_ok(&p.server, 1);
	h2_talk(&p);
	assert_log(&p.client, "goaway 2147483647 NO_ERROR\n"
			      "goaway 1 NO_ERROR\n1 head 200 server=test\n"
			      "1 data 5\n1 trailers grpc-status=0\n1 end\n"
			      "1 closed NO_ERROR\n");
	assert_true(h2_is_over(p.server.h));
	assert_true(h2_is_over(p.client.h));
	h2_pair_close(&p);
}

/* A final GOAWAY hands unseen requests back. */
static void h2__goaway_returns_requests(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	h2_shutdown(p.server.h);
	h2_shutdown(p.server.h);
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "GET", "/"),
				    true, NULL),
			 1);
	(void)h2_move(&p, &p.server, &p.client);
	h2_talk(&p);
	assert_log(&p.client, "goaway 2147483647 NO_ERROR\n"
			      "goaway 0 NO_ERROR\n1 closed REFUSED_STREAM\n");
	assert_log(&p.server, "");
	h2_pair_close(&p);
}

static void h2__goaway_with_code_cuts(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	assert_int_equal(h2_request(p.client.h, h2_get_head(&head, "GET", "/"),
				    true, NULL),
			 1);
	h2_talk(&p);
	h2_goaway(p.server.h, H2_INTERNAL_ERROR);
	h2_talk(&p);
	assert_true(h2_is_over(p.server.h));
	h2_drop(p.server.h, H2_INTERNAL_ERROR);
	h2_drop(p.client.h, H2_CANCEL);
	assert_log(&p.server, "1 head. GET https a.example /\n1 end\n"
			      "1 closed INTERNAL_ERROR\n");
	assert_log(&p.client, "goaway 1 INTERNAL_ERROR\n1 closed CANCEL\n");
	assert_int_equal(h2_output(p.client.h, 0).len, 0);
	assert_false(h2_wants_write(p.client.h));
	assert_int_equal(h2_input(p.client.h, 0, SPAN("x")), -ECONNABORTED);
	h2_pair_close(&p);
}

static void h2__ping(void **state)
{
	struct h2_pair p = { 0 };

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	assert_int_equal(h2_ping(p.client.h), 0);
	h2_talk(&p);
	assert_log(&p.client, "pong\n");
	h2_pair_close(&p);
}

static void h2__hundred_streams(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;
	unsigned i, round;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	assert_int_equal(h2_peer_max_streams(p.client.h), 100);
	h2_get_head(&head, "GET", "/");
	for (round = 0; round < 3; round++) {
		assert_int_equal(h2_request_room(p.client.h), 100);
		for (i = 0; i < 100; i++)
			assert_true(h2_request(p.client.h, &head, true, NULL) >
				    0);
		assert_int_equal(h2_request(p.client.h, &head, true, NULL),
				 -EAGAIN);
		h2_talk(&p);
		assert_int_equal(p.server.heads, 100 * (round + 1));
		assert_int_equal(h2_open_streams(p.server.h), 100);
		for (i = 0; i < 100; i++)
			answer_ok(&p.server,
				  (int32_t)(200 * round + 2 * i + 1));
		h2_talk(&p);
		assert_int_equal(p.client.closes, 100 * (round + 1));
	}
	assert_int_equal(h2_open_streams(p.server.h), 0);
	h2_pair_close(&p);
}

static void h2__extended_connect(void **state)
{
	const struct h2_limits offered = { .extended_connect = true };
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	h2_get_head(&head, "CONNECT", "/chat");
	head.protocol = SPAN("websocket");
	assert_false(h2_peer_extended_connect(p.client.h));
	assert_int_equal(h2_request(p.client.h, &head, false, NULL),
			 -EOPNOTSUPP);
	h2_pair_close(&p);

	h2_pair_open(&p, NULL, &offered);
	assert_true(h2_peer_extended_connect(p.client.h));
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), 1);
	h2_talk(&p);
	respond(&p.server, 1, 200, false);
	assert_int_equal(h2_write(p.client.h, 1, SPAN("up")), 0);
	assert_int_equal(h2_write(p.server.h, 1, SPAN("down")), 0);
	/* half closed: the other half lives on */
	assert_int_equal(h2_end(p.server.h, 1, NULL), 0);
	h2_talk(&p);
	assert_int_equal(h2_write(p.client.h, 1, SPAN("more")), 0);
	assert_int_equal(h2_end(p.client.h, 1, NULL), 0);
	h2_talk(&p);
	assert_log(&p.server, "1 head CONNECT https a.example /chatwebsocket\n"
			      "1 data 2\n1 data 4\n1 end\n1 closed NO_ERROR\n");
	assert_log(&p.client, "1 head 200 server=test\n1 data 4\n1 end\n"
			      "1 closed NO_ERROR\n");
	h2_pair_close(&p);
}

static void h2__plain_connect(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head = { .method = SPAN("CONNECT") };

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), -EINVAL);
	head.authority = SPAN("a.example:443");
	assert_int_equal(h2_request(p.client.h, &head, false, NULL), 1);
	h2_talk(&p);
	assert_log(&p.server, "1 head CONNECT  a.example:443 \n");
	h2_pair_close(&p);
}

static void h2__requests_that_lack_something(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	h2_get_head(&head, "", "/");
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), -EINVAL);
	h2_get_head(&head, "GET", "");
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), -EINVAL);
	h2_get_head(&head, "GET", "/");
	head.protocol = SPAN("websocket");
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), -EINVAL);
	assert_int_equal(h2_request(p.server.h, h2_get_head(&head, "GET", "/"),
				    true, NULL),
			 -EINVAL);
	h2_pair_close(&p);
}

/* A head that cannot be sent ends its stream, not the connection. */
static void h2__head_too_large_to_send(void **state)
{
	static char large[300 * 1024];
	struct h2_pair p = { 0 };
	struct h2_head head;

	(void)state;
	memset(large, 'x', sizeof(large) - 1);
	h2_pair_open(&p, NULL, NULL);
	h2_get_head(&head, "GET", "/");
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), 1);
	h2_put_field(&head.headers, "x", large);
	assert_int_equal(h2_request(p.client.h, &head, true, NULL), 3);
	h2_talk(&p);
	assert_log(&p.client, "3 closed INTERNAL_ERROR\n");
	head.status = 200;
	assert_int_equal(h2_respond(p.server.h, 1, &head, true), 0);
	h2_talk(&p);
	assert_log(&p.client, "1 closed INTERNAL_ERROR\n");
	assert_int_equal(p.server.failed | p.client.failed, 0);
	h2_pair_close(&p);
}

/* Credentials and what is marked never enter a dynamic table, others do. */
static void h2__sensitive_is_never_indexed(void **state)
{
	struct h2_pair p = { 0 };
	struct h2_head head;
	size_t first = 0, second = 0;
	unsigned i;

	(void)state;
	h2_pair_open(&p, NULL, NULL);
	h2_get_head(&head, "GET", "/");
	h2_put_field(&head.headers, "x-key", "0123456789");
	h2_put_field(&head.headers, "x-api-key", "9876543210");
	h2_put_field(&head.headers, "cookie", "a=b; c=d");
	h2_put_field(&head.headers, "accept", "text/x-long-enough");
	head.headers.items[0].sensitive = true;
	for (i = 0; i < 2; i++) {
		assert_true(h2_request(p.client.h, &head, true, NULL) > 0);
		first = i ? first : h2_move(&p, &p.client, &p.server);
		second = i ? h2_move(&p, &p.client, &p.server) : 0;
		buf_clear(i ? &p.client.log : &p.server.log);
	}
	assert_log(&p.server, "3 head. GET https a.example / x-key=0123456789! "
			      "x-api-key=9876543210! cookie=a=b; c=d! "
			      "accept=text/x-long-enough\n3 end\n");
	/* the second time the accept field is one byte, the secrets whole */
	assert_in_range(first - second, 15, 30);
	assert_true(second > 40);
	h2_pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(h2__exchange_in_any_pieces),
		cmocka_unit_test(h2__heads_only_and_interim),
		cmocka_unit_test(h2__early_answer),
		cmocka_unit_test(h2__reset_codes),
		cmocka_unit_test(h2__shutdown_lets_streams_finish),
		cmocka_unit_test(h2__goaway_returns_requests),
		cmocka_unit_test(h2__goaway_with_code_cuts),
		cmocka_unit_test(h2__ping),
		cmocka_unit_test(h2__hundred_streams),
		cmocka_unit_test(h2__extended_connect),
		cmocka_unit_test(h2__plain_connect),
		cmocka_unit_test(h2__requests_that_lack_something),
		cmocka_unit_test(h2__head_too_large_to_send),
		cmocka_unit_test(h2__sensitive_is_never_indexed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
