/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_pass.c - an exchange through the ingress, and the record of it
 *
 * How it works: a port of the sandbox is dialled at the sandbox's addresses;
 * the egress API is reached through a socketpair, whose other end goes to
 * control by way of the main thread. What the record says is copied at the
 * beginning, since the client's head may be gone by the end (after an upgrade).
 *
 * An exchange is an access when it begins, and again for as long as bytes move
 * in it: a terminal or a stream of events that lasts renews as one request
 * after the other would. So it is looked at, every INGRESS_LOOK_MS, what has
 * moved. Refusals are recorded as many a second as anybody reads.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "gateway/gateway.h"
#include "gateway/ingress/ingress_head.h"
#include "gateway/ingress/ingress_inside.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/stream.h"
#include "src/role/config.h"
#include "src/wire/h1.h"

enum {
	EGRESS_MAX = 256, /* exchanges with control, of one worker */
	PATH_MAX_BYTES = 4096,
	METHOD_MAX_BYTES = 64,
	SENTENCE_MAX = 256,
};

#define POWERED_BY	 "Reverse-Proxy-Server-PowerBy"
#define POWERED_BY_VALUE "OpenSandbox-ingress"

struct passage {
	struct ingress *ingress;
	struct audit audit;
	bool to_egress;
	struct ingress_box *box;    /* held */
	struct ingress_route route; /* lies in the request's head */
	char id[MSG_NAME_SIZE];
	char method[METHOD_MAX_BYTES];
	char path[PATH_MAX_BYTES];
};

/* -- records --------------------------------------------------------------- */

/* As much of text as fits. */
static struct span copy(struct span text, char *dst, size_t size)
{
	text.len = MIN(text.len, size - 1);
	must(span_copy(text, dst, size));
	return span_of(dst, text.len);
}

/* The path behind the prefix: a signature is not for the log. */
static void audit_fill(struct audit *a, const struct httpd_request *r,
		       const struct ingress_route *route)
{
	struct span path = route ? route->path : SPAN_NONE;

	*a = (struct audit){
		.kind = AUDIT_INGRESS,
		.start_us = clock_us(),
		.client = httpd_peer(r)->address,
		.scheme = httpd_peer(r)->tls ? "https" : "http",
		.method = httpd_head(r)->method,
		.path = span_cut(&path, '?'),
	};
	if (!route)
		return;
	a->sandbox = route->id;
	a->port = route->port;
}

static enum audit_reason reason_of(unsigned status)
{
	switch (status) {
	case 400:
		return AUDIT_REASON_MALFORMED;
	case 404:
		return AUDIT_REASON_UNKNOWN_SANDBOX;
	case 429:
		return AUDIT_REASON_LIMIT;
	case 503:
		return AUDIT_REASON_NOT_READY;
	default:
		return AUDIT_REASON_ACCESS;
	}
}

void ingress_refuse(struct ingress *in, struct httpd_request *r,
		    const struct ingress_route *route,
		    const struct ingress_refusal *no)
{
	struct audit a;
	char text[SENTENCE_MAX], wait[24];

	audit_fill(&a, r, route);
	a.status = (uint16_t)no->status;
	a.reason = reason_of(no->status);
	worker_counted(in->worker, ingress_refused);
	worker_refused(in->worker, NULL, &a);
	if (no->wait_ms) {
		(void)snprintf(wait, sizeof(wait), "%llu",
			       (unsigned long long)no->wait_ms / 1000 + 1);
		httpd_set_header(r, "Retry-After", span_str(wait));
	}
	(void)snprintf(text, sizeof(text), INGRESS_PREFIX "%s", no->sentence);
	httpd_reply(r, no->status, "text/plain; charset=utf-8", span_str(text));
}

static void on_done(void *ctx, const struct forward_result *result)
{
	struct passage *p = ctx;
	struct ingress *in = p->ingress;

	if (p->to_egress)
		in->egress_count--;
	p->audit.status = (uint16_t)result->status;
	/* out is out of the sandbox */
	p->audit.response_bytes = result->request_bytes;
	p->audit.request_bytes = result->response_bytes;
	if (!result->status)
		p->audit.reason = AUDIT_REASON_CLIENT_ABORTED;
	else if (result->error)
		p->audit.reason = AUDIT_REASON_CONNECT_FAILED;
	else if (result->cut)
		p->audit.reason = AUDIT_REASON_ORIGIN_FAILED;
	worker_counted(in->worker, ingress);
	audit_emit(in->worker->audit_log, &p->audit);
	(void)ingress_box_unref(p->box);
	free(p);
}

static struct passage *passage_new(struct ingress *in,
				   const struct httpd_request *r,
				   struct ingress_box *box,
				   const struct ingress_route *route)
{
	struct passage *p = must_alloc(sizeof(*p));

	p->ingress = in;
	p->box = ingress_box_ref(box);
	p->route = *route;
	audit_fill(&p->audit, r, route);
	p->audit.allowed = true;
	p->audit.sandbox = copy(p->audit.sandbox, p->id, sizeof(p->id));
	p->audit.method = copy(p->audit.method, p->method, sizeof(p->method));
	if (p->audit.path.len)
		p->audit.path = copy(p->audit.path, p->path, sizeof(p->path));
	else
		p->audit.path = SPAN("/");
	return p;
}

/* -- what lasts ----------------------------------------------------------- */

/* The box may be another one by now, or gone. */
static void on_used(void *ctx)
{
	const struct passage *p = ctx;
	struct ingress *in = p->ingress;
	struct ingress_box *box = ingress_find(in, span_str(p->id));

	if (box && ingress_box_accessed(box, clock_ms()))
		gateway_ingress_accessed(in->worker->gateway, box->msg.id);
}

void ingress_on_look(struct timer *t)
{
	struct ingress *in = container_of(t, struct ingress, look);
	struct forwarder *f = &in->forwarder;

	forwarder_used(f, on_used);
	in->is_looking = f->tunnel_count || !list_is_empty(&f->exchanges);
	if (in->is_looking)
		timer_start(t, INGRESS_LOOK_MS);
}

static void ingress_look(struct ingress *in)
{
	if (in->is_looking)
		return;
	in->is_looking = true;
	timer_start(&in->look, INGRESS_LOOK_MS);
}

/* -- where it goes --------------------------------------------------------- */

static void order_addresses(struct forward_order *order,
			    const struct ingress_box *box, uint16_t port)
{
	uint32_t i;

	_Static_assert((int)MSG_ADDRS_MAX <= (int)FORWARD_ADDRS_MAX, "all fit");
	for (i = 0; i < box->msg.addr_count; i++) {
		memcpy(order->addrs[i].ip, box->msg.addrs[i], 16);
		order->addrs[i].port = port;
	}
	order->addr_count = box->msg.addr_count;
	order->device = box->msg.iface;
}

/* False: there are too many, or no descriptors. */
static bool order_egress(struct ingress *in, struct forward_order *order,
			 const struct httpd_request *r, struct span id)
{
	const struct httpd_peer *peer = httpd_peer(r);
	struct msg_ingress_client body = { .port = peer->address.port,
					   .tls = peer->tls };
	int fds[2];

	if (in->egress_count >= EGRESS_MAX ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       fds))
		return false;
	if (stream_new(in->worker->loop, fds[0], &order->stream)) {
		(void)fd_close(fds[1]);
		return false;
	}
	must(span_copy(id, body.id, sizeof(body.id)));
	memcpy(body.peer, peer->address.ip, sizeof(body.peer));
	gateway_egress_client(in->worker->gateway, fds[1], &body);
	return true;
}

/* Nobody listens on the sandbox's addresses: on its loopback, perhaps, where
 * execd is at home. */
static uint16_t on_refused(void *ctx, const struct httpd_request *r,
			   struct buf *head)
{
	const struct passage *p = ctx;
	const char *token = p->box->msg.proxy_token;

	if (!*token || ingress_put_head(head, httpd_head(r), &p->route,
					httpd_peer(r), token))
		return 0;
	return INGRESS_PORT_EXECD;
}

void ingress_pass(struct ingress *in, struct httpd_request *r,
		  struct ingress_box *box, const struct ingress_route *route)
{
	struct forward_order order = {
		.switch_lines = SPAN(POWERED_BY ": " POWERED_BY_VALUE "\r\n"),
		.drops = ingress_head_drops(route->port),
		.done = on_done,
	};
	struct passage *p;

	buf_init(&order.head, FORWARD_HEAD_MAX);
	if (ingress_put_head(&order.head, httpd_head(r), route, httpd_peer(r),
			     "")) {
		buf_wipe(&order.head);
		ingress_refuse(in, r, route,
			       &(struct ingress_refusal){
				       .status = 431,
				       .sentence = "the head is too long\n" });
		return;
	}
	if (route->port != INGRESS_PORT_EXECD &&
	    route->port != INGRESS_PORT_EGRESS &&
	    in->worker->config->ingress_loopback)
		order.elsewhere = on_refused;
	if (route->port != INGRESS_PORT_EGRESS) {
		order_addresses(&order, box, route->port);
	} else if (!order_egress(in, &order, r, span_str(box->msg.id))) {
		buf_wipe(&order.head);
		ingress_refuse(in, r, route,
			       &(struct ingress_refusal){
				       .status = 503,
				       .sentence = "too many requests to the "
						   "egress API at a time\n" });
		return;
	}
	p = passage_new(in, r, box, route);
	p->to_egress = route->port == INGRESS_PORT_EGRESS;
	in->egress_count += p->to_egress;
	if (!p->to_egress)
		p->audit.address = order.addrs[0];
	order.ctx = p;
	if (ingress_box_accessed(box, clock_ms()))
		gateway_ingress_accessed(in->worker->gateway, box->msg.id);
	ingress_look(in);
	httpd_set_header(r, POWERED_BY, SPAN(POWERED_BY_VALUE));
	forward_begin(&in->forwarder, r, &order);
}
