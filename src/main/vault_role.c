/* SPDX-License-Identifier: Apache-2.0 */
/* vault_role.c - open the vault, confine, answer channels until told to stop
 *
 * Everything that needs a file is done before role_confine(): the key, the
 * store, the epoch file, the lock. Afterwards the process has three kinds of
 * descriptors: those files, the channel to the supervisor, and the channels to
 * peers that the supervisor sends. A peer that breaks the protocol is reported
 * and its channel closed; the supervisor ends it and sends a new one.
 */

#include "src/main/vault_role.h"

#include <errno.h>
#include <stdlib.h>

#include "certs/ca.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/heap.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/main/vault_ca.h"
#include "src/main/vault_serve.h"
#include "src/role/role.h"
#include "vault/vault.h"

enum { REST_MS = 1000 };

struct vault_role;

/* One end of a channel and who is behind it. */
struct peer {
	struct vault_role *role;
	enum role from;
	struct chan *chan; /* NULL: not connected */
};

struct vault_role {
	struct config *config;
	struct vault *vault;
	struct ca *ca;
	struct serve *serve;
	struct loop *loop;
	struct timer rest;	     /* nobody has asked for a while */
	struct peer peers[ROLE_NUM]; /* the supervisor is one */
	int status;		     /* of the process */
};

static void accuse(struct vault_role *role, enum role who)
{
	struct chan *supervisor = role->peers[ROLE_SUPERVISOR].chan;
	const struct msg_peer body = { .role = who };

	log_error("accused %s: it sent what it may not send", role_name(who));
	if (supervisor) /* it may be gone, and we about to stop */
		(void)chan_send(supervisor, MSG_ROLE_ACCUSE, 0, &body,
				sizeof(body), SPAN_NONE, NULL, 0);
}

static void peer_close(struct peer *p)
{
	p->chan = chan_free(p->chan);
	serve_peer_gone(p->role->serve, p->from);
}

/* -- channels ------------------------------------------------------------ */

/* What transactions and readings needed for a moment. */
static void on_rest(struct timer *t)
{
	struct vault_role *role = container_of(t, struct vault_role, rest);

	vault_rest(role->vault);
	heap_trim();
}

static void on_peer_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct peer *p = ctx;
	struct serve_reply reply;
	int r = 0;

	timer_start(&p->role->rest, REST_MS);
	switch (serve_message(p->role->serve, p->from, m->type, m->payload,
			      &reply)) {
	case SERVE_ACCUSE:
		accuse(p->role, p->from);
		peer_close(p);
		return; /* c is gone */
	case SERVE_SILENT:
		return;
	case SERVE_REPLY:
		r = chan_send(c, reply.type, m->serial, &reply.body,
			      reply.body_len, reply.tail, NULL, 0);
		break;
	}
	serve_done(p->role->serve);
	if (r && r != -EPIPE) {
		log_error("could not answer %s: %s", role_name(p->from),
			  err_text(r));
		peer_close(p);
	}
}

static void on_peer_closed(void *ctx, struct chan *c, int error)
{
	struct peer *p = ctx;

	(void)c;
	if (error == -EPROTO)
		accuse(p->role, p->from);
	log_info("%s is gone", role_name(p->from));
	peer_close(p);
}

static const struct chan_ops peer_ops = { on_peer_message, on_peer_closed };

/* Takes the descriptor out of m. */
static bool peer_connect(struct vault_role *role, const struct msg_peer *body,
			 struct chan_msg *m)
{
	struct peer *p;
	int r;

	if (m->fd_count != 1 ||
	    (body->role != ROLE_GATEWAY && body->role != ROLE_CONTROL))
		return false;
	p = &role->peers[body->role];
	if (p->chan)
		peer_close(p);
	r = chan_new(role->loop, m->fds[0], &peer_ops, p, &p->chan);
	m->fds[0] = -1;
	if (r)
		log_error("could not use the channel to %s: %s",
			  role_name(p->from), err_text(r));
	return true;
}

static void role_stop(struct vault_role *role, int status)
{
	role->status = status;
	loop_stop(role->loop);
}

/* The supervisor is believed; what it says must still be well-formed. */
static void on_supervisor_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct vault_role *role = ((struct peer *)ctx)->role;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	bool fine = body != NULL;

	if (fine && m->type == MSG_SUPERVISOR_PEER) {
		fine = peer_connect(role, body, m);
	} else if (fine && m->type == MSG_SUPERVISOR_DRAIN) {
		role_stop(role, EXIT_SUCCESS);
	} else if (fine && m->type == MSG_ROLE_GET_CA) {
		on_peer_message(ctx, c, m);
	} else {
		fine = false;
	}
	if (!fine) {
		log_error("the supervisor sent a malformed %s",
			  msg_type_name(m->type));
		role_stop(role, EXIT_FAILURE);
	}
}

static void on_supervisor_closed(void *ctx, struct chan *c, int error)
{
	struct peer *p = ctx;

	(void)c;
	(void)error;
	log_info("the supervisor is gone; stopped");
	p->chan = chan_free(p->chan);
	role_stop(p->role, EXIT_SUCCESS);
}

static const struct chan_ops supervisor_ops = { on_supervisor_message,
						on_supervisor_closed };

/* -- set-up -------------------------------------------------------------- */

static const char *none_if_empty(const char *s)
{
	return s && *s ? s : NULL;
}

static void finding_log(void *ctx, const struct vault_finding *f)
{
	(void)ctx;
	log_error("%s: %s", vault_error_name(f->error), f->text);
}

/* A node that never had a vault gets one. A vault that is there but does not
 * open is never replaced. */
static int store_open(const struct vault_options *o, struct vault **ret,
		      struct diag *d)
{
	int r = vault_open(o, ret, d);

	if (r != VAULT_E_ABSENT)
		return r;
	*d = (struct diag){ 0 };
	r = vault_init(o, d);
	if (r)
		return r;
	log_info("made a new, empty vault in %s/vault", o->state_dir);
	return vault_open(o, ret, d);
}

static int role_open(struct vault_role *role, struct diag *d)
{
	const struct config *c = role->config;
	const struct vault_options o = {
		.state_dir = c->state_dir,
		.kek.key_file = none_if_empty(c->vault_key_file),
		.kek.credential = none_if_empty(c->vault_credential),
		.kek.passphrase_file = none_if_empty(c->vault_passphrase_file),
	};
	struct vault_counts counts;
	int r;

	r = store_open(&o, &role->vault, d);
	if (!r)
		r = vault_verify(role->vault, finding_log, NULL, &counts);
	if (!r)
		r = vault_ca_at(role->vault, clock_wall_ms(), &role->ca, d);
	if (!r)
		log_info("opened the vault: %llu records in %llu scopes",
			 (unsigned long long)counts.records,
			 (unsigned long long)counts.scopes);
	return r;
}

static int role_listen(struct vault_role *role)
{
	const struct msg_none ready = { 0 };
	struct peer *p;
	unsigned i;
	int r;

	for (i = 0; i < ROLE_NUM; i++) {
		role->peers[i].role = role;
		role->peers[i].from = (enum role)i;
	}
	r = loop_new(&role->loop);
	if (r)
		return r;
	timer_init(&role->rest, role->loop, on_rest);
	role->serve =
		serve_new(role->vault, role->ca,
			  span_str(role->config->upstream_proxy_credential));
	p = &role->peers[ROLE_SUPERVISOR];
	r = chan_new(role->loop, ROLE_FD_SUPERVISOR, &supervisor_ops, p,
		     &p->chan);
	return r ? r
		 : chan_send(p->chan, MSG_ROLE_READY, 0, &ready, sizeof(ready),
			     SPAN_NONE, NULL, 0);
}

static void role_close(struct vault_role *role)
{
	unsigned i;

	for (i = 0; i < ROLE_NUM; i++)
		role->peers[i].chan = chan_free(role->peers[i].chan);
	serve_free(role->serve);
	if (role->loop)
		timer_stop(&role->rest);
	loop_free(role->loop);
	ca_free(role->ca);
	vault_close(role->vault);
	config_free(role->config);
}

int vault_role_run(void)
{
	struct vault_role role = { 0 };
	struct diag d = { 0 };
	int r;

	role_init(ROLE_VAULT, &role.config);
	r = role_open(&role, &d);
	if (r) {
		log_error("could not open the vault: %s",
			  diag_is_set(&d) ? d.msg : err_text(r));
		role_close(&role);
		return EXIT_FAILURE;
	}
	role_confine(ROLE_VAULT, role.config);
	r = role_listen(&role);
	if (!r)
		loop_run(role.loop);
	else
		log_error("could not serve: %s", err_text(r));
	role_close(&role);
	return r ? EXIT_FAILURE : role.status;
}
