/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - what is spoken to the proxy, and HTTP's two ways of asking it
 *
 * HTTP is served by session/http1.c as ever: so a head has its limits and
 * deadlines, refusals their text, and a connection may carry one request after
 * another, CONNECT last.
 */

#include "gateway/proxy/proxy.h"

#include "gateway/session/exchange.h"
#include "gateway/session/http1.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/io/stream.h"
#include "src/role/config.h"
#include "src/role/listeners.h"
#include "src/wire/socks5.h"

/* -- whom it is for -------------------------------------------------------- */

void proxy_addresses(struct addr ret[PROXY_ADDRS])
{
	must(addr_parse(SPAN(LISTENERS_ADDR_V4), &ret[0]));
	must(addr_parse(SPAN(LISTENERS_ADDR_V6), &ret[1]));
}

static bool is_own_address(const struct addr *address)
{
	struct addr own[PROXY_ADDRS];

	proxy_addresses(own);
	return addr_eq_ip(address, &own[0]) || addr_eq_ip(address, &own[1]);
}

bool proxy_is_dialled(const struct worker *w, const struct addr *original)
{
	return w->config->explicit_proxy_port &&
	       original->port == w->config->explicit_proxy_port &&
	       is_own_address(original);
}

bool proxy_is_named(const struct worker *w, struct span host)
{
	return w->config->explicit_proxy_port &&
	       span_eq(host, span_str(w->config->explicit_proxy_name));
}

static bool is_proxy(const struct worker *w, const struct authority *a)
{
	return a->is_address ? is_own_address(&a->address)
			     : proxy_is_named(w, host_span(&a->host));
}

void proxy_forget(struct session *s)
{
	s->grant = NULL;
	arena_fini(&s->arena); /* grants of requests before; nothing else */
	s->destination = (struct destination){ 0 };
	s->audit.original = s->original;
	s->audit.host = SPAN_NONE;
	s->audit.port = 0;
	s->audit.proxy = NULL;
}

bool proxy_name(struct session *s, const struct authority *a, const char *via)
{
	struct destination *d = &s->destination;

	d->port = a->port;
	if (a->is_address) {
		d->original = a->address;
		s->audit.original = a->address;
	} else {
		d->host = a->host;
		s->audit.host = host_span(&d->host);
	}
	s->audit.port = a->port;
	s->audit.proxy = via;
	return !is_proxy(s->worker, a);
}

/* -- HTTP ------------------------------------------------------------------ */

bool proxy_is_connect(const struct exchange *x)
{
	return span_eq(x->head.method, SPAN("CONNECT"));
}

/* Why a request in this form is no request to a proxy; NULL: it is one. */
static const char *form_fault(const struct h1_request *head, bool connect)
{
	if (connect)
		return NULL;
	if (!head->absolute)
		return "this is a proxy: name the destination in the request "
		       "line (http://host/path), or use CONNECT";
	if (head->absolute_https)
		return "an https:// destination is reached with CONNECT";
	return NULL;
}

void proxy_begin(struct exchange *x)
{
	struct session *s = x->session;
	bool connect = proxy_is_connect(x), itself;
	const char *fault = form_fault(&x->head, connect);
	struct authority a;

	if (fault || !authority_parse(x->head.authority, 80, &a)) {
		exchange_fail(x, AUDIT_REASON_MALFORMED, 400,
			      fault ? fault
				    : "the destination is no host name or "
				      "address");
		return;
	}
	itself = !proxy_name(s, &a, connect ? "connect" : "absolute");
	x->audit.proxy = s->audit.proxy;
	x->audit.original = s->audit.original;
	x->audit.host = arena_dup(&x->arena, s->audit.host);
	x->audit.port = s->audit.port;
	if (connect)
		x->audit.scheme = NULL; /* what is inside is not known */
	if (itself)
		exchange_fail(x, AUDIT_REASON_ADDRESS, 403,
			      "the proxy does not lead to itself");
	else if (connect && a.is_address)
		proxy_tunnel(s); /* x is gone */
	else
		exchange_admit(x, &a);
}

void proxy_tunnel(struct session *s)
{
	http1_leave(s);
	if (stream_write(s->client,
			 SPAN("HTTP/1.1 200 Connection established\r\n\r\n"))) {
		session_refuse(s, AUDIT_REASON_CLIENT_ABORTED);
		return;
	}
	proxy_open(s);
}

void proxy_open(struct session *s)
{
	s->proxied = false;
	s->audit.scheme = NULL;
	(void)stream_flush(s->client); /* an error shows when it is read */
	session_open(s);
	/* s may be gone */
}

/* -- the first byte -------------------------------------------------------- */

/* True: decided, s may be gone. */
static bool proxy_recognise(struct session *s)
{
	if (s->socks_greeted || buf_peek(&s->in).ptr[0] == SOCKS5_VERSION)
		return socks_run(s);
	s->audit.scheme = "http";
	session_move(s, SESSION_HTTP);
	http1_start(s);
	return true;
}

void proxy_on_client(struct session *s)
{
	enum session_read was;

	while ((was = session_read(s)) == SESSION_READ_SOME)
		if (proxy_recognise(s))
			return; /* s may be gone */
	if (was == SESSION_READ_FULL)
		session_refuse(s, AUDIT_REASON_MALFORMED);
	else if (was != SESSION_READ_NONE)
		session_abandoned(s);
}

void proxy_start(struct session *s)
{
	s->proxied = true;
	proxy_forget(s);
	session_move(s, SESSION_PROXY);
	session_deadline(s, s->worker->config->head_ms);
	stream_want(s->client, STREAM_READABLE);
}
