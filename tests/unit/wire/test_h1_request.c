/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_request.c - request heads: what they say, and why one is refused */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

static struct h1_request req;

/* Parses an exact heap copy, so that ASan sees one byte too far. The copy is
 * freed by the next call, since views of the result point into it. */
static enum h1_error parse(struct span head)
{
	static char *copy;

	free(copy);
	copy = malloc(head.len ? head.len : 1);
	if (!copy)
		abort();
	memcpy(copy, head.ptr, head.len);
	return h1_parse_request(span_of(copy, head.len), &req);
}

#define assert_span(s, text)                                           \
	do {                                                           \
		if (!span_eq(s, span_str(text)))                       \
			fail_msg("%.*s is not %s", SPAN_FMT(s), text); \
	} while (0)

#define V11  "HTTP/1.1\r\n"
#define HOST "Host: a.example\r\n"
#define GET  "GET / " V11 HOST
#define POST "POST / " V11 HOST
#define END  "\r\n"

static const struct good {
	const char *head, *method, *target, *authority, *path;
	bool keep_alive;
	enum h1_body body;
	uint64_t length;
} good[] = {
	{ GET END, "GET", "/", "a.example", "/", true, H1_BODY_NONE, 0 },
	{ END GET END, "GET", "/", "a.example", "/", true, H1_BODY_NONE, 0 },
	{ "GET /a?b=c&d HTTP/1.1\r\nhOsT:a.example:80 \r\n\r\n", "GET",
	  "/a?b=c&d", "a.example:80", "/a?b=c&d", true, H1_BODY_NONE, 0 },
	{ "get //x " V11 HOST END, "get", "//x", "a.example", "//x", true,
	  H1_BODY_NONE, 0 },
	{ "M-SEARCH! /\xc3\xa9|<> " V11 HOST END, "M-SEARCH!", "/\xc3\xa9|<>",
	  "a.example", "/\xc3\xa9|<>", true, H1_BODY_NONE, 0 },
	{ "GET / HTTP/1.0\r\n\r\n", "GET", "/", "", "/", false, H1_BODY_NONE,
	  0 },
	{ "GET / HTTP/1.0\r\n" HOST "Connection: keep-alive\r\n\r\n", "GET",
	  "/", "a.example", "/", true, H1_BODY_NONE, 0 },
	{ GET "Connection: x, close, y\r\n\r\n", "GET", "/", "a.example", "/",
	  false, H1_BODY_NONE, 0 },
	{ GET "Connection: keep-alive\r\nConnection: CLOSE\r\n\r\n", "GET", "/",
	  "a.example", "/", false, H1_BODY_NONE, 0 },
	{ GET "Connection:\r\nConnection: , ,\r\n\r\n", "GET", "/", "a.example",
	  "/", true, H1_BODY_NONE, 0 },
	{ POST "Content-Length: 5\r\n\r\n", "POST", "/", "a.example", "/", true,
	  H1_BODY_LENGTH, 5 },
	{ POST "Content-Length:0\r\n\r\n", "POST", "/", "a.example", "/", true,
	  H1_BODY_LENGTH, 0 },
	{ POST "Content-Length: 9223372036854775807\r\n\r\n", "POST", "/",
	  "a.example", "/", true, H1_BODY_LENGTH, INT64_MAX },
	{ POST "Transfer-Encoding: chunked\r\n\r\n", "POST", "/", "a.example",
	  "/", true, H1_BODY_CHUNKED, 0 },
	{ POST "transfer-encoding:  CHUNKED  \r\n\r\n", "POST", "/",
	  "a.example", "/", true, H1_BODY_CHUNKED, 0 },
	{ "GET http://a.example/x?y " V11 HOST END, "GET",
	  "http://a.example/x?y", "a.example", "/x?y", true, H1_BODY_NONE, 0 },
	{ "GET HTTPS://A.example " V11 HOST END, "GET", "HTTPS://A.example",
	  "A.example", "/", true, H1_BODY_NONE, 0 },
	{ "GET http://a.example:80/ " V11 HOST END, "GET",
	  "http://a.example:80/", "a.example:80", "/", true, H1_BODY_NONE, 0 },
	{ "GET https://a.example/ " V11 "Host: a.example:443\r\n\r\n", "GET",
	  "https://a.example/", "a.example", "/", true, H1_BODY_NONE, 0 },
	{ "GET http://[::1]/ " V11 "Host: [::1]:80\r\n\r\n", "GET",
	  "http://[::1]/", "[::1]", "/", true, H1_BODY_NONE, 0 },
	{ "GET http://a.example/ HTTP/1.0\r\n\r\n", "GET", "http://a.example/",
	  "a.example", "/", false, H1_BODY_NONE, 0 },
	{ "OPTIONS * " V11 HOST END, "OPTIONS", "*", "a.example", "*", true,
	  H1_BODY_NONE, 0 },
	{ "OPTIONS http://a.example " V11 HOST END, "OPTIONS",
	  "http://a.example", "a.example", "*", true, H1_BODY_NONE, 0 },
	{ "CONNECT a.example:443 " V11 "Host: a.example:443\r\n\r\n", "CONNECT",
	  "a.example:443", "a.example:443", "", true, H1_BODY_NONE, 0 },
	{ "CONNECT a.example:443 " V11 HOST "Content-Length: 0\r\n\r\n",
	  "CONNECT", "a.example:443", "a.example:443", "", true, H1_BODY_NONE,
	  0 },
	/* whatever Host says: it goes no further */
	{ "CONNECT a.example:443 " V11 "Host: proxy.example:3128\r\n\r\n",
	  "CONNECT", "a.example:443", "a.example:443", "", true, H1_BODY_NONE,
	  0 },
	{ "CONNECT [::1]:443 " V11 "Host: [::1]\r\n\r\n", "CONNECT",
	  "[::1]:443", "[::1]:443", "", true, H1_BODY_NONE, 0 },
};

static void request__good(void **state)
{
	const struct good *row;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		row = &good[i];
		if (parse(span_str(row->head)) != H1_OK)
			fail_msg("refused: %s", row->head);
		assert_span(req.method, row->method);
		assert_span(req.target, row->target);
		assert_span(req.authority, row->authority);
		assert_span(req.path, row->path);
		assert_int_equal(req.keep_alive, row->keep_alive);
		assert_int_equal(req.body, row->body);
		assert_int_equal(req.length, row->length);
	}
}

static void request__every_truncation_is_refused(void **state)
{
	struct span head;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		head = span_str(good[i].head);
		for (len = 0; len < head.len; len++)
			assert_int_not_equal(parse(span_of(head.ptr, len)),
					     H1_OK);
	}
}

static void request__fields_keep_order_and_case(void **state)
{
	(void)state;
	assert_int_equal(parse(SPAN(GET "X-b:  1\t 2 \t\r\nx-A:\r\n"
					"ACCEPT: \xff\r\nX-b: 3\r\n\r\n")),
			 H1_OK);
	assert_int_equal(req.headers.count, 5);
	assert_span(req.headers.items[0].name, "Host");
	assert_int_equal(req.headers.items[0].id, HEADER_HOST);
	assert_span(req.headers.items[1].name, "X-b");
	assert_span(req.headers.items[1].value, "1\t 2");
	assert_int_equal(req.headers.items[1].id, HEADER_OTHER);
	assert_span(req.headers.items[2].name, "x-A");
	assert_span(req.headers.items[2].value, "");
	assert_span(req.headers.items[3].name, "ACCEPT");
	assert_span(req.headers.items[3].value, "\xff");
	assert_int_equal(req.headers.items[3].id, HEADER_ACCEPT);
	assert_span(req.headers.items[4].value, "3");
}

static void request__forms_of_the_target(void **state)
{
	(void)state;
	assert_int_equal(parse(SPAN("GET http://a.example/ " V11 HOST END)),
			 H1_OK);
	assert_true(req.absolute && !req.absolute_https);
	assert_int_equal(parse(SPAN("GET https://a.example/ " V11 HOST END)),
			 H1_OK);
	assert_true(req.absolute && req.absolute_https);
	assert_int_equal(parse(SPAN(GET END)), H1_OK);
	assert_false(req.absolute || req.absolute_https);
	assert_int_equal(req.minor, 1);
	assert_int_equal(parse(SPAN("GET / HTTP/1.0\r\n\r\n")), H1_OK);
	assert_int_equal(req.minor, 0);
}

static void request__upgrade_and_expect(void **state)
{
	static const struct {
		const char *head;
		bool upgrade, expect;
	} rows[] = {
		{ GET END, false, false },
		{ GET "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", true,
		  false },
		{ GET "Upgrade: websocket\r\nConnection: keep-alive, "
		      "upgrade\r\n\r\n",
		  true, false },
		{ GET "Connection: Upgrade\r\n\r\n", false, false },
		{ GET "Upgrade: websocket\r\n\r\n", false, false },
		{ "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: "
		  "x\r\n\r\n",
		  false, false },
		{ POST "Expect: 100-Continue\r\nContent-Length: 3\r\n\r\n",
		  false, true },
		{ POST "Expect: 100-continue\r\nTransfer-Encoding: "
		       "chunked\r\n\r\n",
		  false, true },
		{ POST "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
		  false, false },
		{ POST "Expect: 100-continue\r\n\r\n", false, false },
		{ "POST / HTTP/1.0\r\nExpect: 100-continue\r\n"
		  "Content-Length: 3\r\n\r\n",
		  false, false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(parse(span_str(rows[i].head)), H1_OK);
		assert_int_equal(req.upgrade, rows[i].upgrade);
		assert_int_equal(req.expect_continue, rows[i].expect);
	}
}

static const struct {
	struct span head;
	enum h1_error error;
} refused[] = {
	/* the start line */
	{ SPAN_INIT(""), H1_E_INCOMPLETE },
	{ SPAN_INIT("\r\n"), H1_E_INCOMPLETE },
	{ SPAN_INIT("\r\n\r\n" GET END), H1_E_METHOD },
	{ SPAN_INIT("GET\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET /\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / \r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET HTTP/1.1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET  HTTP/1.1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET /HTTP/1.1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET  / " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET /  " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET /a b " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET /a\tb " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET / HTTP/1.1 \r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / HTTP/1.1\t\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET\t/ " V11 HOST END), H1_E_METHOD },
	{ SPAN_INIT(" GET / " V11 HOST END), H1_E_METHOD },
	{ SPAN_INIT("GE(T / " V11 HOST END), H1_E_METHOD },
	{ SPAN_INIT("G\xc3\xa9T / " V11 HOST END), H1_E_METHOD },
	{ SPAN_INIT("GET / HTTP/0.9\r\n" HOST END), H1_E_VERSION },
	{ SPAN_INIT("GET / HTTP/1.2\r\n" HOST END), H1_E_VERSION },
	{ SPAN_INIT("GET / HTTP/2.0\r\n" HOST END), H1_E_VERSION },
	{ SPAN_INIT("PRI * HTTP/2.0\r\n\r\n"), H1_E_VERSION },
	{ SPAN_INIT("GET / http/1.1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / HTTP/1,1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / HTTP/01.1\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / HTTP/1.11\r\n" HOST END), H1_E_START_LINE },
	{ SPAN_INIT("GET / HTTPS/1.1\r\n" HOST END), H1_E_START_LINE },
	/* the target */
	{ SPAN_INIT("GET a " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET a.example:80 " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET ?a " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET \\a " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET /a#b " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET * " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("options * " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("OPTIONS ** " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET ftp://a.example/ " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http:/a.example/ " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http:// " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http:///a " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http://u@a.example/ " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http://a.example?x " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("GET http://a.example\\/ " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT / " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT * " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT a.example " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT a.example: " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT :443 " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT [::1] " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT http://a.example:1/ " V11 HOST END), H1_E_TARGET },
	{ SPAN_INIT("CONNECT u@a.example:443 " V11 HOST END), H1_E_TARGET },
	/* whom it names */
	{ SPAN_INIT("GET / " V11 END), H1_E_HOST_MISSING },
	{ SPAN_INIT("GET http://a.example/ " V11 END), H1_E_HOST_MISSING },
	{ SPAN_INIT(GET HOST END), H1_E_HOST_REPEATED },
	{ SPAN_INIT(GET "host: b.example\r\n\r\n"), H1_E_HOST_REPEATED },
	{ SPAN_INIT("GET / HTTP/1.0\r\n" HOST HOST END), H1_E_HOST_REPEATED },
	{ SPAN_INIT("GET / " V11 "Host:\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: a, b\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: a b\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: u@a\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: a/b\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: a\t\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET / " V11 "Host: \xc3\xa9\r\n\r\n"), H1_E_HOST },
	{ SPAN_INIT("GET http://b.example/ " V11 HOST END), H1_E_HOST_DIFFERS },
	{ SPAN_INIT("GET http://a.example:81/ " V11 HOST END),
	  H1_E_HOST_DIFFERS },
	{ SPAN_INIT("GET http://a.example:443/ " V11 HOST END),
	  H1_E_HOST_DIFFERS },
	{ SPAN_INIT("GET https://a.example:80/ " V11 HOST END),
	  H1_E_HOST_DIFFERS },
	{ SPAN_INIT("GET http://a.example/ " V11 "Host:\r\n\r\n"),
	  H1_E_HOST_DIFFERS },
	/* field lines */
	{ SPAN_INIT(GET " folded\r\n\r\n"), H1_E_FOLD },
	{ SPAN_INIT(GET "\tfolded\r\n\r\n"), H1_E_FOLD },
	{ SPAN_INIT("GET / " V11 " " HOST END), H1_E_FOLD },
	{ SPAN_INIT(GET "X : y\r\n\r\n"), H1_E_SPACE_COLON },
	{ SPAN_INIT(GET "X\t: y\r\n\r\n"), H1_E_SPACE_COLON },
	{ SPAN_INIT(GET "Content-Length : 5\r\n\r\n"), H1_E_SPACE_COLON },
	{ SPAN_INIT(GET ": y\r\n\r\n"), H1_E_NAME },
	{ SPAN_INIT(GET "X\r\n\r\n"), H1_E_NAME },
	{ SPAN_INIT(GET "X(y: z\r\n\r\n"), H1_E_NAME },
	{ SPAN_INIT(GET "\xc3\xa9: z\r\n\r\n"), H1_E_NAME },
	{ SPAN_INIT(GET "X\0: z\r\n\r\n"), H1_E_NUL },
	{ SPAN_INIT(GET "X: \0z\r\n\r\n"), H1_E_NUL },
	{ SPAN_INIT(GET "X: y\rz\r\n\r\n"), H1_E_BARE_CR },
	{ SPAN_INIT(GET "X: y\nZ: z\r\n\r\n"), H1_E_BARE_LF },
	{ SPAN_INIT(GET "X\n: y\r\n\r\n"), H1_E_BARE_LF },
	{ SPAN_INIT(GET "X: \x1b[0m\r\n\r\n"), H1_E_CONTROL },
	{ SPAN_INIT(GET "\rX: y\r\n\r\n"), H1_E_BARE_CR },
	{ SPAN_INIT(GET), H1_E_INCOMPLETE },
	{ SPAN_INIT(GET "\r"), H1_E_INCOMPLETE },
	{ SPAN_INIT(GET END "X"), H1_E_START_LINE },
	/* where the body ends */
	{ SPAN_INIT(POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\n"),
	  H1_E_LENGTH_REPEATED },
	{ SPAN_INIT(POST "Content-Length: 5\r\ncontent-length: 6\r\n\r\n"),
	  H1_E_LENGTH_REPEATED },
	{ SPAN_INIT(POST "Content-Length: 5, 5\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length:\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: +5\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: -5\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 0x5\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 5 6\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 5.0\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: \"5\"\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 5\t\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 9223372036854775808\r\n\r\n"),
	  H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 18446744073709551616\r\n\r\n"),
	  H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 00000000000000000005\r\n\r\n"),
	  H1_E_LENGTH },
	{ SPAN_INIT(POST "Content-Length: 5\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n"),
	  H1_E_LENGTH_AND_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked\r\n"
			 "Content-Length: 0\r\n\r\n"),
	  H1_E_LENGTH_AND_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked\r\n"
			 "Transfer-Encoding: chunked\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked, identity\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: identity\r\n\r\n"), H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding:\r\n\r\n"), H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: xchunked\r\n\r\n"), H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked;q=1\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: \"chunked\"\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked,\r\n\r\n"), H1_E_CODING },
	/* field case 30 */
	{ SPAN_INIT(POST "Transfer-Encoding: chunked\t\r\n\r\n"), H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding:\tchunked\r\n\r\n"), H1_E_CODING },
	{ SPAN_INIT(POST "Transfer-Encoding: chunked\x0b\r\n\r\n"),
	  H1_E_CONTROL },
	{ SPAN_INIT(POST "Transfer-Encoding: \r\n chunked\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT("POST / HTTP/1.0\r\n" HOST
		    "Transfer-Encoding: chunked\r\n\r\n"),
	  H1_E_CODING_VERSION },
	{ SPAN_INIT("CONNECT a.example:443 " V11 HOST
		    "Content-Length: 5\r\n\r\n"),
	  H1_E_CONNECT_BODY },
	{ SPAN_INIT("CONNECT a.example:443 " V11 HOST
		    "Transfer-Encoding: chunked\r\n\r\n"),
	  H1_E_CONNECT_BODY },
	/* field case 34 */
	{ SPAN_INIT(GET "Connection: close, Authorization\r\n\r\n"),
	  H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: x-api-key\r\n\r\n"), H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: cookie\r\n\r\n"), H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: Host\r\n\r\n"), H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: Content-Length\r\n\r\n"),
	  H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: Transfer-Encoding\r\n\r\n"),
	  H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: \"authorization\"\r\n\r\n"),
	  H1_E_CONNECTION },
	{ SPAN_INIT(GET "Connection: a b\r\n\r\n"), H1_E_CONNECTION },
	{ SPAN_INIT(GET "Expect: 200-ok\r\n\r\n"), H1_E_EXPECT },
	{ SPAN_INIT(GET "Expect: 100-continue, x\r\n\r\n"), H1_E_EXPECT },
};

static void request__refused(void **state)
{
	enum h1_error error;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(refused); i++) {
		error = parse(refused[i].head);
		if (error != refused[i].error)
			fail_msg("%s: %s", refused[i].head.ptr,
				 h1_error_text(error));
	}
}

static void request__bounds(void **state)
{
	char head[8192];
	size_t len, i;

	(void)state;
	len = (size_t)snprintf(head, sizeof(head), GET);
	for (i = 1; i < HEADERS_MAX; i++)
		len += (size_t)snprintf(head + len, sizeof(head) - len,
					"x:y\r\n");
	memcpy(head + len, "\r\n", 2);
	assert_int_equal(parse(span_of(head, len + 2)), H1_OK);
	assert_int_equal(req.headers.count, HEADERS_MAX);
	memcpy(head + len, "x:y\r\n\r\n", 7);
	assert_int_equal(parse(span_of(head, len + 7)), H1_E_TOO_MANY_FIELDS);

	len = (size_t)snprintf(head, sizeof(head), GET "%0256d: y\r\n\r\n", 0);
	assert_int_equal(parse(span_of(head, len)), H1_OK);
	len = (size_t)snprintf(head, sizeof(head), GET "%0257d: y\r\n\r\n", 0);
	assert_int_equal(parse(span_of(head, len)), H1_E_NAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request__good),
		cmocka_unit_test(request__every_truncation_is_refused),
		cmocka_unit_test(request__fields_keep_order_and_case),
		cmocka_unit_test(request__forms_of_the_target),
		cmocka_unit_test(request__upgrade_and_expect),
		cmocka_unit_test(request__refused),
		cmocka_unit_test(request__bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
