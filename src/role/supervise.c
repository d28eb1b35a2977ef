/* SPDX-License-Identifier: Apache-2.0 */
/* supervise.c - what the children are to each other
 *
 * How it works: a child (child.c) that starts gets its channel to us, then a
 * fresh channel between it and each running peer, one end for either: whoever
 * was restarted, both sides throw away the dead one. The queue has one peer,
 * the gateway. A gateway also gets the audit file before and its listeners
 * after that, then START.
 *
 * A child that ends is started again. But before everything has served once, a
 * role that ends START_TRIES times ends the daemon: nobody wants a loop
 * instead of the message about a missing key file.
 *
 * Messages from roles are hostile until proved otherwise: exactly READY,
 * ACCUSE and (from control) ROLES and the locks, of exactly the right size and
 * without descriptors. Anything else kills the sender. The gateway, who could
 * be taken over, can by its accusations make others restart; that denies
 * service, which it can do anyway, and opens nothing.
 *
 * Stopping goes in phases: gateway and control are told to drain; when both
 * are gone the channels of the others are closed; each phase has a deadline,
 * after which what is left is killed.
 */

#include "src/role/supervise.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/role/child.h"
#include "src/role/listeners.h"
#include "src/role/lock.h"
#include "src/role/lock_desk.h"

enum {
	START_TRIES = 3,
	/* beyond the grace: for the roles to notice, then for the others */
	GRACE_EXTRA_MS = 1000,
	CLOSING_GRACE_MS = 2000,
};

enum phase {
	PHASE_STARTING, /* not every role has served yet */
	PHASE_SERVING,	/* every role has served; they may be down again */
	PHASE_DRAINING, /* gateway and control finish */
	PHASE_CLOSING,	/* the others' channels are closed, or all are killed */
	PHASE_ENDED,	/* setup.ended was called */
};

struct supervise {
	struct supervise_setup setup;
	struct child children[ROLE_NUM]; /* [NONE] and [SUPERVISOR] unused */
	struct timer deadline;
	enum phase phase;
	bool failed; /* a role never came up */
	int audit_fd;
	struct lock_desk *locks; /* NULL: no lock */
};

/* In the order of starting: who is asked before who asks. */
static const enum role order[] = { ROLE_VAULT, ROLE_CONTROL, ROLE_QUEUE,
				   ROLE_GATEWAY };

/* Who has a channel to whom. */
static bool are_peers(enum role a, enum role b)
{
	if (a == ROLE_QUEUE || b == ROLE_QUEUE)
		return a == ROLE_GATEWAY || b == ROLE_GATEWAY;
	return a != b;
}

static const struct msg_none nothing;

/* --- ending --- */

static bool all_down(const struct supervise *s)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(order); i++)
		if (s->children[order[i]].state != CHILD_DOWN)
			return false;
	return true;
}

/* Moves the stopping on; every event of it ends up here. */
static void stop_advance(struct supervise *s)
{
	if (s->phase == PHASE_DRAINING &&
	    s->children[ROLE_GATEWAY].state == CHILD_DOWN &&
	    s->children[ROLE_CONTROL].state == CHILD_DOWN) {
		s->phase = PHASE_CLOSING;
		child_hang_up(&s->children[ROLE_VAULT]);
		child_hang_up(&s->children[ROLE_QUEUE]);
		timer_start(&s->deadline, CLOSING_GRACE_MS);
	}
	if (s->phase == PHASE_CLOSING && all_down(s)) {
		s->phase = PHASE_ENDED;
		timer_stop(&s->deadline);
		s->setup.ended(s->setup.ctx, s->failed);
	}
}

static void kill_all(struct supervise *s, const char *why)
{
	size_t i;

	if (s->phase == PHASE_ENDED)
		return;
	s->phase = PHASE_CLOSING;
	for (i = 0; i < ARRAY_LEN(order); i++) {
		timer_stop(&s->children[order[i]].timer);
		child_kill(&s->children[order[i]], why);
	}
	stop_advance(s);
}

static void on_deadline(struct timer *t)
{
	kill_all(container_of(t, struct supervise, deadline),
		 "it did not end in time");
}

static void exit_log(const struct child *c, int status, bool stops)
{
	const char *name = role_name(c->role);
	int pid = (int)c->process.pid;

	if (WIFSIGNALED(status))
		log_error("the %s (%d) was ended by signal %d (%s)%s", name,
			  pid, WTERMSIG(status), sigabbrev_np(WTERMSIG(status)),
			  WTERMSIG(status) == SIGSYS
				  ? ": a system call outside its list"
				  : "");
	else if (WEXITSTATUS(status) || !stops)
		log_error("the %s (%d) ended with status %d", name, pid,
			  WEXITSTATUS(status));
	else
		log_info("the %s (%d) ended", name, pid);
}

/* What follows the end of a child, or a start that failed. */
static void child_is_down(struct supervise *s, struct child *c)
{
	if (s->phase >= PHASE_DRAINING) {
		stop_advance(s);
		return;
	}
	if (s->phase == PHASE_STARTING && c->failures + 1 >= START_TRIES) {
		log_error("gave up: the %s does not start", role_name(c->role));
		s->failed = true;
		kill_all(s, "another role does not start");
		return;
	}
	child_restart_later(c);
}

static void on_down(struct child *c, int status)
{
	struct supervise *s = c->ctx;

	exit_log(c, status, s->phase >= PHASE_DRAINING);
	child_is_down(s, c);
}

/* --- messages from roles --- */

static void report_roles(struct child *c, uint32_t serial)
{
	struct supervise *s = c->ctx;
	struct msg_roles reply = { 0 };
	const struct child *it;
	size_t i;

	for (i = 0; i < ARRAY_LEN(order); i++) {
		it = &s->children[order[i]];
		reply.roles[order[i]].pid =
			child_runs(it) ? (uint32_t)it->process.pid : 0;
		reply.roles[order[i]].restarts =
			it->starts ? it->starts - 1 : 0;
		reply.roles[order[i]].ready = it->state == CHILD_READY;
		reply.roles[order[i]].since_ms = it->started_wall_ms;
	}
	reply.roles[ROLE_SUPERVISOR].pid = (uint32_t)getpid();
	reply.roles[ROLE_SUPERVISOR].ready = s->phase == PHASE_SERVING;
	s->setup.rules(s->setup.ctx, &reply);
	child_send(c, MSG_CONTROL_ROLES, serial, &reply, sizeof(reply), -1);
}

/* What control says of the lock; nobody else may. */
static bool lock_asked(struct child *c, const struct chan_msg *m,
		       const void *body)
{
	struct supervise *s = c->ctx;

	if (c->role != ROLE_CONTROL || !m->serial || !s->locks)
		return false;
	lock_desk_ask(s->locks, m->type, m->serial, body);
	return true;
}

static void on_locked(void *ctx, uint32_t serial,
		      const struct msg_locked *reply)
{
	struct supervise *s = ctx;

	child_send(&s->children[ROLE_CONTROL], MSG_SUPERVISOR_LOCKED, serial,
		   reply, sizeof(*reply), -1);
}

static void role_is_ready(struct child *c)
{
	struct supervise *s = c->ctx;
	size_t i;

	if (c->state != CHILD_UP)
		return; /* said it twice: harmless */
	child_ready(c);
	log_info("the %s (%d) serves", role_name(c->role), (int)c->process.pid);
	if (s->phase != PHASE_STARTING)
		return;
	for (i = 0; i < ARRAY_LEN(order); i++)
		if (s->children[order[i]].state != CHILD_READY)
			return;
	s->phase = PHASE_SERVING;
	s->setup.serving(s->setup.ctx);
}

/* Only a peer can be accused. False: the accuser is wrong. */
static bool role_accuses(struct child *c, uint32_t role)
{
	struct supervise *s = c->ctx;
	struct child *accused;

	if ((role != ROLE_GATEWAY && role != ROLE_VAULT &&
	     role != ROLE_CONTROL && role != ROLE_QUEUE) ||
	    role == c->role || !are_peers(c->role, (enum role)role))
		return false;
	accused = &s->children[role];
	log_warn("the %s accused the %s of breaking the protocol",
		 role_name(c->role), role_name(accused->role));
	if (child_runs(accused))
		child_kill(accused, "it broke the protocol");
	return true;
}

/* The whole of what a role may say. False kills it. */
static bool on_message(struct child *c, const struct chan_msg *m)
{
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);

	if (!body || tail.len || m->fd_count)
		return false;
	switch (m->type) {
	case MSG_ROLE_READY:
		role_is_ready(c);
		return true;
	case MSG_ROLE_ACCUSE:
		return role_accuses(c, ((const struct msg_peer *)body)->role);
	case MSG_CONTROL_ROLES:
		if (c->role != ROLE_CONTROL || !m->serial)
			return false;
		report_roles(c, m->serial);
		return true;
	case MSG_CONTROL_LOCK:
	case MSG_CONTROL_UNLOCK:
	case MSG_CONTROL_LOCKS_END:
		return lock_asked(c, m, body);
	default:
		return false;
	}
}

/* --- starting --- */

/* A fresh channel between two running children. */
static int children_connect(struct child *a, struct child *b)
{
	const struct msg_peer to_a = { b->role }, to_b = { a->role };
	int fds[2], r;

	r = chan_pair(fds);
	if (r)
		return err_trace(r);
	child_send(a, MSG_SUPERVISOR_PEER, 0, &to_a, sizeof(to_a), fds[0]);
	child_send(b, MSG_SUPERVISOR_PEER, 0, &to_b, sizeof(to_b), fds[1]);
	(void)fd_close(fds[0]);
	(void)fd_close(fds[1]);
	return 0;
}

static void audit_send(struct supervise *s)
{
	child_send(&s->children[ROLE_GATEWAY], MSG_SUPERVISOR_AUDIT, 0,
		   &nothing, sizeof(nothing), s->audit_fd);
}

static void gateway_equip(struct supervise *s)
{
	struct child *gateway = &s->children[ROLE_GATEWAY];
	const struct listeners *l = s->setup.listeners;
	unsigned i;

	for (i = 0; i < l->count; i++)
		child_send(gateway, MSG_SUPERVISOR_LISTENER, 0,
			   &l->items[i].what, sizeof(l->items[i].what),
			   l->items[i].fd);
	child_send(gateway, MSG_SUPERVISOR_START, 0, &nothing, sizeof(nothing),
		   -1);
}

/* 0, or -errno when it could not even be started; what goes wrong after that
 * kills it, and its end starts it again. */
static int role_start(struct supervise *s, struct child *c)
{
	struct child *peer;
	size_t i;
	int r;

	r = child_start(c, s->setup.config_fd);
	if (r) {
		log_error("could not start %s: %s", c->program, err_text(r));
		return r;
	}
	if (c->role == ROLE_CONTROL && s->setup.lock) {
		lock_desk_forget(s->locks);
		lock_expect(s->setup.lock);
	}
	if (c->role == ROLE_GATEWAY)
		audit_send(s); /* before anything that it could audit */
	for (i = 0; i < ARRAY_LEN(order); i++) {
		peer = &s->children[order[i]];
		if (are_peers(c->role, peer->role) && child_runs(peer) &&
		    children_connect(c, peer))
			child_kill(c, "no channel could be made");
	}
	if (c->role == ROLE_GATEWAY)
		gateway_equip(s);
	return 0;
}

static void on_restart(struct child *c)
{
	struct supervise *s = c->ctx;

	if (role_start(s, c))
		child_is_down(s, c);
}

static const struct child_ops child_ops = { on_message, on_down, on_restart };

/* --- the object --- */

int supervise_new(const struct supervise_setup *setup, int audit_fd,
		  struct supervise **ret)
{
	struct supervise *s = must_alloc(sizeof(*s));
	struct child *c;
	size_t i;
	int r;

	s->setup = *setup;
	timer_init(&s->deadline, setup->loop, on_deadline);
	if (setup->lock)
		s->locks =
			lock_desk_new(setup->loop, setup->lock, on_locked, s);
	for (i = 0; i < ARRAY_LEN(order); i++) {
		c = &s->children[order[i]];
		child_init(c, setup->loop, order[i]);
		c->program = setup->programs[order[i]];
		c->ops = &child_ops;
		c->ctx = s;
	}
	s->audit_fd = fcntl(audit_fd, F_DUPFD_CLOEXEC, 0);
	r = s->audit_fd < 0 ? err_origin(-errno) : 0;
	for (i = 0; !r && i < ARRAY_LEN(order); i++)
		r = role_start(s, &s->children[order[i]]);
	if (r) {
		supervise_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

struct supervise *supervise_free(struct supervise *s)
{
	size_t i;

	if (!s)
		return NULL;
	timer_stop(&s->deadline);
	for (i = 0; i < ARRAY_LEN(order); i++)
		child_fini(&s->children[order[i]]);
	(void)fd_close(s->audit_fd);
	lock_desk_free(s->locks);
	free(s);
	return NULL;
}

void supervise_drain(struct supervise *s)
{
	static const enum role told[] = { ROLE_GATEWAY, ROLE_CONTROL };
	const struct msg_drain drain = { s->setup.grace_ms };
	size_t i;

	if (s->phase >= PHASE_DRAINING) {
		kill_all(s, "told to stop a second time");
		return;
	}
	s->phase = PHASE_DRAINING;
	for (i = 0; i < ARRAY_LEN(order); i++)
		timer_stop(&s->children[order[i]].timer);
	for (i = 0; i < ARRAY_LEN(told); i++)
		child_send(&s->children[told[i]], MSG_SUPERVISOR_DRAIN, 0,
			   &drain, sizeof(drain), -1);
	timer_start(&s->deadline, (uint64_t)s->setup.grace_ms + GRACE_EXTRA_MS);
	stop_advance(s);
}

void supervise_reload(struct supervise *s)
{
	child_send(&s->children[ROLE_CONTROL], MSG_SUPERVISOR_RELOAD, 0,
		   &nothing, sizeof(nothing), -1);
}

void supervise_renew(struct supervise *s, enum certificate_of of,
		     const int fds[2])
{
	const struct msg_certificate body = { of };
	enum role role =
		of == CERTIFICATE_INGRESS ? ROLE_GATEWAY : ROLE_CONTROL;

	child_send_fds(&s->children[role], MSG_SUPERVISOR_CERTIFICATE, 0, &body,
		       sizeof(body), fds, 2);
}

int supervise_set_audit(struct supervise *s, int audit_fd)
{
	int fd = fcntl(audit_fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return err_origin(-errno);
	(void)fd_close(s->audit_fd);
	s->audit_fd = fd;
	audit_send(s);
	return 0;
}

int supervise_pid(const struct supervise *s, enum role role)
{
	return child_runs(&s->children[role])
		       ? (int)s->children[role].process.pid
		       : 0;
}
