/* SPDX-License-Identifier: Apache-2.0 */
/* roles.h - supervisor, control and vault as the test plays them: the far ends
 * of the main thread's channels */
#pragma once

#include "tests/unit/gateway/fixture.h"

#include <poll.h>
#include <string.h>

struct roles {
	struct world *world;
	int supervisor, control, vault; /* far ends, or -1 */
	char bytes[CHAN_MESSAGE_MAX] __attribute__((aligned(MSG_ALIGN)));
};

/* What gateway.c does with them. */
static inline void roles_on_control(void *ctx, struct chan *c,
				    struct chan_msg *m)
{
	(void)c;
	feed_on_message(ctx, m);
}

static inline void roles_on_vault(void *ctx, struct chan *c, struct chan_msg *m)
{
	(void)c;
	if (m->type == MSG_VAULT_SIGNED)
		sign_on_message(ctx, m);
	else
		lease_on_message(ctx, m);
}

static inline void roles_on_supervisor(void *ctx, struct chan *c,
				       struct chan_msg *m)
{
	(void)ctx;
	(void)c;
	(void)m;
}

static inline void roles_on_closed(void *ctx, struct chan *c, int error)
{
	(void)ctx;
	(void)c;
	(void)error;
}

static const struct chan_ops roles_control_ops = { roles_on_control,
						   roles_on_closed };
static const struct chan_ops roles_vault_ops = { roles_on_vault,
						 roles_on_closed };
static const struct chan_ops roles_supervisor_ops = { roles_on_supervisor,
						      roles_on_closed };

/* The far end of a new channel. */
static inline int roles_link(struct world *w, const struct chan_ops *ops,
			     struct chan **ret)
{
	int fds[2];

	must(!chan_pair(fds));
	must(!chan_new(w->gateway.loop, fds[0], ops, &w->gateway, ret));
	return fds[1];
}

static inline void roles_vault_begin(struct roles *r)
{
	struct gateway *g = &r->world->gateway;

	r->vault = roles_link(r->world, &roles_vault_ops, &g->vault);
	sign_resume(g);
	lease_resume(g);
}

static inline void roles_vault_end(struct roles *r)
{
	struct gateway *g = &r->world->gateway;

	g->vault = chan_free(g->vault);
	r->vault = fd_close(r->vault);
}

static inline int roles_set_up(void **state)
{
	struct roles *r = must_alloc(sizeof(*r));
	struct gateway *g;

	r->world = world_new();
	g = &r->world->gateway;
	r->supervisor =
		roles_link(r->world, &roles_supervisor_ops, &g->supervisor);
	r->control = roles_link(r->world, &roles_control_ops, &g->control);
	roles_vault_begin(r);
	*state = r;
	return 0;
}

static inline int roles_tear_down(void **state)
{
	struct roles *r = *state;

	world_free(r->world);
	(void)fd_close(r->supervisor);
	(void)fd_close(r->control);
	(void)fd_close(r->vault);
	free(r);
	return 0;
}

/* -- speaking ---------------------------------------------------------------
 */

static inline void say(int fd, enum msg_type type, uint32_t serial,
		       const void *body, struct span tail)
{
	must(!chan_send_now(fd, (uint16_t)type, serial, body,
			    msg_body_size((uint16_t)type), tail, NULL, 0));
}

/* With a memfd that holds text. */
static inline void say_text(int fd, enum msg_type type, const void *body,
			    struct span text)
{
	int memfd = chan_memfd(text);

	must(memfd >= 0);
	must(!chan_send_now(fd, (uint16_t)type, 0, body,
			    msg_body_size((uint16_t)type), SPAN_NONE, &memfd,
			    1));
	(void)fd_close(memfd);
}

static inline void say_bindings(struct roles *r, const char *scope,
				const char *json)
{
	struct msg_scope body = { .size = strlen(json) };

	must(span_copy(span_str(scope), body.scope, sizeof(body.scope)));
	say_text(r->control, MSG_CONTROL_BINDINGS, &body, span_str(json));
}

static inline void say_sync(struct roles *r, uint32_t serial)
{
	const struct msg_none body = { 0 };

	say(r->control, MSG_CONTROL_SYNC, serial, &body, SPAN_NONE);
}

static inline void say_result(int fd, enum msg_type type, uint32_t serial,
			      int status, struct span tail)
{
	const struct msg_result body = { .status = status, .text = "no" };

	say(fd, type, serial, &body, tail);
}

/* -- listening --------------------------------------------------------------
 */

/* Is there a message, once everything has arrived? */
static inline bool is_said(struct roles *r, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	world_settle(r->world);
	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

/* The body of the next message, which must be of that type. */
static inline const void *hear(struct roles *r, int fd, enum msg_type type,
			       uint32_t *ret_serial, struct span *ret_tail)
{
	struct chan_msg m;
	struct span tail;
	const void *body;

	if (!is_said(r, fd))
		fail_msg("nothing was said, %s was due",
			 msg_type_name((uint16_t)type));
	must(!chan_recv_now(fd, r->bytes, sizeof(r->bytes), &m));
	if (m.type != type)
		fail_msg("%s was said, %s was due", msg_type_name(m.type),
			 msg_type_name((uint16_t)type));
	assert_int_equal(m.fd_count, 0);
	if (ret_serial)
		*ret_serial = m.serial;
	body = msg_body(m.type, m.payload, ret_tail ? ret_tail : &tail);
	assert_non_null(body);
	return body;
}

static inline void hear_synced(struct roles *r, uint32_t serial)
{
	uint32_t found;

	(void)hear(r, r->control, MSG_GATEWAY_SYNCED, &found, NULL);
	assert_int_equal(found, serial);
}

/* The vault is asked for that credential; the serial to answer. */
static inline uint32_t hear_lease(struct roles *r, const char *scope,
				  const char *name)
{
	const struct msg_credential *body;
	uint32_t serial;

	body = hear(r, r->vault, MSG_GATEWAY_LEASE, &serial, NULL);
	assert_string_equal(body->scope, scope);
	assert_string_equal(body->name, name);
	assert_true(serial > 0);
	return serial;
}

static inline void hear_accused(struct roles *r, enum role role)
{
	const struct msg_peer *body =
		hear(r, r->supervisor, MSG_ROLE_ACCUSE, NULL, NULL);

	assert_int_equal(body->role, role);
}
