/* SPDX-License-Identifier: Apache-2.0 */
/* test_h2_head.c - which heads are told, and which are refused */

#include <stdio.h>

#include "tests/unit/wire/h2_frames.h"

#define MALFORMED "1 refused: the request is malformed\n"
#define REST	  ":scheme https\n:authority a\n:path /\n"

static const struct {
	const char *fields;
	const char *log;
} requests[] = {
	{ H2_GET, "1 head. GET https a /\n1 end\n" },
	{ H2_GET "x y z", "1 head. GET https a / x=y z\n1 end\n" },
	{ H2_GET "host a\nx y", "1 head. GET https a / x=y\n1 end\n" },
	{ H2_GET "host A", "1 head. GET https a /\n1 end\n" },
	{ ":method GET\n:scheme https\n:path /\nhost b:8443",
	  "1 head. GET https b:8443 /\n1 end\n" },
	{ H2_GET "cookie a=1\nx y\ncookie b=2\ncookie c=3",
	  "1 head. GET https a / cookie=a=1; b=2; c=3 x=y\n1 end\n" },
	{ H2_GET "te trailers", "1 head. GET https a / te=trailers\n1 end\n" },
	{ H2_GET "content-length 0",
	  "1 head. GET https a / content-length=0\n1 end\n" },
	{ ":method OPTIONS\n:scheme https\n:authority a\n:path *",
	  "1 head. OPTIONS https a *\n1 end\n" },
	{ ":method CONNECT\n:authority a:443",
	  "1 head. CONNECT  a:443 \n1 end\n" },

	{ H2_GET "host b",
	  "1 refused: the Host field differs from the authority\n" },
	{ ":method GET\n:scheme https\n:authority a\n:path x", MALFORMED },
	{ ":method GET\n:scheme ftp\n:authority a\n:path x",
	  "1 refused: the path is malformed\n" },
	{ ":method GET\n:scheme https\n:authority a\n:path /x#y",
	  "1 refused: the path is malformed\n" },
	{ ":method GET\n:scheme https\n:authority a\n:path /x y", MALFORMED },
	{ ":method GET\n:scheme https\n:authority a\n:path *", MALFORMED },
	{ ":method GET\n:scheme https\n:authority a\n:path ", MALFORMED },
	{ ":method G T\n" REST, MALFORMED },
	{ ":method GET\n:scheme https\n:authority a b\n:path /", MALFORMED },
	{ ":method GET\n:scheme https\n:authority a@b\n:path /",
	  "1 refused: the authority is malformed\n" },
	{ ":method GET\n:scheme https\n:path /", MALFORMED },
	{ ":method GET\n:method GET\n" REST, MALFORMED },
	{ REST, MALFORMED },
	{ "x y\n" H2_GET, MALFORMED },
	{ H2_GET ":status 200", MALFORMED },
	{ H2_GET ":protocol websocket", MALFORMED },
	{ ":protocol websocket\n:method CONNECT\n" REST, MALFORMED },
	{ ":method CONNECT\n" REST, MALFORMED },
	{ ":method CONNECT", MALFORMED },
	{ H2_GET "X y", MALFORMED },
	{ H2_GET "x\x01 y", MALFORMED },
	{ H2_GET "x y\x01", MALFORMED },
	{ H2_GET "x y\r", MALFORMED },
	{ H2_GET "x y ", MALFORMED },
	{ H2_GET " y", MALFORMED },
	{ H2_GET "connection close", MALFORMED },
	{ H2_GET "keep-alive 5", MALFORMED },
	{ H2_GET "proxy-connection close", MALFORMED },
	{ H2_GET "transfer-encoding chunked", MALFORMED },
	{ H2_GET "upgrade websocket", MALFORMED },
	{ H2_GET "te gzip", MALFORMED },
	{ H2_GET "content-length 5", MALFORMED },
	{ H2_GET "content-length -0", MALFORMED },
	{ H2_GET "content-length 0\ncontent-length 0", MALFORMED },
	{ H2_GET "host a\nhost a", MALFORMED },
};

static void head__requests(void **state)
{
	struct buf b = BUF_INIT(1 << 20);
	char log[512], *at;
	struct h2_end e;
	size_t i, step;

	(void)state;
	for (i = 0; i < 3 * ARRAY_LEN(requests); i++) {
		step = i / ARRAY_LEN(requests) * 5;
		h2_server_open(&e, NULL);
		h2_put_head(&b, 1, H2F_END,
			    requests[i % ARRAY_LEN(requests)].fields);
		h2_feed(&e, 1000000, step, buf_peek(&b));
		buf_clear(&b);
		(void)h2_play(&e, 1000000, &b);
		assert_true(span_copy(buf_peek(&e.log), log, sizeof(log)));
		/* content-length and the end are judged after the head */
		at = strstr(log, "1 closed PROTOCOL_ERROR\n");
		if (at)
			*at = '\0';
		assert_string_equal(log, requests[i % ARRAY_LEN(requests)].log);
		assert_int_equal(e.failed, 0);
		h2_end_close(&e);
	}
	buf_fini(&b);
}

static void head__never_indexed_is_seen(void **state)
{
	struct buf b = BUF_INIT(1000), block = BUF_INIT(1000);
	struct h2_end e;

	(void)state;
	h2_server_open(&e, NULL);
	h2_put_block(&block, H2_GET "a b\n");
	h2_put_byte(&block, 0x10);
	h2_put_hpack_string(&block, SPAN("x"));
	h2_put_hpack_string(&block, SPAN("y"));
	h2_put_frame(&b, H2F_HEADERS, H2F_END | H2F_END_HEADERS, 1,
		     buf_peek(&block));
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, "1 head. GET https a / a=b x=y!\n1 end\n");
	h2_end_close(&e);
	buf_fini(&block);
	buf_fini(&b);
}

static void trailers_are(const char *fields, unsigned flags, const char *log)
{
	struct buf b = BUF_INIT(1000);
	struct h2_end e;

	h2_server_open(&e, NULL);
	h2_put_head(&b, 1, 0, H2_GET);
	h2_put_frame(&b, H2F_DATA, 0, 1, SPAN("abc"));
	h2_put_head(&b, 1, flags, fields);
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, log);
	h2_end_close(&e);
	buf_fini(&b);
}

static void head__trailers(void **state)
{
	(void)state;
	trailers_are("x y", H2F_END,
		     "1 head GET https a /\n1 data 3\n1 trailers x=y\n1 end\n");
	trailers_are("x y", 0,
		     "1 head GET https a /\n1 data 3\n"
		     "1 closed PROTOCOL_ERROR\n");
	trailers_are(":path /", H2F_END,
		     "1 head GET https a /\n1 data 3\n"
		     "1 closed PROTOCOL_ERROR\n");
	trailers_are("content-length 3", H2F_END,
		     "1 head GET https a /\n1 data 3\n"
		     "1 closed PROTOCOL_ERROR\n");
	trailers_are("authorization x", H2F_END,
		     "1 head GET https a /\n1 data 3\n"
		     "1 closed PROTOCOL_ERROR\n");
	trailers_are("host x", H2F_END,
		     "1 head GET https a /\n1 data 3\n"
		     "1 closed PROTOCOL_ERROR\n");
}

static void body_is(const char *length, struct span body, const char *log)
{
	struct buf b = BUF_INIT(1000);
	struct h2_end e;
	char head[200];

	(void)snprintf(head, sizeof(head), H2_GET "content-length %s", length);
	h2_server_open(&e, NULL);
	h2_put_head(&b, 1, 0, head);
	h2_put_frame(&b, H2F_DATA, H2F_END, 1, body);
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, log);
	h2_end_close(&e);
	buf_fini(&b);
}

static void head__content_length(void **state)
{
	(void)state;
	body_is("3", SPAN("abc"),
		"1 head GET https a / content-length=3\n1 data 3\n1 end\n");
	body_is("2", SPAN("abc"),
		"1 head GET https a / content-length=2\n"
		"1 closed PROTOCOL_ERROR\n");
	body_is("4", SPAN("abc"),
		"1 head GET https a / content-length=4\n1 data 3\n"
		"1 closed PROTOCOL_ERROR\n");
}

/* Responses: what a client refuses of a server. */
static void response_is(const char *fields, unsigned flags, const char *log)
{
	struct buf b = BUF_INIT(1000);
	struct h2_head head;
	struct h2_end e;

	h2_end_open(&e, H2_CLIENT, NULL);
	assert_int_equal(
		h2_request(e.h, h2_get_head(&head, "GET", "/"), true, NULL), 1);
	h2_put_frame(&b, H2F_SETTINGS, 0, 0, SPAN_NONE);
	(void)h2_play(&e, 1000000, &b);
	h2_put_head(&b, 1, flags, fields);
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, log);
	h2_end_close(&e);
	buf_fini(&b);
}

static void head__responses(void **state)
{
	(void)state;
	response_is(":status 200\nx y", H2F_END,
		    "1 head. 200 x=y\n1 end\n1 closed NO_ERROR\n");
	response_is(":status 103\nx y", 0, "1 head 103 x=y\n");
	response_is(":status 103", H2F_END, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 101", 0, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 099", 0, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 20", 0, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 2000", 0, "1 closed PROTOCOL_ERROR\n");
	response_is("x y", 0, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 200\nconnection close", 0,
		    "1 closed PROTOCOL_ERROR\n");
	response_is(":status 200\n:path /", 0, "1 closed PROTOCOL_ERROR\n");
	response_is(":status 200\nx y\n", 0, "1 head 200 x=y\n");
}

/* Too many fields or bytes: an answer that says so, and nothing kept. */
static void too_large(const char *field, unsigned count, bool end)
{
	struct buf b = BUF_INIT(1 << 20), block = BUF_INIT(1 << 20);
	struct h2_end e;
	unsigned i;

	h2_server_open(&e, NULL);
	h2_put_block(&block, H2_GET);
	for (i = 0; i < count; i++)
		h2_put_block(&block, field);
	assert_in_range(buf_len(&block), 1, 16384);
	h2_put_frame(&b, H2F_HEADERS, H2F_END_HEADERS | (end ? H2F_END : 0), 1,
		     buf_peek(&block));
	assert_true(h2_play(&e, 1000000, &b) > 9);
	assert_log(&e, "1 refused: the head is over the size limit\n");
	assert_int_equal(e.failed, 0);
	h2_put_head(&b, 3, H2F_END, H2_GET);
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, "3 head. GET https a /\n3 end\n");
	h2_end_close(&e);
	buf_fini(&block);
	buf_fini(&b);
}

static void head__limits(void **state)
{
	struct buf b = BUF_INIT(1 << 20);
	const struct h2_limits small = { .header_bytes = 210 };
	struct h2_end e;

	(void)state;
	too_large("x y", HEADERS_MAX + 1, true);
	too_large("x y", HEADERS_MAX + 1, false);
	too_large("cookie y", HEADERS_MAX + 10, true);
	h2_server_open(&e, &small);
	h2_put_head(&b, 1, H2F_END, H2_GET "a b");
	h2_put_head(&b, 3, H2F_END, H2_GET "a bbbbbbbbbbbbbbbbb\nc d");
	(void)h2_play(&e, 1000000, &b);
	assert_log(&e, "1 head. GET https a / a=b\n1 end\n"
		       "3 refused: the head is over the size limit\n");
	h2_end_close(&e);
	buf_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head__requests),
		cmocka_unit_test(head__never_indexed_is_seen),
		cmocka_unit_test(head__trailers),
		cmocka_unit_test(head__content_length),
		cmocka_unit_test(head__responses),
		cmocka_unit_test(head__limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
