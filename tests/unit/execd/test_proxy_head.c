/* SPDX-License-Identifier: Apache-2.0 */
/* test_proxy_head.c - heads through the proxy, byte for byte */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/execd/proxy/head.h"
#include "src/execd/proxy/target.h"
#include "src/httpd/forward_head.h"

static void target__ports_and_paths(void **state)
{
	static const struct {
		struct span in;
		unsigned port; /* 0: refused */
		const char *path;
	} rows[] = {
		{ SPAN_INIT("/proxy/80"), 80, "/" },
		{ SPAN_INIT("/proxy/80/"), 80, "/" },
		{ SPAN_INIT("/proxy/80?a=/b"), 80, "/?a=/b" },
		{ SPAN_INIT("/proxy/65535/a//b/../%2F%2e?x#y"), 65535,
		  "/a//b/../%2F%2e?x#y" },
		{ SPAN_INIT("/proxy/0080/x"), 80, "/x" },
		{ SPAN_INIT("/proxy/0/x"), 0, "" },
		{ SPAN_INIT("/proxy/65536/x"), 0, "" },
		{ SPAN_INIT("/proxy//x"), 0, "" },
		{ SPAN_INIT("/proxy/"), 0, "" },
		{ SPAN_INIT("/proxy"), 0, "" },
		{ SPAN_INIT("/proxy/+80/x"), 0, "" },
		{ SPAN_INIT("/proxy/80:90/x"), 0, "" },
		{ SPAN_INIT("/proxy/18446744073709551696/x"), 0, "" },
		{ SPAN_INIT("/elsewhere/80/x"), 0, "" },
	};
	struct buf out = BUF_INIT(256);
	struct target t;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(target_parse(rows[i].in, &t), !!rows[i].port);
		if (!rows[i].port)
			continue;
		assert_int_equal(t.port, rows[i].port);
		assert_int_equal(target_put_path(&out, &t), 0);
		assert_true(span_eq(buf_peek(&out), span_str(rows[i].path)));
		buf_clear(&out);
	}
	buf_fini(&out);
}

static void pass_from(const char *address, const char *sent, const char *want)
{
	static struct h1_request head;
	struct buf out = BUF_INIT(1 << 16);
	struct target to;
	struct addr peer;

	assert_int_equal(h1_parse_request(span_str(sent), &head), H1_OK);
	assert_true(target_parse(head.path, &to));
	assert_true(!address || addr_parse(span_str(address), &peer));
	assert_int_equal(
		head_put_request(&out, &head, &to, address ? &peer : NULL), 0);
	if (!span_eq(buf_peek(&out), span_str(want)))
		fail_msg("passed on: %.*s", SPAN_FMT(buf_peek(&out)));
	buf_fini(&out);
}

static void pass(const char *sent, const char *want)
{
	pass_from("192.0.2.9", sent, want);
}

#define FORWARDED "X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: http\r\n"

static void head__requests(void **state)
{
	(void)state;
	pass("GET /proxy/80/x HTTP/1.1\r\nHost: a\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: a\r\n" FORWARDED "\r\n");
	pass("GET /proxy/80 HTTP/1.0\r\n\r\n",
	     "GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n" FORWARDED "\r\n");
	pass("PUT /proxy/80/x HTTP/1.1\r\nHost: a\r\nContent-Length: 007\r\n"
	     "Expect: 100-continue\r\n\r\n",
	     "PUT /x HTTP/1.1\r\nHost: a\r\n" FORWARDED
	     "Content-Length: 7\r\n\r\n");
	pass("POST /proxy/80/x HTTP/1.1\r\nHost: a\r\nContent-Length: "
	     "0\r\n\r\n",
	     "POST /x HTTP/1.1\r\nHost: a\r\n" FORWARDED
	     "Content-Length: 0\r\n\r\n");
	pass("POST /proxy/80/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
	     "chunked\r\nTrailer: X\r\n\r\n",
	     "POST /x HTTP/1.1\r\nHost: a\r\nTrailer: X\r\n" FORWARDED
	     "Transfer-Encoding: chunked\r\n\r\n");
}

static void head__what_ends_here(void **state)
{
	(void)state;
	pass("GET /proxy/80/x HTTP/1.1\r\nHost: a\r\nA: 1\r\n"
	     "Connection: close, x-hop\r\nX-HOP: 1\r\nTE: trailers\r\n"
	     "Keep-Alive: 5\r\nProxy-Connection: close\r\nUpgrade: x\r\n"
	     "x-execd-access-token: secret\r\nX-Forwarded-Host: b\r\n"
	     "X-Forwarded-Proto: https\r\nX-Forwarded-For: 1.2.3.4\r\n"
	     "X-Forwarded-For: 5.6.7.8, 9.9.9.9\r\nB:\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: \r\n"
	     "X-Forwarded-For: 1.2.3.4, 5.6.7.8, 9.9.9.9, 192.0.2.9\r\n"
	     "X-Forwarded-Proto: http\r\nTE: trailers\r\nConnection: TE\r\n"
	     "\r\n");
}

/* The gateway has said already who asks, and its token stays here. */
static void head__of_the_gateway(void **state)
{
	(void)state;
	pass_from(NULL,
		  "GET /proxy/80/x HTTP/1.1\r\nHost: a\r\n"
		  "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
		  "X-Forwarded-Host: h\r\nX-Forwarded-Prefix: /s/80\r\n"
		  "X-Sallyport-Proxy-Token: t\r\n\r\n",
		  "GET /x HTTP/1.1\r\nHost: a\r\n"
		  "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n"
		  "X-Forwarded-Host: h\r\nX-Forwarded-Prefix: /s/80\r\n\r\n");
}

static void head__upgrades(void **state)
{
	(void)state;
	pass("GET /proxy/80/x HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, "
	     "Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: a\r\nSec-WebSocket-Key: k\r\n" FORWARDED
	     "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	pass("GET /proxy/80/x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, "
	     "HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAA\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: a\r\n" FORWARDED
	     "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
	     "HTTP2-Settings: AAA\r\n\r\n");
}

static void head__switches(void **state)
{
	static struct h1_response head;
	struct buf out = BUF_INIT(1 << 10);

	(void)state;
	assert_int_equal(
		h1_parse_response(
			SPAN("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\n"
			     "Connection: Upgrade, X-Hop\r\nX-Hop: 1\r\n"
			     "Sec-WebSocket-Accept: a\r\n\r\n"),
			SPAN("GET"), &head),
		H1_OK);
	assert_int_equal(forward_put_switch(&out, &head, SPAN_NONE), 0);
	assert_true(span_eq(buf_peek(&out),
			    SPAN("HTTP/1.1 101 Go\r\nConnection: Upgrade\r\n"
				 "Upgrade: websocket\r\n"
				 "Sec-WebSocket-Accept: a\r\n\r\n")));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(target__ports_and_paths),
		cmocka_unit_test(head__requests),
		cmocka_unit_test(head__what_ends_here),
		cmocka_unit_test(head__of_the_gateway),
		cmocka_unit_test(head__upgrades),
		cmocka_unit_test(head__switches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
