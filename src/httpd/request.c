/* SPDX-License-Identifier: Apache-2.0 */
/* request.c - a request until its handler has it: head, route, whole body */

#include "src/httpd/request.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "src/base/chars.h"
#include "src/base/err.h"
#include "src/io/stream.h"

enum { BODY_FIRST_BYTES = 64 * 1024 };

/* -- the head ------------------------------------------------------------- */

static bool id_is_fine(struct span id)
{
	size_t i;
	char c;

	for (i = 0; i < id.len; i++) {
		c = id.ptr[i];
		if (!char_is_alnum(c) && c != '-' && c != '_' && c != '.')
			return false;
	}
	return id.len > 0 && id.len <= HTTPD_ID_MAX;
}

static void request_set_id(struct httpd_request *r)
{
	struct span given = httpd_header(r, SPAN("X-Request-ID"));
	uint64_t words[2] = { 0 };

	if (id_is_fine(given) && span_copy(given, r->id, sizeof(r->id)))
		return;
	must(getrandom(words, sizeof(words), 0) == sizeof(words));
	(void)snprintf(r->id, sizeof(r->id), "%016llx%016llx",
		       (unsigned long long)words[0],
		       (unsigned long long)words[1]);
}

enum step request_refuse(struct httpd_request *r, unsigned status,
			 const char *code, const char *message)
{
	r->last = true;
	if (!r->id[0])
		request_set_id(r);
	reply_put_error(r, status, code, message);
	return STEP_AGAIN;
}

static enum step refuse_body(struct httpd_request *r)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "the body is larger than %zu bytes",
		       r->httpd->limits.body);
	return request_refuse(r, 413, "BODY_TOO_LARGE", text);
}

static enum step refuse_head(struct httpd_request *r, enum h1_error error)
{
	memset(&r->head, 0, sizeof(r->head)); /* half-parsed */
	if (error == H1_E_TOO_LARGE)
		return request_refuse(r, 431, "HEAD_TOO_LARGE",
				      h1_error_text(error));
	return request_refuse(r, 400, "BAD_REQUEST", h1_error_text(error));
}

/* Whom httpd_ops.authorise turned away; in the program's own words if it has
 * any. */
static enum step refuse_peer(struct httpd_request *r, unsigned status)
{
	const struct httpd *h = r->httpd;
	const char *body = NULL;

	if (h->ops->refusal)
		body = h->ops->refusal(h->ctx, status);
	if (body) {
		r->last = true;
		reply_put(r, status, reply_error_type(r), span_str(body));
		return STEP_AGAIN;
	}
	if (status == 401)
		httpd_set_header(r, "WWW-Authenticate", SPAN("Bearer"));
	return request_refuse(r, status,
			      status == 401 ? "UNAUTHORIZED" : "FORBIDDEN",
			      status == 401 ? "a valid token is needed"
					    : "this peer may not use the API");
}

/* Routed and authorised, in that order of work; but who may not ask does not
 * learn which paths there are. True: go on; false: *ret is the step. */
static bool request_admit(struct httpd_request *r, enum step *ret)
{
	struct httpd *h = r->httpd;
	struct span allow = SPAN_NONE;
	unsigned status = 0;
	int found;

	found = route_find(h, r, &allow);
	if (!r->route || r->route->auth != HTTPD_AUTH_OPEN) {
		status = h->ops->authorise(h->ctx, r);
		r->known = r->known || !status;
	}
	if (found == ROUTE_E_METHOD && !status)
		httpd_set_header(r, "Allow", allow);

	if (status)
		*ret = refuse_peer(r, status);
	else if (found == ROUTE_E_METHOD)
		*ret = request_refuse(r, 405, "METHOD_NOT_ALLOWED",
				      "this path has no such method");
	else if (found == ROUTE_E_BAD_PARAM)
		*ret = request_refuse(r, 400, "BAD_PATH",
				      "the path holds a broken percent-escape");
	else if (found)
		*ret = request_refuse(r, 404, "NOT_FOUND",
				      "there is no such path");
	else
		return true;
	return false;
}

static enum step request_hand_over(struct httpd_request *r)
{
	timer_stop(&r->timer);
	if (!buf_len(&r->in))
		buf_wipe(&r->in); /* it may be long until the next request */
	r->state = REQUEST_HANDLER;
	r->route->fn(r->httpd->ctx, r);
	return r->state == REQUEST_HANDLER ? STEP_WAIT : STEP_AGAIN;
}

static enum step request_begin_body(struct httpd_request *r)
{
	size_t max = r->httpd->limits.body, room_bytes;
	char *room;

	if (r->route->body == HTTPD_BODY_STREAMED) {
		body_begin(r);
		return request_hand_over(r);
	}
	r->body.max = max;
	r->body_left = r->head.body == H1_BODY_LENGTH ? r->head.length : 0;
	r->state = REQUEST_BODY;
	if (r->body_left > max)
		return refuse_body(r);
	/* memory for what is only announced comes with the bytes */
	room_bytes =
		r->head.body == H1_BODY_CHUNKED ? max : (size_t)r->body_left;
	room_bytes = MIN(room_bytes, (size_t)BODY_FIRST_BYTES);
	must(!room_bytes || !buf_reserve(&r->body, room_bytes, &room));
	if (r->head.expect_continue && r->head.body != H1_BODY_NONE &&
	    stream_write(r->stream, SPAN("HTTP/1.1 100 Continue\r\n\r\n")) < 0)
		return STEP_WAIT; /* the read fails next */
	return STEP_AGAIN;
}

static enum step request_head_done(struct httpd_request *r, size_t len)
{
	struct span bytes = span_of(buf_peek(&r->in).ptr, len);
	enum h1_error error;
	enum step step;
	size_t cut;

	r->head_bytes = must_alloc(len);
	r->head_len = len;
	memcpy(r->head_bytes, bytes.ptr, len);
	explicit_bzero((char *)(uintptr_t)bytes.ptr, len);
	buf_consume(&r->in, len);
	error = h1_parse_request(span_of(r->head_bytes, len), &r->head);
	if (error)
		return refuse_head(r, error);

	cut = span_find(r->head.path, '?');
	r->path = span_of(r->head.path.ptr, cut);
	r->query = span_from(r->head.path, cut + 1);
	request_set_id(r);
	if (r->httpd->ops->begin)
		r->httpd->ops->begin(r->httpd->ctx, r);
	if (!request_admit(r, &step))
		return step;
	return request_begin_body(r);
}

enum step request_step_head(struct httpd_request *r)
{
	int len;

	if (r->httpd->draining && !buf_len(&r->in)) {
		request_drop(r);
		return STEP_FREED;
	}
	len = h1_scan(&r->scan, buf_peek(&r->in), HTTPD_HEAD_MAX);
	if (len > 0)
		return request_head_done(r, (size_t)len);
	if (len < 0)
		return refuse_head(r, (enum h1_error) - len);
	if (r->end_seen) {
		request_drop(r);
		return STEP_FREED;
	}
	if (!buf_len(&r->in)) {
		timer_start(&r->timer, HTTPD_IDLE_MS);
	} else if (!r->head_begun) {
		r->head_begun = true; /* bytes that trickle do not extend it */
		timer_start(&r->timer, HTTPD_HEAD_MS);
	}
	return STEP_WAIT;
}

/* -- the body ------------------------------------------------------------- */

/* 1 whole, 0 more is needed, or -(enum h1_error), or -ENOBUFS. */
static int body_take_chunks(struct httpd_request *r)
{
	struct span in = buf_peek(&r->in), data;
	enum h1_error error = H1_OK;
	size_t before = in.len;
	int r2 = 0;

	while (!error && !r2 && in.len && !r->chunked.done) {
		error = h1_chunked_next(&r->chunked, &in, &data, NULL);
		if (!error)
			r2 = buf_put(&r->body, data);
	}
	buf_consume(&r->in, before - in.len);
	if (error)
		return -(int)error;
	return r2 ? r2 : r->chunked.done;
}

static int body_take_length(struct httpd_request *r)
{
	struct span in = buf_peek(&r->in);
	int r2;

	in.len = (size_t)MIN((uint64_t)in.len, r->body_left);
	r2 = buf_put(&r->body, in);
	if (r2)
		return r2;
	buf_consume(&r->in, in.len);
	r->body_left -= in.len;
	return !r->body_left;
}

enum step request_step_body(struct httpd_request *r)
{
	int taken = 1;

	if (r->head.body == H1_BODY_CHUNKED)
		taken = body_take_chunks(r);
	else if (r->head.body == H1_BODY_LENGTH)
		taken = body_take_length(r);

	if (taken == -ENOBUFS)
		return refuse_body(r);
	if (taken < 0)
		return request_refuse(r, 400, "BAD_REQUEST",
				      h1_error_text((enum h1_error) - taken));
	if (taken)
		return request_hand_over(r);
	if (r->end_seen) {
		request_drop(r);
		return STEP_FREED;
	}
	timer_start(&r->timer, HTTPD_SILENCE_MS);
	return STEP_WAIT;
}
