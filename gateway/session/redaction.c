/* SPDX-License-Identifier: Apache-2.0 */
/* redaction.c - feed an answer's body through redact_body, as there is room */

#include "gateway/session/redaction.h"

#include <errno.h>

#include "gateway/redact/redact_body.h"
#include "gateway/session/exchange.h"
#include "policy/binding.h"

/* Fields that are not true of the body any more once it was decoded. */
static bool is_of_encoding(const struct header *h)
{
	static const struct span names[] = {
		SPAN_INIT("content-md5"),   SPAN_INIT("digest"),
		SPAN_INIT("repr-digest"),   SPAN_INIT("content-digest"),
		SPAN_INIT("accept-ranges"),
	};
	size_t i;

	if (h->id == HEADER_CONTENT_ENCODING || h->id == HEADER_CONTENT_LENGTH)
		return true;
	for (i = 0; i < ARRAY_LEN(names); i++)
		if (span_eq_nocase(h->name, names[i]))
			return true;
	return false;
}

/* "application/grpc", with "+proto" or the like, perhaps with parameters. */
static bool is_grpc(const struct response *r)
{
	static const struct span grpc = SPAN_INIT("application/grpc");
	const struct header *h = headers_find(&r->headers, HEADER_CONTENT_TYPE);
	struct span rest;

	if (!h || h->value.len < grpc.len ||
	    !span_eq_nocase(span_of(h->value.ptr, grpc.len), grpc))
		return false;
	rest = span_from(h->value, grpc.len);
	return !rest.len || rest.ptr[0] == '+' || rest.ptr[0] == ';' ||
	       rest.ptr[0] == ' ';
}

static void response_decode(struct response *r)
{
	unsigned from, to = 0;

	for (from = 0; from < r->headers.count; from++)
		if (!is_of_encoding(&r->headers.items[from]))
			r->headers.items[to++] = r->headers.items[from];
	r->headers.count = to;
	if (r->content == CONTENT_LENGTH)
		r->content = CONTENT_UNKNOWN;
}

int redaction_begin(struct exchange *x, struct response *r)
{
	const struct binding *b = x->request.binding;
	const struct header *encoding =
		headers_find(&r->headers, HEADER_CONTENT_ENCODING);

	if (!b || !b->redact_body || r->content == CONTENT_TUNNEL ||
	    r->content == CONTENT_NONE)
		return 0;
	/* more than one such field is a list in parts: not understood */
	if (headers_count(&r->headers, HEADER_CONTENT_ENCODING) > 1 ||
	    redact_body_new(x->request.automaton,
			    encoding ? encoding->value : SPAN(""), &x->redact))
		return REDACTION_E_UNCLEAN;
	if (is_grpc(r))
		redact_body_set_grpc(x->redact);
	if (redact_body_is_decoded(x->redact)) {
		if (r->status == 206)
			return REDACTION_E_UNCLEAN; /* a part decodes to nothing
						     */
		response_decode(r);
	}
	return 0;
}

bool redaction_has_more(const struct exchange *x)
{
	return x->redact && (x->redact_more || buf_len(&x->redact_held) ||
			     buf_len(&x->redact_clean));
}

/* More may come out than there was room for: what earlier pieces had to hold
 * back, or the rest of a decoder's step. That waits. */
static int on_clean(void *ctx, struct span bytes)
{
	struct exchange *x = ctx;
	struct leg *front = x->front;
	size_t now = 0;
	int r = 0;

	if (!buf_len(&x->redact_clean))
		now = MIN(front->ops->room(front), bytes.len);
	if (now)
		r = front->ops->write(front, span_of(bytes.ptr, now));
	return r ?: buf_put(&x->redact_clean, span_from(bytes, now));
}

/* What waits, as far as there is room. */
static int clean_pass(struct exchange *x, size_t room)
{
	struct span waits = buf_peek(&x->redact_clean);
	int r;

	waits.len = MIN(waits.len, room);
	r = x->front->ops->write(x->front, waits);
	if (!r)
		buf_consume(&x->redact_clean, waits.len);
	return r;
}

static int result_of(struct exchange *x, int r)
{
	const uint64_t hits = redact_body_hits(x->redact);

	x->redact_more = r == REDACT_MORE;
	x->audit.redactions += (unsigned)(hits - x->redact_hits);
	x->redact_hits = hits;
	if (r == REDACT_MORE)
		return 0;
	return r > 0 ? REDACTION_E_UNCLEAN : r;
}

int redaction_feed(struct exchange *x, struct span piece, size_t room)
{
	const struct redact_sink sink = { .emit = on_clean, .ctx = x };
	bool held = !piece.len;
	size_t before;
	int r;

	if (buf_len(&x->redact_clean))
		return clean_pass(x, room);
	if (held)
		piece = buf_peek(&x->redact_held);
	before = piece.len;
	r = result_of(x, redact_body_feed(x->redact, &piece, room, &sink));
	if (held)
		buf_consume(&x->redact_held, before - piece.len);
	else if (!r && buf_put(&x->redact_held, piece))
		return -ENOBUFS;
	return r;
}

int redaction_finish(struct exchange *x)
{
	const struct redact_sink sink = { .emit = on_clean, .ctx = x };

	if (x->redact_finished)
		return 0;
	x->redact_finished = true;
	return result_of(x, redact_body_finish(x->redact, &sink));
}
