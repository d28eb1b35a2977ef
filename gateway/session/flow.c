/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - both bodies of an exchange, each as fast as its reader
 *
 * How it works: flow_run() moves content from the front to the back and from
 * the back to the front until neither moves, then asks both legs to call again
 * for exactly what is missing. A direction reads only as much as the other leg
 * has room for, so a slow reader holds back its own writer and nobody else.
 * What was written in one direction is flushed before the other is touched:
 * legs share the worker's buffers.
 */

#include "gateway/session/exchange.h"

#include "gateway/pipeline/redact.h"
#include "gateway/session/redaction.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/buf.h"
#include "src/base/clock.h"

enum {
	/* Then the other sessions of the loop have their turn. */
	ROUNDS_MAX = 16,
	TRAILER_VALUE_BYTES = 64 * 1024,
};

/* What one attempt to move content came to. */
enum moved {
	MOVED_NOTHING, /* would block, or nothing to do */
	MOVED_SOME,
	MOVED_GONE, /* the exchange ended or began anew: hands off */
};

static enum moved fail(struct exchange *x, enum audit_reason reason,
		       uint16_t status, const char *detail)
{
	exchange_fail(x, reason, status, detail);
	return MOVED_GONE;
}

static bool upload_is_open(const struct exchange *x)
{
	return !x->upload_done && !x->upload_broken;
}

/* What is left of what there was room for; framing takes room too, so that
 * many small pieces are less content than a large one. */
static size_t room_left(const struct leg *leg, size_t room, struct span piece)
{
	size_t now = leg->ops->room(leg);

	room -= MIN(room, piece.len);
	return MIN(room, now);
}

/* -- client to origin ------------------------------------------------------ */

/* The origin takes no more of the request; its answer may still come. */
static enum moved upload_break(struct exchange *x)
{
	x->upload_broken = true;
	return MOVED_SOME;
}

static enum moved upload_ended(struct exchange *x)
{
	struct leg *back = x->back;

	x->upload_done = true;
	if (back->ops->end(back, x->front->ops->trailers(x->front)) ||
	    back->ops->flush(back))
		return upload_break(x);
	return MOVED_SOME;
}

/* A client that broke off is gone; one that broke the protocol is told. */
static enum moved upload_failed(struct exchange *x)
{
	if (x->front->malformed)
		return fail(x, AUDIT_REASON_MALFORMED, 400, x->front->why);
	return fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, x->front->why);
}

static enum moved upload_move(struct exchange *x)
{
	struct leg *front = x->front, *back = x->back;
	size_t room = back->ops->room(back);
	enum moved moved = MOVED_NOTHING;
	struct span piece;

	while (upload_is_open(x) && room) {
		switch (front->ops->read(front, room, &piece)) {
		case LEG_NOTHING:
			room = 0;
			break;
		case LEG_PIECE:
			moved = MOVED_SOME;
			x->upload_bytes += piece.len;
			if (back->ops->write(back, piece))
				return upload_break(x);
			room = room_left(back, room, piece);
			break;
		case LEG_END:
			return upload_ended(x);
		case LEG_BROKEN:
			return upload_failed(x);
		}
	}
	if (moved == MOVED_SOME && back->ops->flush(back))
		return upload_break(x);
	return moved;
}

static enum moved ahead_move(struct exchange *x)
{
	struct leg *front = x->front;

	if (!x->upload_done || !front->ops->ahead)
		return MOVED_NOTHING;
	switch (front->ops->ahead(front)) {
	case LEG_BROKEN:
		return fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, front->why);
	case LEG_PIECE:
		return MOVED_SOME;
	case LEG_NOTHING:
	case LEG_END:
		break;
	}
	return MOVED_NOTHING;
}

/* -- origin to client ------------------------------------------------------ */

static enum moved client_gone(struct exchange *x)
{
	return fail(x, AUDIT_REASON_CLIENT_ABORTED, 0, NULL);
}

static enum moved origin_failed(struct exchange *x)
{
	const char *why = x->back->why ? x->back->why : "";

	if (!x->answered && x->back->silent && exchange_retry(x))
		return MOVED_GONE;
	x->front->code = x->back->code;
	return fail(x, AUDIT_REASON_ORIGIN_FAILED, 502, why);
}

/* The values of an origin's trailers, without what we injected. */
static const struct headers *redact_trailers(struct exchange *x,
					     const struct headers *trailers)
{
	struct buf value = BUF_INIT(TRAILER_VALUE_BYTES);
	struct headers *clean;
	unsigned i;

	if (!trailers || !x->request.injection_count)
		return trailers;
	clean = arena_alloc(&x->arena, sizeof(*clean));
	for (i = 0; clean && i < trailers->count; i++) {
		clean->items[i] = trailers->items[i];
		buf_clear(&value);
		if (redact_value(&x->request, trailers->items[i].value, &value))
			break;
		clean->items[i].value = arena_dup(&x->arena, buf_peek(&value));
		clean->count++;
	}
	buf_wipe(&value);
	return clean; /* NULL when there is no memory: then without */
}

static enum moved download_ended(struct exchange *x)
{
	struct leg *front = x->front;
	const struct headers *trailers = x->back->ops->trailers(x->back);

	x->download_done = true;
	if (front->ops->end(front, redact_trailers(x, trailers)) ||
	    front->ops->flush(front))
		return client_gone(x);
	return MOVED_SOME;
}

static void response_note(struct exchange *x, const struct response *r)
{
	if (!x->audit.first_byte_us)
		x->audit.first_byte_us = clock_us() - x->audit.start_us;
	if (r->status < 200 && r->content != CONTENT_TUNNEL)
		return;
	x->answered = true;
	x->audit.status = r->status;
	if (r->content == CONTENT_TUNNEL) {
		exchange_move(x, EXCHANGE_TUNNEL);
		x->audit.kind = AUDIT_TUNNEL;
		x->upload_done = false; /* it begins anew, opaque */
	}
}

/* The answer's body cannot be shown to be free of the credential. */
static enum moved unclean(struct exchange *x)
{
	return fail(x, AUDIT_REASON_NO_REDACTION, 502,
		    "the body's encoding could not be opened");
}

/* One head, interim or final. It is sent before the next one is asked for: an
 * origin may say interim ones for ever. */
static enum moved response_move(struct exchange *x)
{
	struct leg *front = x->front;
	struct response response;

	switch (x->back->ops->response(x->back, &response)) {
	case LEG_NOTHING:
		return MOVED_NOTHING;
	case LEG_PIECE:
		break;
	case LEG_END:
	case LEG_BROKEN:
		return origin_failed(x);
	}
	if (response.status >= 200 && redaction_begin(x, &response))
		return unclean(x);
	/* a head is passed on whole or not at all: then 502 can be said */
	if (front->ops->respond(front, &x->request, &response))
		return fail(x, AUDIT_REASON_ORIGIN_FAILED, 502,
			    front->why ?: "its head does not fit");
	response_note(x, &response);
	return MOVED_SOME;
}

/* To the front, through the redaction where there is one. */
static enum moved content_pass(struct exchange *x, struct span piece,
			       size_t room)
{
	int r;

	x->download_bytes += piece.len;
	r = x->redact ? redaction_feed(x, piece, room)
		      : x->front->ops->write(x->front, piece);
	if (r > 0)
		return unclean(x);
	return r ? client_gone(x) : MOVED_SOME;
}

static enum moved content_ended(struct exchange *x)
{
	int r = x->redact ? redaction_finish(x) : 0;

	if (r > 0)
		return unclean(x);
	if (r)
		return client_gone(x);
	return redaction_has_more(x) ? MOVED_SOME : download_ended(x);
}

static enum moved content_move(struct exchange *x, size_t room)
{
	enum moved moved = MOVED_NOTHING;
	struct span piece;

	while (!x->download_done && room) {
		if (redaction_has_more(x)) {
			moved = content_pass(x, SPAN_NONE, room);
			if (moved == MOVED_GONE)
				return moved;
			room = x->front->ops->room(x->front);
			continue;
		}
		switch (x->back->ops->read(x->back, room, &piece)) {
		case LEG_NOTHING:
			return moved;
		case LEG_PIECE:
			moved = content_pass(x, piece, room);
			if (moved == MOVED_GONE)
				return moved;
			room = room_left(x->front, room, piece);
			break;
		case LEG_END:
			moved = content_ended(x);
			if (moved == MOVED_GONE)
				return moved;
			room = x->front->ops->room(x->front);
			break;
		case LEG_BROKEN:
			return origin_failed(x);
		}
	}
	return moved;
}

static enum moved download_move(struct exchange *x)
{
	enum moved head = MOVED_NOTHING, content = MOVED_NOTHING;
	struct leg *front = x->front;

	if (x->download_done || !front->ops->room(front))
		return MOVED_NOTHING;
	if (!x->answered)
		head = response_move(x);
	if (head == MOVED_GONE)
		return MOVED_GONE;
	if (x->answered)
		content = content_move(x, front->ops->room(front));
	if (content == MOVED_GONE)
		return MOVED_GONE;
	if (head == MOVED_NOTHING && content == MOVED_NOTHING)
		return MOVED_NOTHING;
	if (front->ops->flush(front))
		return client_gone(x);
	return MOVED_SOME;
}

/* -- both ------------------------------------------------------------------ */

/* up, down: more could be moved now, but others have their turn. A leg may hold
 * what no event will tell of, but that the other can be written to is told. */
static void flow_wait(struct exchange *x, bool up, bool down)
{
	unsigned from_front = down ? LEG_WRITE : 0;
	unsigned from_back = up ? LEG_WRITE : 0;
	struct leg *front = x->front, *back = x->back;

	if (upload_is_open(x)) {
		if (back->ops->room(back))
			from_front |= LEG_READ;
		else
			from_back |= LEG_WRITE;
	}
	if (!x->download_done) {
		if (front->ops->room(front))
			from_back |= LEG_READ;
		else
			from_front |= LEG_WRITE;
	}
	front->ops->want(front, from_front);
	back->ops->want(back, from_back);
}

/* Is everything said that will be said? An early answer ends the exchange,
 * whatever is left of the request. */
static bool flow_is_done(const struct exchange *x)
{
	if (!x->download_done)
		return false;
	return x->state != EXCHANGE_TUNNEL || !upload_is_open(x);
}

void flow_run(struct exchange *x)
{
	enum moved up, down, ahead;
	unsigned rounds = 0;

	if (x->state != EXCHANGE_FLOW && x->state != EXCHANGE_TUNNEL)
		return;
	do {
		up = upload_move(x);
		if (up == MOVED_GONE)
			return;
		down = download_move(x);
		if (down == MOVED_GONE)
			return;
		if (flow_is_done(x)) {
			exchange_finish(x);
			return;
		}
		ahead = ahead_move(x);
		if (ahead == MOVED_GONE)
			return;
		if (up == MOVED_SOME || down == MOVED_SOME)
			flow_deadline(x);
	} while ((up == MOVED_SOME || down == MOVED_SOME ||
		  ahead == MOVED_SOME) &&
		 ++rounds < ROUNDS_MAX);
	flow_wait(x, up == MOVED_SOME, down == MOVED_SOME);
}
