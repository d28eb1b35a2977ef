/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - take the framing off a body, piece by piece */

#include "gateway/session/body.h"

#include "src/base/err.h"

void body_init(struct body *b, enum h1_body kind, uint64_t length)
{
	*b = (struct body){
		.kind = kind,
		.left = length,
		.done = kind == H1_BODY_NONE ||
			(kind == H1_BODY_LENGTH && !length),
		.trailers = BUF_INIT(BODY_TRAILERS_BYTES),
	};
}

void body_fini(struct body *b)
{
	buf_wipe(&b->trailers); /* an origin may echo a credential */
}

static void take(struct span *in, size_t len, struct span *ret)
{
	*ret = span_of(in->ptr, len);
	*in = span_from(*in, len);
}

static enum h1_error next_chunked(struct body *b, struct span *in,
				  struct span *ret)
{
	enum h1_error error;

	while (in->len && !b->done && !ret->len) {
		error = h1_chunked_next(&b->chunked, in, ret, &b->trailers);
		if (error)
			return error;
		b->done = b->chunked.done;
	}
	return H1_OK;
}

enum h1_error body_next(struct body *b, struct span *in, struct span *ret)
{
	enum h1_error error = H1_OK;

	*ret = SPAN_NONE;
	if (b->done)
		return H1_OK;
	switch (b->kind) {
	case H1_BODY_NONE:
		break;
	case H1_BODY_LENGTH:
		take(in, MIN((uint64_t)in->len, b->left), ret);
		b->left -= ret->len;
		b->done = !b->left;
		break;
	case H1_BODY_CHUNKED:
		error = next_chunked(b, in, ret);
		break;
	case H1_BODY_CLOSE:
	case H1_BODY_TUNNEL:
		take(in, in->len, ret);
		break;
	}
	b->bytes += ret->len;
	return error;
}

bool body_end(struct body *b)
{
	if (b->kind == H1_BODY_CLOSE || b->kind == H1_BODY_TUNNEL)
		b->done = true;
	return b->done;
}

bool body_trailers(const struct body *b, struct headers *ret)
{
	struct span lines = buf_peek(&b->trailers), line;
	struct header *h;

	ret->count = 0;
	while (lines.len && ret->count < HEADERS_MAX) {
		line = span_cut(&lines, '\n');
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (!line.len)
			continue;
		h = &ret->items[ret->count++];
		h->name = span_cut(&line, ':');
		h->value = span_trim(line);
		h->id = header_id_of(h->name);
	}
	return ret->count > 0;
}
