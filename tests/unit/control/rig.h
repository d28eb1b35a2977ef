/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - the whole control role in one process, between fakes
 *
 * A supervisor, a vault and a gateway stand at the far ends of channel pairs,
 * on the same loop as the role; a client speaks to its API over the real unix
 * socket. The vault keeps records in memory and checks what it is sent as the
 * real one does; the gateway keeps what it was told.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "certs/ca.h"
#include "policy/policy.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/list.h"
#include "src/base/log.h"
#include "src/base/map.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/control/vault_link.h"
#include "src/httpd/httpd.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/msg.h"
#include "src/text/json.h"

#define RIG __attribute__((unused)) static

/* -- the fake vault ------------------------------------------------------- */

struct fake_record {
	struct list link;
	struct msg_record head;
	char *value;
	size_t len;
};

struct fake_vault {
	struct chan *chan;
	struct list records; /* in order of scope, kind, name */
	struct list pending; /* puts and removes of the open transaction */
	char scope[MSG_NAME_SIZE];
	int64_t expected;
	struct { /* revisions by scope */
		char scope[MSG_NAME_SIZE];
		uint64_t revision;
	} scopes[16];
	struct ca *ca;
	int fail_commit;  /* an errno for the next commit */
	bool whole_scope; /* the transaction removes all of it */
	bool mute;	  /* do not answer commits */
	bool hold;	  /* do not make them before fake_vault_go_on() */
	uint32_t held;	  /* the serial of such a one, or 0 */
	unsigned commits, changes, reads;
};

/* -- the fake gateway ----------------------------------------------------- */

struct fake_policy {
	uint32_t id;
	uint64_t generation;
	const void *map;
	size_t size;
	struct snapshot snapshot;
};

struct fake_gateway {
	struct chan *chan;
	struct fake_policy policies[32];
	unsigned policy_count;
	struct msg_sandbox sandboxes[32];
	unsigned sandbox_count;
	struct buf bindings, node;
	struct { /* bindings of single sandboxes */
		char scope[MSG_NAME_SIZE];
		struct buf bindings;
	} scopes[8];
	unsigned scope_count;
	struct msg_ingress insides[32];
	unsigned inside_count;
	struct buf keys; /* of signed routes */
	struct msg_ingress_client client;
	int client_fd;	  /* the last one that was handed over, or 0 */
	bool hold;	  /* do not answer SYNC */
	bool exhausted;	  /* say so in a status */
	uint32_t held[8]; /* serials */
	unsigned held_count;
	unsigned syncs, messages;
};

struct rig {
	struct loop *loop;
	struct config *config;
	struct control *control;
	char folder[64];
	char path[128]; /* scratch */
	struct chan *supervisor;
	bool roles_mute;
	unsigned ready, accused;
	struct msg_lock locks[32]; /* as the supervisor holds them */
	unsigned lock_count, lock_ends;
	int fail_lock; /* an errno for every lock */
	struct fake_vault vault;
	struct fake_gateway gateway;
};

/* -- the vault's side ----------------------------------------------------- */

static int fake_order(const struct fake_record *a, const char *scope,
		      uint32_t kind, const char *name)
{
	int r = strcmp(a->head.scope, scope);

	if (!r)
		r = (a->head.kind > kind) - (a->head.kind < kind);
	return r ? r : strcmp(a->head.name, name);
}

static uint64_t *fake_revision(struct fake_vault *v, const char *scope)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(v->scopes); i++) {
		if (v->scopes[i].scope[0] == 1 ||
		    !strcmp(v->scopes[i].scope + 1, scope))
			break;
		if (!v->scopes[i].scope[0]) {
			v->scopes[i].scope[0] = 2;
			strcpy(v->scopes[i].scope + 1, scope);
			break;
		}
	}
	return &v->scopes[i].revision;
}

static void fake_record_free(struct fake_record *r)
{
	list_remove(&r->link);
	free(r->value);
	free(r);
}

static void fake_apply(struct fake_vault *v, struct fake_record *change)
{
	struct list *after = &v->records;
	struct fake_record *r;
	int order;

	list_remove(&change->link);
	list_for_each(it, &v->records)
	{
		r = container_of(it, struct fake_record, link);
		order = fake_order(r, change->head.scope, change->head.kind,
				   change->head.name);
		if (order < 0)
			after = it;
		if (!order)
			fake_record_free(r);
	}
	if (change->head.found)
		list_insert(after, &change->link);
	else
		fake_record_free(change);
}

/* Removes all of the scope at once; then nothing else is in the transaction. */
static void fake_pend_scope(struct fake_vault *v)
{
	assert_true(list_is_empty(&v->pending));
	v->whole_scope = true;
}

static void fake_drop_scope(struct fake_vault *v)
{
	struct fake_record *r;

	list_for_each(it, &v->records)
	{
		r = container_of(it, struct fake_record, link);
		if (!strcmp(r->head.scope, v->scope))
			fake_record_free(r);
	}
	*fake_revision(v, v->scope) = 0;
}

static void fake_commit(struct fake_vault *v, uint32_t serial)
{
	uint64_t *revision = fake_revision(v, v->scope);
	struct msg_result body = { .status = v->fail_commit };
	struct fake_record *r;

	v->commits++;
	if (!body.status && v->expected >= 0 &&
	    (uint64_t)v->expected != *revision)
		body.status = EAGAIN;
	if (body.status)
		strcpy(body.text, "the fake vault refuses");
	else
		++*revision;
	while ((r = list_first(&v->pending, struct fake_record, link))) {
		r->head.revision = *revision;
		if (body.status)
			fake_record_free(r);
		else
			fake_apply(v, r);
	}
	if (v->whole_scope && !body.status)
		fake_drop_scope(v);
	v->whole_scope = false;
	v->fail_commit = 0;
	body.revision = *revision;
	if (!v->mute)
		assert_int_equal(chan_send(v->chan, MSG_VAULT_RESULT, serial,
					   &body, sizeof(body), SPAN_NONE, NULL,
					   0),
				 0);
}

static void fake_pend(struct fake_vault *v, const struct msg_record *body,
		      struct span value, bool put)
{
	struct fake_record *r = must_alloc(sizeof(*r));

	assert_string_equal(body->scope, v->scope);
	assert_true(body->name[0]);
	v->changes++;
	r->head = *body;
	r->head.found = put;
	r->value = must_alloc(value.len + 1);
	memcpy(r->value, value.ptr, value.len);
	r->len = value.len;
	list_init(&r->link);
	list_push(&v->pending, &r->link);
}

static void fake_read(struct fake_vault *v, uint32_t serial,
		      const struct msg_read *body)
{
	const struct fake_record *found = NULL, *r;
	struct msg_record none = { 0 };
	bool hidden;

	v->reads++;
	list_for_each(it, &v->records)
	{
		r = container_of(it, struct fake_record, link);
		if (!found && r->head.kind == body->kind &&
		    !strcmp(r->head.scope, body->scope) &&
		    strcmp(r->head.name, body->name) > 0)
			found = r;
	}
	hidden = !found || found->head.kind == RECORD_CREDENTIAL;
	assert_int_equal(chan_send(v->chan, MSG_VAULT_RECORD, serial,
				   found ? &found->head : &none, sizeof(none),
				   hidden ? SPAN_NONE
					  : span_of(found->value, found->len),
				   NULL, 0),
			 0);
}

static void fake_vault_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	struct fake_vault *v = ctx;
	struct span tail, der;
	const void *body = msg_body(m->type, m->payload, &tail);
	struct msg_result result = { 0 };
	const struct msg_begin *begin = body;
	const struct msg_record *record = body;

	assert_non_null(body);
	switch (m->type) {
	case MSG_CONTROL_BEGIN:
		assert_true(list_is_empty(&v->pending));
		strcpy(v->scope, begin->scope);
		v->expected = begin->expected_revision;
		return;
	case MSG_CONTROL_PUT:
		fake_pend(v, record, tail, true);
		return;
	case MSG_CONTROL_REMOVE:
		if (record->kind == RECORD_NONE && !record->name[0])
			fake_pend_scope(v);
		else
			fake_pend(v, record, SPAN(""), false);
		return;
	case MSG_CONTROL_COMMIT:
		if (v->hold)
			v->held = m->serial;
		else
			fake_commit(v, m->serial);
		return;
	case MSG_CONTROL_READ:
		fake_read(v, m->serial, body);
		return;
	case MSG_CONTROL_REVISION:
		result.revision = *fake_revision(v, record->scope);
		assert_int_equal(chan_send(c, MSG_VAULT_RESULT, m->serial,
					   &result, sizeof(result), SPAN_NONE,
					   NULL, 0),
				 0);
		return;
	case MSG_CONTROL_MAINTAIN:
		strcpy(result.text, "all is well");
		assert_int_equal(chan_send(c, MSG_VAULT_RESULT, m->serial,
					   &result, sizeof(result), SPAN_NONE,
					   NULL, 0),
				 0);
		return;
	case MSG_ROLE_GET_CA:
		der = ca_cert_der(v->ca);
		assert_int_equal(chan_send(c, MSG_VAULT_CA, m->serial, &result,
					   sizeof(result), der, NULL, 0),
				 0);
		return;
	default:
		fail_msg("the vault got message %u", m->type);
	}
}

RIG void fake_vault_go_on(struct fake_vault *v)
{
	assert_int_not_equal(v->held, 0);
	fake_commit(v, v->held);
	v->held = 0;
}

static void fake_closed(void *ctx, struct chan *c, int error)
{
	struct chan **of = ctx; /* the first field of each fake */

	(void)error;
	if (*of == c)
		*of = NULL;
	chan_free(c);
}

/* What the vault keeps, NULL when it has none. */
RIG const char *fake_value(const struct fake_vault *v, const char *scope,
			   enum record_kind kind, const char *name)
{
	const struct fake_record *r;

	list_for_each(it, &v->records)
	{
		r = container_of(it, struct fake_record, link);
		if (!fake_order(r, scope, kind, name))
			return r->value;
	}
	return NULL;
}

/* -- the gateway's side --------------------------------------------------- */

static void fake_text(struct buf *dst, int fd, uint64_t size)
{
	const void *map;

	if (!size) {
		buf_clear(dst);
		return;
	}
	assert_int_equal(chan_map(fd, size, &map), 0);
	buf_clear(dst);
	assert_int_equal(buf_put(dst, span_of(map, size)), 0);
	assert_int_equal(buf_put(dst, span_of("", 1)), 0);
	munmap((void *)(uintptr_t)map, size);
}

RIG struct fake_policy *fake_policy_at(struct fake_gateway *g, uint32_t id)
{
	unsigned i;

	for (i = 0; i < g->policy_count; i++)
		if (g->policies[i].id == id)
			return &g->policies[i];
	return NULL;
}

static void fake_policy_put(struct fake_gateway *g,
			    const struct msg_policy *body, int fd)
{
	struct fake_policy *p = fake_policy_at(g, body->policy);

	if (!p)
		p = &g->policies[g->policy_count++];
	else
		munmap((void *)(uintptr_t)p->map, p->size);
	p->id = body->policy;
	p->generation = body->generation;
	p->size = body->size;
	assert_int_equal(chan_map(fd, body->size, &p->map), 0);
	assert_int_equal(snapshot_open(p->map, p->size, &p->snapshot), 0);
	p->snapshot.generation = body->generation;
}

static void fake_policy_drop(struct fake_gateway *g, uint32_t id)
{
	struct fake_policy *p = fake_policy_at(g, id);

	assert_non_null(p);
	munmap((void *)(uintptr_t)p->map, p->size);
	*p = g->policies[--g->policy_count];
}

RIG struct msg_sandbox *fake_sandbox(struct fake_gateway *g, const char *id)
{
	unsigned i;

	for (i = 0; i < g->sandbox_count; i++)
		if (!strcmp(g->sandboxes[i].id, id))
			return &g->sandboxes[i];
	return NULL;
}

RIG struct msg_ingress *fake_inside(struct fake_gateway *g, const char *id)
{
	unsigned i;

	for (i = 0; i < g->inside_count; i++)
		if (!strcmp(g->insides[i].id, id))
			return &g->insides[i];
	return NULL;
}

/* Those of the node, or of a sandbox. */
RIG struct buf *fake_bindings(struct fake_gateway *g, const char *scope)
{
	unsigned i;

	if (!scope[0])
		return &g->bindings;
	for (i = 0; i < g->scope_count; i++)
		if (!strcmp(g->scopes[i].scope, scope))
			return &g->scopes[i].bindings;
	assert_true(i < ARRAY_LEN(g->scopes));
	strcpy(g->scopes[i].scope, scope);
	buf_init(&g->scopes[i].bindings, JSON_TEXT_MAX);
	g->scope_count++;
	return &g->scopes[i].bindings;
}

static void fake_synced(struct fake_gateway *g, uint32_t serial)
{
	const struct msg_result body = { 0 };

	assert_int_equal(chan_send(g->chan, MSG_GATEWAY_SYNCED, serial, &body,
				   sizeof(body), SPAN_NONE, NULL, 0),
			 0);
}

static void fake_gateway_message(void *ctx, struct chan *c, struct chan_msg *m)
{
	static const struct msg_result ok;
	struct fake_gateway *g = ctx;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);
	const struct msg_sandbox *sandbox = body;
	struct msg_sandbox *there;
	struct msg_ingress *inside;

	assert_non_null(body);
	g->messages++;
	switch (m->type) {
	case MSG_CONTROL_POLICY:
		fake_policy_put(g, body, m->fds[0]);
		return;
	case MSG_CONTROL_POLICY_DROP:
		fake_policy_drop(g, ((const struct msg_policy *)body)->policy);
		return;
	case MSG_CONTROL_SANDBOX:
		there = fake_sandbox(g, sandbox->id);
		if (!there)
			there = &g->sandboxes[g->sandbox_count++];
		*there = *sandbox;
		return;
	case MSG_CONTROL_SANDBOX_DROP:
		there = fake_sandbox(g, sandbox->id);
		if (there) /* it may never have been told of it */
			*there = g->sandboxes[--g->sandbox_count];
		return;
	case MSG_CONTROL_BINDINGS:
		fake_text(fake_bindings(
				  g, ((const struct msg_scope *)body)->scope),
			  m->fds[0], ((const struct msg_scope *)body)->size);
		return;
	case MSG_CONTROL_NODE:
		fake_text(&g->node, m->fds[0],
			  ((const struct msg_scope *)body)->size);
		return;
	case MSG_CONTROL_SYNC:
		g->syncs++;
		if (g->hold)
			g->held[g->held_count++] = m->serial;
		else
			fake_synced(g, m->serial);
		return;
	case MSG_CONTROL_INGRESS:
		inside = fake_inside(g, ((const struct msg_ingress *)body)->id);
		if (!inside)
			inside = &g->insides[g->inside_count++];
		*inside = *(const struct msg_ingress *)body;
		return;
	case MSG_CONTROL_INGRESS_DROP:
		inside = fake_inside(g, ((const struct msg_ingress *)body)->id);
		if (inside)
			*inside = g->insides[--g->inside_count];
		return;
	case MSG_CONTROL_INGRESS_KEYS:
		fake_text(&g->keys, m->fds[0],
			  ((const struct msg_scope *)body)->size);
		return;
	case MSG_CONTROL_INGRESS_CLIENT:
		g->client = *(const struct msg_ingress_client *)body;
		g->client_fd = m->fds[0];
		m->fds[0] = -1;
		return;
	case MSG_CONTROL_USAGE:
		(void)chan_send(c, MSG_GATEWAY_USAGE, m->serial, &ok,
				sizeof(ok),
				SPAN("{\"connections\":{\"used\":3,"
				     "\"limit\":5,\"refused\":7}}"),
				NULL, 0);
		return;
	case MSG_CONTROL_STATUS:
		(void)chan_send(
			c, MSG_GATEWAY_STATUS, m->serial, &ok, sizeof(ok),
			g->exhausted ? SPAN("{\"outOfDescriptors\":true}")
				     : SPAN("{\"exchanges\":5}"),
			NULL, 0);
		return;
	default:
		fail_msg("the gateway got message %u", m->type);
	}
}

/* -- the supervisor's side ------------------------------------------------ */

RIG struct msg_lock *fake_lock(struct rig *rig, const char *id)
{
	unsigned i;

	for (i = 0; i < rig->lock_count; i++)
		if (!strcmp(rig->locks[i].id, id))
			return &rig->locks[i];
	return NULL;
}

static void fake_lock_message(struct rig *rig, struct chan *c,
			      struct chan_msg *m)
{
	struct msg_locked reply = { .status = rig->fail_lock };
	struct span tail;
	const struct msg_lock *body = msg_body(m->type, m->payload, &tail);
	struct msg_lock *held = NULL;

	assert_non_null(body);
	if (m->type == MSG_CONTROL_LOCKS_END) {
		rig->lock_ends++;
		reply.status = 0;
	} else {
		held = fake_lock(rig, body->id);
	}
	if (m->type == MSG_CONTROL_LOCK && !reply.status) {
		/* before the gateway believes the address */
		held = held ? held : &rig->locks[rig->lock_count++];
		*held = *body;
		strcpy(reply.device, body->port[0] ? body->port : body->iface);
	}
	if (m->type == MSG_CONTROL_UNLOCK && held)
		*held = rig->locks[--rig->lock_count];
	assert_int_equal(chan_send(c, MSG_SUPERVISOR_LOCKED, m->serial, &reply,
				   sizeof(reply), SPAN_NONE, NULL, 0),
			 0);
}

static void fake_supervisor_message(void *ctx, struct chan *c,
				    struct chan_msg *m)
{
	struct rig *rig = container_of(ctx, struct rig, supervisor);
	struct msg_roles roles = {
		.table_ok = 1,
		.queue = QUEUE_XTABLES,
		.forwards = 1,
	};

	switch (m->type) {
	case MSG_ROLE_READY:
		rig->ready++;
		return;
	case MSG_ROLE_ACCUSE:
		rig->accused++;
		return;
	case MSG_CONTROL_ROLES:
		roles.roles[ROLE_VAULT].pid = 77;
		if (!rig->roles_mute)
			(void)chan_send(c, MSG_CONTROL_ROLES, m->serial, &roles,
					sizeof(roles), SPAN_NONE, NULL, 0);
		return;
	case MSG_CONTROL_LOCK:
	case MSG_CONTROL_UNLOCK:
	case MSG_CONTROL_LOCKS_END:
		fake_lock_message(rig, c, m);
		return;
	default:
		fail_msg("the supervisor got message %u", m->type);
	}
}

RIG void rig_tell(struct rig *rig, uint16_t type, const void *body, int fd)
{
	assert_int_equal(chan_send(rig->supervisor, type, 0, body,
				   msg_body_size(type), SPAN_NONE, &fd,
				   fd >= 0),
			 0);
}

/* A new channel between control and one of the fakes. */
static void rig_meet(struct rig *rig, enum role role, struct chan **ret,
		     const struct chan_ops *ops, void *ctx)
{
	const struct msg_peer body = { .role = role };
	int fds[2];

	assert_int_equal(chan_pair(fds), 0);
	assert_int_equal(chan_new(rig->loop, fds[0], ops, ctx, ret), 0);
	rig_tell(rig, MSG_SUPERVISOR_PEER, &body, fds[1]);
	close(fds[1]);
}

RIG void rig_vault_up(struct rig *rig)
{
	static const struct chan_ops ops = { fake_vault_message, fake_closed };

	rig_meet(rig, ROLE_VAULT, &rig->vault.chan, &ops, &rig->vault);
}

RIG void rig_gateway_up(struct rig *rig)
{
	static const struct chan_ops ops = { fake_gateway_message,
					     fake_closed };

	rig_meet(rig, ROLE_GATEWAY, &rig->gateway.chan, &ops, &rig->gateway);
}

RIG void rig_vault_down(struct rig *rig)
{
	rig->vault.chan = chan_free(rig->vault.chan);
}

/* A dead gateway forgets. */
RIG void rig_gateway_down(struct rig *rig)
{
	struct fake_gateway *g = &rig->gateway;

	g->chan = chan_free(g->chan);
	while (g->policy_count)
		fake_policy_drop(g, g->policies[0].id);
	g->sandbox_count = g->inside_count = g->held_count = 0;
	buf_clear(&g->keys);
	buf_clear(&g->bindings);
	while (g->scope_count)
		buf_fini(&g->scopes[--g->scope_count].bindings);
	buf_clear(&g->node);
}

/* -- time ------------------------------------------------------------------ */

RIG void rig_turn(struct rig *rig)
{
	loop_run_once(rig->loop, false);
	usleep(300);
}

RIG void rig_turns(struct rig *rig, unsigned ms)
{
	uint64_t end = clock_ms() + ms;

	while (clock_ms() < end)
		rig_turn(rig);
}

/* Turns until the condition holds; fails after five seconds. */
#define RIG_UNTIL(rig, condition)                            \
	do {                                                 \
		uint64_t rig_end = clock_ms() + 5000;        \
		while (!(condition) && clock_ms() < rig_end) \
			rig_turn(rig);                       \
		assert_true(condition);                      \
	} while (0)

/* -- life ------------------------------------------------------------------ */

RIG const char *rig_path(struct rig *rig, const char *name)
{
	snprintf(rig->path, sizeof(rig->path), "%s/%s", rig->folder, name);
	return rig->path;
}

RIG void rig_write(struct rig *rig, const char *name, const char *text)
{
	FILE *file = fopen(rig_path(rig, name), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Writes further members of the configuration, each behind a comma. */
RIG void (*rig_configure_more)(struct rig *rig, char *dst, size_t size);

static void rig_configure(struct rig *rig)
{
	struct diag d = { 0 };
	char text[4096], more[2048] = "";

	if (rig_configure_more)
		rig_configure_more(rig, more, sizeof(more));
	snprintf(text, sizeof(text),
		 "{\"stateDir\":\"%s\",\"runDir\":\"%s\",\"policyDir\":"
		 "\"%s/policies\",\"auditFile\":\"%s/audit.jsonl\",\"user\":"
		 "\"\",\"dns\":{\"upstreams\":[\"192.0.2.53\"],\"hostsFile\":"
		 "\"%s/hosts\"},\"pins\":{\"pin.example.com\":[\"192.0.2.9\"]}"
		 "%s}",
		 rig->folder, rig->folder, rig->folder, rig->folder,
		 rig->folder, more);
	if (config_parse(span_str(text), &rig->config, &d))
		fail_msg("%s", d.msg);
}

/* A new control process, with nobody to talk to but the supervisor. */
RIG void rig_control_start(struct rig *rig)
{
	static const struct chan_ops ops = { fake_supervisor_message,
					     fake_closed };
	int fds[2];

	assert_int_equal(chan_pair(fds), 0);
	assert_int_equal(chan_new(rig->loop, fds[0], &ops, &rig->supervisor,
				  &rig->supervisor),
			 0);
	assert_int_equal(control_new(rig->loop, rig->config, NULL, fds[1],
				     &rig->control),
			 0);
	assert_int_equal(httpd_listen_unix(rig->control->httpd,
					   rig->config->admin_socket, 0666),
			 0);
}

RIG void rig_control_stop(struct rig *rig)
{
	rig->control = control_free(rig->control);
	rig->supervisor = chan_free(rig->supervisor);
	rig_turn(rig);
}

RIG int rig_bare(void **state)
{
	struct rig *rig = must_alloc(sizeof(*rig));

	log_set_level(LOG_ERROR);
	strcpy(rig->folder, "/tmp/control-test-XXXXXX");
	assert_non_null(mkdtemp(rig->folder));
	chmod(rig->folder, 0755);
	assert_int_equal(mkdir(rig_path(rig, "policies"), 0755), 0);
	rig_write(rig, "hosts", "192.0.2.8 Host.Example.com # a comment\n");
	rig_configure(rig);
	assert_int_equal(loop_new(&rig->loop), 0);
	list_init(&rig->vault.records);
	list_init(&rig->vault.pending);
	assert_int_equal(ca_new(clock_wall_ms(), &rig->vault.ca), 0);
	buf_init(&rig->gateway.bindings, JSON_TEXT_MAX);
	buf_init(&rig->gateway.node, JSON_TEXT_MAX);
	buf_init(&rig->gateway.keys, JSON_TEXT_MAX);
	*state = rig;
	return 0;
}

/* Everybody is there, and nothing was ever said. */
RIG int rig_set_up(void **state)
{
	struct rig *rig;

	rig_bare(state);
	rig = *state;
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded && rig->gateway.syncs);
	return 0;
}

RIG int rig_tear_down(void **state)
{
	struct rig *rig = *state;
	struct fake_record *r;
	char command[128];

	log_set_level(LOG_ERROR);
	rig_control_stop(rig);
	rig_vault_down(rig);
	rig_gateway_down(rig);
	rig_turn(rig);
	while ((r = list_first(&rig->vault.records, struct fake_record, link)))
		fake_record_free(r);
	while ((r = list_first(&rig->vault.pending, struct fake_record, link)))
		fake_record_free(r);
	ca_free(rig->vault.ca);
	buf_fini(&rig->gateway.bindings);
	buf_fini(&rig->gateway.node);
	buf_fini(&rig->gateway.keys);
	loop_free(rig->loop);
	config_free(rig->config);
	snprintf(command, sizeof(command), "rm -r %s", rig->folder);
	assert_int_equal(system(command), 0);
	free(rig);
	return 0;
}

/* -- the client ------------------------------------------------------------ */

struct call {
	int fd;
	unsigned status; /* 0 = no answer yet */
	struct json *json;
	char *body; /* of the last answer */
	char text[1024 * 1024];
	size_t len;
};

static int rig_connect(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(
		span_copy(span_str(path), at.sun_path, sizeof(at.sun_path)));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

/* Sends; the answer may come later. */
RIG struct call *call_start_at(struct rig *rig, const char *socket_path,
			       const char *method, const char *path,
			       const char *headers, const char *body)
{
	struct call *c = must_alloc(sizeof(*c));
	size_t len = body ? strlen(body) : 0;
	size_t size = len + strlen(headers) + strlen(path) + 1024;
	char *request = must_alloc(size);
	ssize_t at = 0, n, total;

	c->fd = rig_connect(socket_path);
	total = snprintf(request, size,
			 "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			 "%sContent-Length: %zu\r\n\r\n%s",
			 method, path, headers, len, body ? body : "");
	while (at < total) {
		n = send(c->fd, request + at, (size_t)(total - at),
			 MSG_NOSIGNAL);
		if (n > 0)
			at += n;
		rig_turn(rig);
	}
	free(request);
	return c;
}

RIG struct call *call_start(struct rig *rig, const char *method,
			    const char *path, const char *body)
{
	return call_start_at(rig, rig->config->admin_socket, method, path, "",
			     body);
}

/* Takes what came; true once the answer is whole. */
RIG bool call_poll(struct rig *rig, struct call *c)
{
	ssize_t n;

	if (c->status)
		return true;
	rig_turn(rig);
	n = recv(c->fd, c->text + c->len, sizeof(c->text) - 1 - c->len, 0);
	if (n > 0)
		c->len += (size_t)n;
	if (n != 0)
		return false;
	assert_int_equal(sscanf(c->text, "HTTP/1.1 %u", &c->status), 1);
	assert_non_null(strstr(c->text, "X-Request-ID: "));
	c->body = strstr(c->text, "\r\n\r\n") + 4;
	if (json_parse(span_str(c->body), &c->json, NULL))
		c->json = NULL;
	return true;
}

RIG struct call *call_free(struct call *c)
{
	json_free(c->json);
	close(c->fd);
	free(c);
	return NULL;
}

/* Keeps the reply for tests/lint/openapi_routes.py, which compares it with the
 * document of the API: of one API for each program. */
static void api_note(const char *folder, const char *method, const char *path,
		     const struct call *c)
{
	struct buf line = BUF_INIT(4 * sizeof(c->text));
	static FILE *file;
	struct json_out o;
	char name[4096];

	if (!file) {
		snprintf(name, sizeof(name), "%s/%s", BUILD_DIR, folder);
		(void)mkdir(name, 0755);
		snprintf(name, sizeof(name), "%s/%s/%s.jsonl", BUILD_DIR,
			 folder, program_invocation_short_name);
		file = fopen(name, "w");
		assert_non_null(file);
		(void)setvbuf(file, NULL, _IOLBF, 1 << 16);
	}
	json_start(&o, &line);
	json_open_object(&o, NULL);
	json_put_str(&o, "method", method);
	json_put_str(&o, "path", path);
	json_put_u64(&o, "status", c->status);
	json_put_str(&o, "body", c->body);
	json_close(&o);
	assert_int_equal(json_done(&o), 0);
	fprintf(file, "%.*s\n", SPAN_FMT(buf_peek(&line)));
	buf_fini(&line);
}

/* The whole exchange. The answer lives until the next call of api(). */
RIG const struct call *api(struct rig *rig, const char *method,
			   const char *path, const char *body)
{
	static struct call *last;

	if (last)
		last = call_free(last);
	last = call_start(rig, method, path, body);
	RIG_UNTIL(rig, call_poll(rig, last));
	api_note("api-replies", method, path, last);
	/* every refusal has the same shape */
	if (last->status >= 400) {
		assert_non_null(json_text(json_find(last->json, "code")).ptr);
		assert_non_null(
			json_text(json_find(last->json, "message")).ptr);
		assert_int_equal(json_count(last->json), 2);
	}
	return last;
}

RIG void assert_call(const struct call *c, unsigned status, const char *has)
{
	if (c->status != status || (has && !strstr(c->body, has)))
		fail_msg("expected %u \"%s\", found %u: %s", status,
			 has ? has : "", c->status, c->body);
}

RIG uint64_t call_u64(const struct call *c, const char *name)
{
	uint64_t value = UINT64_MAX;

	assert_true(json_u64(json_find(c->json, name), &value));
	return value;
}
