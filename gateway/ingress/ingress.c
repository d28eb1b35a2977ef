/* SPDX-License-Identifier: Apache-2.0 */
/* ingress.c - the server for those outside, and the sandboxes it knows */

#include "gateway/ingress/ingress.h"

#include <stdlib.h>
#include <string.h>

#include "gateway/gateway.h"
#include "gateway/ingress/ingress_inside.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/role/config.h"

enum { CONNECTIONS_MAX = 8192 };

/* A box, and whether the control that is there now has said it. */
struct known {
	struct ingress_box *box;
	bool stale;
};

/* -- requests -------------------------------------------------------------- */

static void on_ok(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply(r, 200, "text/plain; charset=utf-8", SPAN("OK"));
}

static void refuse(struct ingress *in, struct httpd_request *r,
		   const struct ingress_route *route, unsigned status,
		   const char *sentence)
{
	ingress_refuse(in, r, route,
		       &(struct ingress_refusal){ .status = status,
						  .sentence = sentence });
}

static const char *shut_sentence(uint32_t shut)
{
	static const char *const sentences[] = {
		[INGRESS_SHUT_NOT_READY] = "the sandbox is not ready\n",
		[INGRESS_SHUT_PAUSED] = "the sandbox is paused\n",
		[INGRESS_SHUT_ENDED] = "the sandbox has ended\n",
	};

	_Static_assert(ARRAY_LEN(sentences) == INGRESS_SHUT_NUM, "of each");
	return sentences[shut < INGRESS_SHUT_NUM ? shut : 0];
}

static void on_request(void *ctx, struct httpd_request *r)
{
	const struct h1_request *head = httpd_head(r);
	struct ingress *in = ctx;
	struct ingress_refusal no;
	struct ingress_route route;
	const struct known *known;

	switch (ingress_route_parse(head, &route)) {
	case INGRESS_OK:
		break;
	case INGRESS_E_NO_ROUTE:
		refuse(in, r, NULL, 400,
		       "the request names no port of a sandbox\n");
		return;
	case INGRESS_E_PORT:
		refuse(in, r, NULL, 400,
		       "the port is not a number from 1 to 65535\n");
		return;
	}
	known = map_find(&in->boxes, route.id);
	if (!known) {
		refuse(in, r, &route, 404, "there is no such sandbox\n");
		return;
	}
	if (!ingress_access_check(known->box, in->keys, &route, head,
				  &(struct ingress_times){
					  .now_ms = clock_ms(),
					  .wall_s = clock_wall_ms() / 1000,
				  },
				  &no))
		ingress_refuse(in, r, &route, &no);
	else if (!known->box->msg.addr_count)
		refuse(in, r, &route, 503, shut_sentence(known->box->msg.shut));
	else
		ingress_pass(in, r, known->box, &route);
	/* r may be gone */
}

static unsigned authorise(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	(void)r;
	return 0; /* each port has a demand of its own */
}

static const struct httpd_route routes[] = {
	{ "GET", "/status.ok", HTTPD_AUTH_OPEN, on_ok, HTTPD_BODY_WHOLE },
	{ "*", "/{rest*}", HTTPD_AUTH_OPEN, on_request, HTTPD_BODY_STREAMED },
};

/* -- sandboxes ------------------------------------------------------------- */

static bool box_is_at(const struct ingress_box *b, const uint8_t ip[16],
		      const char *iface)
{
	uint32_t i;

	for (i = 0; b && i < b->msg.addr_count; i++)
		if (!memcmp(b->msg.addrs[i], ip, 16) &&
		    !strcmp(b->msg.iface, iface))
			return true;
	return false;
}

/* now NULL: the box is gone. */
static void cut_former(struct ingress *in, const struct ingress_box *former,
		       const struct ingress_box *now)
{
	struct addr ip = { 0 };
	uint32_t i;

	for (i = 0; i < former->msg.addr_count; i++) {
		if (box_is_at(now, former->msg.addrs[i], former->msg.iface))
			continue;
		memcpy(ip.ip, former->msg.addrs[i], sizeof(ip.ip));
		forwarder_cut(&in->forwarder, &ip, former->msg.iface);
	}
}

void ingress_put(struct ingress *in, struct ingress_box *b)
{
	struct known *k = map_find(&in->boxes, span_str(b->msg.id));
	struct ingress_box *former;

	if (!k) {
		k = must_alloc(sizeof(*k));
		(void)map_set(&in->boxes, span_str(b->msg.id), k);
	}
	former = k->box;
	k->box = ingress_box_ref(b);
	k->stale = false;
	if (former) {
		ingress_box_follow(b, former);
		cut_former(in, former, b);
	}
	(void)ingress_box_unref(former);
}

void ingress_drop(struct ingress *in, struct span id)
{
	struct known *k = map_take(&in->boxes, id);

	if (!k)
		return;
	cut_former(in, k->box, NULL);
	(void)ingress_box_unref(k->box);
	free(k);
}

void ingress_set_keys(struct ingress *in, struct ingress_keys *keys)
{
	(void)ingress_keys_unref(in->keys);
	in->keys = keys ? ingress_keys_ref(keys) : NULL;
}

void ingress_renew(struct ingress *in)
{
	struct known *k;
	struct span id;
	size_t cursor = 0;

	while ((k = map_next(&in->boxes, &cursor, &id)))
		k->stale = true;
}

static void boxes_drop(struct ingress *in, bool all)
{
	struct known *k;
	struct span id;
	size_t cursor = 0;

	while ((k = map_next(&in->boxes, &cursor, &id)))
		if (all || k->stale)
			ingress_drop(in, id);
}

void ingress_sweep(struct ingress *in)
{
	boxes_drop(in, false);
}

struct ingress_box *ingress_find(const struct ingress *in, struct span id)
{
	const struct known *k = map_find(&in->boxes, id);

	return k ? k->box : NULL;
}

/* -- life ------------------------------------------------------------------ */

struct ingress *ingress_new(struct worker *w)
{
	static const struct httpd_ops ops = { .authorise = authorise };
	struct ingress *in = must_alloc(sizeof(*in));

	in->worker = w;
	map_init(&in->boxes);
	must(httpd_new(w->loop, routes, ARRAY_LEN(routes), &ops, in,
		       &in->httpd) == 0);
	httpd_set_limits(in->httpd,
			 &(struct httpd_limits){
				 .connections = CONNECTIONS_MAX,
				 .silence_ms = w->config->first_byte_ms });
	timer_init(&in->look, w->loop, ingress_on_look);
	forwarder_init(&in->forwarder, w->loop);
	in->forwarder.prefix = INGRESS_PREFIX;
	in->forwarder.connect_ms = w->config->connect_ms;
	in->forwarder.tunnel_idle_ms = w->config->tunnel_idle_ms;
	return in;
}

struct ingress *ingress_free(struct ingress *in)
{
	if (!in)
		return NULL;
	timer_stop(&in->look);
	forwarder_fini(&in->forwarder);
	in->httpd = httpd_free(in->httpd);
	boxes_drop(in, true);
	map_fini(&in->boxes);
	ingress_set_keys(in, NULL);
	free(in);
	return NULL;
}

int ingress_listen(struct ingress *in, int fd)
{
	return httpd_listen_fd(in->httpd, fd,
			       gateway_ingress_tls(in->worker->gateway));
}

void ingress_adopt(struct ingress *in, int fd,
		   const struct msg_ingress_client *client)
{
	struct httpd_peer peer = { .uid = (uid_t)-1, .tls = client->tls };

	memcpy(peer.address.ip, client->peer, sizeof(peer.address.ip));
	peer.address.port = client->port;
	httpd_serve(in->httpd, fd, &peer);
}

void ingress_drain(struct ingress *in)
{
	httpd_finish(in->httpd);
}

bool ingress_is_idle(const struct ingress *in)
{
	return !httpd_connection_count(in->httpd) &&
	       !in->forwarder.tunnel_count;
}
