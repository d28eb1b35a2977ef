/* SPDX-License-Identifier: Apache-2.0 */
/* origin_desk.h - two sandboxes, two fake origins, and who asks for them */
#pragma once

#include "tests/unit/gateway/fake_origin.h"

#include "gateway/pipeline/decide.h"

static const char loopback[] =
	"policies:\n- name: p\n  egress:\n"
	"  - {action: allow, target: a.example, ports: [1-65535]}\n"
	"  - {action: allow, target: b.example, ports: [1-65535]}\n"
	"  - {action: allow, target: 127.0.0.0/8, ports: [1-65535]}\n";

struct desk {
	struct world *world;
	struct worker *worker;
	struct sandbox *s, *t;
	struct ca *stranger; /* nobody trusts it */
	struct fake_origin tls, plain;
	struct arena arena;
	const struct grant *grant;
	bool called;
	enum origin_event event;
};

static inline int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct destination any = destination_of(SCHEME_HTTPS, "a.example",
						addr_of("127.0.0.1", 443));
	struct verdict v;

	d->world = world_new();
	d->worker = &d->world->worker;
	world_policy(d->world, 1, loopback);
	d->s = world_sandbox(d->world, "s", "10.9.0.1");
	d->t = world_sandbox(d->world, "t", "10.9.0.2");
	must(!ca_new(clock_wall_ms(), &d->stranger));
	fake_origin_open(&d->tls, d->world, d->world->ca);
	fake_origin_open(&d->plain, d->world, NULL);
	arena_init(&d->arena, 4096);
	d->grant = decide_connect(d->worker, d->s, &any, NULL, &d->arena, &v);
	assert_non_null(d->grant);
	*state = d;
	return 0;
}

static inline int desk_close(void **state)
{
	struct desk *d = *state;

	fake_origin_close(&d->tls);
	fake_origin_close(&d->plain);
	d->stranger = ca_free(d->stranger);
	arena_fini(&d->arena);
	world_free(d->world);
	free(d);
	return 0;
}

static inline void on_origin(struct origin *o, void *ctx,
			     enum origin_event event)
{
	struct desk *d = ctx;

	(void)o;
	assert_false(d->called);
	d->called = true;
	d->event = event;
}

static inline struct origin *begin(struct desk *d, const struct sandbox *s,
				   const struct destination *to)
{
	d->called = false;
	return origin_open(d->worker, s, to, d->grant, ORIGIN_PLAINLY,
			   on_origin, d);
}

/* Opened, or failed: then ->open is false. */
static inline struct origin *get(struct desk *d, const struct sandbox *s,
				 const struct destination *to)
{
	struct origin *o = begin(d, s, to);

	if (o->open) {
		assert_false(d->called);
		return o;
	}
	world_run(d->world, &d->called);
	assert_int_equal(o->open, d->event == ORIGIN_OPENED);
	return o;
}

static inline struct origin *get_open(struct desk *d, const struct sandbox *s,
				      const struct destination *to)
{
	struct origin *o = get(d, s, to);

	if (!o->open)
		fail_msg("not opened: %s", o->detail);
	return o;
}

static inline void assert_fails(struct desk *d, const struct destination *to,
				enum audit_reason reason)
{
	struct origin *o = get(d, d->s, to);

	assert_false(o->open);
	assert_string_equal(audit_reason_name(o->reason),
			    audit_reason_name(reason));
	assert_true(o->detail[0] != '\0');
	(void)origin_free(o);
}

/* One word each way, so that tickets have arrived as well. */
static inline void talk(struct desk *d, struct origin *o)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	char bytes[16];
	ssize_t n;

	must(!stream_write(o->stream, SPAN("ping")));
	do {
		world_turn(d->world);
		n = stream_read(o->stream, bytes, sizeof(bytes));
	} while (n == STREAM_AGAIN && clock_ms() < end_ms);
	assert_int_equal(n, 4);
	assert_memory_equal(bytes, "pong", 4);
}

static inline struct destination named(const struct fake_origin *f,
				       const char *host)
{
	return proved(f->ctx ? SCHEME_HTTPS : SCHEME_HTTP, host, f->address,
		      ADDRESS_HOSTS);
}
