/* SPDX-License-Identifier: Apache-2.0 */
/* socks.c - SOCKS5 in front of a tunnel: greeting, request, reply
 *
 * Of the methods only "no authentication" is agreed to: the client is known.
 * Of the commands only CONNECT is: a port that the world could connect to
 * (BIND) is not a sandbox's to have, and datagrams (UDP ASSOCIATE) are decided
 * as packets, not here.
 */

#include "gateway/pipeline/decide.h"
#include "gateway/proxy/proxy.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/wire/socks5.h"

static bool socks_say(struct session *s, enum socks5_reply reply)
{
	char bytes[SOCKS5_REPLY_SIZE];

	socks5_emit_reply(reply, bytes);
	return stream_write(s->client, span_of(bytes, sizeof(bytes))) == 0;
}

static void socks_refuse(struct session *s, enum audit_reason reason,
			 enum socks5_reply reply)
{
	session_audit(s, reason);
	(void)socks_say(s, reply);
	session_finish(s);
}

static enum socks5_reply reply_for(enum audit_reason reason)
{
	switch (reason) {
	case AUDIT_REASON_POLICY:
	case AUDIT_REASON_ADDRESS:
	case AUDIT_REASON_NO_ALLOWED_ADDRESS:
		return SOCKS5_NOT_ALLOWED;
	case AUDIT_REASON_NO_NAME:
		return SOCKS5_HOST_UNREACHABLE;
	default:
		return SOCKS5_FAILURE;
	}
}

static void socks_succeed(struct session *s)
{
	if (socks_say(s, SOCKS5_SUCCEEDED))
		proxy_open(s);
	else
		session_refuse(s, AUDIT_REASON_CLIENT_ABORTED);
	/* s may be gone */
}

static void socks_admitted(struct session *s, enum step step)
{
	struct admission *a = &s->admission;
	struct worker *w = s->worker;

	if (step != STEP_NEXT) {
		decide_audit(w, s->sandbox, &a->verdict, &s->arena, &s->audit);
		socks_refuse(s, a->reason, reply_for(a->reason));
		return;
	}
	s->grant = a->grant;
	s->facts_version = w->facts.version;
	socks_succeed(s);
}

static void on_admitted(void *ctx, struct admission *a, enum step step)
{
	(void)a;
	socks_admitted(ctx, step);
}

static void socks_connect(struct session *s, const struct authority *a)
{
	enum step step;

	stream_want(s->client, 0);
	timer_stop(&s->timer);
	if (!proxy_name(s, a, "socks5")) {
		s->audit.detail = SPAN("the proxy does not lead to itself");
		socks_refuse(s, AUDIT_REASON_ADDRESS, SOCKS5_NOT_ALLOWED);
		return;
	}
	if (a->is_address) {
		socks_succeed(s);
		return;
	}
	step = admit_start(&s->admission, on_admitted, s);
	if (step == STEP_WAIT)
		session_move(s, SESSION_ADMIT);
	else
		socks_admitted(s, step);
}

static bool socks_request(struct session *s)
{
	struct authority a;
	int r = socks5_parse_request(buf_peek(&s->in), &a);

	if (!r)
		return false;
	if (r < 0) {
		worker_counted(s->worker, malformed);
		socks_refuse(s, AUDIT_REASON_MALFORMED,
			     (enum socks5_reply)(-r));
		return true;
	}
	buf_consume(&s->in, (size_t)r);
	socks_connect(s, &a);
	return true;
}

/* The method is the whole answer; without one the client is to close. */
static bool socks_greet(struct session *s)
{
	enum socks5_method method;
	int r = socks5_parse_greeting(buf_peek(&s->in), &method);
	char bytes[2] = { SOCKS5_VERSION };

	if (!r)
		return false;
	must(r > 0); /* the first byte brought us here */
	bytes[1] = (char)method;
	s->socks_greeted = method == SOCKS5_NO_AUTH;
	buf_consume(&s->in, (size_t)r);
	if (stream_write(s->client, span_of(bytes, sizeof(bytes))) ||
	    !s->socks_greeted) {
		s->audit.detail = SPAN("no authentication is wanted here, and "
				       "the client does not offer that");
		session_audit(s, AUDIT_REASON_MALFORMED);
		session_finish(s);
		return true;
	}
	(void)stream_flush(s->client);
	return socks_request(s);
}

bool socks_run(struct session *s)
{
	return s->socks_greeted ? socks_request(s) : socks_greet(s);
}
