/* SPDX-License-Identifier: Apache-2.0 */
/* parse.c - policies and overlays from a tree, rules by parse_rule.c */

#include "policy/parse.h"

#include <errno.h>

#include "src/base/chars.h"
#include "policy/parse_rule.h"
#include "src/text/doc.h"

/* Letters, digits, '.', '_', '-': a policy's name stands in URLs, log lines
 * and response headers. "operator" is what the overlays are called. */
static bool policy_name_is_valid(struct span name)
{
	size_t i;
	char c;

	if (!name.len || name.len > POLICY_NAME_MAX ||
	    span_eq(name, SPAN("operator")))
		return false;
	for (i = 0; i < name.len; i++) {
		c = name.ptr[i];
		if (!char_is_alnum(c) &&
		    !(i && (c == '.' || c == '_' || c == '-')))
			return false;
	}
	return true;
}

static int parse_name(const struct policy_parser *p, const struct doc_node *n,
		      struct span wanted, struct span *ret)
{
	const struct doc_node *name = doc_find(n, "name");
	struct span text = wanted;
	int r;

	if (!name && !wanted.ptr)
		return diag_set(p->diag, n->line, n->col,
				"found a policy without \"name\", expected "
				"one");
	if (name) {
		r = doc_get_string(name, &text, p->diag);
		if (r)
			return r;
		if (wanted.ptr && !span_eq(text, wanted))
			return doc_found_value(name,
					       "the name it is put "
					       "under, or none",
					       p->diag);
	}
	if (!policy_name_is_valid(text))
		return name ? doc_found_value(
				      name,
				      "1 to 128 letters, digits, '.', '_' or "
				      "'-', and not \"operator\"",
				      p->diag)
			    : diag_set(p->diag, 0, 0,
				       "found a name that no policy can have, "
				       "expected 1 to 128 letters, digits, "
				       "'.', '_' or '-'");
	*ret = arena_dup(p->arena, text);
	return parse_memory(p, n, ret->ptr);
}

/* A sandbox id, or its beginning and '*'. */
static bool id_is_valid(struct span id)
{
	size_t i;

	if (!id.len || id.len > 255)
		return false;
	for (i = 0; i < id.len; i++)
		if (id.ptr[i] <= ' ' || id.ptr[i] > '~' ||
		    (id.ptr[i] == '*' && i != id.len - 1))
			return false;
	return true;
}

static int parse_ids(const struct policy_parser *p, const struct doc_node *n,
		     struct policy_model *m)
{
	struct span *ids, text;
	int r;

	r = parse_list(p, n, POLICY_IDS_MAX, sizeof(*ids), (void **)&ids);
	if (r)
		return r;
	m->ids = ids;
	doc_for_each(it, n)
	{
		r = doc_get_string(it, &text, p->diag);
		if (r)
			return r;
		if (!id_is_valid(text))
			return doc_found_value(it,
					       "a sandbox id, with '*' at "
					       "its end or nowhere",
					       p->diag);
		ids[m->id_count] = arena_dup(p->arena, text);
		if (!ids[m->id_count++].ptr)
			return parse_memory(p, it, NULL);
	}
	return 0;
}

static int parse_labels(const struct policy_parser *p, const struct doc_node *n,
			struct policy_model *m)
{
	struct policy_label *labels;
	struct span value;
	int r;

	r = doc_expect(n, DOC_MAP, p->diag);
	if (r)
		return r;
	if (!n->count || n->count > POLICY_LABELS_MAX)
		return diag_set(p->diag, n->line, n->col,
				"labels: found %u, expected 1 to %d", n->count,
				POLICY_LABELS_MAX);
	labels = arena_alloc(p->arena, n->count * sizeof(*labels));
	m->labels = labels;
	doc_for_each(it, n)
	{
		r = doc_get_string(it, &value, p->diag);
		if (r)
			return r;
		if (labels) {
			labels[m->label_count].key =
				arena_dup(p->arena, it->key);
			labels[m->label_count++].value =
				arena_dup(p->arena, value);
		}
	}
	return parse_memory(p, n, labels);
}

static int parse_sandboxes(const struct policy_parser *p,
			   const struct doc_node *n, struct policy_model *m)
{
	static const char *const known[] = { "ids", "labels", NULL };
	const struct doc_node *ids = doc_find(n, "ids");
	const struct doc_node *labels = doc_find(n, "labels");
	int r;

	r = doc_check_keys(n, known, p->diag);
	if (!r && !ids && !labels)
		return diag_set(p->diag, n->line, n->col,
				"sandboxes: found neither ids nor labels, "
				"expected at least one of them");
	if (!r && ids)
		r = parse_ids(p, ids, m);
	if (!r && labels)
		r = parse_labels(p, labels, m);
	return r;
}

static int parse_hosts(const struct policy_parser *p, const struct doc_node *n,
		       const struct policy_target **ret, unsigned *ret_count)
{
	struct policy_target *targets;
	unsigned count = 0;
	struct span text;
	int r;

	r = parse_list(p, n, POLICY_LIST_MAX, sizeof(*targets),
		       (void **)&targets);
	if (r)
		return r;
	doc_for_each(it, n)
	{
		r = doc_get_string(it, &text, p->diag);
		if (r)
			return r;
		if (!policy_target_parse(p->arena, text, &targets[count]) ||
		    targets[count].kind == TARGET_ADDRESS)
			return doc_found_value(it, "a host name or *.name",
					       p->diag);
		count++;
	}
	*ret = targets;
	*ret_count = count;
	return parse_memory(p, n, targets);
}

/* "never open" and "always open" about the very same target. Where only one
 * of two overlapping targets is meant, the more specific one wins. */
static int check_lists(const struct policy_parser *p, const struct doc_node *n,
		       const struct policy_model *m)
{
	const struct doc_node *at = doc_find(n, "passthrough");
	const struct policy_target *a, *b;
	unsigned i, k;

	for (k = 0; k < m->passthrough_count; k++) {
		b = &m->passthrough[k];
		for (i = 0; i < m->inspect_count; i++) {
			a = &m->inspect[i];
			if (a->kind != b->kind || !span_eq(a->name, b->name))
				continue;
			at = at->children;
			while (k--)
				at = at->next;
			return doc_found_value(at,
					       "it in only one of inspect "
					       "and passthrough",
					       p->diag);
		}
	}
	return 0;
}

static int parse_limits(const struct policy_parser *p, const struct doc_node *n,
			struct policy_limits *ret)
{
	const char *known[LIMIT_NUM + 1] = { NULL };
	enum policy_limit limit;
	unsigned i;
	int r;

	for (i = 0; i < LIMIT_NUM; i++)
		known[i] = policy_limit_name((enum policy_limit)i);
	r = doc_check_keys(n, known, p->diag);
	if (r)
		return r;
	doc_for_each(it, n)
	{
		limit = policy_limit_find(it->key);
		r = doc_get_u64(it, 0, policy_limit_max(limit), &ret->of[limit],
				p->diag);
		if (r)
			return r;
	}
	return 0;
}

static int parse_parts(const struct policy_parser *p, const struct doc_node *n,
		       struct policy_model *m)
{
	const struct doc_node *sandboxes = doc_find(n, "sandboxes");
	const struct doc_node *action = doc_find(n, "defaultAction");
	const struct doc_node *egress = doc_find(n, "egress");
	const struct doc_node *inspect = doc_find(n, "inspect");
	const struct doc_node *passthrough = doc_find(n, "passthrough");
	const struct doc_node *limits = doc_find(n, "limits");
	int r = 0;

	if (sandboxes)
		r = parse_sandboxes(p, sandboxes, m);
	if (!r && action)
		r = parse_action(p, action, &m->default_action);
	if (!r && egress)
		r = parse_rules(p, egress, NULL, &m->rules, &m->rule_count);
	if (!r && inspect)
		r = parse_hosts(p, inspect, &m->inspect, &m->inspect_count);
	if (!r && passthrough)
		r = parse_hosts(p, passthrough, &m->passthrough,
				&m->passthrough_count);
	if (!r && limits)
		r = parse_limits(p, limits, &m->limits);
	if (!r)
		r = check_lists(p, n, m);
	if (!r)
		r = policy_check_passthrough(m, m->rules, m->rule_count,
					     p->diag);
	return r;
}

int policy_parse_one(const struct policy_parser *p, const struct doc_node *n,
		     struct span name, struct policy_model **ret)
{
	static const char *const known[] = { "name",	      "sandboxes",
					     "defaultAction", "egress",
					     "inspect",	      "passthrough",
					     "limits",	      NULL };
	struct policy_model *m = arena_alloc(p->arena, sizeof(*m));
	int r;

	r = doc_check_keys(n, known, p->diag);
	if (!r)
		r = parse_memory(p, n, m);
	if (r)
		return r;
	policy_limits_init(&m->limits);
	r = parse_name(p, n, name, &m->name);
	if (!r)
		r = parse_parts(p, n, m);
	if (r)
		return r;
	m->file = p->file;
	m->line = n->line;
	*ret = m;
	return 0;
}

int policy_parse_overlay(const struct policy_parser *p,
			 const struct doc_node *n, enum verdict_kind action,
			 const struct policy_rule **ret, unsigned *ret_count)
{
	return parse_rules(p, n, &action, ret, ret_count);
}
