/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - move bytes between a local socket and a tunnel under TLS */

#include "gateway/upstream/relay.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	LOCAL,
	TUNNEL,
	ENDS,
	/* No more is read while this much waits on the other side. */
	HELD_BYTES = STREAM_UNSENT_MAX / 2,
	READS_PER_TURN = 4,
	LINGER_MS = 2000,
};

struct relay {
	struct list link;
	struct worker *worker;
	struct stream *ends[ENDS];
	bool ended[ENDS]; /* its bytes ended */
	struct timer idle;
};

static void relay_unlink(struct relay *r)
{
	timer_stop(&r->idle);
	list_remove(&r->link);
	free(r);
}

static void relay_free(struct relay *r)
{
	r->ends[LOCAL] = stream_free(r->ends[LOCAL]);
	r->ends[TUNNEL] = stream_free(r->ends[TUNNEL]);
	relay_unlink(r);
}

/* What was written is sent still. */
static void relay_finish(struct relay *r)
{
	int i;

	for (i = 0; i < ENDS; i++) {
		stream_set_owner(r->ends[i], NULL, NULL);
		(void)stream_close(take_ptr(r->ends[i]), LINGER_MS);
	}
	relay_unlink(r);
}

/* A broken end must look so at the other. */
static void relay_break(struct relay *r)
{
	r->ends[LOCAL] = stream_reset(r->ends[LOCAL]);
	r->ends[TUNNEL] = stream_reset(r->ends[TUNNEL]);
	relay_unlink(r);
}

static bool is_full(const struct stream *s)
{
	return stream_unsent(s) >= HELD_BYTES;
}

/* False: broken. */
static bool relay_move(struct relay *r, int from)
{
	struct stream *in = r->ends[from], *out = r->ends[!from];
	char *scratch = r->worker->scratch_back;
	ssize_t n;
	int i;

	for (i = 0; i < READS_PER_TURN; i++) {
		if (r->ended[from] || is_full(out))
			return true;
		n = stream_read(in, scratch, HELD_BYTES);
		if (n == STREAM_AGAIN)
			return true;
		if (n == 0) {
			r->ended[from] = true;
			stream_shutdown_write(out);
		} else if (n < 0 ||
			   stream_write(out, span_of(scratch, (size_t)n))) {
			return false;
		}
	}
	return true;
}

/* The owner of the other local end did not only stop to write: it is gone. */
static bool local_is_closed(const struct relay *r)
{
	struct pollfd p = { .fd = stream_fd(r->ends[LOCAL]) };

	return r->ended[LOCAL] && poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

static void relay_want(struct relay *r, int end)
{
	unsigned events = 0;

	if (!r->ended[end] && !is_full(r->ends[!end]))
		events |= STREAM_READABLE;
	if (is_full(r->ends[end]))
		events |= STREAM_WRITABLE;
	stream_want(r->ends[end], events);
}

static void on_end(struct stream *stream, void *ctx, unsigned events)
{
	struct relay *r = ctx;

	(void)stream;
	(void)events;
	if (!relay_move(r, LOCAL) || !relay_move(r, TUNNEL)) {
		relay_break(r);
		return;
	}
	if ((r->ended[LOCAL] && r->ended[TUNNEL]) || local_is_closed(r)) {
		relay_finish(r);
		return;
	}
	timer_start(&r->idle, r->worker->config->tunnel_idle_ms);
	relay_want(r, LOCAL);
	relay_want(r, TUNNEL);
}

static void on_idle(struct timer *t)
{
	relay_free(container_of(t, struct relay, idle));
}

static int pair_new(struct worker *w, struct stream *ret[2])
{
	int fds[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       fds))
		return err_origin(-errno);
	r = stream_new(w->loop, fds[0], &ret[0]);
	if (r) {
		(void)fd_close(fds[1]);
		return r;
	}
	r = stream_new(w->loop, fds[1], &ret[1]);
	if (r)
		ret[0] = stream_free(ret[0]);
	return r;
}

int relay_new(struct worker *w, struct list *relays, struct stream *tunnel,
	      struct span first, struct stream **ret)
{
	struct stream *pair[2];
	struct relay *r;
	int error = pair_new(w, pair);

	if (!error) {
		error = first.len ? stream_write(pair[0], first) : 0;
		if (error) {
			pair[0] = stream_free(pair[0]);
			pair[1] = stream_free(pair[1]);
		}
	}
	if (error) {
		(void)stream_free(tunnel);
		return err_trace(error);
	}
	r = must_alloc(sizeof(*r));
	r->worker = w;
	r->ends[LOCAL] = pair[0];
	r->ends[TUNNEL] = tunnel;
	timer_init(&r->idle, w->loop, on_idle);
	timer_start(&r->idle, w->config->tunnel_idle_ms);
	list_init(&r->link);
	list_push(relays, &r->link);
	stream_set_owner(pair[0], on_end, r);
	stream_set_owner(tunnel, on_end, r);
	relay_want(r, LOCAL);
	relay_want(r, TUNNEL);
	*ret = pair[1];
	return 0;
}

void relays_free(struct list *relays)
{
	struct relay *r;

	while ((r = list_first(relays, struct relay, link)))
		relay_free(r);
}
