/* SPDX-License-Identifier: Apache-2.0 */
/* h1_back.c - an HTTP/1.1 origin as the back leg of one exchange */

#include "gateway/session/back.h"

#include "gateway/session/exchange.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/h1_leg.h"
#include "gateway/session/session.h"
#include "gateway/upstream/origin.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum { LINGER_MS = 2000 };

struct h1_back {
	struct h1_leg h1;
	struct origin *origin;
	struct h1_scan scan; /* of the response head */
	struct span method;  /* of the request: HEAD has no body */
	bool upgrade;	     /* the request asked for it */
	bool keep;	     /* what the response said */
	bool misbehaved;     /* it said more than it was asked */
	bool injected;	     /* its answer may echo a credential */
	bool spoke;	     /* a head came from it, be it interim */
	bool finished;	     /* a tunnel: nothing more is sent into it */
	size_t secret;	     /* of the scratch: may hold heads or trailers */
	size_t head_len;     /* of the head that response() gave, in h1.raw */
};

static struct h1_back *of(struct leg *leg)
{
	return container_of(leg, struct h1_back, h1.leg);
}

static void on_origin(struct stream *s, void *ctx, unsigned events)
{
	struct h1_back *b = ctx;

	(void)s;
	(void)events;
	flow_run(b->h1.leg.exchange);
}

static int back_request(struct leg *leg, const struct request *request,
			const struct h1_request *head)
{
	struct h1_back *b = of(leg);
	struct buf *out = &b->h1.out;
	int r;

	b->method = head->method;
	b->injected = request->injection_count > 0;
	b->upgrade = head->upgrade;
	b->h1.chunked = head->body == H1_BODY_CHUNKED;
	r = h1_emit_request(request, head, request->grant, out);
	if (!r)
		r = stream_write(b->h1.stream, buf_peek(out));
	if (request->injection_count)
		secret_wipe(out->data, out->end);
	buf_clear(out);
	return r;
}

/* -- response heads -------------------------------------------------------- */

static enum leg_read broken(struct h1_back *b, const char *why)
{
	b->h1.leg.why = why;
	b->h1.leg.silent = !b->spoke && !b->h1.raw.len && !buf_len(b->h1.in);
	return LEG_BROKEN;
}

static enum content content_of(const struct h1_response *r)
{
	switch (r->body) {
	case H1_BODY_NONE:
		return CONTENT_NONE;
	case H1_BODY_LENGTH:
		return CONTENT_LENGTH;
	case H1_BODY_CHUNKED:
	case H1_BODY_CLOSE:
		return CONTENT_UNKNOWN;
	case H1_BODY_TUNNEL:
		return CONTENT_TUNNEL;
	}
	return CONTENT_NONE;
}

static enum leg_read take_head(struct h1_back *b, size_t len,
			       struct response *ret)
{
	struct h1_response r;
	enum h1_error error;

	error = h1_parse_response(span_of(b->h1.raw.ptr, len), b->method, &r);
	if (error)
		return broken(b, h1_error_text(error));
	if (r.body == H1_BODY_TUNNEL && !b->upgrade)
		return broken(b, "the origin switched protocols unasked");
	b->scan = (struct h1_scan){ 0 };
	b->head_len = len;
	b->spoke = true;
	ret->status = r.status;
	ret->reason = r.reason;
	ret->content = content_of(&r);
	ret->length = r.length;
	headers_copy(&ret->headers, &r.headers);
	if (r.status >= 200 || r.status == 101) {
		b->keep = r.keep_alive && r.body != H1_BODY_CLOSE &&
			  r.body != H1_BODY_TUNNEL;
		body_init(&b->h1.body, r.body, r.length);
	}
	return LEG_PIECE;
}

/* So far the scratch has the head that lies in h1.raw. */
static void note_head(struct h1_back *b, size_t len)
{
	if (!b->h1.raw_is_in)
		b->secret = MAX(b->secret,
				(size_t)(b->h1.raw.ptr + len - b->h1.scratch));
}

/* The views of a head live in h1.raw until the next call. */
static enum leg_read back_response(struct leg *leg, struct response *ret)
{
	struct h1_back *b = of(leg);
	uint32_t limit = b->h1.worker->config->head_bytes;
	enum leg_read got;
	int len;

	b->h1.raw = span_from(b->h1.raw, b->head_len);
	b->head_len = 0;
	for (;;) {
		got = h1_leg_fill(&b->h1, SIZE_MAX);
		if (got == LEG_END)
			return broken(b, "the origin closed without an answer");
		if (got == LEG_BROKEN)
			return broken(b, b->h1.leg.why);
		if (got != LEG_PIECE)
			return got;
		len = h1_scan(&b->scan, b->h1.raw, limit);
		note_head(b, len > 0 ? (size_t)len : b->h1.raw.len);
		if (len > 0)
			return take_head(b, (size_t)len, ret);
		if (len < 0)
			return broken(b, h1_error_text((enum h1_error) - len));
		/* in parts: they are put together in origin->in */
		b->secret = SIZE_MAX;
		got = h1_leg_more(&b->h1);
		if (got == LEG_END)
			return broken(b, "the origin broke off in its head");
		if (got != LEG_PIECE)
			return got;
	}
}

static enum leg_read back_read(struct leg *leg, size_t max, struct span *ret)
{
	struct h1_back *b = of(leg);

	b->h1.raw = span_from(b->h1.raw, b->head_len);
	b->head_len = 0;
	return h1_leg_read(leg, max, ret);
}

/* -- the end -----------------------------------------------------------------
 */

/* Are there trailers, or bytes that nobody asked for, among what was read? */
static bool back_read_more(const struct h1_back *b)
{
	const struct body *body = &b->h1.body;

	return b->misbehaved || buf_len(&body->trailers) ||
	       (body->done && (b->h1.raw.len || body->kind == H1_BODY_CHUNKED));
}

/* The turn is over. Heads and trailers may echo a credential: they do not stay
 * in the scratch. */
static void back_settle(struct h1_back *b)
{
	b->h1.raw = span_from(b->h1.raw, b->head_len);
	b->head_len = 0;
	if (back_read_more(b))
		b->secret = SIZE_MAX;
	if (h1_leg_settle(&b->h1))
		b->misbehaved = true;
	if (b->injected)
		secret_wipe(b->h1.scratch, MIN(b->secret, b->h1.dirty));
	b->secret = 0;
	b->h1.dirty = 0;
}

/* What broke off on one side must look so on the other; what was said last must
 * arrive. */
static void back_end_tunnel(struct h1_back *b, struct origin *o)
{
	struct stream *s = origin_take_stream(o);

	if (b->h1.ended && b->finished)
		(void)stream_close(s, LINGER_MS);
	else
		(void)stream_reset(s);
}

static void back_release(struct leg *leg, bool keep)
{
	struct h1_back *b = of(leg);
	struct origin *o = take_ptr(b->origin);

	if (b->h1.raw.len > b->head_len)
		b->misbehaved = true;
	back_settle(b);
	if (b->h1.body.kind == H1_BODY_TUNNEL)
		back_end_tunnel(b, o);
	else if (keep && b->keep && !b->misbehaved && !b->h1.ended &&
		 b->h1.body.done)
		(void)origin_keep(o);
	else
		(void)origin_free(o);
	h1_leg_fini(&b->h1);
	free(b);
}

static void back_want(struct leg *leg, unsigned what)
{
	struct h1_back *b = of(leg);

	back_settle(b);
	h1_leg_want(leg, what);
}

static int back_end(struct leg *leg, const struct headers *trailers)
{
	struct h1_back *b = of(leg);

	if (b->h1.body.kind == H1_BODY_TUNNEL) {
		int r = h1_leg_flush(leg);

		stream_shutdown_write(b->h1.stream);
		b->finished = true;
		return r;
	}
	return h1_leg_end(leg, trailers);
}

struct leg *h1_back_new(struct exchange *x, struct origin *o)
{
	static const struct leg_ops ops = {
		.read = back_read,
		.trailers = h1_leg_trailers,
		.room = h1_leg_room,
		.write = h1_leg_write,
		.end = back_end,
		.flush = h1_leg_flush,
		.want = back_want,
		.request = back_request,
		.response = back_response,
		.release = back_release,
	};
	struct h1_back *b = must_alloc(sizeof(*b));
	struct worker *w = x->session->worker;

	h1_leg_init(&b->h1, w, o->stream, &o->in, w->scratch_back);
	b->h1.leg.ops = &ops;
	b->h1.leg.exchange = x;
	b->origin = o;
	stream_set_owner(o->stream, on_origin, b);
	return &b->h1.leg;
}
