/* SPDX-License-Identifier: Apache-2.0 */
/* parse_rule.c - one rule: target, ports, protocol, methods, paths
 *
 * What a rule can never match is refused instead of kept: bits behind a CIDR's
 * prefix, a path that is not in canonical form, ports of ICMP. An operator who
 * writes such a rule means something else.
 */

#include "policy/parse_rule.h"

#include <errno.h>
#include <stdio.h>

#include "src/text/doc.h"
#include "src/wire/header.h"
#include "src/wire/host.h"
#include "src/wire/url.h"

int parse_memory(const struct policy_parser *p, const struct doc_node *n,
		 const void *memory)
{
	if (memory && !arena_overflowed(p->arena))
		return 0;
	return diag_set(p->diag, n->line, n->col,
			"found more policy than fits into memory");
}

int parse_list(const struct policy_parser *p, const struct doc_node *n,
	       unsigned max, size_t size, void **ret)
{
	void *items;
	int r;

	r = doc_expect(n, DOC_LIST, p->diag);
	if (r)
		return r;
	if (n->count > max)
		return diag_set(p->diag, n->line, n->col,
				"%.*s: found %u items, expected at most %u",
				SPAN_FMT(n->key), n->count, max);
	items = arena_alloc(p->arena, MAX(n->count, 1u) * size);
	r = parse_memory(p, n, items);
	if (!r)
		*ret = items;
	return r;
}

/* A condition that lists nothing would never match, or always: who knows. */
static int parse_condition(const struct policy_parser *p,
			   const struct doc_node *n, size_t size, void **ret)
{
	int r = parse_list(p, n, POLICY_LIST_MAX, size, ret);

	if (!r && !n->count)
		return diag_set(p->diag, n->line, n->col,
				"%.*s: found an empty list, expected at least "
				"one item, or no %.*s at all",
				SPAN_FMT(n->key), SPAN_FMT(n->key));
	return r;
}

int parse_action(const struct policy_parser *p, const struct doc_node *n,
		 enum verdict_kind *ret)
{
	if (n->kind == DOC_STRING && span_eq(n->text, SPAN("allow")))
		*ret = VERDICT_ALLOW;
	else if (n->kind == DOC_STRING && span_eq(n->text, SPAN("deny")))
		*ret = VERDICT_DENY;
	else
		return doc_found_value(n, "allow or deny", p->diag);
	return 0;
}

bool policy_target_parse(struct arena *arena, struct span text,
			 struct policy_target *ret)
{
	struct policy_target t = { .kind = TARGET_NAME };
	struct host host;

	if (cidr_parse(text, &t.cidr)) {
		t.kind = TARGET_ADDRESS;
		*ret = t;
		return true;
	}
	if (span_starts(text, SPAN("*."))) {
		t.kind = TARGET_WILDCARD;
		text = span_from(text, 2);
	}
	if (!host_canon(text, &host))
		return false;
	t.name = arena_dup(arena, host_span(&host));
	if (!t.name.ptr)
		return false;
	*ret = t;
	return true;
}

/* 10.0.0.1/8: is one host meant, or the whole network? */
static bool cidr_has_stray_bits(struct span text, const struct cidr *c)
{
	struct span rest = text, ip = span_cut(&rest, '/');
	struct addr a;

	return addr_parse(ip, &a) && memcmp(a.ip, c->ip, sizeof(a.ip)) != 0;
}

static int parse_target(const struct policy_parser *p, const struct doc_node *n,
			struct policy_target *ret)
{
	char expected[ADDR_TEXT_SIZE + 64], text[ADDR_TEXT_SIZE];

	if (n->kind != DOC_STRING)
		return doc_found_kind(n,
				      "a string: a host name, *.name, an "
				      "address or a CIDR prefix",
				      p->diag);
	if (!policy_target_parse(p->arena, n->text, ret))
		return doc_found_value(n,
				       "a host name, *.name, an address or "
				       "a CIDR prefix",
				       p->diag);
	if (ret->kind == TARGET_ADDRESS &&
	    cidr_has_stray_bits(n->text, &ret->cidr)) {
		(void)snprintf(expected, sizeof(expected),
			       "no bits behind the prefix, as in %s",
			       cidr_text(&ret->cidr, text, sizeof(text)));
		return doc_found_value(n, expected, p->diag);
	}
	return 0;
}

static bool port_parse(struct span text, uint16_t *ret)
{
	uint64_t port;

	if (!span_parse_u64(text, &port) || !port || port > UINT16_MAX)
		return false;
	*ret = (uint16_t)port;
	return true;
}

static bool ports_parse(struct span text, struct policy_ports *ret)
{
	struct span rest = text, first = span_cut(&rest, '-');

	if (!port_parse(first, &ret->first))
		return false;
	ret->last = ret->first;
	if (first.len == text.len)
		return true;
	return port_parse(rest, &ret->last) && ret->first <= ret->last;
}

static int parse_ports(const struct policy_parser *p, const struct doc_node *n,
		       struct policy_rule *rule)
{
	struct policy_ports *ports;
	int r;

	r = parse_condition(p, n, sizeof(*ports), (void **)&ports);
	if (r)
		return r;
	rule->ports = ports;
	doc_for_each(it, n)
	{
		if ((it->kind != DOC_NUMBER && it->kind != DOC_STRING) ||
		    !ports_parse(it->text, &ports[rule->port_count++]))
			return doc_found_value(it,
					       "a port from 1 to 65535 or "
					       "a range like \"8000-8100\"",
					       p->diag);
	}
	return 0;
}

static int parse_methods(const struct policy_parser *p,
			 const struct doc_node *n, struct policy_rule *rule)
{
	struct span *methods;
	struct span text;
	char *upper;
	size_t i;
	int r;

	r = parse_condition(p, n, sizeof(*methods), (void **)&methods);
	if (r)
		return r;
	rule->methods = methods;
	doc_for_each(it, n)
	{
		if (it->kind != DOC_STRING || !header_name_is_valid(it->text) ||
		    it->text.len > POLICY_METHOD_MAX)
			return doc_found_value(it, "a method such as GET",
					       p->diag);
		text = arena_dup(p->arena, it->text);
		r = parse_memory(p, it, text.ptr);
		if (r)
			return r;
		upper = (char *)text.ptr;
		for (i = 0; i < text.len; i++)
			if (upper[i] >= 'a' && upper[i] <= 'z')
				upper[i] = (char)(upper[i] & ~0x20);
		methods[rule->method_count++] = text;
	}
	return 0;
}

/* Is it what url_canon_path() makes of a request, with at most a '*' behind?
 * Anything else would never match, or not what its reader thinks. */
static bool path_is_canonical(struct arena *arena, struct span path)
{
	struct span canon;

	if (!path.len || path.len > POLICY_PATH_MAX || path.ptr[0] != '/')
		return false;
	if (path.ptr[path.len - 1] == '*')
		path.len--;
	if (span_find(path, '*') != path.len)
		return false;
	return url_canon_path(arena, path, &canon) == URL_PATH_OK &&
	       span_eq(canon, path);
}

static int parse_paths(const struct policy_parser *p, const struct doc_node *n,
		       struct policy_rule *rule)
{
	struct span *paths;
	int r;

	r = parse_condition(p, n, sizeof(*paths), (void **)&paths);
	if (r)
		return r;
	rule->paths = paths;
	doc_for_each(it, n)
	{
		if (it->kind != DOC_STRING ||
		    !path_is_canonical(p->arena, it->text))
			return doc_found_value(it,
					       "a path that begins with "
					       "'/', without query, dot "
					       "segments or needless "
					       "escapes, '*' at its end "
					       "or nowhere",
					       p->diag);
		paths[rule->path_count] = arena_dup(p->arena, it->text);
		r = parse_memory(p, it, paths[rule->path_count++].ptr);
		if (r)
			return r;
	}
	return 0;
}

/* Methods and paths make a rule TCP; ICMP knows no ports. A rule that allows
 * and says nothing is about TCP, which is what is looked into: nobody opens UDP
 * to a host without meaning to. */
static int parse_protocol(const struct policy_parser *p,
			  const struct doc_node *n, struct policy_rule *rule)
{
	bool http = policy_rule_is_constrained(rule);

	rule->protocol = policy_protocol_default(rule->action);
	if (n && (n->kind != DOC_STRING ||
		  !policy_protocol_parse(n->text, &rule->protocol)))
		return doc_found_value(n, "tcp, udp, icmp or any", p->diag);
	if (http &&
	    (rule->protocol == PROTOCOL_UDP || rule->protocol == PROTOCOL_ICMP))
		return doc_found_value(n,
				       "tcp, because the rule has methods "
				       "or paths",
				       p->diag);
	if (rule->port_count && rule->protocol == PROTOCOL_ICMP)
		return doc_found_value(n,
				       "a protocol with ports, because the "
				       "rule has ports",
				       p->diag);
	if (http)
		rule->protocol = PROTOCOL_TCP;
	return 0;
}

static int parse_conditions(const struct policy_parser *p,
			    const struct doc_node *n, struct policy_rule *rule)
{
	const struct doc_node *ports = doc_find(n, "ports");
	const struct doc_node *methods = doc_find(n, "methods");
	const struct doc_node *paths = doc_find(n, "paths");
	int r = 0;

	if (ports)
		r = parse_ports(p, ports, rule);
	if (!r && methods)
		r = parse_methods(p, methods, rule);
	if (!r && paths)
		r = parse_paths(p, paths, rule);
	if (!r)
		r = parse_protocol(p, doc_find(n, "protocol"), rule);
	return r;
}

static int parse_missing(const struct policy_parser *p,
			 const struct doc_node *n, const char *key)
{
	return diag_set(p->diag, n->line, n->col,
			"found a rule without \"%s\", expected one", key);
}

static int parse_rule(const struct policy_parser *p, const struct doc_node *n,
		      const enum verdict_kind *overlay,
		      struct policy_rule *rule)
{
	/* an overlay's rules have no action of their own */
	static const char *const known[] = { "action",	 "target",  "ports",
					     "protocol", "methods", "paths",
					     NULL };
	const struct doc_node *action = doc_find(n, "action");
	const struct doc_node *target = doc_find(n, "target");
	int r = 0;

	rule->file = p->file;
	rule->line = n->line;
	if (overlay)
		rule->action = *overlay;
	if (overlay && n->kind == DOC_STRING) {
		rule->protocol = policy_protocol_default(rule->action);
		return parse_target(p, n, &rule->target);
	}

	r = doc_check_keys(n, known + (overlay != NULL), p->diag);
	if (!r && !overlay)
		r = action ? parse_action(p, action, &rule->action)
			   : parse_missing(p, n, "action");
	if (!r)
		r = target ? parse_target(p, target, &rule->target)
			   : parse_missing(p, n, "target");
	if (!r)
		r = parse_conditions(p, n, rule);
	return r;
}

int parse_rules(const struct policy_parser *p, const struct doc_node *n,
		const enum verdict_kind *overlay,
		const struct policy_rule **ret, unsigned *ret_count)
{
	struct policy_rule *rules;
	unsigned count = 0;
	int r;

	r = parse_list(p, n, POLICY_RULES_MAX, sizeof(*rules), (void **)&rules);
	if (r)
		return r;
	doc_for_each(it, n)
	{
		r = parse_rule(p, it, overlay, &rules[count++]);
		if (r)
			return r;
	}
	*ret = rules;
	*ret_count = count;
	return 0;
}
