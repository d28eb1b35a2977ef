/* SPDX-License-Identifier: Apache-2.0 */
/* origin.c - open a connection to an origin: addresses in turn, then TLS */

#include "gateway/upstream/origin.h"

#include <errno.h>
#include <stdio.h>

#include "gateway/pipeline/decide.h"
#include "gateway/upstream/chain.h"
#include "gateway/registry/facts.h"
#include "gateway/upstream/origin_h2.h"
#include "gateway/upstream/pool.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/pace.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	/* An address that does not answer gives way to the next after this. */
	ATTEMPT_MS = 2000,
	ORIGIN_IN_BYTES = 1024 * 1024,
	GRANT_ARENA_BYTES = 8 * 1024,
};

static void origin_attempt(struct origin *o);

static void on_begin(struct timer *t);

static void origin_explain(struct origin *o, const char *detail)
{
	(void)snprintf(o->aim->detail, sizeof(o->aim->detail), "%s", detail);
	o->detail = o->aim->detail;
}

/* Whoever waited for o to be opened goes on, from the loop. */
static void origin_wake_waiting(struct origin *o)
{
	struct list waiting;
	struct origin *w;

	list_init(&waiting);
	pool_wait_over(o, &waiting);
	while ((w = list_first(&waiting, struct origin, link))) {
		list_remove(&w->link);
		w->reason = o->reason; /* it would fare no better */
		origin_explain(w, o->detail);
		w->timer.fn = on_begin;
		timer_start(&w->timer, 1);
	}
}

static void origin_finish(struct origin *o, enum origin_event event)
{
	origin_fn *fn = o->fn;

	timer_stop(&o->timer);
	origin_wake_waiting(o);
	o->fn = NULL;
	if (o->stream && !o->h2) {
		stream_set_owner(o->stream, NULL, NULL);
		stream_want(o->stream, 0);
	}
	if (fn)
		fn(o, o->ctx, event);
	/* o may be gone */
}

static void origin_fail(struct origin *o, enum audit_reason reason,
			const char *detail)
{
	o->reason = reason;
	origin_explain(o, detail);
	o->stream = stream_free(o->stream);
	origin_finish(o, ORIGIN_FAILED);
}

static bool origin_has_next(const struct origin *o)
{
	return o->aim->attempt + 1 < o->aim->destination.addr_count;
}

static void origin_next(struct origin *o, const char *why)
{
	o->stream = stream_free(o->stream);
	if (!origin_has_next(o)) {
		origin_fail(o, AUDIT_REASON_CONNECT_FAILED, why);
		return;
	}
	o->aim->attempt++;
	origin_attempt(o);
}

static void on_timer(struct timer *t)
{
	struct origin *o = container_of(t, struct origin, timer);

	if (o->open) { /* idle for long enough */
		(void)origin_free(o);
		return;
	}
	if (stream_is_tls(o->stream))
		origin_fail(o, AUDIT_REASON_ORIGIN_TLS,
			    "the TLS handshake took too long");
	else
		origin_next(o, "the connection timed out");
}

static void origin_forget_aim(struct origin *o)
{
	free(take_ptr(o->aim));
	o->detail = "";
}

static void origin_is_open(struct origin *o)
{
	o->open = true;
	worker_counted(o->worker, origins_new);
	if (pool_note_alpn(o) && origin_h2_begin(o)) {
		origin_fail(o, AUDIT_REASON_INTERNAL, "HTTP/2 did not start");
		return;
	}
	origin_forget_aim(o);
	origin_finish(o, ORIGIN_OPENED);
}

/* Speaks HTTP/2 only, and was not offered it: once more. */
static bool origin_is_h2_only(const struct origin *o)
{
	return !o->wants_h2 &&
	       strstr(stream_tls_error(o->stream), "application protocol");
}

static void on_tls(struct stream *s, void *ctx, unsigned events)
{
	struct origin *o = ctx;

	(void)events;
	if (stream_tls_ready(s)) {
		origin_is_open(o);
	} else if (origin_is_h2_only(o)) {
		pool_note_h2_only(o);
		o->wants_h2 = true;
		o->stream = stream_free(o->stream);
		origin_attempt(o);
	} else {
		origin_fail(o, AUDIT_REASON_ORIGIN_TLS, stream_tls_error(s));
	}
}

static void origin_secure(struct origin *o)
{
	struct ssl_st *ssl = group_new_ssl(o);

	if (!ssl || stream_start_tls(o->stream, ssl)) {
		origin_fail(o, AUDIT_REASON_INTERNAL, "TLS could not start");
		return;
	}
	timer_start(&o->timer, o->worker->config->handshake_ms);
	stream_set_owner(o->stream, on_tls, o);
	stream_want(o->stream, STREAM_CONNECTED);
}

static void origin_connected(struct origin *o)
{
	if (o->aim->destination.scheme == SCHEME_HTTPS)
		origin_secure(o);
	else
		origin_is_open(o);
	/* o may be gone */
}

static void on_connected(struct stream *s, void *ctx, unsigned events)
{
	struct origin *o = ctx;
	int error = stream_error(s);

	(void)events;
	if (error)
		origin_next(o, err_text(error));
	else
		origin_connected(o);
}

static void on_chained(void *ctx, struct stream *stream, const char *why,
		       bool again)
{
	struct origin *o = ctx;

	o->dial = NULL;
	o->stream = stream;
	if (stream) {
		stream_set_pace(stream, o->sandbox->pace_in);
		origin_connected(o);
	} else if (again && origin_has_next(o)) {
		origin_next(o, why);
	} else {
		origin_fail(o, AUDIT_REASON_UPSTREAM_PROXY, why);
	}
	/* o may be gone */
}

/* By way of the upstream proxy. False: this destination goes directly. */
static bool origin_chain(struct origin *o)
{
	const struct destination *d = &o->aim->destination;
	const struct addr *address = d->addr_count ? &o->address : NULL;
	struct span host = host_span(&d->host);

	if (!chain_takes(o->worker->chain, host, address))
		return false;
	timer_stop(&o->timer); /* a dial has its own */
	o->dial = chain_dial(o->worker, host, d->port, address, on_chained, o);
	return true;
}

static int origin_begin(struct origin *o)
{
	struct loop *loop = o->worker->loop;

	if (o->aim->listens)
		return stream_connect(loop, &o->address, &o->stream);
	return stream_connect_to_speak(loop, &o->address, &o->stream);
}

/* False: it failed at once. */
static bool origin_connect(struct origin *o)
{
	uint32_t wait_ms = o->worker->config->connect_ms;
	const struct destination *d = &o->aim->destination;

	if (d->addr_count)
		o->address = d->addrs[o->aim->attempt];
	if (origin_chain(o))
		return true;
	if (origin_begin(o)) {
		o->stream = NULL;
		return false;
	}
	stream_set_pace(o->stream, o->sandbox->pace_in);
	if (origin_has_next(o))
		wait_ms = MIN(wait_ms, (uint32_t)ATTEMPT_MS);
	timer_start(&o->timer, wait_ms);
	stream_set_owner(o->stream, on_connected, o);
	stream_want(o->stream, STREAM_CONNECTED);
	return true;
}

static void origin_attempt(struct origin *o)
{
	if (!origin_connect(o))
		origin_next(o, "the connection could not be begun");
}

static bool destination_has(const struct destination *d,
			    const struct addr *address)
{
	unsigned i;

	for (i = 0; i < d->addr_count; i++)
		if (addr_eq_ip(&d->addrs[i], address))
			return true;
	return !d->addr_count && !address->port; /* both by name alone */
}

/* A kept connection must lead to an address that was checked for this very
 * destination: a name may have been resolved or pinned otherwise since. If the
 * address was allowed under other facts, it is asked about again. */
static bool origin_may_go_on(struct origin *o, const struct sandbox *s,
			     const struct destination *d)
{
	struct worker *w = o->worker;
	struct arena arena;
	struct verdict v;
	bool may;

	if (!destination_has(d, &o->address))
		return false;
	if (o->facts_version == w->facts.version)
		return true;
	o->facts_version = w->facts.version;
	arena_init(&arena, GRANT_ARENA_BYTES);
	may = decide_again(w, s, d, &o->address, &arena, &v);
	arena_fini(&arena);
	return may;
}

/* One that may be used now, or NULL. */
static struct origin *origin_kept(struct worker *w, const struct sandbox *s,
				  const struct destination *d, bool h2)
{
	struct origin *o = pool_take(w->pool, s, d, h2);

	while (o && !origin_may_go_on(o, s, d)) {
		if (o->h2)
			origin_retire(o);
		else
			(void)origin_free(o);
		o = pool_take(w->pool, s, d, h2);
	}
	if (!o)
		return NULL;
	worker_counted(w, origins_reused);
	o->reused = true;
	return o;
}

/* o waited for another one, or could not begin where it was asked for. */
static void on_begin(struct timer *t)
{
	struct origin *o = container_of(t, struct origin, timer), *shared;
	origin_fn *fn = o->fn;
	void *ctx = o->ctx;

	o->timer.fn = on_timer;
	if (o->reason) {
		origin_finish(o, ORIGIN_FAILED);
		return; /* o may be gone */
	}
	shared = o->wants_h2 ? origin_kept(o->worker, o->sandbox,
					   &o->aim->destination, true)
			     : NULL;
	if (shared) {
		(void)origin_free(o);
		fn(shared, ctx, ORIGIN_OPENED);
	} else if (!pool_wait(o)) {
		origin_attempt(o);
		/* o may be gone */
	}
}

struct origin *origin_open(struct worker *w, const struct sandbox *s,
			   const struct destination *d,
			   const struct grant *grant,
			   enum origin_manner manner, origin_fn *fn, void *ctx)
{
	const bool h2 = manner == ORIGIN_BY_H2 ||
			pool_is_h2_only(w->pool, s, d);
	struct origin *o;

	must(grant != NULL);
	o = origin_kept(w, s, d, h2);
	if (o)
		return o;
	o = must_alloc(sizeof(*o));
	o->sandbox = s;
	o->facts_version = w->facts.version;
	o->wants_h2 = h2;
	o->worker = w;
	o->aim = must_alloc(sizeof(*o->aim));
	o->aim->destination = *d;
	o->aim->listens = manner == ORIGIN_TO_LISTEN;
	o->detail = "";
	o->fn = fn;
	o->ctx = ctx;
	buf_init(&o->in, ORIGIN_IN_BYTES);
	list_init(&o->link);
	list_init(&o->lru);
	list_init(&o->shared);
	o->group = pool_at(w->pool, s, d);
	timer_init(&o->timer, w->loop, on_timer);
	if (!pool_wait(o) &&
	    !origin_connect(o)) { /* fail from the loop, not from here */
		o->timer.fn = on_begin;
		timer_start(&o->timer, 1);
	}
	return o;
}

struct origin *origin_free(struct origin *o)
{
	if (!o)
		return NULL;
	timer_stop(&o->timer);
	origin_wake_waiting(o);
	pool_forget(o);
	origin_h2_end(o);
	o->dial = chain_cancel(o->dial);
	o->stream = stream_free(o->stream);
	buf_wipe(&o->in);
	origin_forget_aim(o);
	free(o);
	return NULL;
}

struct stream *origin_take_stream(struct origin *o)
{
	struct stream *s;

	pool_forget(o); /* now, while o is the stream's: no session after it */
	s = take_ptr(o->stream);
	stream_set_owner(s, NULL, NULL);
	(void)origin_free(o);
	return s;
}

/* An idle connection that says anything is closing, or is confused. What TLS
 * says for itself, as a ticket that comes late, is nothing. */
static void on_idle_event(struct stream *s, void *ctx, unsigned events)
{
	char byte;

	(void)events;
	if (stream_read(s, &byte, 1) != STREAM_AGAIN)
		(void)origin_free(ctx);
}

struct origin *origin_keep(struct origin *o)
{
	if (buf_len(&o->in) || stream_unsent(o->stream)) {
		(void)origin_free(o);
		return NULL;
	}
	buf_wipe(&o->in);
	stream_set_owner(o->stream, on_idle_event, o);
	stream_want(o->stream, STREAM_READABLE);
	o->timer.fn = on_timer;
	timer_start(&o->timer, o->worker->config->idle_ms);
	pool_put_idle(o);
	return NULL;
}

void origin_rest(struct origin *o)
{
	if (o->retired)
		return; /* it ends by itself */
	timer_start(&o->timer, o->worker->config->idle_ms);
	pool_put_idle(o);
}

void origin_retire(struct origin *o)
{
	if (o->retired)
		return;
	o->retired = true;
	timer_stop(&o->timer);
	pool_retire(o);
	origin_h2_shutdown(o);
}
