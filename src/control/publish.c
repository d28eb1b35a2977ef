/* SPDX-License-Identifier: Apache-2.0 */
/* publish.c - facts into messages, large ones as sealed memfds */

#include "src/control/publish.h"

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/control/gateway_link.h"
#include "src/control/policies.h"
#include "src/control/sandboxes.h"
#include "src/control/vault_state.h"
#include "src/io/chan.h"
#include "src/text/json.h"

/* A sealed memfd, or -1 after a line in the log: then the gateway keeps what
 * it has, and the sync that follows does not lie about this one because the
 * role ends: control without memory for a memfd cannot go on. */
static int memfd_of(struct span bytes)
{
	int fd = chan_memfd(bytes);

	if (fd < 0)
		log_error("could not make a memfd: %s", err_text(fd));
	must(fd >= 0);
	return fd;
}

static void policy_send(struct gateway_link *g, const struct policy_entry *e)
{
	struct policy_opened opened;
	struct msg_policy body = {
		.policy = e->id,
		.generation = e->generation,
	};
	int fd CLEANUP_FD = -1;

	if (!gateway_link_is_up(g))
		return;
	policy_entry_open(e, &opened);
	must(span_copy(opened.snapshot.name, body.name, sizeof(body.name)));
	body.size = buf_len(&opened.bytes);
	fd = memfd_of(buf_peek(&opened.bytes));
	policy_opened_fini(&opened);
	gateway_link_send(g, MSG_CONTROL_POLICY, &body, fd);
}

static void entry_publish(struct gateway_link *g, struct policy_entry *e,
			  bool all)
{
	if (e && (e->dirty || all))
		policy_send(g, e);
	if (e)
		e->dirty = false;
}

static void sandbox_choose(const struct policies *p, struct sandbox *s)
{
	const struct policy_entry *e = policies_select(p, s);

	s->policy = e ? e->id : POLICY_ID_NONE;
}

/* One that is not locked to its addresses is nobody to the gateway. */
static void sandbox_send(struct gateway_link *g, const struct sandbox *s)
{
	struct msg_sandbox body;

	sandbox_fill(s, &body);
	gateway_link_send(g,
			  s->lock == LOCK_FAILED ? MSG_CONTROL_SANDBOX_DROP
						 : MSG_CONTROL_SANDBOX,
			  &body, -1);
}

static void ingress_send(struct gateway_link *g, const struct sandbox *s,
			 uint16_t type)
{
	struct msg_ingress body;

	sandbox_fill_ingress(s, &body);
	gateway_link_send(g, type, &body, -1);
}

/* One that is cut off cannot answer. */
static void ingress_publish(struct gateway_link *g, const struct sandbox *s)
{
	if (s->ingress.is_open)
		ingress_send(g, s,
			     s->lock == LOCK_FAILED ? MSG_CONTROL_INGRESS_DROP
						    : MSG_CONTROL_INGRESS);
}

void publish_ingress_drop(struct gateway_link *g, const struct sandbox *s)
{
	if (s->ingress.is_open)
		ingress_send(g, s, MSG_CONTROL_INGRESS_DROP);
}

void publish_sandbox(struct gateway_link *g, const struct policies *p,
		     struct sandbox *s)
{
	sandbox_choose(p, s);
	sandbox_send(g, s);
	ingress_publish(g, s);
}

void publish_sandbox_drop(struct gateway_link *g, const struct sandbox *s)
{
	struct msg_sandbox body;

	publish_ingress_drop(g, s);
	sandbox_fill(s, &body);
	gateway_link_send(g, MSG_CONTROL_SANDBOX_DROP, &body, -1);
}

void publish_policies(struct gateway_link *g, struct policies *p,
		      struct sandboxes *all_sandboxes, bool all)
{
	struct msg_policy drop = { 0 };
	struct sandbox *s;
	struct span id;
	size_t cursor = 0;
	uint32_t before;
	unsigned i;

	entry_publish(g, p->overlay, all);
	for (i = 0; i < p->count; i++)
		entry_publish(g, p->entries[i], all);

	while ((s = map_next(&all_sandboxes->by_id, &cursor, &id))) {
		before = s->policy;
		sandbox_choose(p, s);
		if (all || s->policy != before)
			sandbox_send(g, s);
		if (all)
			ingress_publish(g, s);
	}
	for (i = 0; i < p->dropped_count; i++) {
		drop.policy = p->dropped[i];
		gateway_link_send(g, MSG_CONTROL_POLICY_DROP, &drop, -1);
	}
	policies_clear_dropped(p);
}

void publish_bindings(struct gateway_link *g, const struct vault_state *s)
{
	struct buf text = BUF_INIT(JSON_TEXT_MAX);
	struct msg_scope body = { 0 };
	int fd CLEANUP_FD = -1;

	if (!gateway_link_is_up(g))
		return;
	must(!vault_state_emit_bindings(s, &text)); /* bounded when stored */
	must(span_copy(span_str(s->scope), body.scope, sizeof(body.scope)));
	body.size = buf_len(&text);
	fd = memfd_of(buf_peek(&text));
	buf_fini(&text);
	gateway_link_send(g, MSG_CONTROL_BINDINGS, &body, fd);
}

void publish_node(struct gateway_link *g, struct span json)
{
	const struct msg_scope body = { .size = json.len };
	int fd CLEANUP_FD = -1;

	if (!gateway_link_is_up(g))
		return;
	fd = memfd_of(json);
	gateway_link_send(g, MSG_CONTROL_NODE, &body, fd);
}

void publish_route_keys(struct gateway_link *g, struct span text)
{
	const struct msg_scope body = { .size = text.len };
	int fd CLEANUP_FD = -1;

	if (!gateway_link_is_up(g))
		return;
	fd = text.len ? memfd_of(text) : -1;
	gateway_link_send(g, MSG_CONTROL_INGRESS_KEYS, &body, fd);
}
