/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingress_head.c - heads on their way inside, byte for byte */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/ingress/ingress_head.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/buf.h"
#include "src/httpd/forward_head.h"
#include "src/httpd/httpd.h"
#include "src/wire/h1.h"

static struct httpd_peer peer;

static void pass_with(const char *sent, const char *token, const char *want)
{
	static struct h1_request head;
	struct buf out = BUF_INIT(1 << 16);
	struct ingress_route route;

	assert_int_equal(h1_parse_request(span_str(sent), &head), H1_OK);
	assert_int_equal(ingress_route_parse(&head, &route), INGRESS_OK);
	assert_true(addr_parse(SPAN("192.0.2.9"), &peer.address));
	assert_int_equal(ingress_put_head(&out, &head, &route, &peer, token),
			 0);
	if (!span_eq(buf_peek(&out), span_str(want)))
		fail_msg("passed on: %.*s", SPAN_FMT(buf_peek(&out)));
	buf_fini(&out);
}

static void pass(const char *sent, const char *want)
{
	pass_with(sent, "", want);
}

#define OURS(proto) \
	"X-Forwarded-For: 192.0.2.9\r\nX-Forwarded-Proto: " proto "\r\n"

static void head__prefix_and_path(void **state)
{
	(void)state;
	peer.tls = false;
	pass("GET /sandboxes/s/proxy/80/a%2Fb?c HTTP/1.1\r\nHost: gw\r\n\r\n",
	     "GET /a%2Fb?c HTTP/1.1\r\nHost: gw\r\n" OURS(
		     "http") "X-Forwarded-Host: gw\r\n"
			     "X-Forwarded-Prefix: "
			     "/sandboxes/s/proxy/80\r\n\r\n");
	pass("GET /s/80?q HTTP/1.1\r\nHost: gw:1\r\n\r\n",
	     "GET /?q HTTP/1.1\r\nHost: gw:1\r\n" OURS(
		     "http") "X-Forwarded-Host: gw:1\r\nX-Forwarded-Prefix: "
			     "/s/80\r\n\r\n");
	peer.tls = true;
	pass("GET /x HTTP/1.0\r\nOpenSandbox-Ingress-To: s-80\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: 127.0.0.1:80\r\n" OURS("https") "\r\n");
}

#define MADE_UP                                                       \
	"OPEN-SANDBOX-API-KEY: k\r\nopensandbox-secure-access: s\r\n" \
	"OPEN-SANDBOX-INGRESS: x\r\nForwarded: for=1\r\n"             \
	"X-FORWARDED-FOR: 1\r\nX-Forwarded-Anything: 1\r\n"           \
	"X-Real-Ip: 1\r\nX-Sallyport-Sandbox: other\r\n"              \
	"Connection: x-own\r\nX-Own: 1\r\n"
#define TOKENS "X-EXECD-ACCESS-TOKEN: e\r\nOPENSANDBOX-EGRESS-AUTH: g\r\n"

static void head__what_stays_here(void **state)
{
	(void)state;
	peer.tls = false;
	pass("GET /x HTTP/1.1\r\nHost: h\r\nOpenSandbox-Ingress-To: s-80\r\n"
	     "Cookie: c\r\n" MADE_UP TOKENS "Authorization: a\r\n\r\n",
	     "GET /x HTTP/1.1\r\nHost: h\r\nCookie: c\r\nAuthorization: "
	     "a\r\n" OURS("http") "X-Forwarded-Host: h\r\n\r\n");
}

static void head__tokens_by_port(void **state)
{
	(void)state;
	peer.tls = false;
	pass("GET /x HTTP/1.1\r\nHost: h\r\nOpenSandbox-Ingress-To: "
	     "s-44772\r\n" TOKENS "\r\n",
	     "GET /x HTTP/1.1\r\nHost: h\r\nX-EXECD-ACCESS-TOKEN: e\r\n" OURS(
		     "http") "X-Forwarded-Host: h\r\n\r\n");
	pass("GET /x HTTP/1.1\r\nHost: h\r\nOpenSandbox-Ingress-To: "
	     "s-18080\r\n" MADE_UP TOKENS "\r\n",
	     "GET /x HTTP/1.1\r\nHost: h\r\nOPENSANDBOX-EGRESS-AUTH: "
	     "g\r\n" OURS(
		     "http") "X-Forwarded-Host: h\r\nX-Sallyport-Sandbox: s\r\n"
			     "\r\n");
}

static void head__upgrade_and_body(void **state)
{
	(void)state;
	peer.tls = false;
	pass("GET /s/80/ws HTTP/1.1\r\nHost: h\r\nConnection: keep-alive, "
	     "upgrade\r\nUpgrade: WebSocket\r\nSec-WebSocket-Key: k\r\n"
	     "Sec-WebSocket-Extensions: x\r\n\r\n",
	     "GET /ws HTTP/1.1\r\nHost: h\r\nSec-WebSocket-Key: k\r\n"
	     "Sec-WebSocket-Extensions: x\r\n" OURS(
		     "http") "X-Forwarded-Host: h\r\nX-Forwarded-Prefix: "
			     "/s/80\r\n"
			     "Connection: Upgrade\r\nUpgrade: "
			     "WebSocket\r\n\r\n");
	pass("POST /s/80/p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
	     "chunked\r\n"
	     "Expect: 100-continue\r\nTrailer: T\r\nTE: gzip, trailers\r\n"
	     "Connection: TE\r\n\r\n",
	     "POST /p HTTP/1.1\r\nHost: h\r\nTrailer: T\r\n" OURS(
		     "http") "X-Forwarded-Host: h\r\nX-Forwarded-Prefix: "
			     "/s/80\r\n"
			     "Transfer-Encoding: chunked\r\nTE: trailers\r\n"
			     "Connection: TE\r\n\r\n");
}

/* Through execd to the sandbox's loopback: the token is ours alone to say. */
static void head__by_execd(void **state)
{
	(void)state;
	peer.tls = true;
	pass_with("GET /s/80/a%2F?b HTTP/1.1\r\nHost: h\r\n"
		  "X-Sallyport-Proxy-Token: mine\r\n" TOKENS "\r\n",
		  "pt",
		  "GET /proxy/80/a%2F?b HTTP/1.1\r\nHost: h\r\n" OURS(
			  "https") "X-Forwarded-Host: h\r\n"
				   "X-Forwarded-Prefix: /s/80\r\n"
				   "X-Sallyport-Proxy-Token: pt\r\n\r\n");
	pass_with("GET /s/80?b HTTP/1.1\r\nHost: h\r\n\r\n", "pt",
		  "GET /proxy/80/?b HTTP/1.1\r\nHost: h\r\n" OURS(
			  "https") "X-Forwarded-Host: h\r\n"
				   "X-Forwarded-Prefix: /s/80\r\n"
				   "X-Sallyport-Proxy-Token: pt\r\n\r\n");
}

/* What a head leaves out its trailers leave out. */
static void trailers__by_port(void **state)
{
	static const char lines[] = "X-Sum: 1\r\nX-Forwarded-For: 6.6.6.6\r\n"
				    "X-EXECD-ACCESS-TOKEN: e\r\nlast:\r\n";
	struct buf out = BUF_INIT(1024);

	(void)state;
	assert_int_equal(forward_put_trailers(&out, span_str(lines),
					      ingress_head_drops(80)),
			 0);
	assert_true(span_eq(buf_peek(&out), SPAN("X-Sum: 1\r\nlast:\r\n")));
	buf_clear(&out);
	assert_int_equal(forward_put_trailers(&out, span_str(lines),
					      ingress_head_drops(44772)),
			 0);
	assert_true(span_eq(buf_peek(&out),
			    SPAN("X-Sum: 1\r\nX-EXECD-ACCESS-TOKEN: e\r\n"
				 "last:\r\n")));
	buf_fini(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(head__prefix_and_path),
		cmocka_unit_test(head__what_stays_here),
		cmocka_unit_test(head__tokens_by_port),
		cmocka_unit_test(head__upgrade_and_body),
		cmocka_unit_test(head__by_execd),
		cmocka_unit_test(trailers__by_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
