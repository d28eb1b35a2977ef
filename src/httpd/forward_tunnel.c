/* SPDX-License-Identifier: Apache-2.0 */
/* forward_tunnel.c - two connections that speak with each other from now on
 *
 * How it works: plain ones are joined in the kernel (stream_splice). Under TLS
 * bytes are moved by hand, each way at the pace of who takes them: a side is
 * read only while the other has less than UNSENT_MAX to send. An end of one
 * side is passed on to the other; the tunnel is over when both have ended, and
 * what one of them fails with resets both.
 */

#include <errno.h>
#include <string.h>

#include "src/base/err.h"
#include "src/httpd/forward_inside.h"

enum { UNSENT_MAX = 128 * 1024, LINGER_MS = 1000 };

struct side {
	struct tunnel *tunnel;
	struct stream *stream;
	bool ended;	/* it sends no more */
	uint64_t bytes; /* that it sent */
};

struct tunnel {
	struct list link; /* in forwarder.tunnels */
	struct forward *x;
	struct splice *splice; /* NULL: by hand */
	struct side client, server;
	struct timer idle;
};

static struct side *other_side(struct side *s)
{
	return s == &s->tunnel->client ? &s->tunnel->server
				       : &s->tunnel->client;
}

static void tunnel_free(struct tunnel *t)
{
	struct forward *x = t->x;

	timer_stop(&t->idle);
	list_remove(&t->link);
	x->forwarder->tunnel_count--;
	free(t);
	forward_free(x);
}

static void on_spliced(void *ctx, uint64_t to_server, uint64_t to_client,
		       int error)
{
	struct tunnel *t = ctx;

	t->x->result.request_bytes = to_server;
	t->x->result.response_bytes = to_client;
	t->x->result.cut = error != 0;
	tunnel_free(t);
}

/* -- by hand --------------------------------------------------------------- */

static void tunnel_end(struct tunnel *t, bool cut)
{
	struct stream *client = t->client.stream, *server = t->server.stream;

	t->x->result.request_bytes = t->client.bytes;
	t->x->result.response_bytes = t->server.bytes;
	t->x->result.cut = cut;
	tunnel_free(t);
	if (cut) {
		(void)stream_reset(client);
		(void)stream_reset(server);
	} else {
		(void)stream_close(client, LINGER_MS);
		(void)stream_close(server, LINGER_MS);
	}
}

static void side_rearm(struct side *s)
{
	struct stream *to = other_side(s)->stream;
	bool full = stream_unsent(to) >= UNSENT_MAX;

	/* who is full says when it is not: both masks hang on each other */
	stream_want(s->stream, (s->ended || full ? 0u : STREAM_READABLE) |
				       (stream_unsent(s->stream) >= UNSENT_MAX
						? STREAM_WRITABLE
						: 0u));
}

static void tunnel_rearm(struct tunnel *t)
{
	side_rearm(&t->client);
	side_rearm(&t->server);
	if (t->x->forwarder->tunnel_idle_ms)
		timer_start(&t->idle, t->x->forwarder->tunnel_idle_ms);
}

/* False: the tunnel is over. */
static bool side_pump(struct side *s)
{
	struct stream *to = other_side(s)->stream;
	char chunk[FORWARD_CHUNK_BYTES];
	ssize_t n;

	n = stream_read(s->stream, chunk, sizeof(chunk));
	if (n == STREAM_AGAIN)
		return true;
	if (n < 0 || (n > 0 && stream_write(to, span_of(chunk, (size_t)n)))) {
		tunnel_end(s->tunnel, true);
		return false;
	}
	s->bytes += (uint64_t)n;
	if (n)
		return true;
	s->ended = true;
	stream_shutdown_write(to);
	if (!other_side(s)->ended)
		return true;
	tunnel_end(s->tunnel, false);
	return false;
}

static void on_side(struct stream *stream, void *ctx, unsigned events)
{
	struct side *s = ctx;

	(void)stream;
	if (events & STREAM_READABLE && !side_pump(s))
		return; /* the tunnel is gone */
	tunnel_rearm(s->tunnel);
}

static void on_idle(struct timer *timer)
{
	tunnel_end(container_of(timer, struct tunnel, idle), true);
}

static void side_init(struct side *s, struct tunnel *t, struct stream *stream)
{
	s->tunnel = t;
	s->stream = stream;
	stream_set_owner(stream, on_side, s);
}

/* -- both kinds ------------------------------------------------------------ */

void forward_join(struct forward *x, struct stream *client,
		  struct stream *server)
{
	struct forwarder *f = x->forwarder;
	struct tunnel *t;

	timer_stop(&x->connecting);
	list_remove(&x->link);
	list_init(&x->link);
	if (!client) {
		(void)stream_reset(server);
		forward_free(x);
		return;
	}
	x->result.status = 101;
	t = must_alloc(sizeof(*t));
	t->x = x;
	timer_init(&t->idle, f->loop, on_idle);
	list_init(&t->link);
	list_push(&f->tunnels, &t->link);
	f->tunnel_count++;
	if (!stream_splice(client, server, f->tunnel_idle_ms, on_spliced, t,
			   &t->splice))
		return;
	side_init(&t->client, t, client);
	side_init(&t->server, t, server);
	tunnel_rearm(t);
}

void forward_tunnels_used(struct forwarder *f, forward_used *used)
{
	list_for_each(it, &f->tunnels)
	{
		struct tunnel *t = container_of(it, struct tunnel, link);

		forward_look(t->x,
			     t->splice ? splice_bytes(t->splice)
				       : t->client.bytes + t->server.bytes,
			     used);
	}
}

void forward_tunnels_fini(struct forwarder *f)
{
	list_for_each(it, &f->tunnels)
	{
		struct tunnel *t = container_of(it, struct tunnel, link);

		if (!t->splice) {
			tunnel_end(t, true);
			continue;
		}
		splice_forget(t->splice);
		t->x->result.cut = true;
		tunnel_free(t);
	}
}

void forward_tunnels_cut(struct forwarder *f, const struct addr *ip,
			 const char *device)
{
	list_for_each(it, &f->tunnels)
	{
		struct tunnel *t = container_of(it, struct tunnel, link);
		const struct forward *x = t->x;

		if (!(x->addr_count && addr_eq_ip(&x->addrs[x->addr_at], ip) &&
		      !strcmp(x->device, device)))
			continue;
		if (t->splice)
			splice_cancel(t->splice, -ECANCELED);
		else
			tunnel_end(t, true);
	}
}
