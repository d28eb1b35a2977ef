/* SPDX-License-Identifier: Apache-2.0 */
/* stream_close.c - closing a stream in a way that the peer hears the last word
 *
 * How it works: close(2) on a socket with unread input sends a reset, which
 * may destroy bytes the peer has not read yet. So after the FIN we read and
 * drop what still comes, until the peer ends too or patience does. Such a
 * stream belongs to nobody but the loop.
 *
 * The kernel sends what is left after close(2) by itself, so patience may be
 * short. Not so where the loop ends soon: then it lasts while the peer takes.
 */

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/io/stream_inside.h"

enum { DRAIN_ROUNDS = 8, ALERT_LINGER_MS = 2000, ALERT_BYTES = 7 };

struct closing {
	struct resident resident;
	struct timer timer;
	struct stream *stream;
	uint64_t acked; /* when patience was measured last */
	uint64_t linger_ms;
};

/* Whether the peer has yet to acknowledge something; *acked: what it has. */
static bool is_unsent(const struct stream *s, uint64_t *acked)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	if (s->error || getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	*acked = info.tcpi_bytes_acked;
	return buf_len(&s->output) || info.tcpi_notsent_bytes ||
	       info.tcpi_unacked;
}

static bool closing_is_unsent(const struct resident *r)
{
	uint64_t acked;

	return is_unsent(container_of(r, struct closing, resident)->stream,
			 &acked);
}

static void closing_end(struct closing *c)
{
	timer_stop(&c->timer);
	list_remove(&c->resident.link);
	stream_free(c->stream);
	free(c);
}

static void closing_on_timer(struct timer *t)
{
	struct closing *c = container_of(t, struct closing, timer);
	uint64_t acked = 0;

	if (c->stream->watch.loop->is_ending && is_unsent(c->stream, &acked) &&
	    acked != c->acked) {
		c->acked = acked;
		timer_start(t, c->linger_ms);
		return;
	}
	closing_end(c);
}

static void closing_on_evict(struct resident *r)
{
	closing_end(container_of(r, struct closing, resident));
}

/* Both have ended; where the loop ends soon, also heard. */
static bool stream_is_over(const struct stream *s)
{
	uint64_t acked;

	return s->in == SIDE_ENDED && s->out == SIDE_ENDED &&
	       !(s->watch.loop->is_ending && is_unsent(s, &acked));
}

static void closing_on_ready(struct stream *s)
{
	char *scratch = loop_scratch(s->watch.loop);

	for (int i = 0; i < DRAIN_ROUNDS && s->in == SIDE_OPEN; i++)
		if (stream_receive(s, scratch, SCRATCH_BYTES) == STREAM_AGAIN)
			break;
	if (stream_is_over(s)) {
		closing_end(s->hook_ctx);
		return; /* s is gone */
	}
	if (s->in == SIDE_ENDED)
		s->hook_bits = 0;
	stream_rearm(s);
}

struct stream *stream_close(struct stream *s, uint64_t linger_ms)
{
	struct closing *c;

	if (!s)
		return NULL;
	if (s->phase == PHASE_CONNECTING && !buf_len(&s->output))
		return stream_free(s);
	stream_set_owner(s, NULL, NULL);
	stream_want(s, 0);
	s->closes = s->in == SIDE_ENDED; /* what is queued is all there is */
	stream_shutdown_write(s);
	/* An unfinished handshake stays so: what it queued goes, then FIN. */
	if (s->phase == PHASE_HANDSHAKING)
		s->phase = PHASE_OPEN;
	(void)stream_flush(s);
	if (!linger_ms || stream_is_over(s))
		return stream_free(s);

	c = must_alloc(sizeof(*c));
	c->stream = s;
	c->linger_ms = linger_ms;
	(void)is_unsent(s, &c->acked);
	c->resident.evict = closing_on_evict;
	c->resident.is_unsent = closing_is_unsent;
	list_init(&c->resident.link);
	list_push(&s->watch.loop->residents, &c->resident.link);
	timer_init(&c->timer, s->watch.loop, closing_on_timer);
	timer_start(&c->timer, linger_ms);
	s->hook = closing_on_ready;
	s->hook_ctx = c;
	s->hook_bits = WATCH_READ;
	stream_rearm(s);
	return NULL;
}

struct stream *stream_close_alert(struct stream *s, uint8_t alert)
{
	/* record type alert, version, length 2, level fatal, description */
	const char record[ALERT_BYTES] = { 0x15, 0x03, 0x01,	   0x00,
					   0x02, 0x02, (char)alert };

	if (!s)
		return NULL;
	if (s->out == SIDE_OPEN && (!s->tls || s->tls_ops->is_silent(s)))
		must(buf_put(&s->output, span_of(record, sizeof(record))) == 0);
	return stream_close(s, ALERT_LINGER_MS);
}
