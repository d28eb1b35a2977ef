/* SPDX-License-Identifier: Apache-2.0 */
/* h2_nv.c - heads and fields as nghttp2 wants them, for sending
 *
 * nghttp2 copies names (making them lower-case) and values when they are
 * submitted; of a name that we know it is given ours, which is so written and
 * stays. What belongs to one connection of HTTP/1.1 is left out here.
 */

#include "src/wire/h2_conn.h"

#include <errno.h>

#include "src/base/err.h"

static nghttp2_nv nv_of(struct span name, struct span value, uint8_t flags)
{
	return (nghttp2_nv){
		.name = (uint8_t *)(uintptr_t)name.ptr,
		.value = (uint8_t *)(uintptr_t)value.ptr,
		.namelen = name.len,
		.valuelen = value.len,
		.flags = flags,
	};
}

static bool may_be_sent(const struct header *h)
{
	switch (h->id) {
	case HEADER_CONNECTION:
	case HEADER_KEEP_ALIVE:
	case HEADER_PROXY_CONNECTION:
	case HEADER_TRANSFER_ENCODING:
	case HEADER_UPGRADE:
	case HEADER_HTTP2_SETTINGS:
	case HEADER_HOST:
		return false;
	case HEADER_TE:
		return span_eq_nocase(h->value, SPAN("trailers"));
	default:
		return true;
	}
}

static uint8_t index_flag(const struct header *h)
{
	bool sensitive =
		h->sensitive || header_flags_of(h->id) & HEADER_CREDENTIAL;

	return sensitive ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE;
}

/* Empty ones are left out. The name is a literal. */
static void put_pseudo(struct h2_nvs *n, struct span name, struct span value)
{
	if (value.len)
		n->items[n->count++] =
			nv_of(name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

static nghttp2_nv nv_of_field(const struct header *h)
{
	if (h->id == HEADER_OTHER)
		return nv_of(h->name, h->value, index_flag(h));
	return nv_of(header_name(h->id), h->value,
		     index_flag(h) | NGHTTP2_NV_FLAG_NO_COPY_NAME);
}

static void put_fields(struct h2_nvs *n, const struct headers *headers)
{
	unsigned i;

	for (i = 0; i < headers->count; i++)
		if (may_be_sent(&headers->items[i]))
			n->items[n->count++] = nv_of_field(&headers->items[i]);
}

int h2_nvs_request(const struct h2_head *head, struct h2_nvs *ret)
{
	bool connect = span_eq(head->method, SPAN("CONNECT"));
	bool plain = connect && !head->protocol.len;

	if (!head->method.len || head->headers.count > HEADERS_MAX ||
	    (plain && !head->authority.len) ||
	    (!plain && (!head->scheme.len || !head->path.len)) ||
	    (!connect && head->protocol.len))
		return err_origin(-EINVAL);
	ret->count = 0;
	put_pseudo(ret, SPAN(":method"), head->method);
	if (!plain) {
		put_pseudo(ret, SPAN(":scheme"), head->scheme);
		put_pseudo(ret, SPAN(":path"), head->path);
	}
	put_pseudo(ret, SPAN(":authority"), head->authority);
	put_pseudo(ret, SPAN(":protocol"), head->protocol);
	put_fields(ret, &head->headers);
	return 0;
}

int h2_nvs_response(const struct h2_head *head, struct h2_nvs *ret)
{
	if (head->status < 100 || head->status > 999 || head->status == 101 ||
	    head->headers.count > HEADERS_MAX)
		return err_origin(-EINVAL);
	ret->status[0] = (char)('0' + head->status / 100);
	ret->status[1] = (char)('0' + head->status / 10 % 10);
	ret->status[2] = (char)('0' + head->status % 10);
	ret->count = 0;
	put_pseudo(ret, SPAN(":status"), span_of(ret->status, 3));
	put_fields(ret, &head->headers);
	return 0;
}

struct h2_fields {
	size_t size; /* of the allocation */
	size_t count;
	nghttp2_nv items[];
};

static struct span fields_copy(char **at, struct span s)
{
	struct span copy = span_of(*at, s.len);

	if (s.len)
		memcpy(*at, s.ptr, s.len);
	*at += s.len;
	return copy;
}

struct h2_fields *h2_fields_new(const struct headers *headers)
{
	size_t size = sizeof(struct h2_fields), count = 0;
	const struct header *h;
	struct h2_fields *f;
	struct span name;
	unsigned i;
	char *at;

	for (i = 0; i < headers->count; i++) {
		h = &headers->items[i];
		count += may_be_sent(h);
		size += h->name.len + h->value.len;
	}
	size += count * sizeof(f->items[0]);
	f = must_alloc(size);
	f->size = size;
	at = (char *)&f->items[count];
	for (i = 0; i < headers->count; i++) {
		h = &headers->items[i];
		if (!may_be_sent(h))
			continue;
		name = fields_copy(&at, h->name);
		f->items[f->count++] =
			nv_of(name, fields_copy(&at, h->value), index_flag(h));
	}
	return f;
}

struct h2_fields *h2_fields_free(struct h2_fields *f)
{
	if (f)
		explicit_bzero(f, f->size);
	free(f);
	return NULL;
}

const nghttp2_nv *h2_fields_items(const struct h2_fields *f, size_t *ret_count)
{
	*ret_count = f->count;
	return f->items;
}

size_t h2_fields_size(const struct h2_fields *f)
{
	return f ? f->size : 0;
}
