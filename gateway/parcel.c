/* SPDX-License-Identifier: Apache-2.0 */
/* parcel.c - carry one change to every worker, in order, and know when it is in
 *
 * How it works: a parcel is posted to each worker's loop; posts to one loop
 * keep their order. A worker that applied it lets go; the last one posts the
 * parcel back to the main loop, where it is reported done and freed. That is
 * the whole mechanism behind "in force when the call returns": a barrier is a
 * parcel that carries nothing.
 */

#include <stdatomic.h>

#include "gateway/dns/names.h"
#include "gateway/dns/resolver.h"
#include "gateway/flow/flow_desk.h"
#include "gateway/ingress/ingress.h"
#include "gateway/ingress/ingress_box.h"
#include "gateway/inside.h"
#include "gateway/listener/listener.h"
#include "gateway/registry/bindings.h"
#include "gateway/session/session.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"

/* One worker's copy of the address on the parcel. */
struct delivery {
	struct worker *worker;
	struct parcel *parcel;
};

struct parcel *parcel_new(struct gateway *g, enum parcel_kind kind)
{
	struct parcel *p = must_alloc(sizeof(*p));

	p->kind = kind;
	p->gateway = g;
	p->audit_fd = -1;
	must(pthread_mutex_init(&p->lock, NULL) == 0);
	return p;
}

static void parcel_free(struct parcel *p)
{
	(void)policy_unref(p->policy);
	(void)bindings_unref(p->bindings);
	(void)names_unref(p->node.names);
	(void)own_unref(p->node.own);
	(void)ingress_box_unref(p->ingress_box);
	(void)ingress_keys_unref(p->ingress_keys);
	(void)pthread_mutex_destroy(&p->lock);
	free(p);
}

static void on_done(void *ctx)
{
	struct parcel *p = ctx;

	gateway_parcel_done(p->gateway, p);
	parcel_free(p);
}

static void apply_node(struct worker *w, const struct parcel_node *node)
{
	facts_put_names(&w->facts, node->names);
	facts_put_own(&w->facts, node->own);
	resolver_set_names(w->resolver, node->names);
	resolver_set_upstreams(w->resolver, node->upstreams,
			       node->upstream_count);
}

/* Who is told of numbers finds the records of what they count. */
static void apply_status(struct worker *w, struct parcel *p)
{
	int i;

	audit_log_flush(w->audit_log);
	must(pthread_mutex_lock(&p->lock) == 0);
	for (i = 0; i < COUNTER_NUM; i++)
		p->sums.counters[i] += w->counters[i];
	dns_counters_add(&p->sums.dns, &w->dns_counters);
	if (w->flows) {
		p->sums.queue = *flow_desk_counters(w->flows);
		p->sums.drops = *flow_desk_drops(w->flows);
	}
	p->sums.sandboxes = map_count(&w->facts.by_id);
	p->sums.exhausted |= listeners_exhausted(w);
	must(pthread_mutex_unlock(&p->lock) == 0);
}

/* The sockets of this worker; with fewer loops than sockets they wrap. Who is
 * told to end before he is told to begin leaves what arrives to his successor.
 */
static void apply_listeners(struct worker *w, struct gateway *g)
{
	const struct gateway_socket *socket;
	unsigned i;
	int r;

	for (i = 0; i < g->socket_count; i++) {
		socket = &g->sockets[i];
		if (socket->loop % g->worker_count != w->index)
			continue;
		if (w->draining) {
			(void)fd_close(socket->fd);
			continue;
		}
		r = listener_new(w, socket->kind, socket->fd);
		if (r)
			log_error("a listener could not start: %s",
				  err_text(r));
	}
}

static void parcel_apply(struct worker *w, struct parcel *p)
{
	switch (p->kind) {
	case PARCEL_SANDBOX:
		w->facts_dirty |= map_find(&w->facts.by_id,
					   span_str(p->sandbox.id)) != NULL;
		facts_put_sandbox(&w->facts, &p->sandbox);
		return;
	case PARCEL_SANDBOX_DROP:
		facts_drop_sandbox(&w->facts, span_str(p->sandbox.id));
		break;
	case PARCEL_POLICY:
		w->facts_dirty |= facts_put_policy(&w->facts, p->policy);
		return;
	case PARCEL_POLICY_DROP:
		w->facts_dirty |= facts_drop_policy(&w->facts, p->policy_id);
		return;
	case PARCEL_BINDINGS:
		facts_put_bindings(&w->facts, span_str(p->scope), p->bindings);
		w->bindings_dirty = true;
		return;
	case PARCEL_NODE:
		apply_node(w, &p->node);
		break;
	case PARCEL_AUDIT:
		audit_log_set_fd(w->audit_log, p->audit_fd);
		return;
	case PARCEL_INGRESS:
		ingress_put(w->ingress, p->ingress_box);
		return;
	case PARCEL_INGRESS_DROP:
		ingress_drop(w->ingress, span_str(p->scope));
		return;
	case PARCEL_INGRESS_KEYS:
		ingress_set_keys(w->ingress, p->ingress_keys);
		return;
	case PARCEL_RENEW:
		facts_renew(&w->facts);
		ingress_renew(w->ingress);
		return;
	case PARCEL_SWEEP:
		facts_sweep(&w->facts);
		ingress_sweep(w->ingress);
		break;
	case PARCEL_BARRIER:
		facts_settle(&w->facts);
		if (w->facts_dirty || w->bindings_dirty)
			worker_facts_changed(w);
		return;
	case PARCEL_STATUS:
		apply_status(w, p);
		return;
	case PARCEL_LISTENERS:
		apply_listeners(w, p->gateway);
		return;
	case PARCEL_DRAIN:
		worker_drain(w, p->grace_ms);
		return;
	case PARCEL_NONE:
		must(false);
	}
	w->facts_dirty = true;
}

static void on_delivery(void *ctx)
{
	struct delivery *d = ctx;
	struct parcel *p = d->parcel;

	parcel_apply(d->worker, p);
	free(d);
	if (atomic_fetch_sub(&p->refs, 1) == 1)
		loop_post(p->gateway->loop, on_done, p);
}

void parcel_send(struct parcel *p)
{
	struct gateway *g = p->gateway;
	struct delivery *d;
	unsigned i;

	atomic_store(&p->refs, g->worker_count);
	for (i = 0; i < g->worker_count; i++) {
		d = must_alloc(sizeof(*d));
		d->worker = &g->workers[i];
		d->parcel = p;
		loop_post(g->workers[i].loop, on_delivery, d);
	}
}
