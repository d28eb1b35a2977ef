/* SPDX-License-Identifier: Apache-2.0 */
/* opening.c - a client that says nothing yet: who speaks first?
 *
 * How it works. In SSH, SMTP, IMAP, MySQL and many more the server greets
 * first, so that a gateway which waits for the client's first bytes to learn
 * whom it wants would wait for ever. After serverFirstMs of silence (on ports
 * of server_first.def at once) policy is asked what it would say to bytes that
 * name nobody (admit_unnamed.c):
 *
 *   - Allowed: the address that the sandbox dialled is dialled, and whoever
 *     speaks first decides. The server: its bytes, and its end, pass, after
 *     policy was asked again. The client: it is sniffed as ever. TLS and HTTP
 *     are then decided by their own name, and what was dialled is used only if
 *     a splice to the very same address comes of it. If nobody is there, the
 *     client is reset, but on ports of HTTP and HTTPS: what it will name may
 *     have other addresses.
 *   - Allowed, but not for unseen bytes: nothing is dialled. The client may
 *     still say TLS or HTTP, and has headMs for it; where the port is one of
 *     servers that greet, it will not, and is refused now.
 *   - Denied: a TLS client that is only slow, to an address that our DNS did
 *     not give it (before a restart, say), may yet say a name that policy
 *     allows, so it gets two more serverFirstMs; then it is refused. On a port
 *     of servers that greet it gets none; on those of HTTP and HTTPS, where no
 *     client waits to be greeted, headMs.
 *
 * Why a denied connection is not refused at once: HTTP and TLS clients speak
 * within that time, and 403 and access_denied say why, a reset does not.
 *
 * A client that has begun a line and does not end it is given another
 * serverFirstMs to make it HTTP; then it speaks some other text, and that is
 * decided like any bytes that name nobody, if need be after two more of them.
 *
 * A client that ends its direction without a word has decided by that: it can
 * only listen.
 */

#include "gateway/session/opening.h"

#include "gateway/pipeline/decide.h"
#include "gateway/session/session.h"
#include "gateway/session/tunnel.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum { OPINION_BYTES = 8 * 1024 };

/* A question that leaves no trace in the session: it may be asked again at
 * every change of policy. */
struct opinion {
	struct destination destination;
	struct admission admission;
	struct arena arena; /* of the grant */
};

static void opinion_fini(struct opinion *o)
{
	arena_fini(&o->arena);
}

static bool is_server_first(uint16_t port)
{
	switch (port) {
#define PORT(number, name) case (number):
#include "gateway/session/server_first.def"
#undef PORT
		return true;
	default:
		return false;
	}
}

static bool is_client_first(uint16_t port)
{
	return port == scheme_port(SCHEME_HTTP) ||
	       port == scheme_port(SCHEME_HTTPS);
}

static bool opening_asks(struct session *s, struct opinion *o)
{
	arena_init(&o->arena, OPINION_BYTES);
	o->destination = s->destination;
	o->destination.scheme = SCHEME_TCP;
	if (s->grant) { /* a proxy request named it */
		o->admission = s->admission;
		o->admission.reason = AUDIT_REASON_NOT_TLS_OR_HTTP;
		return session_may_pass_unseen(s);
	}
	o->admission = (struct admission){
		.worker = s->worker,
		.sandbox = s->sandbox,
		.arena = &o->arena,
		.destination = &o->destination,
	};
	return admit_unnamed(&o->admission) == STEP_NEXT;
}

static void opening_dial(struct session *s, const struct opinion *o)
{
	session_move(s, SESSION_OPENING);
	session_deadline(s, s->worker->config->tunnel_idle_ms);
	tunnel_reach(s, &o->destination, o->admission.grant);
}

static void opening_audit(struct session *s, const struct opinion *o)
{
	const struct destination *d = &o->destination;

	s->audit.scheme = scheme_name(SCHEME_TCP);
	s->audit.host = arena_dup(&s->arena, host_span(&d->host));
	s->audit.host_learned = o->admission.learned;
	s->audit.port = d->port;
	decide_audit(s->worker, s->sandbox, &o->admission.verdict, &s->arena,
		     &s->audit);
}

static void opening_refuse(struct session *s, const struct opinion *o,
			   enum audit_reason reason)
{
	opening_audit(s, o);
	session_refuse(s, reason);
}

static void opening_wait(struct session *s, enum opening_patience patience,
			 uint32_t delay_ms)
{
	s->patience = patience;
	session_deadline(s, delay_ms);
}

void opening_begin(struct session *s)
{
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	opening_wait(s, OPENING_FIRST, s->worker->config->server_first_ms);
	if (is_server_first(s->destination.port) && opening_asks(s, &o))
		opening_dial(s, &o);
}

static void opening_ask(struct session *s)
{
	const struct config *c = s->worker->config;
	bool greets = is_server_first(s->destination.port);
	enum audit_reason reason;
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	if (opening_asks(s, &o)) {
		opening_dial(s, &o);
		return;
	}
	reason = o.admission.reason;
	if (is_client_first(s->destination.port) ||
	    (!greets && reason == AUDIT_REASON_NOT_TLS_OR_HTTP))
		opening_wait(s, OPENING_LAST, c->head_ms);
	else if (!greets && s->patience == OPENING_FIRST)
		opening_wait(s, OPENING_SECOND, 2 * c->server_first_ms);
	else
		opening_refuse(s, &o, reason);
}

/* Neither TLS, nor yet a line that would be HTTP: text without a line's end, as
 * some protocols speak it. */
static void opening_half_said(struct session *s)
{
	bool tls = buf_peek(&s->in).ptr[0] == TLS_HANDSHAKE_BYTE;
	const struct config *c = s->worker->config;
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	if (tls || is_client_first(s->destination.port))
		opening_wait(s, OPENING_LAST, c->head_ms);
	else if (opening_asks(s, &o))
		session_admit(s, SCHEME_TCP);
	else if (s->patience < OPENING_HALF_DENIED)
		opening_wait(s, OPENING_HALF_DENIED, 2 * c->server_first_ms);
	else
		opening_refuse(s, &o, o.admission.reason);
	/* s may be gone */
}

void opening_timeout(struct session *s)
{
	bool silent = !buf_len(&s->in);

	if (silent &&
	    (s->patience == OPENING_LAST || s->state == SESSION_OPENING))
		session_free(s);
	else if (s->patience == OPENING_LAST)
		session_refuse(s, AUDIT_REASON_CLIENT_TIMEOUT);
	else if (silent)
		opening_ask(s);
	else
		opening_half_said(s);
	/* s may be gone */
}

/* -- the destination was dialled ------------------------------------------- */

void opening_client_spoke(struct session *s)
{
	if (s->state != SESSION_OPENING)
		return;
	if (s->origin && s->origin->open)
		stream_want(s->origin->stream, 0);
	if (s->patience < OPENING_HALF)
		opening_wait(s, OPENING_HALF,
			     s->worker->config->server_first_ms);
}

bool opening_client_ended(struct session *s)
{
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	s->client_ended = true;
	if (s->state == SESSION_SNIFF) {
		if (!opening_asks(s, &o))
			return false;
		opening_dial(s, &o);
	} else if (!s->origin) {
		return false;
	} else if (s->origin->open) {
		session_admit(s, SCHEME_TCP);
		/* s may be gone */
	}
	return true;
}

static void on_server(struct stream *stream, void *ctx, unsigned events)
{
	(void)stream;
	(void)events;
	session_admit(ctx, SCHEME_TCP);
	/* it may be gone */
}

void opening_connected(struct session *s)
{
	if (s->client_ended) {
		session_admit(s, SCHEME_TCP);
		return; /* s may be gone */
	}
	if (buf_len(&s->in))
		return; /* what the client says is being sniffed */
	stream_set_owner(s->origin->stream, on_server, s);
	stream_want(s->origin->stream, STREAM_READABLE);
}

bool opening_unreachable(struct session *s)
{
	bool silent = !buf_len(&s->in);
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	if (silent &&
	    (s->client_ended || !is_client_first(s->destination.port))) {
		(void)opening_asks(s, &o);
		opening_audit(s, &o);
		return false;
	}
	if (silent)
		opening_wait(s, OPENING_LAST, s->worker->config->head_ms);
	return true;
}

void opening_recheck(struct session *s)
{
	CLEANUP(opinion_fini) struct opinion o = { 0 };

	if (opening_asks(s, &o))
		return;
	if (buf_len(&s->in) || is_client_first(s->destination.port))
		s->origin = origin_free(s->origin); /* its own name decides */
	else
		opening_refuse(s, &o, AUDIT_REASON_CUT);
}
