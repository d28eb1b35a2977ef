/* SPDX-License-Identifier: Apache-2.0 */
/* fake_origin.h - a server on loopback, on the worker's loop: it says the same
 * ("pong") to whatever it is told, over TLS with a leaf for the name asked for
 */
#pragma once

#include "tests/unit/gateway/fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "src/io/stream.h"

enum { FAKE_STREAMS = 32, FAKE_HEARD_BYTES = 4 * 1024 * 1024 };

struct fake_origin {
	struct world *world;
	struct watch listener;
	struct addr address;
	SSL_CTX *ctx; /* NULL: plain */
	const struct ca *ca;
	const char *name; /* of its leaf; NULL: the SNI */
	uint64_t now_ms;  /* leaves are signed as of then */
	bool is_mute;	  /* accepts and never says a word */
	struct stream *streams[FAKE_STREAMS];
	unsigned count, resumed;
	char sni[256];	   /* of the last connection */
	const char *greeting; /* said first; NULL: nothing */
	const char *reply;    /* NULL: "pong" */
	struct buf heard;  /* all that was said to it */
};

static inline X509 *fake_leaf(const struct fake_origin *f, const char *name)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	const struct gateway *g = &f->world->gateway;
	struct diag d = { 0 };
	X509 *leaf;

	if (leaf_sign(f->ca, span_str(name),
		      span_of(g->leaf_spki, g->leaf_spki_len), f->now_ms, &der,
		      &d))
		fail_msg("leaf: %s", d.msg);
	must(!cert_from_der(buf_peek(&der), &leaf));
	return leaf;
}

/* Asked for its certificate: the leaf, minted now. */
static inline int fake_on_cert(SSL *ssl, void *ctx)
{
	struct fake_origin *f = ctx;
	const char *sni = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	X509 *leaf;

	(void)snprintf(f->sni, sizeof(f->sni), "%s", sni ? sni : "");
	leaf = fake_leaf(f, f->name ? f->name : sni ? sni : "127.0.0.1");
	must(SSL_use_certificate(ssl, leaf));
	must(SSL_use_PrivateKey(ssl, f->world->gateway.leaf_key));
	X509_free(leaf);
	return 1;
}

static inline void fake_on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct fake_origin *f = ctx;
	char bytes[1024];
	ssize_t n;

	if (events & STREAM_CONNECTED && stream_ssl(s))
		f->resumed += SSL_session_reused(stream_ssl(s)) == 1;
	if (!(events & STREAM_READABLE) && stream_ssl(s))
		return;
	n = stream_read(s, bytes, sizeof(bytes));
	if (n > 0) {
		must(!buf_put(&f->heard, span_of(bytes, (size_t)n)));
		must(!stream_write(s, f->reply ? span_str(f->reply)
					       : SPAN("pong")));
	} else if (n != STREAM_AGAIN)
		stream_want(s, 0);
}

static inline void fake_on_accept(struct watch *w, unsigned ready)
{
	struct fake_origin *f = container_of(w, struct fake_origin, listener);
	int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct stream **s;
	SSL *ssl;

	(void)ready;
	if (fd < 0) {
		watch_spent(w, WATCH_READ);
		return;
	}
	must(f->count < FAKE_STREAMS);
	s = &f->streams[f->count++];
	must(!stream_new(f->world->worker.loop, fd, s));
	if (f->is_mute)
		return;
	stream_set_owner(*s, fake_on_stream, f);
	if (f->ctx) {
		ssl = SSL_new(f->ctx);
		SSL_set_accept_state(ssl);
		must(!stream_start_tls(*s, ssl));
	}
	stream_want(*s, STREAM_READABLE | STREAM_CONNECTED);
	if (f->greeting)
		must(!stream_write(*s, span_str(f->greeting)));
}

/* A listening socket on 127.0.0.1; *ret says where. */
static inline int fake_listen(struct addr *ret)
{
	struct sockaddr_storage sa;
	socklen_t len;
	int fd;

	*ret = addr_of("127.0.0.1", 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	must(fd >= 0);
	len = addr_to_sockaddr(ret, &sa);
	must(!bind(fd, (struct sockaddr *)&sa, len));
	must(!listen(fd, 16));
	len = sizeof(sa);
	must(!getsockname(fd, (struct sockaddr *)&sa, &len));
	must(addr_from_sockaddr((struct sockaddr *)&sa, ret));
	return fd;
}

/* ca: signs its leaves; NULL: a plain server. */
static inline void fake_origin_open(struct fake_origin *f, struct world *w,
				    const struct ca *ca)
{
	static const unsigned char id[] = "fake";
	int fd;

	*f = (struct fake_origin){ .world = w, .ca = ca };
	f->now_ms = clock_wall_ms();
	buf_init(&f->heard, FAKE_HEARD_BYTES);
	if (ca) {
		f->ctx = SSL_CTX_new(TLS_server_method());
		SSL_CTX_set_cert_cb(f->ctx, fake_on_cert, f);
		must(SSL_CTX_set_session_id_context(f->ctx, id, sizeof(id)));
	}
	fd = fake_listen(&f->address);
	must(!watch_init(&f->listener, w->worker.loop, fd, fake_on_accept));
	watch_want(&f->listener, WATCH_READ);
}

/* Ends its connections; it goes on listening. */
static inline void fake_origin_hang_up(struct fake_origin *f)
{
	unsigned i;

	for (i = 0; i < f->count; i++)
		f->streams[i] = stream_free(f->streams[i]);
}

static inline void fake_origin_close(struct fake_origin *f)
{
	int fd = f->listener.fd;

	fake_origin_hang_up(f);
	watch_fini(&f->listener);
	(void)fd_close(fd);
	SSL_CTX_free(f->ctx);
	buf_fini(&f->heard);
}
