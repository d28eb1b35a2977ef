/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.c - dial a destination and move bytes both ways in the kernel
 *
 * The record is written when the tunnel ends, with what passed each way.
 */

#include "gateway/session/tunnel.h"

#include <errno.h>

#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/role/config.h"

static void on_spliced(void *ctx, uint64_t out, uint64_t in, int error)
{
	struct session *s = ctx;

	s->splice = NULL;
	s->audit.request_bytes = out;
	s->audit.response_bytes = in;
	if (error == -ECANCELED)
		s->audit.reason = AUDIT_REASON_CUT;
	worker_counted_by(s->worker, bytes_in, out);
	worker_counted_by(s->worker, bytes_out, in);
	worker_record(s->worker, s->sandbox, &s->audit);
	session_free(s);
}

/* A client that ended without a word may be gone altogether: its kernel says
 * so only to bytes of the server. */
static uint32_t tunnel_idle_ms(const struct session *s)
{
	const struct config *c = s->worker->config;

	return s->client_ended ? c->idle_ms : c->tunnel_idle_ms;
}

static void tunnel_begin(struct session *s)
{
	struct stream *client = s->client, *origin;

	s->audit.kind = AUDIT_TUNNEL;
	s->audit.address = s->origin->address;
	s->audit.connected_us = clock_us() - s->audit.start_us;
	origin = origin_take_stream(take_ptr(s->origin));
	stream_set_owner(client, NULL, NULL);
	if (stream_unread(client, buf_peek(&s->in)) ||
	    stream_splice(client, origin, tunnel_idle_ms(s), on_spliced, s,
			  &s->splice)) {
		(void)stream_free(origin);
		s->audit.reason = AUDIT_REASON_INTERNAL;
		s->audit.allowed = false;
		worker_record(s->worker, s->sandbox, &s->audit);
		session_free(s);
		return;
	}
	s->client = NULL; /* the splice's now */
	buf_fini(&s->in);
	worker_counted(s->worker, spliced);
	worker_counted(s->worker, allowed);
	session_move(s, SESSION_SPLICE);
	if (s->worker->config->total_ms)
		session_deadline(s, s->worker->config->total_ms);
}

static void tunnel_failed(struct session *s, struct origin *o)
{
	s->audit.reason = o->reason;
	s->audit.detail = arena_dup(&s->arena, span_str(o->detail));
	worker_record(s->worker, s->sandbox, &s->audit);
	s->client = stream_reset(s->client);
	session_free(s);
}

/* What was dialled for a silent client is not waited for any more once that
 * has begun to speak, until tunnel_dial() wants it. */
static void on_origin(struct origin *o, void *ctx, enum origin_event event)
{
	struct session *s = ctx;
	bool opened = event == ORIGIN_OPENED;

	if (s->state == SESSION_DIAL) {
		if (opened)
			tunnel_begin(s);
		else
			tunnel_failed(s, o);
	} else if (opened && s->state == SESSION_OPENING) {
		opening_connected(s);
	} else if (!opened && s->state == SESSION_OPENING &&
		   !opening_unreachable(s)) {
		tunnel_failed(s, o);
	} else if (!opened) {
		s->origin = origin_free(o);
	}
	/* s may be gone */
}

void tunnel_reach(struct session *s, const struct destination *d,
		  const struct grant *grant)
{
	struct destination through = *d;

	through.scheme = SCHEME_TCP; /* TLS, if any, is the client's own */
	s->origin = origin_open(s->worker, s->sandbox, &through, grant,
				buf_len(&s->in) ? ORIGIN_PLAINLY
						: ORIGIN_TO_LISTEN,
				on_origin, s);
	must(!s->origin->open); /* TCP connections are never kept */
}

/* What was dialled for a silent client serves, if it is at an address that was
 * checked for what the client named since. */
static bool tunnel_has_leg(const struct session *s)
{
	const struct destination *d = &s->destination;
	unsigned i;

	for (i = 0; s->origin && i < d->addr_count; i++)
		if (addr_eq_ip(&s->origin->address, &d->addrs[i]))
			return true;
	return false;
}

void tunnel_dial(struct session *s)
{
	if (!tunnel_has_leg(s)) {
		s->origin = origin_free(s->origin);
		tunnel_reach(s, &s->destination, s->grant);
	} else if (s->origin->open) {
		tunnel_begin(s);
	}
}

void tunnel_too_long(struct session *s)
{
	s->audit.reason = AUDIT_REASON_TOO_LONG;
	splice_cancel(s->splice, -ETIMEDOUT);
}

void tunnel_cut(struct session *s)
{
	splice_cancel(s->splice, -ECANCELED);
}
