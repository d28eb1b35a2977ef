/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.c - the main thread: start, the supervisor's messages, the end
 *
 * Accepting begins when the supervisor has sent all sockets (START) and
 * control has told everything once (its first SYNC): until then connections
 * wait in the kernel's queue, so a restart refuses nobody it would have served.
 */

#include "gateway/inside.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>

#include "certs/leaf_cache.h"
#include "certs/leaf_key.h"
#include "certs/trust.h"
#include "gateway/registry/budget.h"
#include "gateway/registry/learned.h"
#include "gateway/flow/flow_desk.h"
#include "gateway/registry/quota.h"
#include "gateway/sign.h"
#include "gateway/tls/client_ctx.h"
#include "gateway/tls/record_memory.h"
#include "gateway/upstream/origin.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/heap.h"
#include "src/base/log.h"
#include "src/httpd/httpd.h"
#include "src/role/role.h"

enum {
	REST_MS = 1000,
	TRIM_FED = 256,			 /* sandboxes and policies */
	LEAF_MARGIN_MS = 60 * 60 * 1000, /* renewed this long before its end */
	LEAF_SHARES = 8, /* a sandbox may hold 1/8 of the cache */
};

struct leaf_cache *gateway_leaf_cache(struct gateway *g)
{
	return g->leaf_cache;
}

struct learned *gateway_learned(struct gateway *g)
{
	return g->learned;
}

struct budget *gateway_budget(struct gateway *g)
{
	return g->budget;
}

struct quotas *gateway_quotas(struct gateway *g)
{
	return g->quotas;
}

struct ssl_ctx_st *gateway_ingress_tls(struct gateway *g)
{
	return g->ingress_tls;
}

struct evp_pkey_st *gateway_leaf_key(struct gateway *g)
{
	return g->leaf_key;
}

static void gateway_stop(struct gateway *g, int exit_status)
{
	g->exit_status = exit_status;
	loop_stop(g->loop);
}

void gateway_accuse(struct gateway *g, enum role role)
{
	const struct msg_peer body = { .role = role };

	log_error("the %s role broke the protocol", role_name(role));
	(void)chan_send(g->supervisor, MSG_ROLE_ACCUSE, 0, &body, sizeof(body),
			SPAN_NONE, NULL, 0);
}

/* -- drain -------------------------------------------------------------------
 */

static void on_drained(void *ctx)
{
	struct gateway *g = ctx;

	if (++g->drained == g->worker_count)
		gateway_stop(g, 0);
}

void gateway_worker_drained(struct gateway *g)
{
	loop_post(g->loop, on_drained, g);
}

/* -- channels ----------------------------------------------------------------
 */

/* Much was said at once: what carried it is free now, amid what stays. */
static void on_rest(struct timer *t)
{
	struct gateway *g = container_of(t, struct gateway, rest);

	if (g->fed >= TRIM_FED)
		heap_trim();
	g->fed = 0;
}

static void on_control(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct gateway *g = ctx;

	(void)c;
	if (m->type == MSG_CONTROL_POLICY || m->type == MSG_CONTROL_SANDBOX) {
		g->fed++;
		timer_start(&g->rest, REST_MS);
	}
	feed_on_message(g, m);
}

static void on_control_closed(void *ctx, struct chan *c, int error)
{
	struct gateway *g = ctx;

	(void)error;
	log_warn("the control role is gone; what it said stays in force");
	if (g->control == c)
		g->control = chan_free(c);
}

static void on_vault(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct gateway *g = ctx;

	(void)c;
	switch (m->type) {
	case MSG_VAULT_SIGNED:
		sign_on_message(g, m);
		return;
	case MSG_VAULT_LEASE:
		lease_on_message(g, m);
		return;
	default:
		gateway_accuse(g, ROLE_VAULT);
	}
}

static void on_vault_closed(void *ctx, struct chan *c, int error)
{
	struct gateway *g = ctx;

	(void)error;
	log_warn("the vault role is gone; held leases stay in force");
	if (g->vault == c)
		g->vault = chan_free(c);
}

static const struct chan_ops control_ops = {
	.message = on_control,
	.closed = on_control_closed,
};

static const struct chan_ops vault_ops = {
	.message = on_vault,
	.closed = on_vault_closed,
};

static int take_fd(struct chan_msg *m)
{
	int fd = m->fd_count == 1 ? m->fds[0] : -1;

	if (fd >= 0)
		m->fds[0] = -1;
	return fd;
}

/* -- flows: the first worker has the channel of the queue role ---------------
 */

/* Something for that worker, carried into its thread. */
struct flows_post {
	struct gateway *gateway;
	int fd;
	uint32_t serial;
	bool must_review;
};

static void on_flows_attach(void *ctx)
{
	struct flows_post *post = ctx;

	flow_desk_attach(post->gateway->workers[0].flows, post->fd);
	free(post);
}

static void on_flows_sync(void *ctx)
{
	struct flows_post *post = ctx;

	flow_desk_sync(post->gateway->workers[0].flows, post->serial,
		       post->must_review);
	free(post);
}

static void flows_post(struct gateway *g, void (*fn)(void *ctx), int fd,
		       uint32_t serial)
{
	struct flows_post *post = must_alloc(sizeof(*post));

	*post = (struct flows_post){
		.gateway = g,
		.fd = fd,
		.serial = serial,
		/* from then on the supervisor keeps a queue role running */
		.must_review = g->started,
	};
	loop_post(g->workers[0].loop, fn, post);
}

static void gateway_peer(struct gateway *g, const struct msg_peer *peer, int fd)
{
	switch (peer->role) {
	case ROLE_CONTROL:
		g->control = chan_free(g->control);
		if (chan_new(g->loop, fd, &control_ops, g, &g->control))
			g->control = NULL;
		g->renewed = true;
		parcel_send(parcel_new(g, PARCEL_RENEW));
		return;
	case ROLE_VAULT:
		g->vault = chan_free(g->vault);
		if (chan_new(g->loop, fd, &vault_ops, g, &g->vault)) {
			g->vault = NULL;
			return;
		}
		sign_resume(g);
		lease_resume(g);
		return;
	case ROLE_QUEUE:
		flows_post(g, on_flows_attach, fd, 0);
		return;
	default:
		(void)fd_close(fd);
	}
}

static void gateway_listener(struct gateway *g, const struct msg_listener *l,
			     int fd)
{
	if (g->socket_count == GATEWAY_LISTENERS_MAX || g->started ||
	    l->kind == LISTENER_NONE || l->kind >= LISTENER_KIND_NUM) {
		(void)fd_close(fd);
		return;
	}
	g->sockets[g->socket_count++] = (struct gateway_socket){
		.fd = fd,
		.kind = (enum listener_kind)l->kind,
		.loop = l->loop,
	};
}

static void gateway_open(struct gateway *g)
{
	if (g->started && g->synced)
		parcel_send(parcel_new(g, PARCEL_LISTENERS));
}

static void gateway_audit(struct gateway *g, int fd)
{
	struct parcel *p = parcel_new(g, PARCEL_AUDIT);

	p->audit_fd = fd;
	parcel_send(p);
}

/* Workers take the present one with each handshake. */
static void gateway_certificate(struct gateway *g,
				const struct msg_certificate *body,
				const struct chan_msg *m)
{
	char why[512];
	int r;

	if (!g->ingress_tls || m->fd_count != 2 ||
	    body->of != CERTIFICATE_INGRESS)
		return;
	r = httpd_tls_renew(g->ingress_tls, m->fds[0], m->fds[1], why,
			    sizeof(why));
	if (r < 0)
		log_error("the former certificate of the ingress stays: %s",
			  why);
	else if (r != HTTPD_TLS_SAME)
		log_info("the ingress has another certificate");
}

static void on_supervisor(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct gateway *g = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	struct parcel *p;

	(void)c;
	if (!body) {
		gateway_stop(g, 1);
		return;
	}
	switch (m->type) {
	case MSG_SUPERVISOR_PEER:
		gateway_peer(g, body, take_fd(m));
		return;
	case MSG_SUPERVISOR_LISTENER:
		gateway_listener(g, body, take_fd(m));
		return;
	case MSG_SUPERVISOR_AUDIT:
		gateway_audit(g, take_fd(m));
		return;
	case MSG_SUPERVISOR_CERTIFICATE:
		gateway_certificate(g, body, m);
		return;
	case MSG_SUPERVISOR_START:
		g->started = true;
		gateway_open(g);
		return;
	case MSG_SUPERVISOR_DRAIN:
		p = parcel_new(g, PARCEL_DRAIN);
		p->grace_ms = ((const struct msg_drain *)body)->grace_ms;
		parcel_send(p);
		return;
	default:
		log_warn("the supervisor said something unknown: %u", m->type);
	}
}

static void on_supervisor_closed(void *ctx, struct chan *c, int error)
{
	(void)c;
	(void)error;
	gateway_stop(ctx, 1); /* alone there is nobody to restart us */
}

static const struct chan_ops supervisor_ops = {
	.message = on_supervisor,
	.closed = on_supervisor_closed,
};

/* -- what comes back from the workers ----------------------------------------
 */

static void gateway_synced(struct gateway *g, uint32_t serial)
{
	const struct msg_result body = { .status = 0 };

	if (!g->synced) {
		g->synced = true;
		gateway_open(g);
	}
	if (g->control)
		(void)chan_send(g->control, MSG_GATEWAY_SYNCED, serial, &body,
				sizeof(body), SPAN_NONE, NULL, 0);
}

static void on_flows_synced(void *ctx)
{
	struct flows_post *post = ctx;

	gateway_synced(post->gateway, post->serial);
	free(post);
}

void gateway_flows_synced(struct gateway *g, uint32_t serial)
{
	struct flows_post *post = must_alloc(sizeof(*post));

	*post = (struct flows_post){ .gateway = g, .serial = serial };
	loop_post(g->loop, on_flows_synced, post);
}

void gateway_parcel_done(struct gateway *g, struct parcel *p)
{
	static int audit_fd = -1; /* the one in use, closed when replaced */

	switch (p->kind) {
	case PARCEL_BARRIER:
		flows_post(g, on_flows_sync, -1, p->serial);
		return;
	case PARCEL_STATUS:
		feed_answer_status(g, p);
		return;
	case PARCEL_AUDIT:
		audit_fd = fd_close(audit_fd);
		audit_fd = p->audit_fd;
		return;
	default:
		return;
	}
}

/* -- start and end ------------------------------------------------------------
 */

static void die(const char *what, const struct diag *d)
{
	char text[1024];

	log_error("%s: %s", what,
		  d ? diag_text(d, text, sizeof(text)) : "failed");
	exit(1);
}

/* Reads files: before the role is confined. */
static void gateway_init_tls(struct gateway *g)
{
	CLEANUP(buf_fini) struct buf spki = BUF_INIT(LEAF_SPKI_MAX);
	const struct config *c = g->config;
	struct diag d = { 0 };

	if (trust_new(c->trust_system, c->trust_files.items,
		      c->trust_files.count, &g->trust, &d))
		die("the roots of trust could not be read", &d);
	if (origin_ctx_new(trust_store(g->trust), &g->origin_ctx) ||
	    client_ctx_new(&g->client_ctx) || leaf_key_new(&g->leaf_key) ||
	    leaf_spki(g->leaf_key, &spki))
		die("TLS could not be set up", NULL);
	must(buf_len(&spki) <= sizeof(g->leaf_spki));
	g->leaf_spki_len = buf_len(&spki);
	memcpy(g->leaf_spki, buf_peek(&spki).ptr, g->leaf_spki_len);
	g->leaf_cache = leaf_cache_new(c->leaf_cache,
				       MAX(c->leaf_cache / LEAF_SHARES, 1u),
				       LEAF_MARGIN_MS);
}

/* The same. Whoever takes over a gateway has this key: it is of the ingress
 * alone. */
static void gateway_init_ingress(struct gateway *g)
{
	const struct config *c = g->config;
	struct diag d = { 0 };

	if (c->ingress_certificate[0] &&
	    httpd_tls_new(c->ingress_certificate, c->ingress_key, d.msg,
			  sizeof(d.msg), &g->ingress_tls))
		die("TLS of the ingress could not be set up", &d);
}

static void gateway_init(struct gateway *g, const struct config *config)
{
	unsigned i;

	g->config = config;
	list_init(&g->signs);
	list_init(&g->lease_jobs);
	list_init(&g->syncs);
	gateway_init_tls(g);
	gateway_init_ingress(g);
	g->learned = learned_new(g->config->dns_hold_s);
	g->budget = budget_new(config->dns_new_names_per_minute);
	g->quotas = quotas_new();
	g->policies = policy_bodies_new();
	must(loop_new(&g->loop) == 0);
	timer_init(&g->rest, g->loop, on_rest);
	g->worker_count = config_loops(config);
	g->workers = must_alloc(g->worker_count * sizeof(*g->workers));
	for (i = 0; i < g->worker_count; i++)
		worker_init(&g->workers[i], g, i);
}

static void gateway_fini(struct gateway *g)
{
	unsigned i;

	for (i = 0; i < g->worker_count; i++)
		worker_fini(&g->workers[i]);
	sign_fini(g);
	lease_fini(g);
	g->control = chan_free(g->control);
	g->vault = chan_free(g->vault);
	g->supervisor = chan_free(g->supervisor);
	timer_stop(&g->rest);
	g->loop = loop_free(g->loop);
	g->leaf_cache = leaf_cache_free(g->leaf_cache);
	g->learned = learned_free(g->learned);
	g->budget = budget_free(g->budget);
	g->quotas = quotas_free(g->quotas);
	g->policies = policy_bodies_free(g->policies);
	EVP_PKEY_free(g->leaf_key);
	g->ingress_tls = httpd_tls_free(g->ingress_tls);
	SSL_CTX_free(g->client_ctx);
	SSL_CTX_free(g->origin_ctx);
	g->trust = trust_free(g->trust);
	free(g->workers);
}

int gateway_run(const struct config *config)
{
	const struct msg_none ready = { 0 };
	struct gateway *g = must_alloc(sizeof(*g));
	unsigned i;
	int status;

	record_memory_init();
	heap_settle(config_loops(config) + 1); /* and this one */
	gateway_init(g, config);
	role_confine(ROLE_GATEWAY, config);
	must(chan_new(g->loop, ROLE_FD_SUPERVISOR, &supervisor_ops, g,
		      &g->supervisor) == 0);
	for (i = 0; i < g->worker_count; i++)
		must(worker_start(&g->workers[i]) == 0);
	(void)chan_send(g->supervisor, MSG_ROLE_READY, 0, &ready, sizeof(ready),
			SPAN_NONE, NULL, 0);
	loop_run(g->loop);
	status = g->exit_status;
	gateway_fini(g);
	free(g);
	return status;
}
