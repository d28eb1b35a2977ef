/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - what is asked of /proxy/, and whom it is given to */

#include "src/execd/proxy/proxy.h"

#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/proxy/head.h"
#include "src/execd/proxy/target.h"
#include "src/httpd/forward.h"
#include "src/wire/h1.h"

struct proxy {
	struct forwarder forwarder;
};

struct proxy *proxy_new(struct execd *e)
{
	struct proxy *p = must_alloc(sizeof(*p));

	forwarder_init(&p->forwarder, e->loop);
	return p;
}

struct proxy *proxy_free(struct proxy *p)
{
	if (!p)
		return NULL;
	forwarder_fini(&p->forwarder);
	free(p);
	return NULL;
}

/* The sandbox's loopback: IPv4, IPv6 where that refuses. */
static void proxy_pass(struct execd *e, struct httpd_request *r,
		       const struct target *to)
{
	struct forward_order order = { .addr_count = 2, .drops = head_drops };

	must(addr_parse(SPAN("127.0.0.1"), &order.addrs[0]) &&
	     addr_parse(SPAN("::1"), &order.addrs[1]));
	order.addrs[0].port = order.addrs[1].port = to->port;
	buf_init(&order.head, FORWARD_HEAD_MAX);
	if (head_put_request(
		    &order.head, httpd_head(r), to,
		    execd_is_gateway(e, r) ? NULL : &httpd_peer(r)->address)) {
		buf_wipe(&order.head);
		httpd_reply(r, 431, "text/plain; charset=utf-8",
			    SPAN("the head is too long\n"));
		return;
	}
	forward_begin(&e->proxy->forwarder, r, &order);
}

void proxy_any(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct target to;

	if (!target_parse(httpd_head(r)->path, &to)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "the path is /proxy/PORT/..., with a port from 1 "
			     "to 65535");
		return;
	}
	if (to.port == e->config->listen.port || to.port == e->runtime_port) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "port %u is this daemon: it is no proxy to itself",
			     to.port);
		return;
	}
	if (httpd_head(r)->upgrade &&
	    e->proxy->forwarder.tunnel_count >= FORWARD_TUNNELS_MAX) {
		answer_error(r, 503, ANSWER_RUNTIME_ERROR,
			     "there are %d upgraded connections; no more are "
			     "allowed",
			     FORWARD_TUNNELS_MAX);
		return;
	}
	proxy_pass(e, r, &to);
}
