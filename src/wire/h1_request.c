/* SPDX-License-Identifier: Apache-2.0 */
/* h1_request.c - a request head, read once it is whole
 *
 * How it works: start line, fields (h1_head.c), then three questions in order.
 * What is the target, in which of the four forms of RFC 9112 3.2? Whom does it
 * name: an absolute-form target wins over Host, but one that says something
 * else than Host is refused, because the next hop may prefer the other. Where
 * does the body end?
 */

#include "src/wire/h1.h"

#include "src/wire/bytes.h"
#include "src/wire/h1_head.h"

/* No white space and no '#': a target has no fragment, and what follows one
 * would be path to one parser and nothing to the next. Control bytes were
 * refused with the line. */
static bool target_is_clean(struct span target)
{
	return target.len && span_find(target, ' ') == target.len &&
	       span_find(target, '\t') == target.len &&
	       span_find(target, '#') == target.len;
}

static enum h1_error parse_start(struct span line, struct h1_request *req)
{
	size_t space = span_find(line, ' ');
	enum h1_error error;

	req->method = span_of(line.ptr, space);
	if (!space || !bytes_are(req->method, BYTE_TOKEN))
		return H1_E_METHOD;
	/* " HTTP/1.1" is at the end, one space before it */
	if (line.len < space + 1 + 1 + 9 || line.ptr[line.len - 9] != ' ')
		return H1_E_START_LINE;
	error = h1_parse_version(span_from(line, line.len - 8), &req->minor);
	if (error)
		return error;
	req->target = span_of(line.ptr + space + 1, line.len - space - 10);
	return target_is_clean(req->target) ? H1_OK : H1_E_TARGET;
}

/* Cuts a prefix in any case of letters off *s. */
static bool cut_prefix(struct span *s, struct span prefix)
{
	if (s->len < prefix.len ||
	    !span_eq_nocase(span_of(s->ptr, prefix.len), prefix))
		return false;
	*s = span_from(*s, prefix.len);
	return true;
}

static enum h1_error parse_absolute(struct h1_request *req)
{
	struct span rest = req->target;
	size_t slash;

	if (cut_prefix(&rest, SPAN("https://")))
		req->absolute_https = true;
	else if (!cut_prefix(&rest, SPAN("http://")))
		return H1_E_TARGET;
	/* "http://a?b" has no path that a view could show: also refused,
	 * since '?' is not in the class */
	slash = span_find(rest, '/');
	req->absolute = true;
	req->authority = span_of(rest.ptr, slash);
	if (slash < rest.len)
		req->path = span_from(rest, slash);
	else if (span_eq(req->method, SPAN("OPTIONS")))
		req->path = SPAN("*"); /* RFC 9112 3.2.4 */
	else
		req->path = SPAN("/");
	if (!slash || !bytes_are(req->authority, BYTE_AUTHORITY))
		return H1_E_TARGET;
	return H1_OK;
}

/* Without the port, if it is this one, which the scheme implies anyway. An
 * empty `port` is any. */
static struct span without_port(struct span authority, struct span port)
{
	struct span bare = authority;

	while (bare.len && bare.ptr[bare.len - 1] >= '0' &&
	       bare.ptr[bare.len - 1] <= '9')
		bare.len--;
	if (bare.len < 2 || bare.len == authority.len ||
	    bare.ptr[bare.len - 1] != ':')
		return authority;
	/* a colon inside brackets is part of an address */
	if (bare.ptr[0] == '[' && bare.ptr[bare.len - 2] != ']')
		return authority;
	if (port.len && !span_eq(span_from(authority, bare.len), port))
		return authority;
	return span_of(bare.ptr, bare.len - 1);
}

/* A bare authority; its port is required (RFC 9110 9.3.6). */
static enum h1_error parse_authority_form(struct h1_request *req)
{
	req->authority = req->target;
	if (!bytes_are(req->target, BYTE_AUTHORITY) ||
	    without_port(req->target, SPAN_NONE).len == req->target.len)
		return H1_E_TARGET;
	return H1_OK;
}

/* The four forms; only CONNECT has a bare authority, and only OPTIONS "*". */
static enum h1_error parse_target(struct h1_request *req)
{
	if (span_eq(req->method, SPAN("CONNECT")))
		return parse_authority_form(req);
	if (req->target.ptr[0] == '/') {
		req->path = req->target;
		return H1_OK;
	}
	if (span_eq(req->target, SPAN("*"))) {
		req->path = req->target;
		return span_eq(req->method, SPAN("OPTIONS")) ? H1_OK
							     : H1_E_TARGET;
	}
	return parse_absolute(req);
}

static enum h1_error check_host(struct h1_request *req,
				const struct h1_facts *facts)
{
	struct span host, port;

	if (!facts->host)
		return req->minor == 0 ? H1_OK : H1_E_HOST_MISSING;
	/* A CONNECT goes no further, and some clients (Node.js) put the
	 * proxy's own name here. */
	if (span_eq(req->method, SPAN("CONNECT")))
		return H1_OK;
	host = facts->host->value;
	if (!req->authority.len) {
		req->authority = host;
		return host.len ? H1_OK : H1_E_HOST;
	}
	port = req->absolute_https ? SPAN("443") : SPAN("80");
	if (!span_eq_nocase(without_port(host, port),
			    without_port(req->authority, port)))
		return H1_E_HOST_DIFFERS;
	return H1_OK;
}

static enum h1_error frame_request(struct h1_request *req,
				   const struct h1_facts *facts)
{
	if (span_eq(req->method, SPAN("CONNECT")))
		return facts->has_coding || facts->length ? H1_E_CONNECT_BODY
							  : H1_OK;
	if (facts->has_coding) {
		req->body = H1_BODY_CHUNKED;
	} else if (facts->has_length) {
		req->body = H1_BODY_LENGTH;
		req->length = facts->length;
	}
	return H1_OK;
}

enum h1_error h1_parse_request(struct span head, struct h1_request *ret)
{
	struct h1_facts facts;
	enum h1_error error;
	struct span line;

	/* all but the 192 fields, which are written as they are found */
	memset(ret, 0, offsetof(struct h1_request, headers));
	if (span_starts(head, SPAN("\r\n")))
		head = span_from(head, 2);

	error = h1_take_line(&head, &line);
	if (!error)
		error = parse_start(line, ret);
	if (!error)
		error = parse_target(ret);
	if (!error)
		error = h1_parse_fields(head, ret->minor, &ret->headers,
					&facts);
	if (!error)
		error = check_host(ret, &facts);
	if (!error)
		error = frame_request(ret, &facts);
	if (error)
		return error;

	ret->keep_alive = h1_keeps_alive(&facts, ret->minor);
	ret->upgrade = ret->minor == 1 && facts.upgrade && facts.has_upgrade;
	ret->expect_continue = ret->minor == 1 && facts.expect_continue &&
			       (facts.has_coding || facts.length);
	return H1_OK;
}
