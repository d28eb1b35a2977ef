/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_route.c - from a request's head to a port of a sandbox
 *
 * A label is read from its end, since ids contain dashes themselves: a
 * signature has its own form (eight hex digits and a key's id) that no port
 * has, so a label is never both.
 *
 * execd is a way to every port of the sandbox's loopback, and clients that put
 * URLs together by hand take it: "{execd}/proxy/{port}". Two of these are not
 * there: execd's own, and that of the egress API, which is no process inside.
 * Such a path is that of the port itself, with the port's own demands.
 */

#include "gateway/ingress/ingress_route.h"

#include "gateway/ingress/ingress_access.h"
#include "src/base/chars.h"
#include "src/wire/h1.h"

enum { SIG_LEN = 9, EXPIRES_MAX = 13, UUID_LEN = 36 };

static bool is_hex(char c)
{
	return char_is_digit(c) || (c >= 'a' && c <= 'f');
}

static bool is_base36(struct span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (!char_is_digit(s.ptr[i]) && !char_is_lower(s.ptr[i]))
			return false;
	return s.len > 0;
}

static bool is_signature(struct span s)
{
	size_t i;

	if (s.len != SIG_LEN || !is_base36(s))
		return false;
	for (i = 0; i < SIG_LEN - 1; i++)
		if (!is_hex(s.ptr[i]))
			return false;
	return true;
}

static bool is_expires(struct span s)
{
	return s.len <= EXPIRES_MAX && is_base36(s);
}

static bool is_uuid(struct span s)
{
	size_t i;
	char c;

	if (s.len != UUID_LEN)
		return false;
	for (i = 0; i < UUID_LEN; i++) {
		c = span_lower_char(s.ptr[i]);
		if (i == 8 || i == 13 || i == 18 || i == 23 ? c != '-'
							    : !is_hex(c))
			return false;
	}
	return true;
}

/* Letters, digits, '.', '_', '-': what a sandbox may be called here. */
static bool is_id(struct span s)
{
	size_t i;
	char c;

	for (i = 0; i < s.len; i++) {
		c = s.ptr[i];
		if (!char_is_alnum(c) && c != '-' && c != '_' && c != '.')
			return false;
	}
	return s.len > 0 && s.ptr[0] != '.';
}

static bool is_number(struct span s)
{
	size_t i;

	for (i = 0; i < s.len; i++)
		if (!char_is_digit(s.ptr[i]))
			return false;
	return s.len > 0;
}

static bool port_parse(struct span s, uint16_t *ret)
{
	uint64_t v;

	if (!span_parse_u64(s, &v) || !v || v > UINT16_MAX)
		return false;
	*ret = (uint16_t)v;
	return true;
}

/* Cuts the part behind the last dash off *s. SPAN_NONE: no dash. */
static struct span cut_last(struct span *s)
{
	struct span part;
	size_t i = s->len;

	while (i && s->ptr[i - 1] != '-')
		i--;
	if (!i)
		return SPAN_NONE;
	part = span_from(*s, i);
	s->len = i - 1;
	return part;
}

/* "{id}-{port}[-{expires}-{sig}]". */
static enum ingress_error label_parse(struct span label,
				      struct ingress_route *ret)
{
	struct span rest = label, last, expires;

	last = cut_last(&rest);
	if (is_signature(last)) {
		expires = cut_last(&rest);
		if (!is_expires(expires))
			return INGRESS_E_NO_ROUTE;
		ret->signature = last;
		ret->expires = expires;
		last = cut_last(&rest);
	}
	if (!is_number(last) || !is_id(rest))
		return INGRESS_E_NO_ROUTE;
	ret->id = rest;
	return port_parse(last, &ret->port) ? INGRESS_OK : INGRESS_E_PORT;
}

/* Cuts "/segment" off the front of *path; SPAN_NONE when it does not begin
 * with "/". The query is in no segment. */
static struct span cut_segment(struct span *path)
{
	struct span segment;
	size_t end = 1;

	if (!path->len || path->ptr[0] != '/')
		return SPAN_NONE;
	while (end < path->len && path->ptr[end] != '/' &&
	       path->ptr[end] != '?')
		end++;
	segment = span_of(path->ptr + 1, end - 1);
	*path = span_from(*path, end);
	return segment;
}

static void set_path(struct ingress_route *ret, struct span whole,
		     struct span rest)
{
	ret->path = ret->plain_path = rest;
	ret->prefix = span_of(whole.ptr, whole.len - rest.len);
}

static enum ingress_error server_parse(struct span path,
				       struct ingress_route *ret)
{
	struct span rest = path, first = cut_segment(&rest), port;

	if (span_eq(first, SPAN("v1")))
		first = cut_segment(&rest);
	if (!span_eq(first, SPAN("sandboxes")))
		return INGRESS_E_NO_ROUTE;
	ret->id = cut_segment(&rest);
	if (!is_id(ret->id) || !span_eq(cut_segment(&rest), SPAN("proxy")))
		return INGRESS_E_NO_ROUTE;
	port = cut_segment(&rest);
	if (!is_number(port) || !port_parse(port, &ret->port))
		return INGRESS_E_PORT;
	set_path(ret, path, rest);
	return INGRESS_OK;
}

static enum ingress_error uri_parse(struct span path, struct ingress_route *ret)
{
	struct span rest = path, signed_rest, expires, signature, port;

	ret->id = cut_segment(&rest);
	port = cut_segment(&rest);
	if (!is_id(ret->id) || !is_number(port))
		return INGRESS_E_NO_ROUTE;
	if (!port_parse(port, &ret->port))
		return INGRESS_E_PORT;
	set_path(ret, path, rest);

	signed_rest = rest;
	expires = cut_segment(&signed_rest);
	signature = cut_segment(&signed_rest);
	if (is_expires(expires) && is_signature(signature)) {
		ret->expires = expires;
		ret->signature = signature;
		ret->path = signed_rest;
		ret->prefix.len = path.len - signed_rest.len;
	}
	return INGRESS_OK;
}

/* A signature is one for a port: nothing leads on from there. */
static void detour_take(struct ingress_route *r)
{
	struct span rest = r->path, port;
	uint16_t number;

	while (r->port == INGRESS_PORT_EXECD && !r->signature.len &&
	       span_eq(cut_segment(&rest), SPAN("proxy"))) {
		port = cut_segment(&rest);
		if (!is_number(port) || !port_parse(port, &number) ||
		    (number != INGRESS_PORT_EXECD &&
		     number != INGRESS_PORT_EGRESS))
			return;
		r->port = number;
		r->prefix.len += r->path.len - rest.len;
		r->path = r->plain_path = rest;
	}
}

static struct span named_route(const struct h1_request *head)
{
	const struct header *h;

	h = headers_find_name(&head->headers, SPAN("OpenSandbox-Ingress-To"));
	if (!h)
		h = headers_find_name(&head->headers,
				      SPAN("OPEN-SANDBOX-INGRESS"));
	return h ? h->value : SPAN_NONE;
}

static enum ingress_error route_parse(const struct h1_request *head,
				      struct ingress_route *ret)
{
	struct span named = named_route(head), host = head->authority;
	enum ingress_error e;

	*ret = (struct ingress_route){ 0 };
	if (named.ptr) {
		set_path(ret, head->path, head->path);
		return label_parse(span_cut(&named, '.'), ret);
	}
	e = label_parse(span_cut(&host, '.'), ret);
	if (e != INGRESS_E_NO_ROUTE && is_uuid(ret->id)) {
		set_path(ret, head->path, head->path);
		return e;
	}
	*ret = (struct ingress_route){ 0 };
	e = server_parse(head->path, ret);
	if (e != INGRESS_E_NO_ROUTE)
		return e;
	*ret = (struct ingress_route){ 0 };
	return uri_parse(head->path, ret);
}

enum ingress_error ingress_route_parse(const struct h1_request *head,
				       struct ingress_route *ret)
{
	enum ingress_error e = route_parse(head, ret);

	if (!e)
		detour_take(ret);
	return e;
}

void ingress_route_unsign(struct ingress_route *route)
{
	route->prefix.len -= route->plain_path.len - route->path.len;
	route->path = route->plain_path;
	route->expires = route->signature = SPAN_NONE;
}
