/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - from a parsed request to a granted one with an origin
 *
 * Facts go into the exchange's own audit record, which began as a copy of the
 * session's. Whatever happens, exactly one record is emitted.
 */

#include "gateway/session/exchange.h"

#include <openssl/ssl.h>

#include "gateway/pipeline/admit.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/pipeline.h"
#include "gateway/session/denial.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/http1.h"
#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum { EXCHANGE_ARENA_BYTES = 512 * 1024, DENIAL_BYTES = 16 * 1024 };

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

void exchange_free(struct exchange *x)
{
	admit_cancel(&x->session->admission);
	x->origin = origin_free(x->origin);
	request_fini(&x->request);
	body_fini(&x->upload);
	body_fini(&x->download);
	arena_fini(&x->arena);
	x->session->exchange = NULL;
	free(x);
}

static void exchange_audit(struct exchange *x)
{
	struct worker *w = x->session->worker;

	x->audit.request_bytes = x->upload.bytes;
	x->audit.response_bytes = x->download.bytes;
	worker_counted(w, exchanges);
	if (x->audit.allowed)
		worker_counted(w, allowed);
	else
		worker_counted(w, denied);
	if (x->audit.injected)
		worker_counted(w, injected);
	audit_emit(w->audit_log, &x->audit);
}

/* Says no in HTTP. Keeps the connection when the request had no body left. */
static void exchange_answer(struct exchange *x)
{
	CLEANUP(buf_fini) struct buf out = BUF_INIT(DENIAL_BYTES);
	struct session *s = x->session;
	bool keep = x->client_keep && x->upload.done;
	bool head_only = span_eq(x->audit.method, SPAN("HEAD"));

	x->audit.injected = false;
	if (denial_emit(&x->audit, !keep, head_only, &out) ||
	    stream_write(s->client, buf_peek(&out)))
		keep = false;
	exchange_audit(x);
	exchange_free(x);
	http1_next(s, keep);
}

void exchange_fail(struct exchange *x, enum audit_reason reason,
		   uint16_t status, const char *detail)
{
	struct session *s = x->session;

	x->audit.reason = reason;
	if (reason == AUDIT_REASON_MALFORMED || reason == AUDIT_REASON_CUT)
		x->audit.allowed = false;
	if (detail && *detail)
		x->audit.detail = arena_dup(&x->arena, span_str(detail));
	x->origin = origin_free(x->origin);
	if (x->answered || !status) {
		/* a broken-off body must look broken off */
		exchange_audit(x);
		exchange_free(x);
		s->client = stream_reset(s->client);
		session_free(s);
		return;
	}
	x->audit.status = status;
	exchange_answer(x);
}

void exchange_finish(struct exchange *x)
{
	struct session *s = x->session;
	bool keep = x->client_keep && !x->client_ended && !x->upload_broken;

	if (x->origin && x->origin_keep && !x->upload_broken)
		x->origin = origin_keep(x->origin);
	exchange_audit(x);
	exchange_free(x);
	http1_next(s, keep);
}

void exchange_cut(struct exchange *x)
{
	exchange_fail(x, AUDIT_REASON_CUT, 403, NULL);
}

void exchange_timeout(struct exchange *x)
{
	switch (x->state) {
	case EXCHANGE_FLOW:
		if (x->upload.done || x->upload_broken)
			exchange_fail(x, AUDIT_REASON_ORIGIN_TIMEOUT, 504,
				      NULL);
		else
			exchange_fail(x, AUDIT_REASON_CLIENT_TIMEOUT, 408,
				      NULL);
		return;
	case EXCHANGE_TUNNEL:
		exchange_finish(x);
		return;
	case EXCHANGE_NONE:
	case EXCHANGE_ADMIT:
	case EXCHANGE_ORIGIN:
	case EXCHANGE_STATE_NUM:
		break;
	}
	exchange_fail(x, AUDIT_REASON_INTERNAL, 500, NULL);
}

/* -- an origin ---------------------------------------------------------------
 */

static void exchange_send_head(struct exchange *x)
{
	struct worker *w = x->session->worker;
	struct buf out = { .data = w->assembly,
			   .size = WORKER_SCRATCH_BYTES,
			   .max = WORKER_SCRATCH_BYTES };
	int r;

	x->audit.address = x->origin->address;
	x->audit.origin_reused = x->origin->reused;
	if (stream_ssl(x->origin->stream)) {
		struct ssl_st *ssl = stream_ssl(x->origin->stream);

		x->audit.origin_tls_version = SSL_get_version(ssl);
		x->audit.origin_resumed = SSL_session_reused(ssl);
	}
	x->audit.connected_us = clock_us() - x->audit.start_us;
	r = h1_emit_request(&x->request, &x->head, x->request.grant, &out);
	if (r) {
		exchange_fail(x, AUDIT_REASON_INTERNAL, 500, NULL);
		return;
	}
	r = stream_write(x->origin->stream, buf_peek(&out));
	if (x->request.injection_count)
		secret_wipe(w->assembly, buf_len(&out));
	if (r) {
		if (!exchange_retry(x))
			exchange_fail(x, AUDIT_REASON_ORIGIN_FAILED, 502,
				      err_text(r));
		return;
	}
	exchange_move(x, EXCHANGE_FLOW);
	flow_start(x);
}

static void on_origin(struct origin *o, void *ctx, enum origin_event event)
{
	struct exchange *x = ctx;

	if (event == ORIGIN_OPENED)
		exchange_send_head(x);
	else
		exchange_fail(x, o->reason, 502, o->detail);
}

static void exchange_open_origin(struct exchange *x)
{
	struct session *s = x->session;

	timer_stop(&s->timer);
	x->origin = origin_open(s->worker, s->sandbox, &s->destination,
				x->request.grant, on_origin, x);
	if (x->origin->open) {
		exchange_send_head(x);
		return;
	}
	exchange_move(x, EXCHANGE_ORIGIN);
}

/* May be sent twice without harm: no body, and a method that promises it (RFC
 * 9110 9.2.2), on a connection that closed before it said anything. */
bool exchange_retry(struct exchange *x)
{
	static const struct span safe[] = {
		SPAN_INIT("GET"), SPAN_INIT("HEAD"),   SPAN_INIT("OPTIONS"),
		SPAN_INIT("PUT"), SPAN_INIT("DELETE"), SPAN_INIT("TRACE"),
	};
	bool may = false;
	size_t i;

	for (i = 0; i < ARRAY_LEN(safe); i++)
		may |= span_eq(x->head.method, safe[i]);
	if (!may || x->retried || !x->origin->reused ||
	    x->head.body == H1_BODY_CHUNKED || x->head.length ||
	    x->head.upgrade || buf_len(&x->origin->in))
		return false;
	x->retried = true;
	x->scan = (struct h1_scan){ 0 };
	x->origin = origin_free(x->origin);
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
		exchange_decide(x);
		return;
	}
	decide_audit(s->worker, s->sandbox, &a->verdict, &x->arena, &x->audit);
	x->audit.allowed = false;
	x->audit.method = x->head.method;
	x->audit.path = span_of(x->head.path.ptr, span_find(x->head.path, '?'));
	x->audit.reason = a->reason;
	x->audit.status = a->status;
	exchange_answer(x);
}

static void on_admitted(void *ctx, struct admission *a, enum step step)
{
	struct session *s = ctx;

	(void)a;
	exchange_admitted(s->exchange, step);
}

/* A plain HTTP connection is for the authority of its first request. */
static void exchange_admit(struct exchange *x, const struct authority *a)
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
	step = admit_start(&s->admission, on_admitted, s);
	if (step != STEP_WAIT) {
		exchange_admitted(x, step);
		return;
	}
	exchange_move(x, EXCHANGE_ADMIT);
}

static void exchange_route(struct exchange *x)
{
	struct authority a;

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

/* -- the beginning -----------------------------------------------------------
 */

static struct exchange *exchange_new(struct session *s)
{
	struct exchange *x = must_realloc(NULL, sizeof(*x));

	memset(x, 0, offsetof(struct exchange, head.headers));
	x->head.headers.count = 0;
	x->session = s;
	x->audit = s->audit;
	x->audit.kind = AUDIT_HTTP;
	x->audit.start_us = clock_us();
	x->audit.decided_us = x->audit.connected_us = 0;
	arena_init(&x->arena, EXCHANGE_ARENA_BYTES);
	body_init(&x->upload, H1_BODY_NONE, 0, false);
	body_init(&x->download, H1_BODY_NONE, 0, false);
	s->exchange = x;
	return x;
}

/* h2c by upgrade is not spoken: the request stays HTTP/1.1. */
static void head_drop_h2c(struct h1_request *head)
{
	if (head->upgrade &&
	    headers_have_token(&head->headers, HEADER_UPGRADE, SPAN("h2c")))
		head->upgrade = false;
}

void exchange_begin(struct session *s, struct span head)
{
	struct exchange *x = exchange_new(s);
	struct span copy = arena_dup(&x->arena, head);
	enum h1_error error;

	timer_stop(&s->timer);
	buf_consume(&s->in, head.len);
	if (!copy.ptr) {
		exchange_fail(x, AUDIT_REASON_INTERNAL, 500, NULL);
		return;
	}
	error = h1_parse_request(copy, &x->head);
	if (error) {
		worker_counted(s->worker, malformed);
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400,
			      h1_error_text(error));
		return;
	}
	head_drop_h2c(&x->head);
	x->client_keep = x->head.keep_alive;
	body_init(&x->upload, x->head.body, x->head.length,
		  x->head.body == H1_BODY_CHUNKED);
	exchange_route(x);
}

void exchange_refuse(struct session *s, enum audit_reason reason,
		     uint16_t status, const char *detail)
{
	exchange_fail(exchange_new(s), reason, status, detail);
}
