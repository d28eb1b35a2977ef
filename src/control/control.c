/* SPDX-License-Identifier: Apache-2.0 */
/* control.c - the control role put together: channels, start, drain, end */

#include "src/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "certs/trust.h"
#include "src/base/err.h"
#include "src/base/heap.h"
#include "src/base/log.h"
#include "src/control/api.h"
#include "src/control/audit_tail.h"
#include "src/control/egress/egress_api.h"
#include "src/control/file.h"
#include "src/control/gateway_link.h"
#include "src/control/lifecycle/inside.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/load.h"
#include "src/control/node.h"
#include "src/control/publish.h"
#include "src/control/status.h"
#include "src/control/vault_link.h"
#include "src/control/vault_state.h"
#include "src/control/webhook.h"
#include "src/httpd/httpd.h"
#include "src/io/chan.h"
#include "src/role/config.h"
#include "src/role/msg.h"

enum { CA_BUNDLE_MAX = 32 * 1024 * 1024 };

/* -- the supervisor ------------------------------------------------------- */

static void supervisor_send(struct control *c, uint16_t type, const void *body)
{
	if (c->supervisor && chan_send(c->supervisor, type, 0, body,
				       msg_body_size(type), SPAN_NONE, NULL, 0))
		log_error("the supervisor takes no messages");
}

static void accuse(struct control *c, enum role role)
{
	const struct msg_peer body = { .role = role };

	supervisor_send(c, MSG_ROLE_ACCUSE, &body);
}

static void control_stop(struct control *c, int exit_status)
{
	c->exit_status = exit_status;
	loop_stop(c->loop);
}

/* One of the servers has answered its last request. */
static void on_drained(void *ctx)
{
	struct control *c = ctx;

	if (!--c->draining)
		control_stop(c, EXIT_SUCCESS);
}

static void on_drain_timer(struct timer *t)
{
	control_stop(container_of(t, struct control, drain_timer),
		     EXIT_SUCCESS);
}

static void control_drain(struct control *c, uint64_t grace_ms)
{
	log_info("draining for at most %llu ms", (unsigned long long)grace_ms);
	timer_start(&c->drain_timer, grace_ms);
	if (c->draining)
		return;
	c->draining = c->lifecycle ? 2 : 1;
	if (c->lifecycle)
		httpd_drain(c->lifecycle->httpd, on_drained, c);
	httpd_drain(c->httpd, on_drained, c);
}

/* A channel to one of the other two. */
static void control_meet(struct control *c, enum role role, struct chan_msg *m)
{
	int fd = m->fds[0];

	if (m->fd_count != 1 || (role != ROLE_VAULT && role != ROLE_GATEWAY))
		return;
	m->fds[0] = -1; /* ours now */
	if (role == ROLE_VAULT)
		vault_link_connect(c->vault, fd);
	else
		gateway_link_connect(c->gateway, fd);
}

/* The operator has another certificate, or would like to. */
static void on_certificate(struct control *c,
			   const struct msg_certificate *body,
			   const struct chan_msg *m)
{
	bool admin = body->of == CERTIFICATE_ADMIN;
	struct ssl_ctx_st *tls = admin ? c->admin_tls : c->lifecycle_tls;
	const char *whose = admin ? "admin" : "lifecycle";
	char why[512];
	int r;

	if (!tls || m->fd_count != 2)
		return;
	r = httpd_tls_renew(tls, m->fds[0], m->fds[1], why, sizeof(why));
	if (r < 0)
		log_error("the former certificate of the %s API stays: %s",
			  whose, why);
	else if (r != HTTPD_TLS_SAME)
		log_info("the %s API has another certificate", whose);
}

static void control_from_supervisor(void *ctx, struct chan *chan,
				    struct chan_msg *m)
{
	struct control *c = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);

	(void)chan;
	if (!body) {
		log_error("the supervisor sent a malformed message");
		control_stop(c, EXIT_FAILURE);
		return;
	}
	switch (m->type) {
	case MSG_SUPERVISOR_PEER:
		control_meet(c, ((const struct msg_peer *)body)->role, m);
		return;
	case MSG_SUPERVISOR_RELOAD:
		control_reload_policies(c, NULL);
		timer_start(&c->node_timer, 0);
		return;
	case MSG_SUPERVISOR_CERTIFICATE:
		on_certificate(c, body, m);
		return;
	case MSG_SUPERVISOR_DRAIN:
		control_drain(c, ((const struct msg_drain *)body)->grace_ms);
		return;
	case MSG_CONTROL_ROLES:
		status_on_roles(c, m->serial, body);
		return;
	case MSG_SUPERVISOR_LOCKED:
		locks_on_reply(c, m->serial, body);
		return;
	default:
		log_error("the supervisor sent an unexpected message of type "
			  "%u",
			  m->type);
		control_stop(c, EXIT_FAILURE);
	}
}

static void on_supervisor_closed(void *ctx, struct chan *chan, int error)
{
	struct control *c = ctx;

	(void)chan;
	(void)error;
	c->supervisor = chan_free(c->supervisor);
	control_stop(c, EXIT_FAILURE);
}

/* -- the vault ------------------------------------------------------------ */

/* Writes the CA where sandboxes' makers find it, and keeps it for the API. */
static void ca_write(struct control *c, const char *name, const struct buf *pem)
{
	char path[4096];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", c->config->run_dir, name);
	r = file_write(path, 0644, buf_peek(pem));
	if (r)
		log_error("could not write %s: %s", path, err_text(r));
}

/* Our CA, and what the operator trusts besides the system: where the gateway
 * does not look into a connection, the certificate that the sandbox sees is the
 * origin's own. */
static int inside_fill(struct control *c, const struct trust *from,
		       struct span der)
{
	buf_clear(&c->ca_inside);
	if (!trust_bundle_own(from, der, &c->ca_inside))
		return 0;
	log_error("upstream.trustFiles are more than %d KiB: sandboxes trust "
		  "the gateway's CA alone",
		  CA_INSIDE_MAX / 1024);
	buf_clear(&c->ca_inside);
	return buf_put(&c->ca_inside, buf_peek(&c->ca_pem));
}

static void on_ca(void *ctx, int status, struct span der)
{
	struct control *c = ctx;
	struct trust *alone = NULL;
	const struct trust *all;
	struct diag d = { 0 };

	if (status || trust_new(false, NULL, 0, &alone, &d)) {
		log_error("the vault gave no CA certificate: %s",
			  status ? err_text(status) : d.msg);
		return;
	}
	all = c->trust ? c->trust : alone;
	buf_clear(&c->ca_pem);
	buf_clear(&c->ca_bundle);
	if (trust_bundle(alone, der, &c->ca_pem) ||
	    trust_bundle(all, der, &c->ca_bundle) ||
	    inside_fill(c, c->config->trust_upstream ? all : alone, der)) {
		log_error("the CA certificate could not be written as PEM");
	} else {
		ca_write(c, "ca.pem", &c->ca_pem);
		ca_write(c, "ca-bundle.pem", &c->ca_bundle);
	}
	trust_free(alone);
}

void control_reload_vault(struct control *c)
{
	c->loaded = false;
	if (vault_link_is_up(c->vault))
		load_start(c);
}

static void on_vault_up(void *ctx)
{
	struct control *c = ctx;

	control_reload_vault(c);
	vault_link_ca(c->vault, on_ca, c);
}

static void on_vault_down(void *ctx)
{
	struct control *c = ctx;

	c->loaded = false;
}

static void on_vault_accuse(void *ctx)
{
	accuse(ctx, ROLE_VAULT);
}

/* -- the gateway ---------------------------------------------------------- */

static void on_all_synced(void *ctx, int status, const char *text,
			  struct span tail)
{
	(void)ctx;
	(void)tail;
	if (status)
		log_warn("the gateway has not confirmed what it was sent: %s",
			 text);
}

static void publish_all(struct control *c)
{
	if (!c->ever_loaded)
		return;
	locks_pace(c);
	if (!gateway_link_is_up(c->gateway))
		return;
	publish_node(c->gateway, buf_peek(&c->node_json));
	publish_bindings(c->gateway, c->node);
	vault_scopes_publish(&c->scopes, c->gateway);
	publish_policies(c->gateway, &c->policies, &c->sandboxes, true);
	inside_publish_all(c->lifecycle);
	if (!c->lifecycle)
		publish_route_keys(c->gateway, buf_peek(&c->route_keys));
	gateway_link_sync(c->gateway, on_all_synced, c);
}

static void on_gateway_up(void *ctx)
{
	publish_all(ctx);
}

static void on_gateway_down(void *ctx)
{
	(void)ctx; /* changes that wait are told by their own questions */
}

static void on_gateway_accuse(void *ctx)
{
	accuse(ctx, ROLE_GATEWAY);
}

static void on_egress_client(void *ctx, const struct msg_ingress_client *client,
			     int fd)
{
	struct control *c = ctx;

	egress_api_serve(c->egress, fd, client);
}

static void on_accessed(void *ctx, const char *id)
{
	struct control *c = ctx;

	lifecycle_accessed(c->lifecycle, span_str(id));
}

static void on_denied(void *ctx, const struct msg_denied *denied)
{
	struct control *c = ctx;

	webhook_tell(c->webhook, denied);
}

static void on_rest_timer(struct timer *t)
{
	(void)t;
	heap_trim();
}

void control_busy(struct control *c)
{
	timer_start(&c->rest_timer, CONTROL_REST_MS);
}

void control_loaded(struct control *c)
{
	log_info("read %zu credentials, %zu bindings, %zu sandboxes and %u "
		 "policies of the API from the vault",
		 map_count(&c->node->credentials),
		 map_count(&c->node->bindings), map_count(&c->sandboxes.by_id),
		 c->policies.api_count);
	locks_restore(c);
}

void control_locked(struct control *c)
{
	if (!vault_link_is_up(c->vault))
		return; /* it will be read again */
	c->loaded = true;
	c->ever_loaded = true;
	publish_all(c);
	control_busy(c);
	change_queue_run(c);
	lifecycle_start(c->lifecycle);
}

/* -- the node ------------------------------------------------------------- */

/* Addresses come and go, resolv.conf is written by others: look again. */
static void on_node_timer(struct timer *t)
{
	struct control *c = container_of(t, struct control, node_timer);
	struct buf now = BUF_INIT(NODE_TEXT_MAX);

	timer_start(t, NODE_POLL_MS);
	if (node_emit(c->config, &now)) {
		log_error("hosts and pins are larger than %d bytes; they stay "
			  "as they were",
			  NODE_TEXT_MAX);
	} else if (!span_eq(buf_peek(&now), buf_peek(&c->node_json))) {
		buf_fini(&c->node_json);
		c->node_json = now;
		if (c->ever_loaded)
			publish_node(c->gateway, buf_peek(&c->node_json));
		return;
	}
	buf_fini(&now);
}

static void on_policies_changed(void *ctx)
{
	control_reload_policies(ctx, NULL);
}

/* -- life ----------------------------------------------------------------- */

static int links_new(struct control *c, int supervisor_fd)
{
	static const struct chan_ops supervisor_ops = {
		control_from_supervisor,
		on_supervisor_closed,
	};
	static const struct vault_link_ops vault_ops = {
		on_vault_up,
		on_vault_down,
		on_vault_accuse,
	};
	static const struct gateway_link_ops gateway_ops = {
		on_gateway_up,	  on_gateway_down, on_gateway_accuse,
		on_egress_client, on_accessed,	   on_denied,
	};
	int r;

	r = chan_new(c->loop, supervisor_fd, &supervisor_ops, c,
		     &c->supervisor);
	if (!r)
		r = vault_link_new(c->loop, &vault_ops, c, &c->vault);
	if (!r)
		r = gateway_link_new(c->loop, &gateway_ops, c, &c->gateway);
	return r;
}

static void policies_first_load(struct control *c)
{
	char text[1024];

	if (policies_load_dir(&c->policies, c->config->policy_dir))
		log_error("no policy is in force, everything is denied: %s",
			  diag_text(&c->policies.error, text, sizeof(text)));
	else
		log_info("loaded %u policies from %s", c->policies.count,
			 c->config->policy_dir);
}

static int watches_new(struct control *c)
{
	c->tails = audit_tails_new(c->loop, c->config->audit_file);
	return file_watch_new(c->loop, c->config->policy_dir, POLICY_QUIET_MS,
			      on_policies_changed, c, &c->policy_watch);
}

static struct control *control_alloc(struct loop *loop,
				     const struct config *config,
				     const struct trust *trust)
{
	struct control *c = must_alloc(sizeof(*c));

	c->loop = loop;
	c->config = config;
	c->trust = trust;
	c->exit_status = EXIT_FAILURE;
	change_queue_init(&c->changes);
	vault_scopes_init(&c->scopes);
	net_policies_init(&c->net_policies);
	sandboxes_init(&c->sandboxes);
	locks_init(&c->locks);
	policies_init(&c->policies);
	tokens_init(&c->tokens);
	list_init(&c->status_calls);
	buf_init(&c->node_json, NODE_TEXT_MAX);
	buf_init(&c->ca_pem, CA_BUNDLE_MAX);
	buf_init(&c->ca_bundle, CA_BUNDLE_MAX);
	buf_init(&c->ca_inside, CA_INSIDE_MAX);
	timer_init(&c->node_timer, loop, on_node_timer);
	timer_init(&c->drain_timer, loop, on_drain_timer);
	timer_init(&c->rest_timer, loop, on_rest_timer);
	return c;
}

int control_new(struct loop *loop, const struct config *config,
		const struct trust *trust, int supervisor_fd,
		struct control **ret)
{
	struct control *c = control_alloc(loop, config, trust);
	const struct msg_none ready = { 0 };
	int r;

	r = links_new(c, supervisor_fd);
	if (!r)
		r = api_new(c, &c->httpd);
	if (!r)
		r = egress_api_new(c, &c->egress);
	if (!r)
		r = watches_new(c);
	if (!r)
		r = webhook_new(loop, config, &c->webhook);
	if (!r)
		r = lifecycle_new(c, &c->lifecycle);
	if (r) {
		control_free(c);
		return err_trace(r);
	}
	policies_first_load(c);
	on_node_timer(&c->node_timer);
	supervisor_send(c, MSG_ROLE_READY, &ready);
	*ret = c;
	return 0;
}

/* The links go first: who waits for an answer gets one. */
struct control *control_free(struct control *c)
{
	if (!c)
		return NULL;
	c->loaded = false;
	lifecycle_end(c->lifecycle);
	status_fini(c);
	vault_link_free(c->vault);
	locks_fini(c); /* what waits for a lock asks the gateway, then */
	gateway_link_free(c->gateway);
	change_queue_fini(&c->changes);
	lifecycle_free(c->lifecycle);
	audit_tails_free(c->tails);
	httpd_free(c->httpd);
	egress_api_free(c->egress);
	webhook_free(c->webhook);
	file_watch_free(c->policy_watch);
	timer_stop(&c->node_timer);
	timer_stop(&c->drain_timer);
	timer_stop(&c->rest_timer);
	chan_free(c->supervisor);
	vault_state_free(c->node);
	vault_scopes_fini(&c->scopes);
	net_policies_fini(&c->net_policies);
	sandboxes_fini(&c->sandboxes);
	policies_fini(&c->policies);
	tokens_fini(&c->tokens);
	buf_fini(&c->node_json);
	buf_fini(&c->ca_pem);
	buf_fini(&c->ca_bundle);
	buf_fini(&c->ca_inside);
	buf_wipe(&c->route_keys);
	free(c);
	return NULL;
}

int control_run(struct control *c)
{
	loop_run(c->loop);
	return c->exit_status;
}
