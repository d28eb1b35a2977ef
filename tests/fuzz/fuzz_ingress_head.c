/* fuzz: gateway */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ingress_head.c - whatever a client's head is, what goes inside is a head
 * of one meaning, with our fields once and none of those that stay outside */

#include <stdlib.h>

#include "gateway/ingress/ingress_access.h"
#include "gateway/ingress/ingress_head.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/buf.h"
#include "src/httpd/httpd.h"
#include "src/wire/h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINES_OF_OURS = 9 };

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

static unsigned count(const struct headers *all, struct span name)
{
	unsigned i, n = 0;

	for (i = 0; i < all->count; i++)
		n += span_eq_nocase(all->items[i].name, name);
	return n;
}

static void check_inside(const struct h1_request *sent,
			 const struct h1_request *got,
			 const struct ingress_route *route, unsigned by_execd)
{
	const struct headers *all = &got->headers;

	CHECK(span_eq(sent->method, got->method));
	CHECK(span_starts(got->path, SPAN("/")));
	CHECK(got->body == sent->body && got->length == sent->length);
	CHECK(got->upgrade == sent->upgrade && !got->expect_continue);
	CHECK(count(all, SPAN("x-forwarded-for")) == 1);
	CHECK(count(all, SPAN("x-forwarded-proto")) == 1);
	CHECK(count(all, SPAN("x-forwarded-host")) <= 1);
	CHECK(count(all, SPAN("x-forwarded-prefix")) <= 1);
	CHECK(!count(all, SPAN("open-sandbox-api-key")));
	CHECK(!count(all, SPAN("opensandbox-ingress-to")));
	CHECK(!count(all, SPAN("opensandbox-secure-access")));
	CHECK(!count(all, SPAN("forwarded")));
	CHECK(count(all, SPAN("x-sallyport-sandbox")) ==
	      (route->port == INGRESS_PORT_EGRESS));
	CHECK(route->port == INGRESS_PORT_EXECD ||
	      !count(all, SPAN("x-execd-access-token")));
	CHECK(count(all, SPAN("x-sallyport-proxy-token")) == by_execd);
	CHECK(!by_execd || span_starts(got->path, SPAN("/proxy/")));
	CHECK(route->port == INGRESS_PORT_EGRESS ||
	      !count(all, SPAN("opensandbox-egress-auth")));
}

/* A path is a whole one, or lacks its first "/". */
static void check_route(const struct h1_request *head,
			const struct ingress_route *route)
{
	CHECK(route->port && route->id.len);
	CHECK(route->path.len <= route->plain_path.len);
	CHECK(route->prefix.len + route->path.len == head->path.len);
}

static void pass(struct span in)
{
	struct h1_request *sent = malloc(2 * sizeof(*sent)), *got = sent + 1;
	const struct httpd_peer peer = { .tls = in.len & 1 };
	struct buf out = BUF_INIT(1 << 20);
	struct h1_scan scan = { 0 };
	struct ingress_route route;

	CHECK(sent);
	if (!h1_parse_request(in, sent) && !ingress_route_parse(sent, &route)) {
		check_route(sent, &route);
		if (in.len & 2)
			ingress_route_unsign(&route);
		check_route(sent, &route);
		CHECK(!ingress_put_head(&out, sent, &route, &peer,
					in.len & 4 ? "token" : ""));
		CHECK(h1_scan(&scan, buf_peek(&out), 1 << 20) ==
		      (int)buf_len(&out));
		/* a few lines of ours may be more than fit */
		if (sent->headers.count + LINES_OF_OURS < HEADERS_MAX) {
			CHECK(h1_parse_request(buf_peek(&out), got) == H1_OK);
			check_inside(sent, got, &route, in.len & 4 ? 1 : 0);
		}
	}
	free(sent);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span in = span_of(data, size);
	struct h1_scan scan = { 0 };
	int len = h1_scan(&scan, in, 1 << 15);

	if (len > 0)
		pass(span_of(data, (size_t)len));
	return 0;
}
