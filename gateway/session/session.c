/* SPDX-License-Identifier: Apache-2.0 */
/* session.c - accept, sniff, admit; then TLS, plain HTTP or a splice */

#include "gateway/session/session.h"

#include <openssl/x509.h>

#include "gateway/gateway.h"
#include "gateway/pipeline/bind.h"
#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/grant.h"
#include "gateway/proxy/proxy.h"
#include "gateway/session/enter.h"
#include "gateway/session/http1.h"
#include "gateway/session/http2.h"
#include "gateway/session/tunnel.h"
#include "gateway/sign.h"
#include "gateway/tls/client_ctx.h"
#include "gateway/tls/leaf_source.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/pace.h"
#include "src/io/stream.h"
#include "src/role/config.h"
#include "src/wire/h1.h"
#include "src/wire/hello.h"

enum {
	SNIFF_READ_BYTES = 4096,
	SESSION_ARENA_BYTES = 64 * 1024,
	LINGER_MS = 2000,
	/* RFC 8446 section 6: access_denied, decode_error */
	ALERT_ACCESS_DENIED = 49,
	ALERT_DECODE_ERROR = 50,
};

static const char *const state_names[] = {
	[SESSION_NONE] = "none",     [SESSION_PROXY] = "proxy",
	[SESSION_SNIFF] = "sniff",   [SESSION_ADMIT] = "admit",
	[SESSION_LEAF] = "leaf",     [SESSION_HANDSHAKE] = "handshake",
	[SESSION_HTTP] = "http",     [SESSION_PROBE] = "probe",
	[SESSION_HTTP2] = "http2",   [SESSION_DIAL] = "dial",
	[SESSION_SPLICE] = "splice", [SESSION_OPENING] = "opening",
};
_Static_assert(ARRAY_LEN(state_names) == SESSION_STATE_NUM, "all states");

/* What each state may become; SESSION_NONE (the end) always. */
static const unsigned state_moves[SESSION_STATE_NUM] = {
	[SESSION_NONE] = 1u << SESSION_SNIFF | 1u << SESSION_PROXY,
	[SESSION_PROXY] =
		1u << SESSION_HTTP | 1u << SESSION_ADMIT | 1u << SESSION_SNIFF,
	[SESSION_SNIFF] = 1u << SESSION_ADMIT | 1u << SESSION_LEAF |
			  1u << SESSION_HANDSHAKE | 1u << SESSION_HTTP |
			  1u << SESSION_DIAL | 1u << SESSION_PROBE |
			  1u << SESSION_OPENING,
	[SESSION_OPENING] = 1u << SESSION_ADMIT | 1u << SESSION_LEAF |
			    1u << SESSION_HANDSHAKE | 1u << SESSION_HTTP |
			    1u << SESSION_DIAL | 1u << SESSION_PROBE,
	[SESSION_ADMIT] = 1u << SESSION_LEAF | 1u << SESSION_HANDSHAKE |
			  1u << SESSION_DIAL | 1u << SESSION_PROBE |
			  1u << SESSION_SNIFF, /* SOCKS5 */
	[SESSION_PROBE] = 1u << SESSION_LEAF | 1u << SESSION_HANDSHAKE,
	[SESSION_LEAF] = 1u << SESSION_HANDSHAKE,
	[SESSION_HANDSHAKE] = 1u << SESSION_HTTP | 1u << SESSION_HTTP2,
	[SESSION_HTTP] = 1u << SESSION_SNIFF, /* CONNECT */
	[SESSION_DIAL] = 1u << SESSION_SPLICE,
};

void session_move(struct session *s, enum session_state to)
{
	must(state_moves[s->state] & 1u << to);
	log_debug("session %s -> %s", state_names[s->state], state_names[to]);
	s->state = to;
}

void session_deadline(struct session *s, uint32_t delay_ms)
{
	timer_start(&s->timer, delay_ms);
}

void session_free(struct session *s)
{
	struct worker *w = s->worker;

	timer_stop(&s->timer);
	admit_cancel(&s->admission);
	s->leaf = leaf_wait_cancel(s->leaf);
	http1_free(s->http1);
	http2_free(s->http2);
	s->origin = origin_free(s->origin);
	if (s->client) {
		worker_counted_by(w, bytes_in, stream_bytes_in(s->client));
		worker_counted_by(w, bytes_out, stream_bytes_out(s->client));
	}
	s->client = stream_free(s->client);
	enter_leave(take_ptr(s->sandbox));
	buf_fini(&s->in);
	arena_fini(&s->arena);
	list_remove(&s->link);
	worker_counted_by(w, connections_open, (uint64_t)-1);
	free(s);
}

void session_finish(struct session *s)
{
	struct stream *client = take_ptr(s->client);

	worker_counted_by(s->worker, bytes_in, stream_bytes_in(client));
	worker_counted_by(s->worker, bytes_out, stream_bytes_out(client));
	stream_set_owner(client, NULL, NULL);
	(void)stream_close(client, LINGER_MS);
	session_free(s);
}

/* -- the end before anything was exchanged ------------------------------- */

void session_audit(struct session *s, enum audit_reason reason)
{
	s->audit.allowed = false;
	s->audit.reason = reason;
	worker_counted(s->worker, denied);
	worker_record(s->worker, s->sandbox, &s->audit);
}

void session_refuse(struct session *s, enum audit_reason reason)
{
	session_audit(s, reason);
	s->client = stream_reset(s->client);
	session_free(s);
}

static void session_alert(struct session *s, enum audit_reason reason,
			  uint8_t alert)
{
	session_audit(s, reason);
	s->client = stream_close_alert(s->client, alert);
	session_free(s);
}

static void on_timer(struct timer *t)
{
	struct session *s = container_of(t, struct session, timer);

	switch (s->state) {
	case SESSION_HTTP:
		http1_timeout(s);
		return;
	case SESSION_HTTP2:
		http2_timeout(s);
		return;
	case SESSION_SNIFF:
	case SESSION_OPENING:
		opening_timeout(s);
		return;
	case SESSION_PROXY:
		if (!buf_len(&s->in)) { /* never said a word */
			session_free(s);
			return;
		}
		session_refuse(s, AUDIT_REASON_CLIENT_TIMEOUT);
		return;
	case SESSION_HANDSHAKE:
		session_refuse(s, AUDIT_REASON_CLIENT_TIMEOUT);
		return;
	case SESSION_NONE:
	case SESSION_ADMIT:
	case SESSION_PROBE:
	case SESSION_LEAF:
	case SESSION_DIAL:
	case SESSION_STATE_NUM:
		break;
	case SESSION_SPLICE:
		tunnel_too_long(s);
		return;
	}
	session_refuse(s, AUDIT_REASON_INTERNAL);
}

/* -- opening TLS ---------------------------------------------------------- */

static struct span leaf_name(const struct session *s, char *text, size_t size)
{
	if (s->destination.host.len)
		return host_span(&s->destination.host);
	return span_str(addr_text(&s->destination.original, text, size));
}

static bool origin_speaks_h2(const struct session *s)
{
	return origin_alpn(s->worker, s->sandbox, &s->destination) ==
	       ORIGIN_ALPN_H2;
}

static void session_shaken(struct session *s)
{
	if (!stream_tls_ready(s->client)) {
		s->audit.detail = arena_dup(
			&s->arena, span_str(stream_tls_error(s->client)));
		session_refuse(s, AUDIT_REASON_CLIENT_TLS);
		return;
	}
	s->audit.tls_version = stream_tls_version(s->client);
	s->audit.resumed = stream_tls_resumed(s->client);
	worker_counted(s->worker, handshakes);
	if (s->audit.resumed)
		worker_counted(s->worker, handshakes_resumed);
	if (span_eq(stream_tls_alpn(s->client), SPAN("h2"))) {
		session_move(s, SESSION_HTTP2);
		http2_start(s);
	} else {
		session_move(s, SESSION_HTTP);
		http1_start(s);
	}
}

static void session_shake(struct session *s, struct x509_st *leaf)
{
	char text[ADDR_TEXT_SIZE];
	struct ssl_st *ssl;

	if (!leaf) {
		session_alert(s, AUDIT_REASON_INTERNAL, ALERT_ACCESS_DENIED);
		return;
	}
	ssl = client_ssl_new(
		s->worker->client_ctx, leaf,
		gateway_leaf_key(s->worker->gateway), span_str(s->sandbox->id),
		leaf_name(s, text, sizeof(text)), origin_speaks_h2(s));
	X509_free(leaf);
	if (!ssl || stream_unread(s->client, buf_peek(&s->in)) ||
	    stream_start_tls(s->client, ssl)) {
		session_refuse(s, AUDIT_REASON_INTERNAL);
		return;
	}
	buf_fini(&s->in);
	session_move(s, SESSION_HANDSHAKE);
	session_deadline(s, s->worker->config->handshake_ms);
	stream_want(s->client, STREAM_CONNECTED);
}

static void on_leaf(void *ctx, struct x509_st *leaf)
{
	struct session *s = ctx;

	s->leaf = NULL;
	session_shake(s, leaf);
}

static void session_get_leaf(struct session *s)
{
	char text[ADDR_TEXT_SIZE];
	const struct leaf_wish wish = {
		.sandbox = s->sandbox,
		.name = leaf_name(s, text, sizeof(text)),
		.fn = on_leaf,
		.ctx = s,
	};
	struct x509_st *leaf = NULL;

	if (leaf_get(s->worker->leaves, &wish, &leaf, &s->leaf)) {
		session_alert(s, AUDIT_REASON_LIMIT, ALERT_ACCESS_DENIED);
		return;
	}
	if (leaf) {
		session_shake(s, leaf);
		return;
	}
	session_move(s, SESSION_LEAF);
	session_deadline(s, s->worker->config->handshake_ms);
}

/* What the origin speaks is known now, or it cannot be reached: then the client
 * will be told so in HTTP/1.1. */
static void on_probed(struct origin *o, void *ctx, enum origin_event event)
{
	struct session *s = ctx;

	s->origin = NULL;
	if (event == ORIGIN_FAILED)
		(void)origin_free(o);
	else if (o->h2)
		origin_rest(o);
	else
		(void)origin_keep(o);
	session_get_leaf(s);
}

/* ALPN follows the origin: asked once, remembered with the pool. */
static void session_open_tls(struct session *s)
{
	struct worker *w = s->worker;

	s->audit.inspected = true;
	s->origin = origin_free(s->origin); /* dialled for a silent client */
	if (!s->offers_h2 || origin_alpn(w, s->sandbox, &s->destination) !=
				     ORIGIN_ALPN_UNKNOWN) {
		session_get_leaf(s);
		return;
	}
	s->origin = origin_open(w, s->sandbox, &s->destination, s->grant,
				ORIGIN_BY_H2, on_probed, s);
	must(!s->origin->open); /* nothing kept answers the question */
	session_move(s, SESSION_PROBE);
}

/* -- admission ------------------------------------------------------------ */

/* Without a proved name admission has asked about bindings. */
bool session_may_pass_unseen(const struct session *s)
{
	return grant_passthrough(s->grant) ||
	       (!grant_inspect(s->grant) &&
		!bind_concerns_any(s->worker, s->sandbox, &s->destination));
}

/* Granted: opened where something inside is to be seen, else spliced. */
static void session_serve(struct session *s)
{
	struct worker *w = s->worker;
	bool tls = s->destination.scheme == SCHEME_HTTPS;

	if (tls && !grant_passthrough(s->grant) &&
	    (grant_inspect(s->grant) ||
	     bind_concerns(w, s->sandbox, &s->destination))) {
		session_open_tls(s);
		return;
	}
	if (!tls && !session_may_pass_unseen(s)) { /* nothing to look at */
		session_refuse(s, AUDIT_REASON_NOT_TLS_OR_HTTP);
		return;
	}
	session_move(s, SESSION_DIAL);
	tunnel_dial(s);
}

static void session_admitted(struct session *s, enum step step)
{
	struct worker *w = s->worker;

	timer_stop(&s->timer);
	s->audit.host = host_span(&s->destination.host);
	s->audit.host_learned = s->admission.learned;
	decide_audit(w, s->sandbox, &s->admission.verdict, &s->arena,
		     &s->audit);
	if (step == STEP_NEXT) {
		s->grant = s->admission.grant;
		s->facts_version = w->facts.version;
		session_serve(s);
	} else if (s->destination.scheme == SCHEME_HTTPS) {
		session_alert(s, s->admission.reason, ALERT_ACCESS_DENIED);
	} else {
		session_refuse(s, s->admission.reason);
	}
}

static void on_admitted(void *ctx, struct admission *a, enum step step)
{
	(void)a;
	session_admitted(ctx, step);
}

void session_admit(struct session *s, enum scheme scheme)
{
	enum step step;

	s->destination.scheme = scheme;
	s->audit.scheme = scheme_name(scheme);
	s->audit.host = host_span(&s->destination.host);
	s->audit.port = s->destination.port;
	stream_want(s->client, 0);
	if (s->grant) { /* when a proxy request named it */
		timer_stop(&s->timer);
		decide_audit(s->worker, s->sandbox, &s->admission.verdict,
			     &s->arena, &s->audit);
		session_serve(s);
		return;
	}
	step = admit_start(&s->admission, on_admitted, s);
	if (step != STEP_WAIT) {
		session_admitted(s, step);
		return;
	}
	session_move(s, SESSION_ADMIT);
}

/* -- the first bytes ------------------------------------------------------ */

/* The name in the ClientHello is the destination, or must be the one that the
 * proxy request gave. Without any, that one stands. */
static bool session_take_sni(struct session *s, const struct hello *hello)
{
	struct host *host = &s->destination.host;

	if (!hello->has_sni || hello->sni_is_address)
		return true;
	if (s->grant)
		return span_eq(host_span(host), host_span(&hello->sni));
	*host = hello->sni;
	return true;
}

/* True: decided (s may be gone). False: more bytes are needed. */
static bool session_hello(struct session *s)
{
	CLEANUP(buf_fini) struct buf joined = BUF_INIT(HELLO_MAX + 4096);
	struct hello hello;
	int r;

	r = hello_parse(buf_peek(&s->in), &joined, &hello);
	if (!r)
		return false;
	if (r < 0) {
		worker_counted(s->worker, malformed);
		s->audit.scheme = "https";
		session_alert(s, AUDIT_REASON_MALFORMED, ALERT_DECODE_ERROR);
		return true;
	}
	if (!session_take_sni(s, &hello)) {
		s->audit.scheme = "https";
		s->audit.detail =
			arena_printf(&s->arena, "the ClientHello is for \"%s\"",
				     hello.sni.text);
		session_alert(s, AUDIT_REASON_MISDIRECTED, ALERT_ACCESS_DENIED);
		return true;
	}
	s->offers_h2 = hello.offers_h2;
	session_admit(s, SCHEME_HTTPS);
	return true;
}

static bool session_recognise(struct session *s)
{
	struct span in = buf_peek(&s->in);
	int http;

	if (in.ptr[0] == TLS_HANDSHAKE_BYTE)
		return session_hello(s);
	http = h1_sniff(in);
	if (http < 0)
		session_admit(s, SCHEME_TCP);
	if (http <= 0)
		return http < 0;
	if (s->grant) /* by CONNECT: requests must be for that destination */
		s->destination.scheme = SCHEME_HTTP;
	s->audit.scheme = "http";
	s->origin = origin_free(s->origin); /* dialled for a silent client */
	session_move(s, SESSION_HTTP);
	http1_start(s);
	return true;
}

enum session_read session_read(struct session *s)
{
	char *room;
	ssize_t n;

	if (buf_reserve(&s->in, SNIFF_READ_BYTES, &room))
		return SESSION_READ_FULL;
	n = stream_read(s->client, room, SNIFF_READ_BYTES);
	if (n == STREAM_AGAIN)
		return SESSION_READ_NONE;
	if (n == 0)
		return SESSION_READ_END;
	if (n < 0)
		return SESSION_READ_BROKEN;
	buf_commit(&s->in, (size_t)n);
	return SESSION_READ_SOME;
}

void session_abandoned(struct session *s)
{
	if (buf_len(&s->in))
		session_audit(s, AUDIT_REASON_CLIENT_ABORTED);
	session_free(s);
}

static void session_sniff(struct session *s)
{
	enum session_read was;

	while ((was = session_read(s)) == SESSION_READ_SOME) {
		opening_client_spoke(s);
		if (session_recognise(s))
			return; /* s may be gone */
	}
	if (was == SESSION_READ_FULL)
		session_alert(s, AUDIT_REASON_MALFORMED, ALERT_DECODE_ERROR);
	else if (was == SESSION_READ_END && !buf_len(&s->in) &&
		 opening_client_ended(s))
		return; /* s may be gone */
	else if (was != SESSION_READ_NONE)
		session_abandoned(s);
}

static void on_client(struct stream *stream, void *ctx, unsigned events)
{
	struct session *s = ctx;

	(void)stream;
	(void)events;
	switch (s->state) {
	case SESSION_PROXY:
		proxy_on_client(s);
		return;
	case SESSION_SNIFF:
	case SESSION_OPENING:
		session_sniff(s);
		return;
	case SESSION_HANDSHAKE:
		session_shaken(s);
		return;
	case SESSION_HTTP:
		http1_on_client(s);
		return;
	case SESSION_NONE:
	case SESSION_ADMIT:
	case SESSION_PROBE:
	case SESSION_LEAF:
	case SESSION_HTTP2: /* http2.c owns the stream */
	case SESSION_DIAL:
	case SESSION_SPLICE:
	case SESSION_STATE_NUM:
		break;
	}
	must(false); /* nothing was wanted in these states */
}

void session_open(struct session *s)
{
	session_move(s, SESSION_SNIFF);
	stream_want(s->client, STREAM_READABLE);
	opening_begin(s);
	if (buf_len(&s->in))
		(void)session_recognise(s);
	/* s may be gone */
}

void session_new(struct worker *w, int fd, const struct addr *client,
		 const struct addr *original, const char *iface)
{
	const struct entrant entrant = { *client, *original, iface };
	struct sandbox *sandbox = enter(w, fd, &entrant);
	struct stream *stream;
	struct session *s;

	if (!sandbox)
		return;
	if (stream_new(w->loop, fd, &stream)) {
		enter_leave(sandbox);
		return;
	}
	stream_set_pace(stream, sandbox->pace_out);

	s = must_alloc(sizeof(*s));
	s->worker = w;
	s->client = stream;
	s->sandbox = sandbox;
	s->client_addr = *client;
	s->original = *original;
	s->destination.original = *original;
	s->destination.port = original->port;
	s->audit = (struct audit){
		.kind = AUDIT_CONNECT,
		.start_us = clock_us(),
		.sandbox = span_str(sandbox->id),
		.client = *client,
		.original = *original,
	};
	s->admission = (struct admission){
		.worker = w,
		.sandbox = sandbox,
		.arena = &s->arena,
		.destination = &s->destination,
	};
	arena_init(&s->arena, SESSION_ARENA_BYTES);
	buf_init(&s->in, HELLO_MAX + 2 * w->config->head_bytes);
	timer_init(&s->timer, w->loop, on_timer);
	list_init(&s->link);
	list_push(&w->sessions, &s->link);
	worker_counted(w, connections_open);
	stream_set_owner(stream, on_client, s);
	if (proxy_is_dialled(w, original))
		proxy_start(s);
	else
		session_open(s);
}

/* Would it be made today, and made like this? What passes unopened may not be
 * something whose requests policy wants to see; and what a proxy request named
 * is served by the grant that it got. */
static bool session_may_go_on(struct session *s)
{
	struct destination *d = &s->destination;
	bool tunnel = s->state == SESSION_SPLICE, may;
	const struct addr *to = tunnel ? &s->audit.address : &d->addrs[0];
	struct worker *w = s->worker;
	struct arena arena;
	struct verdict v;

	arena_init(&arena, SESSION_ARENA_BYTES);
	may = decide_again(w, s->sandbox, d, to, &arena, &v);
	arena_fini(&arena);
	if (s->state == SESSION_SNIFF || s->state == SESSION_OPENING)
		may = may && v.inspect == grant_inspect(s->grant) &&
		      v.passthrough == grant_passthrough(s->grant);
	if (!may || !tunnel || v.passthrough)
		return may;
	return !v.inspect && admit_may_stay_unseen(w, s->sandbox, d);
}

/* A rule with methods or paths lets the connection be. */
static void session_recheck_requests(struct session *s)
{
	if (s->state == SESSION_HTTP)
		http1_recheck(s);
	else if (s->state == SESSION_HTTP2)
		http2_recheck(s);
}

void session_recheck(struct session *s)
{
	if (s->state == SESSION_OPENING && !s->grant) {
		opening_recheck(s);
		return; /* s may be gone */
	}
	if (!s->grant || s->facts_version == s->worker->facts.version)
		return;
	s->facts_version = s->worker->facts.version;
	if (session_may_go_on(s)) {
		session_recheck_requests(s);
		return; /* s may be gone */
	}
	if (s->state == SESSION_SPLICE)
		tunnel_cut(s);
	else if (s->state == SESSION_HTTP)
		http1_cut(s);
	else if (s->state == SESSION_HTTP2)
		http2_cut(s);
	else
		session_refuse(s, AUDIT_REASON_CUT);
}

void session_drain(struct session *s)
{
	if (s->state == SESSION_HTTP)
		http1_drain(s);
	else if (s->state == SESSION_HTTP2)
		http2_drain(s);
	else if (s->state != SESSION_SPLICE)
		session_free(s);
}
