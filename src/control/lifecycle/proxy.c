/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - a request for a port of a sandbox is handed to the gateway
 *
 * How it works: the connection leaves the HTTP server behind the head. One end
 * of a socketpair goes to the gateway, which sees one more client; into the
 * other end go the head, written anew without the API's key and with
 * "Connection: close", and then whatever the client sends. What comes back is
 * moved and not looked at: it is a sandbox's. The connection ends with that
 * exchange, as the next request on it might be one for us.
 */

#include "src/control/lifecycle/proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/control/control.h"
#include "src/control/gateway_link.h"
#include "src/httpd/forward_head.h"
#include "src/io/stream.h"
#include "src/role/config.h"
#include "src/wire/h1.h"

enum {
	PROXY_HEAD_MAX = 64 * 1024,
	CHUNK_BYTES = 64 * 1024,
	UNSENT_MAX = 128 * 1024,
	LINGER_MS = 2000,
};

struct side {
	struct proxy *proxy;
	struct stream *stream;
	bool ended; /* it sends no more */
};

struct proxy {
	struct lifecycle *lifecycle;
	struct list link;
	struct side client, gateway;
};

static struct side *other_side(struct side *s)
{
	return s == &s->proxy->client ? &s->proxy->gateway : &s->proxy->client;
}

static void proxy_forget(struct proxy *p)
{
	list_remove(&p->link);
	p->lifecycle->proxy_count--;
	free(p);
}

static void proxy_end(struct proxy *p)
{
	(void)stream_close(p->client.stream, LINGER_MS);
	(void)stream_close(p->gateway.stream, LINGER_MS);
	proxy_forget(p);
}

static void proxy_cut(struct proxy *p)
{
	(void)stream_reset(p->client.stream);
	(void)stream_free(p->gateway.stream);
	proxy_forget(p);
}

/* A side is read only while the other takes what it says. */
static void side_rearm(struct side *s)
{
	bool full = stream_unsent(other_side(s)->stream) >= UNSENT_MAX;
	unsigned events = stream_unsent(s->stream) >= UNSENT_MAX
				  ? (unsigned)STREAM_WRITABLE
				  : 0;

	if (!s->ended && !full)
		events |= STREAM_READABLE;
	stream_want(s->stream, events);
}

/* False: the proxy is gone. */
static bool side_pump(struct side *s)
{
	struct side *to = other_side(s);
	char chunk[CHUNK_BYTES];
	ssize_t n;

	n = stream_read(s->stream, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return true;
	if (n < 0 ||
	    (n && stream_write(to->stream, span_of(chunk, (size_t)n)))) {
		proxy_cut(s->proxy);
		return false;
	}
	if (n)
		return true;
	s->ended = true;
	/* nothing comes behind the gateway's last byte */
	if (to->ended || s == &s->proxy->gateway) {
		proxy_end(s->proxy);
		return false;
	}
	stream_shutdown_write(to->stream);
	return true;
}

static void on_side(struct stream *stream, void *ctx, unsigned events)
{
	struct side *s = ctx;

	(void)stream;
	if (events & STREAM_READABLE && !side_pump(s))
		return; /* the proxy is gone */
	side_rearm(&s->proxy->client);
	side_rearm(&s->proxy->gateway);
}

/* -- the beginning -------------------------------------------------------- */

/* The gateway takes them off as well; what it never sees it cannot leak. */
static bool is_ours(const struct header *h)
{
	return span_eq_nocase(h->name, SPAN("OPEN-SANDBOX-API-KEY"));
}

static int head_write(const struct h1_request *head, struct stream *to)
{
	const struct forward_edit edit = {
		.path = head->path,
		.host = head->authority,
		.lines = head->upgrade ? SPAN("")
				       : SPAN("Connection: close\r\n"),
		.drops = is_ours,
	};
	struct buf out = BUF_INIT(PROXY_HEAD_MAX);
	int r;

	r = forward_put_request(&out, head, &edit);
	if (!r)
		r = stream_write(to, buf_peek(&out));
	buf_wipe(&out);
	return r;
}

/* One end goes to the gateway. 0; -errno. */
static int gateway_reach(struct lifecycle *l, const struct httpd_peer *peer,
			 struct stream **ret)
{
	struct msg_ingress_client body = { .port = peer->address.port };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       fds) != 0)
		return err_origin(-errno);
	memcpy(body.peer, peer->address.ip, sizeof(body.peer));
	body.tls = l->control->config->lifecycle_certificate[0] != '\0';
	gateway_link_send(l->control->gateway, MSG_CONTROL_INGRESS_CLIENT,
			  &body, fds[1]);
	close(fds[1]);
	return stream_new(l->control->loop, fds[0], ret);
}

static void proxy_begin(struct lifecycle *l, struct stream *client,
			struct stream *gateway)
{
	struct proxy *p = must_alloc(sizeof(*p));

	p->lifecycle = l;
	p->client = (struct side){ p, client, false };
	p->gateway = (struct side){ p, gateway, false };
	list_init(&p->link);
	list_push(&l->proxies, &p->link);
	l->proxy_count++;
	stream_set_owner(client, on_side, &p->client);
	stream_set_owner(gateway, on_side, &p->gateway);
	side_rearm(&p->client);
	side_rearm(&p->gateway);
}

void lifecycle_proxy(void *ctx, struct httpd_request *r)
{
	struct stream *gateway = NULL, *client;
	struct lifecycle *l = ctx;
	bool expects = httpd_head(r)->expect_continue;

	if (l->proxy_count >= PROXIES_MAX) {
		httpd_reply_error(r, 503, "SANDBOX::TOO_MANY_CONNECTIONS",
				  "%d connections to sandboxes are open here "
				  "already",
				  PROXIES_MAX);
		return;
	}
	if (!gateway_link_is_up(l->control->gateway) ||
	    gateway_reach(l, httpd_peer(r), &gateway)) {
		httpd_reply_error(r, 502, "SANDBOX::GATEWAY_UNAVAILABLE",
				  "the gateway is not there at the moment");
		return;
	}
	if (head_write(httpd_head(r), gateway)) {
		(void)stream_free(gateway);
		httpd_reply_error(r, 431, "HEAD_TOO_LARGE",
				  "the head is too large to be passed on");
		return;
	}
	client = httpd_take_stream(r); /* r is over */
	if (client && expects &&
	    stream_write(client, SPAN("HTTP/1.1 100 Continue\r\n\r\n")))
		client = stream_free(client);
	if (client)
		proxy_begin(l, client, gateway);
	else
		(void)stream_free(gateway);
}

void proxies_init(struct lifecycle *l)
{
	list_init(&l->proxies);
}

void proxies_fini(struct lifecycle *l)
{
	struct proxy *p;

	while ((p = list_first(&l->proxies, struct proxy, link)))
		proxy_cut(p);
}
