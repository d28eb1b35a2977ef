/* SPDX-License-Identifier: Apache-2.0 */
/* chain_dial.c - connect to the proxy, ask for a tunnel, read its answer
 *
 * How it works: the proxy's name is resolved like any other, its addresses are
 * tried in turn; TLS if so configured, proved by the proxy's name; then the
 * CONNECT request, and an answer of bounded size within bounded time. Anything
 * but 2xx is a failure that says what the proxy said, in its number only: its
 * words are not the sandbox's to read.
 *
 * The credential is a lease like those of bindings. It is asked for at each
 * dial, so that a new value counts from the next connection on.
 */

#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>

#include "gateway/dns/resolver.h"
#include "gateway/registry/bindings.h"
#include "gateway/upstream/chain.h"
#include "gateway/upstream/destination.h"
#include "gateway/upstream/pool.h"
#include "gateway/upstream/relay.h"
#include "gateway/worker.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/role/config.h"
#include "src/wire/h1.h"

enum {
	ADDRS_MAX = 8,
	/* An address that does not answer gives way to the next after this. */
	ATTEMPT_MS = 2000,
	READ_BYTES = 4096,
	ANSWER_BYTES_MAX = 64 * 1024,
	REQUEST_BYTES_MAX = 16 * 1024,
	CREDENTIAL_BYTES_MAX = 4096,
	TARGET_SIZE = HOST_MAX + 16,
};

struct chain_dial {
	struct worker *worker;
	struct chain *chain;
	char target[TARGET_SIZE]; /* as CONNECT names it */
	struct lookup *lookup;	  /* of the proxy's name */
	struct addr addrs[ADDRS_MAX];
	unsigned addr_count, attempt;
	struct stream *stream;
	struct timer timer;
	struct buf in; /* of the answer */
	struct h1_scan scan;
	bool beginning; /* the caller is not told from inside chain_dial() */
	bool again;
	char why[128];
	chain_fn *fn;
	void *ctx;
};

struct chain_dial *chain_cancel(struct chain_dial *d)
{
	if (!d)
		return NULL;
	timer_stop(&d->timer);
	d->lookup = lookup_cancel(d->lookup);
	d->stream = stream_free(d->stream);
	buf_fini(&d->in);
	free(d);
	return NULL;
}

static void on_failed(struct timer *t)
{
	struct chain_dial *d = container_of(t, struct chain_dial, timer);

	d->fn(d->ctx, NULL, d->why, d->again);
	(void)chain_cancel(d);
}

static void PRINTF(2, 3) dial_fail(struct chain_dial *d, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(d->why, sizeof(d->why), fmt, args);
	va_end(args);
	d->stream = stream_free(d->stream);
	if (d->beginning) {
		timer_init(&d->timer, d->worker->loop, on_failed);
		timer_start(&d->timer, 1);
		return;
	}
	timer_stop(&d->timer);
	on_failed(&d->timer);
	/* d is gone */
}

/* -- the answer ------------------------------------------------------------ */

static void dial_done(struct chain_dial *d, struct span rest)
{
	struct stream *tunnel = take_ptr(d->stream), *inside;
	int r;

	timer_stop(&d->timer);
	stream_set_owner(tunnel, NULL, NULL);
	stream_want(tunnel, 0);
	if (stream_is_tls(tunnel)) {
		r = relay_new(d->worker, chain_relays(d->chain), tunnel, rest,
			      &inside);
	} else {
		r = rest.len ? stream_unread(tunnel, rest) : 0;
		inside = r ? stream_free(tunnel) : tunnel;
	}
	if (r) {
		dial_fail(d, "the tunnel could not begin: %s", err_text(r));
		return; /* d is gone */
	}
	d->fn(d->ctx, inside, NULL, false);
	(void)chain_cancel(d);
}

static void dial_refused(struct chain_dial *d, uint16_t status)
{
	d->again = status >= 500;
	switch (status) {
	case 407:
		dial_fail(d, "the upstream proxy does not accept the "
			     "gateway's credential (407)");
		return;
	case 403:
		dial_fail(d, "the upstream proxy does not allow it (403)");
		return;
	default:
		dial_fail(d, "the upstream proxy answered %u", status);
	}
}

/* True: d is gone. */
static bool dial_answer(struct chain_dial *d)
{
	size_t limit =
		MIN(d->worker->config->head_bytes, (uint32_t)ANSWER_BYTES_MAX);
	struct h1_response answer;
	struct span in;
	int len;

	for (;;) {
		in = buf_peek(&d->in);
		len = h1_scan(&d->scan, in, limit);
		if (!len)
			return false;
		if (len < 0 || h1_parse_response(span_of(in.ptr, (size_t)len),
						 SPAN("CONNECT"), &answer)) {
			dial_fail(d, "the upstream proxy broke the protocol");
			return true;
		}
		d->scan = (struct h1_scan){ 0 };
		if (answer.status == 101 || answer.status >= 200)
			break;
		buf_consume(&d->in, (size_t)len); /* interim */
	}
	if (answer.status >= 200 && answer.status < 300)
		dial_done(d, span_from(in, (size_t)len));
	else
		dial_refused(d, answer.status);
	return true;
}

static void on_answer(struct stream *s, void *ctx, unsigned events)
{
	struct chain_dial *d = ctx;
	char *room;
	ssize_t n;

	(void)events;
	for (;;) {
		if (buf_reserve(&d->in, READ_BYTES, &room)) {
			dial_fail(d,
				  "the upstream proxy's answer is too large");
			return; /* d is gone */
		}
		n = stream_read(s, room, READ_BYTES);
		if (n == STREAM_AGAIN)
			return;
		if (n <= 0) {
			dial_fail(d, "the upstream proxy broke off: %s",
				  n ? err_text((int)n) : "end of stream");
			return; /* d is gone */
		}
		buf_commit(&d->in, (size_t)n);
		if (dial_answer(d))
			return; /* d is gone */
	}
}

/* -- the request ----------------------------------------------------------- */

/* "Basic", of user:password; a value without a colon is base64 of it already.
 * 0, -ENOKEY: the vault has none; -ENOBUFS. */
static int put_credential(const struct chain_dial *d, struct buf *out)
{
	const char *name = d->worker->config->upstream_proxy_credential;
	const struct bindings *node =
		map_find(&d->worker->facts.bindings, SPAN(""));
	const struct secret *lease;
	struct span value;
	char *room;
	int r;

	if (!name[0])
		return 0;
	lease = node ? bindings_lease(node, span_str(name)) : NULL;
	if (!lease)
		return -ENOKEY;
	value = secret_open(lease);
	if (value.len > CREDENTIAL_BYTES_MAX)
		return -ENOBUFS;
	r = buf_put_str(out, "Proxy-Authorization: Basic ");
	if (!r && span_find(value, ':') == value.len) {
		r = buf_put(out, value);
	} else if (!r) {
		r = buf_reserve(out, value.len / 3 * 4 + 5, &room);
		if (!r)
			buf_commit(out,
				   (size_t)EVP_EncodeBlock(
					   (unsigned char *)room,
					   (const unsigned char *)value.ptr,
					   (int)value.len));
	}
	return r ? r : buf_put_str(out, "\r\n");
}

static void dial_ask(struct chain_dial *d)
{
	const struct config *c = d->worker->config;
	struct buf out CLEANUP(buf_wipe) = BUF_INIT(REQUEST_BYTES_MAX);
	int r;

	r = buf_putf(&out, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n", d->target,
		     d->target);
	if (!r)
		r = put_credential(d, &out);
	if (r == -ENOKEY) {
		dial_fail(d, "the vault has no credential for the upstream "
			     "proxy");
		return; /* d is gone */
	}
	if (!r)
		r = buf_put_str(&out, "\r\n");
	if (!r)
		r = stream_write(d->stream, buf_peek(&out));
	if (r) {
		dial_fail(d, "the upstream proxy was not asked: %s",
			  err_text(r));
		return; /* d is gone */
	}
	/* the proxy connects while we wait */
	timer_start(&d->timer, c->connect_ms + c->handshake_ms);
	stream_set_owner(d->stream, on_answer, d);
	stream_want(d->stream, STREAM_READABLE);
}

/* -- the connection -------------------------------------------------------- */

static void dial_attempt(struct chain_dial *d);

static void dial_next(struct chain_dial *d, const char *why)
{
	d->stream = stream_free(d->stream);
	if (++d->attempt < d->addr_count)
		dial_attempt(d);
	else
		dial_fail(d, "the upstream proxy could not be reached: %s",
			  why);
	/* d may be gone */
}

static void on_tls(struct stream *s, void *ctx, unsigned events)
{
	struct chain_dial *d = ctx;

	(void)events;
	if (stream_tls_ready(s))
		dial_ask(d);
	else
		dial_fail(d, "the upstream proxy was not proved: %s",
			  stream_tls_error(s));
	/* d may be gone */
}

static void dial_secure(struct chain_dial *d)
{
	const struct authority *proxy = chain_proxy(d->chain);
	const struct destination to = { .host = proxy->host,
					.original = proxy->address };
	struct ssl_st *ssl = origin_ssl_new(d->worker, &to, false);

	if (!ssl || stream_start_tls(d->stream, ssl)) {
		dial_fail(d, "TLS with the upstream proxy could not start");
		return; /* d is gone */
	}
	timer_start(&d->timer, d->worker->config->handshake_ms);
	stream_set_owner(d->stream, on_tls, d);
	stream_want(d->stream, STREAM_CONNECTED);
}

static void on_connected(struct stream *s, void *ctx, unsigned events)
{
	struct chain_dial *d = ctx;
	int error = stream_error(s);

	(void)events;
	if (error)
		dial_next(d, err_text(error));
	else if (chain_tls(d->chain))
		dial_secure(d);
	else
		dial_ask(d);
	/* d may be gone */
}

static void on_timer(struct timer *t)
{
	struct chain_dial *d = container_of(t, struct chain_dial, timer);

	if (d->stream && stream_wanted(d->stream) & STREAM_CONNECTED &&
	    !stream_is_tls(d->stream))
		dial_next(d, "the connection timed out");
	else
		dial_fail(d, "the upstream proxy did not answer in time");
	/* d may be gone */
}

static void dial_attempt(struct chain_dial *d)
{
	uint32_t wait_ms = d->worker->config->connect_ms;

	if (stream_connect(d->worker->loop, &d->addrs[d->attempt],
			   &d->stream)) {
		d->stream = NULL;
		dial_next(d, "the connection could not be begun");
		return; /* d may be gone */
	}
	if (d->attempt + 1 < d->addr_count)
		wait_ms = MIN(wait_ms, (uint32_t)ATTEMPT_MS);
	timer_start(&d->timer, wait_ms);
	stream_set_owner(d->stream, on_connected, d);
	stream_want(d->stream, STREAM_CONNECTED);
}

static void dial_resolved(struct chain_dial *d,
			  const struct name_answer *answer)
{
	unsigned i;

	for (i = 0; i < answer->count && d->addr_count < ADDRS_MAX; i++) {
		d->addrs[d->addr_count] = answer->addrs[i];
		d->addrs[d->addr_count++].port = chain_proxy(d->chain)->port;
	}
	if (answer->status == NAME_OK && d->addr_count)
		dial_attempt(d);
	else
		dial_fail(d, "the upstream proxy's name does not resolve");
	/* d may be gone */
}

static void on_lookup(void *ctx, const struct name_answer *answer)
{
	struct chain_dial *d = ctx;

	d->lookup = NULL;
	dial_resolved(d, answer);
}

static void dial_begin(struct chain_dial *d)
{
	const struct authority *proxy = chain_proxy(d->chain);
	struct resolver *resolver = d->worker->resolver;
	struct span name = host_span(&proxy->host);
	struct name_answer answer;

	if (proxy->is_address) {
		d->addrs[d->addr_count++] = proxy->address;
		dial_attempt(d);
	} else if (resolver_find(resolver, name, &answer)) {
		dial_resolved(d, &answer);
	} else {
		d->lookup = resolver_lookup(resolver, name, on_lookup, d);
	}
}

struct chain_dial *chain_dial(struct worker *w, struct span host, uint16_t port,
			      const struct addr *address, chain_fn *fn,
			      void *ctx)
{
	struct chain_dial *d = must_alloc(sizeof(*d));
	char text[ADDR_TEXT_SIZE];

	d->worker = w;
	d->chain = w->chain;
	d->fn = fn;
	d->ctx = ctx;
	if (address)
		(void)snprintf(d->target, sizeof(d->target), "%s",
			       addr_text_port(address, text, sizeof(text)));
	else
		(void)snprintf(d->target, sizeof(d->target), "%.*s:%u",
			       SPAN_FMT(host), port);
	buf_init(&d->in, ANSWER_BYTES_MAX + READ_BYTES);
	timer_init(&d->timer, w->loop, on_timer);
	d->beginning = true;
	dial_begin(d);
	d->beginning = false;
	return d;
}
