/* SPDX-License-Identifier: Apache-2.0 */
/* forward_head.c - fields of a head on their way to the next server, or back */

#include "src/httpd/forward_head.h"

#include <errno.h>

#include "src/base/buf.h"
#include "src/httpd/httpd.h"

enum {
	NAME_MAX_BYTES = 256,
	/* What httpd_set_header() takes, of one field and of all. */
	VALUE_MAX = 16 * 1024,
	FIELDS_MAX = 40 * 1024,
	FIELD_OVERHEAD = 64,
};

/* Does it end at this connection? */
static bool head_is_hop(const struct headers *all, const struct header *h)
{
	return header_flags_of(h->id) & HEADER_HOP ||
	       headers_have_token(all, HEADER_CONNECTION, h->name);
}

static int head_put_field(struct buf *out, struct span name, struct span value)
{
	return buf_putf(out, "%.*s: %.*s\r\n", SPAN_FMT(name), (int)value.len,
			value.ptr ? value.ptr : "");
}

/* Of another protocol: Upgrade, and what HTTP/2 needs with it. */
static int head_put_upgrade(struct buf *out, const struct headers *all)
{
	const struct header *settings =
		headers_find(all, HEADER_HTTP2_SETTINGS);
	int r;

	r = buf_put_str(out, settings
				     ? "Connection: Upgrade, HTTP2-Settings\r\n"
				     : "Connection: Upgrade\r\n");
	for (unsigned i = 0; i < all->count && !r; i++)
		if (all->items[i].id == HEADER_UPGRADE ||
		    &all->items[i] == settings)
			r = head_put_field(out, all->items[i].name,
					   all->items[i].value);
	return r;
}

/* -- requests -------------------------------------------------------------- */

static bool request_passes(const struct headers *all, const struct header *h,
			   const struct forward_edit *edit)
{
	switch (h->id) {
	case HEADER_CONTENT_LENGTH: /* written anew */
	case HEADER_EXPECT:	    /* answered here */
		return false;
	default:
		return !head_is_hop(all, h) && !(edit->drops && edit->drops(h));
	}
}

static int request_put_framing(struct buf *out, const struct h1_request *head)
{
	if (head->body == H1_BODY_CHUNKED)
		return buf_put_str(out, "Transfer-Encoding: chunked\r\n");
	/* an explicit "no body" passes too */
	if (head->body == H1_BODY_LENGTH ||
	    headers_find(&head->headers, HEADER_CONTENT_LENGTH))
		return buf_putf(out, "Content-Length: %llu\r\n",
				(unsigned long long)head->length);
	return 0;
}

/* We pass trailers on: the server may send some where the client takes them. */
static int request_put_te(struct buf *out, const struct h1_request *head)
{
	if (head->upgrade ||
	    !headers_have_token(&head->headers, HEADER_TE, SPAN("trailers")))
		return 0;
	return buf_put_str(out, "TE: trailers\r\nConnection: TE\r\n");
}

int forward_put_request(struct buf *out, const struct h1_request *head,
			const struct forward_edit *edit)
{
	const struct headers *all = &head->headers;
	const bool slash = !span_starts(edit->path, SPAN("/"));
	int r;

	r = buf_putf(out, "%.*s %s%.*s HTTP/1.1\r\n", SPAN_FMT(head->method),
		     slash ? "/" : "", (int)edit->path.len,
		     edit->path.len ? edit->path.ptr : "");
	if (!r && !headers_find(all, HEADER_HOST))
		r = head_put_field(out, SPAN("Host"), edit->host);
	for (unsigned i = 0; i < all->count && !r; i++)
		if (request_passes(all, &all->items[i], edit))
			r = head_put_field(out, all->items[i].name,
					   all->items[i].value);
	if (!r && edit->lines.len)
		r = buf_put(out, edit->lines);
	if (!r)
		r = request_put_framing(out, head);
	if (!r)
		r = request_put_te(out, head);
	if (!r && head->upgrade)
		r = head_put_upgrade(out, all);
	return r ? r : buf_put_str(out, "\r\n");
}

/* -- trailers -------------------------------------------------------------- */

static int line_put(struct buf *out, struct span line,
		    bool (*drops)(const struct header *h))
{
	struct header h = { .value = line };

	h.name = span_cut(&h.value, ':');
	h.id = header_id_of(h.name);
	if (!h.name.len || (drops && drops(&h)))
		return 0;
	return buf_putf(out, "%.*s\r\n", SPAN_FMT(line));
}

int forward_put_trailers(struct buf *out, struct span lines,
			 bool (*drops)(const struct header *h))
{
	struct span line;
	int r = 0;

	while (!r && lines.len) {
		line = span_cut(&lines, '\n');
		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		r = line_put(out, line, drops);
	}
	return r;
}

/* -- replies --------------------------------------------------------------- */

static bool reply_passes(const struct headers *all, const struct header *h)
{
	return h->id != HEADER_CONTENT_LENGTH && !head_is_hop(all, h);
}

/* Can a reply have them all? */
static bool reply_fits(const struct headers *all)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < all->count; i++) {
		bytes += all->items[i].name.len + all->items[i].value.len +
			 FIELD_OVERHEAD;
		if (all->items[i].value.len > VALUE_MAX ||
		    all->items[i].name.len > NAME_MAX_BYTES)
			return false;
	}
	return bytes <= FIELDS_MAX;
}

bool forward_set_reply(struct httpd_request *r, const struct h1_response *head)
{
	static const char *const ours[] = { "Cache-Control",
					    "X-Content-Type-Options" };
	const struct headers *all = &head->headers;
	char name[NAME_MAX_BYTES + 1];

	if (!reply_fits(all))
		return false;
	/* what the server did not say is not said in its place */
	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		if (!headers_find_name(all, span_str(ours[i])))
			httpd_set_header(r, ours[i], SPAN_NONE);
	for (unsigned i = 0; i < all->count; i++) {
		const struct header *h = &all->items[i];

		if (reply_passes(all, h) &&
		    span_copy(h->name, name, sizeof(name)))
			httpd_set_header(r, name,
					 h->value.len ? h->value : SPAN(""));
	}
	httpd_set_reason(r, head->reason.len ? head->reason : SPAN(""));
	return true;
}

int forward_put_interim(struct buf *out, const struct h1_response *head)
{
	const struct headers *all = &head->headers;
	int r = 0;

	for (unsigned i = 0; i < all->count && !r; i++)
		if (reply_passes(all, &all->items[i]))
			r = head_put_field(out, all->items[i].name,
					   all->items[i].value);
	return r;
}

int forward_put_switch(struct buf *out, const struct h1_response *head,
		       struct span lines)
{
	const struct headers *all = &head->headers;
	int r;

	r = buf_putf(out, "HTTP/1.1 101 %.*s\r\n", (int)head->reason.len,
		     head->reason.len ? head->reason.ptr : "");
	if (!r)
		r = head_put_upgrade(out, all);
	for (unsigned i = 0; i < all->count && !r; i++)
		if (reply_passes(all, &all->items[i]))
			r = head_put_field(out, all->items[i].name,
					   all->items[i].value);
	if (!r && lines.len)
		r = buf_put(out, lines);
	return r ? r : buf_put_str(out, "\r\n");
}
