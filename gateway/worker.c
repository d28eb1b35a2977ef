/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c - set up, run and end one worker thread */

#include "gateway/worker.h"

#include <errno.h>
#include <sys/socket.h>

#include "gateway/audit/bounded.h"
#include "gateway/audit/denied.h"
#include "gateway/dns/resolver.h"
#include "gateway/dns/server.h"
#include "gateway/flow/flow_desk.h"
#include "gateway/ingress/ingress.h"
#include "gateway/inside.h"
#include "gateway/listener/dns_desk.h"
#include "gateway/listener/listener.h"
#include "gateway/session/h2_conn.h"
#include "gateway/session/session.h"
#include "gateway/tls/leaf_source.h"
#include "gateway/upstream/chain.h"
#include "gateway/upstream/origin.h"
#include "src/base/blocks.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/heap.h"
#include "src/role/config.h"

enum {
	DRAIN_LOOK_MS = 50,
	QUIET_LOOK_MS = 200,
	/* Fewer leave no holes worth a walk over the heap. */
	TRIM_CONNECTIONS = 64,
	/* Of each size that exchanges and records of TLS are made of. */
	BLOCKS_BYTES = 512 * 1024,
};

static const char *const counter_names[COUNTER_NUM] = {
#define COUNTER_NAME(name, help) [COUNTER_##name] = #name,
	WORKER_COUNTERS(COUNTER_NAME)
#undef COUNTER_NAME
};

const char *worker_counter_name(enum worker_counter which)
{
	must(which < COUNTER_NUM);
	return counter_names[which];
}

void worker_facts_changed(struct worker *w)
{
	if (w->facts_dirty) {
		flow_desk_changed(w->flows);
		facts_settle(&w->facts);
	}
	w->facts_dirty = w->bindings_dirty = false;
	list_for_each(it, &w->sessions)
		session_recheck(container_of(it, struct session, link));
}

/* What a policy does not say. */
static void worker_limits(const struct config *c, struct policy_limits *ret)
{
	*ret = (struct policy_limits){ .of = {
					       [LIMIT_CONNECTIONS] =
						       c->connections,
					       [LIMIT_CONNECTS] =
						       c->connects_per_s,
					       [LIMIT_BYTES] = c->bytes_per_s,
					       [LIMIT_DNS] = c->dns_per_s,
					       [LIMIT_MINTS] = c->mints_per_s,
				       } };
}

static struct audit_bound *refusals(struct worker *w, struct sandbox *s)
{
	struct audit_bound **b = s ? &s->refusals : &w->refusals;

	if (!*b)
		*b = audit_bound_new(w->loop, w->audit_log);
	return *b;
}

void worker_refused(struct worker *w, struct sandbox *s, const struct audit *a)
{
	audit_bound_emit(refusals(w, s), BOUNDED_FLOOD, a);
}

void worker_record(struct worker *w, struct sandbox *s, const struct audit *a)
{
	if (a->allowed)
		audit_emit(w->audit_log, a);
	else
		audit_bound_emit(refusals(w, s), BOUNDED_DENIAL, a);
}

/* -- memory ---------------------------------------------------------------
 *
 * A handshake allocates several times what its connection keeps, so a crowd of
 * new connections leaves its heap full of holes: a KiB for each that rests
 * afterwards. Once the crowd was served and nothing else happens, their pages
 * go back to the kernel.
 */

static uint64_t worker_connections(const struct worker *w)
{
	return w->counters[COUNTER_connections] +
	       w->counters[COUNTER_origins_new];
}

static void on_quiet(struct timer *t)
{
	struct worker *w = container_of(t, struct worker, quiet);
	uint64_t now = worker_connections(w) + w->counters[COUNTER_exchanges];

	if (now != w->quiet_mark) {
		w->quiet_mark = now;
		timer_start(t, QUIET_LOOK_MS);
		return;
	}
	w->trimmed = worker_connections(w);
	blocks_drop();
	heap_trim();
}

static void worker_watch_quiet(struct worker *w)
{
	if (!w->quiet.due_ms &&
	    worker_connections(w) - w->trimmed >= TRIM_CONNECTIONS)
		timer_start(&w->quiet, QUIET_LOOK_MS);
}

/* ------------------------------------------------------------------------ */

static void on_turn_end(void *ctx)
{
	struct worker *w = ctx;

	if (w->facts_dirty || w->bindings_dirty)
		worker_facts_changed(w);
	h2_conns_settle(w);
	audit_log_settle(w->audit_log);
	worker_watch_quiet(w);
}

/* -- drain ----------------------------------------------------------------- */

static void on_drain(struct timer *t)
{
	struct worker *w = container_of(t, struct worker, drain);

	if ((list_is_empty(&w->sessions) && ingress_is_idle(w->ingress) &&
	     !loop_has_unsent(w->loop)) ||
	    loop_now_ms(w->loop) >= w->drain_until_ms)
		gateway_worker_drained(w->gateway);
	else
		timer_start(t, DRAIN_LOOK_MS);
}

void worker_drain(struct worker *w, uint32_t grace_ms)
{
	if (w->draining)
		return;
	w->draining = true;
	loop_end_soon(w->loop);
	w->drain_until_ms = loop_now_ms(w->loop) + grace_ms;
	listeners_close(w);
	ingress_drain(w->ingress);
	w->dns = dns_server_free(w->dns);
	list_for_each(it, &w->sessions)
		session_drain(container_of(it, struct session, link));
	timer_start(&w->drain, 1);
}

/* -- life ------------------------------------------------------------------ */

static void worker_init_dns(struct worker *w)
{
	const struct config *c = w->config;
	const struct resolver_config config = {
		.upstreams = c->dns_upstreams,
		.upstream_count = c->dns_upstream_count,
		.timeout_ms = c->dns_timeout_ms,
		.min_ttl_s = c->dns_min_ttl_s,
		.max_ttl_s = c->dns_max_ttl_s,
		.counters = &w->dns_counters,
	};

	must(resolver_new(w->loop, &config, &w->resolver) == 0);
	must(dns_desk_open(w, &w->dns) == 0);
}

void worker_init(struct worker *w, struct gateway *g, unsigned index)
{
	w->gateway = g;
	w->config = g->config;
	w->index = index;
	w->client_ctx = g->client_ctx;
	w->origin_ctx = g->origin_ctx;
	list_init(&w->listeners);
	list_init(&w->sessions);
	list_init(&w->h2_dirty);
	facts_init(&w->facts, gateway_quotas(g));
	worker_limits(w->config, &w->facts.limits);
	w->facts.learned = gateway_learned(g);
	w->facts.budget = gateway_budget(g);
	must(loop_new(&w->loop) == 0);
	w->facts.loop = w->loop;
	loop_on_turn_end(w->loop, on_turn_end, w);
	timer_init(&w->drain, w->loop, on_drain);
	timer_init(&w->quiet, w->loop, on_quiet);
	w->probe = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	w->audit_log = audit_log_new(w->loop);
	if (w->config->webhook_url[0])
		w->denied = denied_new(g, (uint64_t)w->config->webhook_quiet_s *
						  1000);
	audit_log_set_denied(w->audit_log, w->denied);
	w->chain = chain_new(w->config);
	w->pool = origin_pool_new(w);
	w->leaves = leaf_source_new(w);
	w->scratch_front = must_alloc(WORKER_SCRATCH_BYTES);
	w->scratch_back = must_alloc(WORKER_SCRATCH_BYTES);
	w->assembly = must_alloc(WORKER_SCRATCH_BYTES);
	worker_init_dns(w);
	w->ingress = ingress_new(w);
	if (!index)
		w->flows = flow_desk_new(w);
}

static void *worker_main(void *ctx)
{
	struct worker *w = ctx;

	blocks_keep(BLOCKS_BYTES);
	loop_run(w->loop);
	blocks_drop();
	return NULL;
}

int worker_start(struct worker *w)
{
	int r = pthread_create(&w->thread, NULL, worker_main, w);

	return r ? err_origin(-r) : 0;
}

void worker_fini(struct worker *w)
{
	struct session *s;

	loop_stop(w->loop);
	(void)pthread_join(w->thread, NULL);
	listeners_close(w);
	while ((s = list_first(&w->sessions, struct session, link)))
		session_free(s);
	w->ingress = ingress_free(w->ingress);
	w->flows = flow_desk_free(w->flows);
	w->dns = dns_server_free(w->dns);
	w->resolver = resolver_free(w->resolver);
	w->leaves = leaf_source_free(w->leaves);
	w->pool = origin_pool_free(w->pool);
	w->chain = chain_free(w->chain);
	timer_stop(&w->drain);
	timer_stop(&w->quiet);
	facts_fini(&w->facts);
	w->refusals = audit_bound_free(w->refusals);
	w->audit_log = audit_log_free(w->audit_log);
	w->denied = denied_free(w->denied);
	w->probe = fd_close(w->probe);
	w->loop = loop_free(w->loop);
	free(w->scratch_front);
	free(w->scratch_back);
	free(w->assembly);
}
