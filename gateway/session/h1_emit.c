/* SPDX-License-Identifier: Apache-2.0 */
/* h1_emit.c - write HTTP/1.1 heads */

#include "gateway/session/h1_emit.h"

#include "gateway/pipeline/redact.h"
#include "gateway/session/fields.h"
#include "gateway/session/leg.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"

/* A writer whose first failure sticks. */
struct head_out {
	struct buf *buf;
	int error;
};

static void put(struct head_out *o, struct span bytes)
{
	if (!o->error)
		o->error = buf_put(o->buf, bytes);
}

static void put_field(struct head_out *o, struct span name, struct span value)
{
	put(o, name);
	put(o, SPAN(": "));
	put(o, value);
	put(o, SPAN("\r\n"));
}

static void put_request_fields(struct head_out *o, const struct request *req,
			       const struct h1_request *head)
{
	const struct headers *headers = &head->headers;
	const struct header *h;
	unsigned i;

	for (i = 0; i < headers->count; i++) {
		h = &headers->items[i];
		if (!field_goes_on(req, headers, h) &&
		    !(head->upgrade && h->id == HEADER_UPGRADE))
			continue;
		if (h->id == HEADER_HOST && head->absolute)
			continue; /* the target's authority replaces it */
		put_field(o, h->name, h->value);
	}
}

static void put_injections(struct head_out *o, const struct request *req)
{
	const struct injection *in;
	unsigned i;

	for (i = 0; i < req->injection_count; i++) {
		in = &req->injections[i];
		put(o, in->name);
		put(o, SPAN(": "));
		put(o, in->prefix);
		put(o, secret_open(in->secret));
		put(o, SPAN("\r\n"));
	}
}

int h1_emit_request(const struct request *req, const struct h1_request *head,
		    const struct grant *grant, struct buf *out)
{
	struct head_out o = { .buf = out };

	must(grant != NULL);
	put(&o, head->method);
	put(&o, SPAN(" "));
	put(&o, req->target);
	put(&o, SPAN(" HTTP/1.1\r\n"));
	if (head->absolute || !headers_find(&head->headers, HEADER_HOST))
		put_field(&o, SPAN("Host"), head->authority);
	put_request_fields(&o, req, head);
	if (head->body == H1_BODY_CHUNKED)
		put(&o, SPAN("Transfer-Encoding: chunked\r\n"));
	if (head->upgrade)
		put(&o, SPAN("Connection: Upgrade\r\n"));
	put_injections(&o, req);
	put(&o, SPAN("\r\n"));
	return o.error;
}

static void put_redacted(struct head_out *o, struct request *req,
			 const struct header *h)
{
	put(o, h->name);
	put(o, SPAN(": "));
	if (!o->error)
		o->error = redact_value(req, h->value, o->buf);
	put(o, SPAN("\r\n"));
}

static void put_response_fields(struct head_out *o, struct request *req,
				const struct response *head,
				const struct h1_reply *how)
{
	const struct headers *headers = &head->headers;
	const struct header *h;
	unsigned i;

	for (i = 0; i < headers->count; i++) {
		h = &headers->items[i];
		if (!field_comes_back(headers, h) &&
		    !(how->upgrade && h->id == HEADER_UPGRADE))
			continue;
		if (h->id == HEADER_CONTENT_LENGTH && how->chunked)
			continue;
		if (req->injection_count)
			put_redacted(o, req, h);
		else
			put_field(o, h->name, h->value);
	}
}

static void put_status(struct head_out *o, const struct response *head)
{
	char code[4] = { (char)('0' + head->status / 100 % 10),
			 (char)('0' + head->status / 10 % 10),
			 (char)('0' + head->status % 10), ' ' };

	put(o, SPAN("HTTP/1.1 "));
	put(o, span_of(code, sizeof(code)));
}

int h1_emit_response(struct request *req, const struct response *head,
		     const struct h1_reply *how, struct buf *out)
{
	struct head_out o = { .buf = out };
	size_t before = buf_len(out);

	put_status(&o, head);
	if (!o.error)
		o.error = redact_value(req, head->reason, out);
	put(&o, SPAN("\r\n"));
	put_response_fields(&o, req, head, how);
	if (how->chunked)
		put(&o, SPAN("Transfer-Encoding: chunked\r\n"));
	if (how->upgrade)
		put(&o, SPAN("Connection: Upgrade\r\n"));
	else if (how->close && !how->interim)
		put(&o, SPAN("Connection: close\r\n"));
	else if (how->keep_old)
		put(&o, SPAN("Connection: keep-alive\r\n"));
	put(&o, SPAN("\r\n"));
	if (o.error) /* a head is whole or not there */
		out->end -= buf_len(out) - before;
	return o.error;
}
