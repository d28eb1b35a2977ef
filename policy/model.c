/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - choose, check and print policies as they were written */

#include "policy/model.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/log.h"
#include "src/text/json.h"
#include "src/wire/host.h"

static const char *const protocol_names[PROTOCOL_NUM] = {
	[PROTOCOL_ANY] = "any",
	[PROTOCOL_TCP] = "tcp",
	[PROTOCOL_UDP] = "udp",
	[PROTOCOL_ICMP] = "icmp",
};

enum policy_protocol policy_protocol_default(enum verdict_kind action)
{
	return action == VERDICT_ALLOW ? PROTOCOL_TCP : PROTOCOL_ANY;
}

const char *policy_protocol_name(enum policy_protocol protocol)
{
	return protocol < PROTOCOL_NUM ? protocol_names[protocol] : "unknown";
}

bool policy_protocol_parse(struct span name, enum policy_protocol *ret)
{
	enum policy_protocol p;

	for (p = PROTOCOL_ANY; p < PROTOCOL_NUM; p++) {
		if (!span_eq(name, span_str(protocol_names[p])))
			continue;
		*ret = p;
		return true;
	}
	return false;
}

const char *verdict_kind_name(enum verdict_kind kind)
{
	return kind == VERDICT_ALLOW ? "allow" : "deny";
}

struct policy_set *policy_set_free(struct policy_set *set)
{
	if (!set)
		return NULL;
	arena_fini(&set->arena);
	free(set);
	return NULL;
}

const struct policy_model *policy_find(const struct policy_set *set,
				       struct span name)
{
	const struct policy_model *m;

	for (m = set->policies; m; m = m->next)
		if (span_eq(m->name, name))
			return m;
	return NULL;
}

/* "team-*" or exact. */
static bool id_matches(struct span pattern, struct span id)
{
	if (pattern.len && pattern.ptr[pattern.len - 1] == '*')
		return span_starts(id, span_of(pattern.ptr, pattern.len - 1));
	return span_eq(pattern, id);
}

static bool has_label(const struct policy_label *wanted,
		      const struct policy_label *labels, unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		if (span_eq(labels[i].key, wanted->key) &&
		    span_eq(labels[i].value, wanted->value))
			return true;
	return false;
}

bool policy_chooses(const struct policy_model *m, struct span id,
		    const struct policy_label *labels, unsigned label_count)
{
	unsigned i;

	for (i = 0; i < m->id_count; i++)
		if (id_matches(m->ids[i], id))
			return true;
	for (i = 0; i < m->label_count; i++)
		if (!has_label(&m->labels[i], labels, label_count))
			return false;
	return m->label_count > 0;
}

const struct policy_model *policy_select(const struct policy_set *set,
					 struct span id,
					 const struct policy_label *labels,
					 unsigned label_count)
{
	const struct policy_model *m;

	for (m = set->policies; m; m = m->next)
		if (policy_chooses(m, id, labels, label_count))
			return m;
	return NULL;
}

bool policy_rule_is_constrained(const struct policy_rule *rule)
{
	return rule->method_count || rule->path_count;
}

/* Is there a host that both name? */
static bool targets_meet(const struct policy_target *a,
			 const struct policy_target *b)
{
	bool wild_a = a->kind == TARGET_WILDCARD;
	bool wild_b = b->kind == TARGET_WILDCARD;

	if (a->kind == TARGET_ADDRESS || b->kind == TARGET_ADDRESS)
		return false;
	if (wild_a == wild_b && span_eq(a->name, b->name))
		return true;
	return (wild_a && host_is_below(b->name, a->name)) ||
	       (wild_b && host_is_below(a->name, b->name));
}

/* Names both sides: the rule by its place, the passthrough entry by text. */
static int passthrough_conflict(const struct policy_model *m,
				const struct policy_rule *rule,
				const struct policy_target *open,
				struct diag *d)
{
	char target[POLICY_TARGET_TEXT_SIZE], closed[POLICY_TARGET_TEXT_SIZE];

	if (!diag_is_set(d))
		(void)span_copy(rule->file, d->file, sizeof(d->file));
	return diag_set(
		d, rule->line, 0,
		"found methods or paths for %s, expected none: policy "
		"%.*s passes %s through unopened",
		policy_target_text(&rule->target, target, sizeof(target)),
		SPAN_FMT(m->name),
		policy_target_text(open, closed, sizeof(closed)));
}

int policy_check_passthrough(const struct policy_model *m,
			     const struct policy_rule *rules,
			     unsigned rule_count, struct diag *d)
{
	const struct policy_target *open;
	unsigned i, k;

	for (i = 0; i < rule_count; i++) {
		if (!policy_rule_is_constrained(&rules[i]))
			continue;
		for (k = 0; k < m->passthrough_count; k++) {
			open = &m->passthrough[k];
			if (targets_meet(&rules[i].target, open))
				return passthrough_conflict(m, &rules[i], open,
							    d);
		}
	}
	return 0;
}

const char *policy_target_text(const struct policy_target *target, char *dst,
			       size_t size)
{
	char *slash;

	switch (target->kind) {
	case TARGET_NAME:
		(void)snprintf(dst, size, "%.*s", SPAN_FMT(target->name));
		return dst;
	case TARGET_WILDCARD:
		(void)snprintf(dst, size, "*.%.*s", SPAN_FMT(target->name));
		return dst;
	case TARGET_ADDRESS:
		cidr_text(&target->cidr, dst, size);
		slash = strchr(dst, '/');
		if (target->cidr.prefix == 128 && slash)
			*slash = '\0';
		return dst;
	}
	return "";
}

/* A line of text that stops growing when it is full. */
struct line {
	char *dst;
	size_t size, len;
	bool cut;
};

static void line_add(struct line *l, const char *before, struct span s)
{
	int len = snprintf(l->dst + l->len, l->size - l->len, "%s%.*s", before,
			   SPAN_FMT(s));

	if (l->cut || len < 0)
		return;
	l->cut = (size_t)len >= l->size - l->len;
	l->len += l->cut ? l->size - l->len - 1 : (size_t)len;
}

static void line_add_ports(struct line *l, const struct policy_rule *rule)
{
	const struct policy_ports *p;
	char text[16];
	unsigned i;

	for (i = 0; i < rule->port_count; i++) {
		p = &rule->ports[i];
		(void)snprintf(text, sizeof(text),
			       p->first == p->last ? "%u" : "%u-%u", p->first,
			       p->last);
		line_add(l, i ? "," : " ports ", span_str(text));
	}
}

static void line_add_list(struct line *l, const struct span *items,
			  unsigned count)
{
	unsigned i;

	for (i = 0; i < count; i++)
		line_add(l, i ? "," : " ", items[i]);
}

static bool says_protocol(const struct policy_rule *rule)
{
	return rule->protocol != policy_protocol_default(rule->action) &&
	       !policy_rule_is_constrained(rule);
}

const char *policy_rule_text(const struct policy_rule *rule, char *dst,
			     size_t size)
{
	char target[POLICY_TARGET_TEXT_SIZE];
	struct line l = { .dst = dst, .size = size };

	policy_target_text(&rule->target, target, sizeof(target));
	line_add(&l, verdict_kind_name(rule->action), SPAN(" "));
	line_add(&l, "", span_str(target));
	if (says_protocol(rule))
		line_add(&l, " ",
			 span_str(policy_protocol_name(rule->protocol)));
	line_add_ports(&l, rule);
	line_add_list(&l, rule->methods, rule->method_count);
	line_add_list(&l, rule->paths, rule->path_count);
	if (l.cut && size > 4)
		memcpy(dst + size - 4, "...", 4);
	return dst;
}

static void emit_spans(struct json_out *o, const char *name,
		       const struct span *items, unsigned count)
{
	unsigned i;

	if (!count)
		return;
	json_open_array(o, name);
	for (i = 0; i < count; i++)
		json_put_text(o, NULL, items[i]);
	json_close(o);
}

static void emit_targets(struct json_out *o, const char *name,
			 const struct policy_target *targets, unsigned count)
{
	char text[POLICY_TARGET_TEXT_SIZE];
	unsigned i;

	if (!count)
		return;
	json_open_array(o, name);
	for (i = 0; i < count; i++)
		json_put_str(
			o, NULL,
			policy_target_text(&targets[i], text, sizeof(text)));
	json_close(o);
}

static void emit_ports(struct json_out *o, const struct policy_rule *rule)
{
	const struct policy_ports *p;
	char text[16];
	unsigned i;

	if (!rule->port_count)
		return;
	json_open_array(o, "ports");
	for (i = 0; i < rule->port_count; i++) {
		p = &rule->ports[i];
		if (p->first == p->last) {
			json_put_u64(o, NULL, p->first);
			continue;
		}
		(void)snprintf(text, sizeof(text), "%u-%u", p->first, p->last);
		json_put_str(o, NULL, text);
	}
	json_close(o);
}

static void emit_rule(struct json_out *o, const struct policy_rule *rule)
{
	char target[POLICY_TARGET_TEXT_SIZE];

	json_open_object(o, NULL);
	json_put_str(o, "action", verdict_kind_name(rule->action));
	json_put_str(o, "target",
		     policy_target_text(&rule->target, target, sizeof(target)));
	emit_ports(o, rule);
	if (says_protocol(rule))
		json_put_str(o, "protocol",
			     policy_protocol_name(rule->protocol));
	emit_spans(o, "methods", rule->methods, rule->method_count);
	emit_spans(o, "paths", rule->paths, rule->path_count);
	json_close(o);
}

static void emit_sandboxes(struct json_out *o, const struct policy_model *m)
{
	unsigned i;

	if (!m->id_count && !m->label_count)
		return;
	json_open_object(o, "sandboxes");
	emit_spans(o, "ids", m->ids, m->id_count);
	if (m->label_count) {
		json_open_object(o, "labels");
		for (i = 0; i < m->label_count; i++) {
			json_put_name(o, m->labels[i].key);
			json_put_text(o, NULL, m->labels[i].value);
		}
		json_close(o);
	}
	json_close(o);
}

int policy_emit(const struct policy_model *m, struct buf *out)
{
	struct json_out o;
	unsigned i;

	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_text(&o, "name", m->name);
	emit_sandboxes(&o, m);
	json_put_str(&o, "defaultAction", verdict_kind_name(m->default_action));
	json_open_array(&o, "egress");
	for (i = 0; i < m->rule_count; i++)
		emit_rule(&o, &m->rules[i]);
	json_close(&o);
	emit_targets(&o, "inspect", m->inspect, m->inspect_count);
	emit_targets(&o, "passthrough", m->passthrough, m->passthrough_count);
	policy_limits_emit(&o, &m->limits);
	json_close(&o);
	return json_done(&o);
}
