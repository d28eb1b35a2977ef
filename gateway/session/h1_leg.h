/* SPDX-License-Identifier: Apache-2.0 */
/* h1_leg.h - what both HTTP/1.1 legs share: content in and out of a stream */
#pragma once

#include "gateway/session/body.h"
#include "gateway/session/leg.h"

struct stream;
struct worker;

struct h1_leg {
	struct leg leg;
	struct worker *worker;
	struct stream *stream;
	struct buf *in;	 /* received and kept between turns */
	char *scratch;	 /* to read into: one per direction */
	struct span raw; /* received and not decoded; in scratch or in *in */
	bool raw_is_in;
	size_t dirty;	  /* bytes of the scratch that were filled this turn */
	struct body body; /* what comes */
	bool chunked;	  /* how what goes is framed */
	bool ended;	  /* the peer's bytes ended */
	struct buf out;	  /* view of the worker's assembly buffer */
	struct headers *trailers; /* parsed on demand */
};

void h1_leg_init(struct h1_leg *l, struct worker *w, struct stream *s,
		 struct buf *in, char *scratch);
void h1_leg_fini(struct h1_leg *l);

/* One read of the stream into the scratch, at most max, whatever l->raw is. */
enum leg_read h1_leg_receive(struct h1_leg *l, size_t max, struct span *ret);
/* More bytes into l->raw, at most max: LEG_PIECE when there are some now,
 * LEG_END when the peer's bytes ended, LEG_BROKEN with why. */
enum leg_read h1_leg_fill(struct h1_leg *l, size_t max);
/* What is there is not enough: more is appended to it, in *in. As
 * h1_leg_fill(). */
enum leg_read h1_leg_more(struct h1_leg *l);
/* Keeps what was not decoded in *in: the scratch is somebody else's next. */
int h1_leg_settle(struct h1_leg *l);

/* As in leg.h. */
enum leg_read h1_leg_read(struct leg *leg, size_t max, struct span *ret);
const struct headers *h1_leg_trailers(struct leg *leg);
size_t h1_leg_room(const struct leg *leg);
int h1_leg_write(struct leg *leg, struct span content);
int h1_leg_end(struct leg *leg, const struct headers *trailers);
int h1_leg_flush(struct leg *leg);
void h1_leg_want(struct leg *leg, unsigned what);
