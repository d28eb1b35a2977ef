/* SPDX-License-Identifier: Apache-2.0 */
/* event_stream.h - one reply that is an event stream
 *
 * It begins with init and ping, pings every 3 s, and is over at once with the
 * terminal event. Head and first frames leave together, with the first event:
 * until event_stream_new() is called, a failure is an ordinary JSON error.
 *
 * A client that reads slowly holds back its own producer and nobody else:
 * event_stream_put() takes everything (frames must not be torn), and
 * event_stream_is_full() tells the producer to stop reading its pipes until
 * .room is called.
 */
#pragma once

#include <stdbool.h>

#include "src/execd/event.h"

struct event_stream;
struct execd;
struct httpd_request;

struct event_stream_ops {
	void (*room)(void *ctx); /* not full any more */
	void (*gone)(void *ctx); /* the client left; puts go nowhere now */
};

/* Takes the request. ops and ctx are borrowed until event_stream_end(). */
struct event_stream *event_stream_new(struct execd *e, struct httpd_request *r,
				      struct span id,
				      const struct event_stream_ops *ops,
				      void *ctx);
/* Sets ev->timestamp to now when it is 0. */
void event_stream_put(struct event_stream *s, const struct event *ev);
void event_stream_text(struct event_stream *s, enum event_type type,
		       struct span text);
/* Between the two, events are kept to be sent as one piece. They may not be
 * nested. */
void event_stream_hold(struct event_stream *s);
void event_stream_release(struct event_stream *s);
bool event_stream_is_full(struct event_stream *s);
/* Ends the reply after `last` (a terminal event; NULL = none). Returns NULL. */
struct event_stream *event_stream_end(struct event_stream *s,
				      const struct event *last);
