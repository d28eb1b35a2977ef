/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - a gateway of one worker without threads, and what it is told
 *
 * The world has a main loop and one worker whose loop the test turns itself;
 * both are turned by world_turn(). Everything is `static inline` so that each
 * test uses what it needs.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/leaf.h"
#include "certs/leaf_cache.h"
#include "certs/leaf_key.h"
#include "gateway/dns/names.h"
#include "gateway/dns/resolver.h"
#include "gateway/inside.h"
#include "gateway/registry/bindings.h"
#include "gateway/registry/budget.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/quota.h"
#include "gateway/tls/client_ctx.h"
#include "gateway/upstream/destination.h"
#include "gateway/upstream/origin.h"
#include "policy/compile.h"
#include "policy/load.h"
#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/role/config.h"

enum {
	WORLD_PATIENCE_MS = 10 * 1000,
	WORLD_POLICY_BYTES = 1024 * 1024,
	DAY_MS = 24 * 3600 * 1000,
};

struct world {
	struct config config;
	struct gateway gateway;
	struct worker worker;
	struct ca *ca; /* trusted by origin_ctx */
	X509_STORE *store;
};

static inline struct addr addr_of(const char *text, uint16_t port)
{
	struct addr a;

	must(addr_parse(span_str(text), &a));
	a.port = port;
	return a;
}

static inline void assert_span(struct span found, const char *expected)
{
	if (!span_eq(found, span_str(expected)))
		fail_msg("found \"%.*s\", expected \"%s\"", SPAN_FMT(found),
			 expected);
}

/* -- life ------------------------------------------------------------------ */

static inline void world_init_config(struct config *c)
{
	static char none[1];

	*c = (struct config){
		.upstream_proxy = none,
		.upstream_proxy_credential = none,
		.explicit_proxy_name = none,
		.webhook_url = none,
		.handshake_ms = 5000,
		.head_ms = 5000,
		.idle_ms = 5000,
		.first_byte_ms = 5000,
		.tunnel_idle_ms = 5000,
		.server_first_ms = 100,
		.connect_ms = 5000,
		.head_bytes = 64 * 1024,
		.connections = 64,
		.upstream_idle = 16,
		.leaf_cache = 64,
		.dns_timeout_ms = 200,
		.dns_name_bytes = 128,
		.dns_label_bytes = 63,
		.dns_labels = 12,
	};
}

static inline void world_init_tls(struct world *w)
{
	CLEANUP(buf_fini) struct buf spki = BUF_INIT(LEAF_SPKI_MAX);
	struct gateway *g = &w->gateway;
	X509 *root;

	must(!ca_new(clock_wall_ms() - 40ull * DAY_MS, &w->ca));
	must(!cert_from_der(ca_cert_der(w->ca), &root));
	w->store = X509_STORE_new();
	must(X509_STORE_add_cert(w->store, root) == 1);
	X509_free(root);
	must(!origin_ctx_new(w->store, &g->origin_ctx));
	must(!client_ctx_new(&g->client_ctx));
	must(!leaf_key_new(&g->leaf_key));
	must(!leaf_spki(g->leaf_key, &spki));
	g->leaf_spki_len = buf_len(&spki);
	memcpy(g->leaf_spki, buf_peek(&spki).ptr, g->leaf_spki_len);
	g->leaf_cache = leaf_cache_new(64, 8, 3600 * 1000);
}

static inline struct world *world_new(void)
{
	struct world *w = must_alloc(sizeof(*w));
	struct gateway *g = &w->gateway;

	log_set_level(LOG_ERROR);
	world_init_config(&w->config);
	g->config = &w->config;
	list_init(&g->signs);
	list_init(&g->lease_jobs);
	list_init(&g->syncs);
	g->learned = learned_new(1800);
	g->budget = budget_new(60);
	g->quotas = quotas_new();
	g->policies = policy_bodies_new();
	world_init_tls(w);
	must(!loop_new(&g->loop));
	g->worker_count = 1;
	g->workers = &w->worker;
	worker_init(&w->worker, g, 0);
	return w;
}

static inline void world_free(struct world *w)
{
	struct gateway *g = &w->gateway;

	loop_stop(w->worker.loop); /* its thread ends as it begins */
	must(!worker_start(&w->worker));
	worker_fini(&w->worker);
	sign_fini(g);
	lease_fini(g);
	g->control = chan_free(g->control);
	g->vault = chan_free(g->vault);
	g->supervisor = chan_free(g->supervisor);
	g->loop = loop_free(g->loop);
	g->leaf_cache = leaf_cache_free(g->leaf_cache);
	g->learned = learned_free(g->learned);
	g->budget = budget_free(g->budget);
	g->quotas = quotas_free(g->quotas);
	g->policies = policy_bodies_free(g->policies);
	EVP_PKEY_free(g->leaf_key);
	SSL_CTX_free(g->client_ctx);
	SSL_CTX_free(g->origin_ctx);
	X509_STORE_free(w->store);
	w->ca = ca_free(w->ca);
	free(w);
}

static inline int world_set_up(void **state)
{
	*state = world_new();
	return 0;
}

static inline int world_tear_down(void **state)
{
	world_free(*state);
	return 0;
}

/* Both loops once, without waiting. */
static inline void world_turn(struct world *w)
{
	loop_run_once(w->gateway.loop, false);
	loop_run_once(w->worker.loop, false);
}

/* Until *done, or the test fails. */
static inline void world_run(struct world *w, const bool *done)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (!*done && clock_ms() < end_ms)
		world_turn(w);
	assert_true(*done);
}

/* Whatever is on its way arrives. */
static inline void world_settle(struct world *w)
{
	int i;

	for (i = 0; i < 20; i++)
		world_turn(w);
}

/* -- what control would say ------------------------------------------------ */

/* JSON or YAML of one policy file; msg gets the name and the size. */
static inline void world_compile(const char *text, bool overlay,
				 struct msg_policy *msg, struct buf *out)
{
	CLEANUP_POLICY_SET struct policy_set *set = NULL;
	struct diag d = { 0 };

	if (policy_load_text(span_str(text), "test.yaml", &set, &d))
		fail_msg("policy: %s", d.msg);
	if (overlay)
		must(!policy_compile_overlay(set, out));
	else
		must(!policy_compile(set->policies, out));
	if (!overlay)
		must(span_copy(set->policies->name, msg->name,
			       sizeof(msg->name)));
	msg->size = buf_len(out);
}

/* id 0: the text's overlay rules. all: may be NULL. */
static inline struct policy *world_policy_at(struct policy_bodies *all,
					     uint32_t id, const char *text)
{
	CLEANUP(buf_fini) struct buf bytes = BUF_INIT(WORLD_POLICY_BYTES);
	struct msg_policy msg = { .policy = id, .generation = id ? 8 : 7 };
	struct policy_bodies *own = all ? NULL : policy_bodies_new();
	struct policy *p;
	int fd;

	world_compile(text, !id, &msg, &bytes);
	fd = chan_memfd(buf_peek(&bytes));
	must(fd >= 0);
	must(!policy_new(all ? all : own, &msg, fd, &p));
	(void)fd_close(fd);
	policy_bodies_free(own);
	return p;
}

static inline struct policy *world_policy_new(uint32_t id, const char *text)
{
	return world_policy_at(NULL, id, text);
}

static inline void world_policy(struct world *w, uint32_t id, const char *text)
{
	struct policy *p = world_policy_new(id, text);

	facts_put_policy(&w->worker.facts, p);
	(void)policy_unref(p);
}

static inline struct msg_sandbox sandbox_msg(const char *id, const char *ip,
					     uint32_t policy)
{
	struct msg_sandbox msg = { .policy = policy, .addr_count = 1 };
	struct addr a = addr_of(ip, 0);

	must(span_copy(span_str(id), msg.id, sizeof(msg.id)));
	memcpy(msg.addrs[0], a.ip, sizeof(a.ip));
	return msg;
}

/* A sandbox under policy 1. */
static inline struct sandbox *world_sandbox(struct world *w, const char *id,
					    const char *ip)
{
	const struct msg_sandbox msg = sandbox_msg(id, ip, 1);
	struct addr a = addr_of(ip, 0);

	facts_put_sandbox(&w->worker.facts, &msg);
	return facts_find_sandbox(&w->worker.facts, &a, "");
}

/* names_add() until the names are given with world_names(). */
static inline void name_add(struct names *n, enum name_source source,
			    const char *host, const char *ip)
{
	struct addr a = addr_of(ip, 0);

	must(!names_add(n, source, span_str(host), &a));
}

/* Takes n. */
static inline void world_names(struct world *w, struct names *n)
{
	facts_put_names(&w->worker.facts, n);
	resolver_set_names(w->worker.resolver, n);
	(void)names_unref(n);
}

static inline void world_own(struct world *w, const char *cidr)
{
	struct own_addresses *own =
		must_alloc(sizeof(*own) + sizeof(own->items[0]));

	own->refs = 1;
	own->count = 1;
	must(cidr_parse(span_str(cidr), &own->items[0]));
	facts_put_own(&w->worker.facts, own);
	(void)own_unref(own);
}

/* value NULL: the vault had no lease. Every credential gets the same. */
static inline void world_bindings(struct world *w, const char *scope,
				  const char *json, const char *value)
{
	struct diag d = { 0 };
	struct secret *secret;
	struct bindings *b;
	struct span name;
	unsigned i;

	if (bindings_new(span_str(json), &b, &d))
		fail_msg("bindings: %s", d.msg);
	for (i = 0; value && (name = bindings_credential(b, i)).ptr; i++) {
		must(!secret_dup(span_str(value), &secret));
		bindings_give_lease(b, name, secret);
	}
	facts_put_bindings(&w->worker.facts, span_str(scope), b);
	(void)bindings_unref(b);
}

/* -- destinations ---------------------------------------------------------- */

/* host NULL: only the address counts. */
static inline struct destination destination_of(enum scheme scheme,
						const char *host,
						struct addr original)
{
	struct destination d = {
		.scheme = scheme,
		.port = original.port,
		.original = original,
	};

	if (host)
		must(host_canon(span_str(host), &d.host));
	return d;
}

/* Proved by name, resolved to that address. */
static inline struct destination proved(enum scheme scheme, const char *host,
					struct addr address,
					enum address_source source)
{
	struct destination d = destination_of(scheme, host, address);

	d.by_name = host != NULL;
	d.source = source;
	d.addrs[0] = address;
	d.addr_count = 1;
	return d;
}
