/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - a reply of the Jupyter server, read as it comes */

#include "src/execd/code/jupyter/reply.h"

void reply_init(struct reply *r, const char *method)
{
	*r = (struct reply){
		.method = method,
		.in = BUF_INIT(REPLY_HEAD_MAX + REPLY_BODY_MAX),
		.body = BUF_INIT(REPLY_BODY_MAX),
	};
}

void reply_fini(struct reply *r)
{
	buf_fini(&r->in);
	buf_fini(&r->body);
}

char *reply_room(struct reply *r)
{
	char *at;

	return buf_reserve(&r->in, REPLY_READ, &at) ? NULL : at;
}

static enum reply_progress take_head(struct reply *r)
{
	struct h1_response head;
	struct span bytes = buf_peek(&r->in);
	int len = h1_scan(&r->scan, bytes, REPLY_HEAD_MAX);

	if (len <= 0)
		return len ? REPLY_BAD : REPLY_MORE;
	if (h1_parse_response(span_of(bytes.ptr, (size_t)len),
			      span_str(r->method), &head) != H1_OK)
		return REPLY_BAD;
	r->status = head.status;
	r->kind = head.body;
	r->left = head.length;
	r->has_head = true;
	buf_consume(&r->in, (size_t)len);
	return REPLY_DONE;
}

static enum reply_progress take_chunks(struct reply *r)
{
	struct span in = buf_peek(&r->in), piece;
	size_t before = in.len;
	enum reply_progress p = REPLY_MORE;

	while (p == REPLY_MORE && !r->chunked.done) {
		if (h1_chunked_next(&r->chunked, &in, &piece, NULL) != H1_OK ||
		    buf_put(&r->body, piece))
			p = REPLY_BAD;
		else if (!piece.len && !r->chunked.done)
			break; /* all that came */
	}
	buf_consume(&r->in, before - in.len);
	return r->chunked.done && p == REPLY_MORE ? REPLY_DONE : p;
}

static enum reply_progress take_body(struct reply *r, bool ended)
{
	struct span in = buf_peek(&r->in);
	size_t n;

	switch (r->kind) {
	case H1_BODY_NONE:
		return REPLY_DONE;
	case H1_BODY_CHUNKED:
		return take_chunks(r);
	case H1_BODY_LENGTH:
		n = MIN(in.len, r->left);
		break;
	case H1_BODY_CLOSE:
		n = in.len;
		break;
	default:
		return REPLY_BAD;
	}
	if (buf_put(&r->body, span_of(in.ptr, n)))
		return REPLY_BAD;
	buf_consume(&r->in, n);
	r->left -= r->kind == H1_BODY_LENGTH ? n : 0;
	if (r->kind == H1_BODY_CLOSE)
		return ended ? REPLY_DONE : REPLY_MORE;
	return r->left ? REPLY_MORE : REPLY_DONE;
}

enum reply_progress reply_take(struct reply *r, size_t len)
{
	enum reply_progress p;

	buf_commit(&r->in, len);
	p = r->has_head ? REPLY_DONE : take_head(r);
	return p == REPLY_DONE ? take_body(r, !len) : p;
}
