/* SPDX-License-Identifier: Apache-2.0 */
/* inside.c - sandboxes and keys of shared links as messages to the gateway */

#include "src/control/lifecycle/inside.h"

#include <assert.h>

#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/publish.h"
#include "src/control/tokens.h"
#include "src/role/config.h"
#include "src/role/msg.h"

static_assert((int)MSG_HASH_SIZE == (int)TOKEN_HASH_SIZE, "hashes agree");

static bool is_open(const struct box *b)
{
	return b->state == BOX_PENDING || b->state == BOX_RUNNING;
}

static enum ingress_shut shut_of(const struct box *b)
{
	switch (b->state) {
	case BOX_PAUSED:
		return INGRESS_SHUT_PAUSED;
	case BOX_STOPPING:
	case BOX_TERMINATED:
	case BOX_FAILED:
		return INGRESS_SHUT_ENDED;
	case BOX_PENDING:
	case BOX_RUNNING:
	case BOX_UNKNOWN:
	case BOX_STATE_NUM:
		break;
	}
	return INGRESS_SHUT_NOT_READY;
}

static void addr_add(struct msg_ingress *body, const struct addr *a)
{
	static const struct addr none;

	if (!addr_eq_ip(a, &none))
		memcpy(body->addrs[body->addr_count++], a->ip, sizeof(a->ip));
}

void inside_publish(struct lifecycle *l, const struct box *b)
{
	struct msg_ingress body = { 0 };

	(void)span_copy(span_str(b->id), body.id, sizeof(body.id));
	(void)span_copy(SPAN(CONFIG_BRIDGE), body.iface, sizeof(body.iface));
	if (is_open(b)) {
		addr_add(&body, &b->v4);
		addr_add(&body, &b->v6);
	}
	body.shut = shut_of(b);
	body.has_execd_token = b->execd_token[0] != '\0';
	token_hash(span_str(b->execd_token), body.execd_token);
	body.is_secured = b->secure_token[0] != '\0';
	if (body.is_secured)
		token_hash(span_str(b->secure_token), body.secure_token);
	(void)span_copy(span_str(b->proxy_token), body.proxy_token,
			sizeof(body.proxy_token));
	body.renews = b->renew_extend_s && b->expires_ms;
	gateway_link_send(l->control->gateway, MSG_CONTROL_INGRESS, &body, -1);
}

void inside_drop(struct lifecycle *l, struct span id)
{
	struct msg_ingress body = { 0 };

	if (span_copy(id, body.id, sizeof(body.id)))
		gateway_link_send(l->control->gateway, MSG_CONTROL_INGRESS_DROP,
				  &body, -1);
}

void inside_publish_all(struct lifecycle *l)
{
	size_t cursor = 0;
	struct box *b;

	if (!l)
		return;
	publish_route_keys(l->control->gateway,
			   buf_peek(&l->secrets.routes_text));
	while ((b = map_next(&l->boxes.by_id, &cursor, NULL)))
		inside_publish(l, b);
}
