/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - from a parsed request to a granted one with an origin
 *
 * Facts go into the exchange's own audit record, which began as a copy of the
 * session's. Whatever happens, exactly one record is emitted.
 */

#include "gateway/session/exchange.h"

#include <errno.h>

#include "gateway/pipeline/admit.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/pipeline.h"
#include "gateway/proxy/proxy.h"
#include "gateway/redact/redact_body.h"
#include "gateway/session/back.h"
#include "gateway/session/denial.h"
#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/blocks.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	EXCHANGE_ARENA_BYTES = 512 * 1024,
	REDACT_HELD_BYTES = 256 * 1024, /* one piece, by far */
	/* An origin that ends each connection after a few requests refuses the
	 * rest of a crowd again and again. */
	UNTOUCHED_RETRIES_MAX = 64,
};

static const unsigned state_moves[EXCHANGE_STATE_NUM] = {
	[EXCHANGE_NONE] = 1u << EXCHANGE_ADMIT | 1u << EXCHANGE_ORIGIN |
			  1u << EXCHANGE_FLOW,
	[EXCHANGE_ADMIT] = 1u << EXCHANGE_ORIGIN | 1u << EXCHANGE_FLOW,
	[EXCHANGE_ORIGIN] = 1u << EXCHANGE_FLOW | 1u << EXCHANGE_ORIGIN,
	/* back: a stale connection is replaced by a new one */
	[EXCHANGE_FLOW] = 1u << EXCHANGE_TUNNEL | 1u << EXCHANGE_ORIGIN |
			  1u << EXCHANGE_FLOW,
};

void exchange_move(struct exchange *x, enum exchange_state to)
{
	must(state_moves[x->state] & 1u << to);
	log_debug("exchange %d -> %d", x->state, to);
	x->state = to;
}

/* -- the end --------------------------------------------------------------- */

static void exchange_release(struct exchange *x, bool keep)
{
	x->origin = origin_free(x->origin);
	if (x->back)
		x->back->ops->release(x->back, keep);
	x->back = NULL;
}

static void exchange_free(struct exchange *x)
{
	if (x->state == EXCHANGE_ADMIT)
		admit_cancel(&x->session->admission);
	timer_stop(&x->timer);
	exchange_release(x, false);
	x->redact = redact_body_free(x->redact);
	buf_wipe(&x->redact_held);
	buf_fini(&x->redact_clean);
	if (x->request.injection_count) /* the answer may have echoed it */
		arena_wipe(&x->arena);
	request_fini(&x->request);
	arena_fini(&x->arena);
	block_give(x, sizeof(*x));
}

static void exchange_audit(struct exchange *x)
{
	struct worker *w = x->session->worker;

	x->audit.request_bytes = x->upload_bytes;
	x->audit.response_bytes = x->download_bytes;
	worker_counted(w, exchanges);
	if (x->audit.allowed)
		worker_counted(w, allowed);
	else
		worker_counted(w, denied);
	if (x->audit.injected)
		worker_counted(w, injected);
	worker_record(w, x->session->sandbox, &x->audit);
}

/* Writes the refusal that audit tells of. 0, or why it could not be said. */
static int exchange_refusal(struct exchange *x)
{
	CLEANUP(buf_fini) struct buf body = BUF_INIT(DENIAL_BODY_BYTES);
	const struct leg_ops *ops = x->front->ops;
	char length[DENIAL_LENGTH_SIZE];
	const struct header *accept =
		headers_find(&x->head.headers, HEADER_ACCEPT);
	struct response response;
	int r;

	r = denial_compose(&x->audit, accept ? accept->value : SPAN_NONE, &body,
			   length, &response);
	if (!r)
		r = ops->respond(x->front, &x->request, &response);
	if (!r && !span_eq(x->head.method, SPAN("HEAD")))
		r = ops->write(x->front, buf_peek(&body));
	if (!r)
		r = ops->end(x->front, NULL);
	return r ? r : ops->flush(x->front);
}

/* Says no in HTTP. */
static void exchange_answer(struct exchange *x)
{
	struct leg *front = x->front;
	bool keep;

	if (x->state != EXCHANGE_FLOW) /* the head was never sent */
		x->audit.injected = false;
	exchange_release(x, false);
	keep = exchange_refusal(x) == 0;
	exchange_audit(x);
	exchange_free(x);
	front->ops->finished(front, keep);
}

void exchange_fail(struct exchange *x, enum audit_reason reason,
		   uint16_t status, const char *detail)
{
	struct leg *front = x->front;

	x->audit.reason = reason;
	if (reason == AUDIT_REASON_MALFORMED || reason == AUDIT_REASON_CUT)
		x->audit.allowed = false;
	if (detail && *detail)
		x->audit.detail = arena_dup(&x->arena, span_str(detail));
	if (!x->answered && status) {
		x->audit.status = status;
		exchange_answer(x);
		return;
	}
	exchange_audit(x);
	exchange_free(x);
	front->ops->broke(front); /* a broken-off body must look so */
}

void exchange_abandon(struct exchange *x, enum audit_reason reason)
{
	if (reason) {
		x->audit.reason = reason;
		exchange_audit(x);
	}
	exchange_free(x);
}

void exchange_finish(struct exchange *x)
{
	struct leg *front = x->front;
	bool keep = !x->upload_broken;

	exchange_release(x, keep && x->upload_done);
	exchange_audit(x);
	exchange_free(x);
	front->ops->finished(front, keep);
}

static bool is_granted(const struct exchange *x)
{
	return x->request.grant != NULL;
}

void exchange_cut(struct exchange *x)
{
	if (is_granted(x))
		decide_audit_cut(&x->request);
	exchange_fail(x, AUDIT_REASON_CUT, 403, NULL);
}

void exchange_recheck(struct exchange *x)
{
	if (is_granted(x) && !decide_request_again(&x->request))
		exchange_cut(x);
	/* x may be gone */
}

static uint64_t now_ms(const struct exchange *x)
{
	return loop_now_ms(x->session->worker->loop);
}

static void on_timer(struct timer *t)
{
	struct exchange *x = container_of(t, struct exchange, timer);
	bool client_takes = x->front->ops->room(x->front) > 0;
	bool origin_is_late =
		client_takes && (x->upload_done || x->upload_broken);

	if (x->ends_ms && now_ms(x) >= x->ends_ms)
		exchange_fail(x, AUDIT_REASON_TOO_LONG, 504, NULL);
	else if (x->state == EXCHANGE_TUNNEL)
		exchange_finish(x);
	else if (origin_is_late)
		exchange_fail(x, AUDIT_REASON_ORIGIN_TIMEOUT, 504, NULL);
	else
		exchange_fail(x, AUDIT_REASON_CLIENT_TIMEOUT, 408, NULL);
}

void flow_deadline(struct exchange *x)
{
	const struct config *c = x->session->worker->config;
	uint64_t ms = x->state == EXCHANGE_TUNNEL ? c->tunnel_idle_ms
						  : c->first_byte_ms;

	if (x->ends_ms)
		ms = MIN(ms, x->ends_ms - MIN(now_ms(x), x->ends_ms));
	timer_start(&x->timer, ms);
}

/* -- an origin ---------------------------------------------------------------
 */

static void audit_origin(struct exchange *x, const struct origin *o)
{
	x->audit.address = o->address;
	x->audit.origin_reused = o->served;
	x->audit.connected_us = clock_us() - x->audit.start_us;
	if (!stream_is_tls(o->stream))
		return;
	x->audit.origin_tls_version = stream_tls_version(o->stream);
	x->audit.origin_resumed = stream_tls_resumed(o->stream);
}

static void exchange_send(struct exchange *x)
{
	struct origin *o = take_ptr(x->origin);
	int r;

	x->reused = o->reused;
	audit_origin(x, o);
	o->served = true;
	x->back = o->h2 ? h2_back_new(x, o) : h1_back_new(x, o);
	exchange_move(x, EXCHANGE_FLOW);
	r = x->back->ops->request(x->back, &x->request, &x->head);
	if (r == -ENOBUFS) {
		exchange_fail(x, AUDIT_REASON_INTERNAL, 500, NULL);
	} else if (r && !exchange_retry(x)) {
		exchange_fail(x, AUDIT_REASON_ORIGIN_FAILED, 502, err_text(r));
	} else if (!r) {
		flow_deadline(x);
		flow_run(x);
	}
}

static void on_origin(struct origin *o, void *ctx, enum origin_event event)
{
	struct exchange *x = ctx;

	if (event == ORIGIN_OPENED) {
		x->origin = o;
		exchange_send(x);
		return;
	}
	x->audit.detail = arena_dup(&x->arena, span_str(o->detail));
	exchange_fail(x, o->reason, 502, NULL);
}

static void exchange_open_origin(struct exchange *x)
{
	struct session *s = x->session;

	x->origin = origin_open(s->worker, s->sandbox, &s->destination,
				x->request.grant,
				s->http2 && !x->head.upgrade ? ORIGIN_BY_H2
							     : ORIGIN_PLAINLY,
				on_origin, x);
	if (x->origin->open) {
		exchange_send(x);
		return;
	}
	exchange_move(x, EXCHANGE_ORIGIN);
}

/* May be sent twice without harm: no body, and a method that promises it (RFC
 * 9110 9.2.2), on a connection that closed before it said anything. */
static bool may_repeat(const struct exchange *x)
{
	static const struct span safe[] = {
		SPAN_INIT("GET"), SPAN_INIT("HEAD"),   SPAN_INIT("OPTIONS"),
		SPAN_INIT("PUT"), SPAN_INIT("DELETE"), SPAN_INIT("TRACE"),
	};
	bool may = false;
	size_t i;

	for (i = 0; i < ARRAY_LEN(safe); i++)
		may |= span_eq(x->head.method, safe[i]);
	return may && !x->retries && x->reused &&
	       x->head.body != H1_BODY_CHUNKED && !x->head.length;
}

/* The origin says that it did nothing (RFC 9113 8.7): whatever the method. What
 * was sent of the body is gone, though. */
static bool was_untouched(const struct exchange *x)
{
	return x->back && x->back->untouched && !x->upload_bytes &&
	       x->retries < UNTOUCHED_RETRIES_MAX;
}

bool exchange_retry(struct exchange *x)
{
	if (x->answered || x->head.upgrade ||
	    (!was_untouched(x) && !may_repeat(x)))
		return false;
	x->retries++;
	x->upload_done = x->upload_broken = false;
	exchange_release(x, false);
	exchange_open_origin(x);
	return true;
}

/* -- the pipeline ------------------------------------------------------------
 */

static void exchange_decide(struct exchange *x)
{
	struct session *s = x->session;
	enum step step;

	x->request.worker = s->worker;
	x->request.sandbox = s->sandbox;
	x->request.arena = &x->arena;
	x->request.audit = &x->audit;
	x->request.destination = &s->destination;
	x->request.method = x->head.method;
	x->request.target = x->head.path;
	x->request.authority = x->head.authority;
	x->request.headers = &x->head.headers;
	step = pipeline_run(&x->request);
	if (step == STEP_NEXT)
		exchange_open_origin(x);
	else
		exchange_answer(x);
}

static void exchange_admitted(struct exchange *x, enum step step)
{
	struct session *s = x->session;
	struct admission *a = &s->admission;

	if (step == STEP_NEXT) {
		s->grant = a->grant;
		s->facts_version = s->worker->facts.version;
		if (s->proxied && proxy_is_connect(x))
			proxy_tunnel(s); /* x is gone */
		else
			exchange_decide(x);
		return;
	}
	decide_audit(s->worker, s->sandbox, &a->verdict, &x->arena, &x->audit);
	x->audit.allowed = false;
	x->audit.reason = a->reason;
	x->audit.status = a->status;
	exchange_answer(x);
}

static void on_admitted(void *ctx, struct admission *a, enum step step)
{
	(void)a;
	exchange_admitted(ctx, step);
}

/* A plain HTTP connection is for the authority of its first request. */
void exchange_admit(struct exchange *x, const struct authority *a)
{
	struct session *s = x->session;
	struct destination *d = &s->destination;
	enum step step;

	d->scheme = SCHEME_HTTP;
	/* a denied request before this one may have named another host */
	d->host = a->is_address ? (struct host){ 0 } : a->host;
	x->audit.host = arena_dup(&x->arena, host_span(&d->host));
	s->audit.host = host_span(&d->host);
	x->audit.port = s->audit.port = d->port;
	step = admit_start(&s->admission, on_admitted, x);
	if (step != STEP_WAIT) {
		exchange_admitted(x, step);
		return;
	}
	exchange_move(x, EXCHANGE_ADMIT);
}

void exchange_begin(struct exchange *x)
{
	struct authority a;

	x->audit.method = x->head.method;
	x->audit.path = span_of(x->head.path.ptr, span_find(x->head.path, '?'));
	if (x->session->proxied) {
		proxy_begin(x);
		return;
	}
	if (span_eq(x->head.method, SPAN("CONNECT"))) {
		exchange_fail(x, AUDIT_REASON_MALFORMED, 405,
			      "no proxy is spoken here: connect directly");
		return;
	}
	if (x->session->grant) {
		exchange_decide(x);
		return;
	}
	if (!authority_parse(x->head.authority, 80, &a)) {
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400,
			      "the Host field is no host name or address");
		return;
	}
	exchange_admit(x, &a);
}

struct exchange *exchange_new(struct session *s, struct leg *front)
{
	struct exchange *x = block_take(sizeof(*x));

	if (s->proxied)
		proxy_forget(s);
	memset(x, 0, offsetof(struct exchange, head.headers));
	x->head.headers.count = 0;
	x->session = s;
	x->front = front;
	x->audit = s->audit;
	x->audit.kind = AUDIT_HTTP;
	x->audit.start_us = clock_us();
	x->audit.decided_us = x->audit.connected_us = 0;
	buf_init(&x->redact_held, REDACT_HELD_BYTES);
	buf_init(&x->redact_clean, REDACT_HELD_BYTES);
	arena_init(&x->arena, EXCHANGE_ARENA_BYTES);
	timer_init(&x->timer, s->worker->loop, on_timer);
	if (s->worker->config->total_ms)
		x->ends_ms = now_ms(x) + s->worker->config->total_ms;
	return x;
}
