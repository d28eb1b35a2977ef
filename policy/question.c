/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - a question in words becomes a query, through the same
 * canonicalisers that live traffic goes through */

#include "policy/explain.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/log.h"
#include "src/wire/header.h"
#include "src/wire/url.h"

enum { QUESTION_PATH_BYTES = 64 * 1024, HTTP_PORT = 80, HTTPS_PORT = 443 };

struct words {
	struct span text, rest;
	struct diag *diag;
};

/* The next word; empty at the end. */
static struct span next_word(struct words *w)
{
	w->rest = span_trim(w->rest);
	return span_cut(&w->rest, ' ');
}

static int refuse(const struct words *w, struct span found,
		  const char *expected)
{
	unsigned col = found.len ? (unsigned)(found.ptr - w->text.ptr) + 1 : 1;
	char text[80];

	if (!found.len)
		return diag_set(w->diag, 0, 0,
				"found the end of the question, expected %s",
				expected);
	return diag_set(w->diag, 0, col, "found \"%s\", expected %s",
			log_escape(found, text, sizeof(text)), expected);
}

static int parse_where(const struct words *w, struct span word,
		       uint16_t default_port, struct policy_question *q)
{
	bool bare = addr_parse(word, &q->where.address);

	q->where.is_address = bare;
	q->where.port = default_port;
	if (!bare && !authority_parse(word, default_port, &q->where))
		return refuse(w, word,
			      "a host or address, with or without a "
			      "port");
	q->query.port = q->where.port;
	if (q->where.is_address) {
		q->address = q->where.address;
		q->query.address = &q->address;
	} else {
		q->query.host = host_span(&q->where.host);
	}
	return 0;
}

/* Nothing, or "at ADDRESS". */
static int parse_at(struct words *w, struct policy_question *q)
{
	struct span at = next_word(w), address, more;

	if (!at.len)
		return 0;
	if (!span_eq(at, SPAN("at")))
		return refuse(w, at, "nothing, or \"at\" and an address");
	address = next_word(w);
	if (!addr_parse(address, &q->address))
		return refuse(w, address, "an address behind \"at\"");
	q->query.address = &q->address;
	more = next_word(w);
	return more.len ? refuse(w, more, "nothing more") : 0;
}

static int parse_name(struct words *w, struct policy_question *q)
{
	struct span word = next_word(w), more = next_word(w);

	q->query.stage = POLICY_NAME;
	if (!host_canon(word, &q->where.host))
		return refuse(w, word, "a host name");
	q->query.host = host_span(&q->where.host);
	return more.len ? refuse(w, more, "nothing more") : 0;
}

static int parse_connect(struct words *w, struct policy_question *q)
{
	struct span word = next_word(w);
	int r;

	q->query.stage = POLICY_CONNECT;
	q->query.protocol = PROTOCOL_TCP;
	if (policy_protocol_parse(word, &q->query.protocol))
		word = next_word(w);
	r = parse_where(w, word,
			q->query.protocol == PROTOCOL_ICMP ? 0 : HTTPS_PORT, q);
	return r ? r : parse_at(w, q);
}

static int parse_request(struct words *w, struct span method,
			 struct policy_question *q)
{
	struct span url = next_word(w), rest = url, path;
	uint16_t port = HTTPS_PORT;
	size_t i;
	int r;

	q->query.stage = POLICY_REQUEST;
	q->query.protocol = PROTOCOL_TCP;
	if (!header_name_is_valid(method) ||
	    !span_copy(method, q->method, sizeof(q->method)))
		return refuse(w, method, "name, connect, or a method");
	for (i = 0; i < method.len; i++)
		if (q->method[i] >= 'a' && q->method[i] <= 'z')
			q->method[i] = (char)(q->method[i] & ~0x20);
	q->query.method = span_of(q->method, method.len);

	if (span_starts(url, SPAN("https://"))) {
		rest = span_from(url, 8);
	} else if (span_starts(url, SPAN("http://"))) {
		rest = span_from(url, 7);
		port = HTTP_PORT;
	} else {
		return refuse(w, url, "a URL with http:// or https://");
	}
	path = span_from(rest, span_find(rest, '/'));
	r = parse_where(w, span_of(rest.ptr, rest.len - path.len), port, q);
	if (r)
		return r;
	if (!path.len)
		path = SPAN("/");
	/* ambiguous: the path stays unknown, as it does on the wire */
	switch (url_canon_path(&q->arena, path, &q->query.path)) {
	case URL_PATH_OK:
		break;
	case URL_PATH_AMBIGUOUS:
		q->query.path = SPAN_NONE;
		break;
	case URL_PATH_BAD:
	case URL_PATH_NO_MEMORY:
		return refuse(w, path, "a path");
	}
	return parse_at(w, q);
}

int policy_question_parse(struct span text, struct policy_question *ret,
			  struct diag *d)
{
	struct words w = { .text = text, .rest = text, .diag = d };
	struct span verb = next_word(&w);
	int r;

	*ret = (struct policy_question){ 0 };
	arena_init(&ret->arena, QUESTION_PATH_BYTES);
	if (!verb.len)
		r = refuse(&w, verb, "name, connect, or a method");
	else if (span_eq(verb, SPAN("name")))
		r = parse_name(&w, ret);
	else if (span_eq(verb, SPAN("connect")))
		r = parse_connect(&w, ret);
	else
		r = parse_request(&w, verb, ret);
	if (r)
		policy_question_fini(ret);
	return r;
}

void policy_question_fini(struct policy_question *q)
{
	arena_fini(&q->arena);
}
