/* SPDX-License-Identifier: Apache-2.0 */
/* model.c - choose, check and print policies as they were written */

#include "policy/model.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "policy/rules.h"
#include "src/base/buf.h"
#include "src/base/err.h"
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

/* -- without rules -------------------------------------------------------- */

/* Counts first, then copies: at NULL is counting. */
struct block {
	char *at;
	size_t used;
};

static void *block_put(struct block *b, const void *bytes, size_t len)
{
	void *dst = b->at ? b->at + b->used : NULL;

	b->used += (len + 7) & ~(size_t)7;
	return dst && len ? memcpy(dst, bytes, len) : dst;
}

/* With a NUL behind it, as an arena has. */
static struct span block_put_span(struct block *b, struct span s)
{
	char *dst = block_put(b, s.ptr, s.len);

	b->used += s.len % 8 ? 0 : 8;
	if (dst)
		dst[s.len] = '\0';
	return span_of(dst, s.len);
}

static struct span *block_put_ids(struct block *b, const struct policy_model *m)
{
	struct span *ids = block_put(b, m->ids, m->id_count * sizeof(*ids)), id;
	unsigned i;

	for (i = 0; i < m->id_count; i++) {
		id = block_put_span(b, m->ids[i]);
		if (ids)
			ids[i] = id;
	}
	return ids;
}

static struct policy_label *block_put_labels(struct block *b,
					     const struct policy_model *m)
{
	struct policy_label *labels =
		block_put(b, m->labels, m->label_count * sizeof(*labels));
	struct span key, value;
	unsigned i;

	for (i = 0; i < m->label_count; i++) {
		key = block_put_span(b, m->labels[i].key);
		value = block_put_span(b, m->labels[i].value);
		if (labels)
			labels[i] = (struct policy_label){ key, value };
	}
	return labels;
}

static struct policy_target *block_put_targets(struct block *b,
					       const struct policy_target *from,
					       unsigned count)
{
	struct policy_target *targets =
		block_put(b, from, count * sizeof(*targets));
	struct span name;
	unsigned i;

	for (i = 0; i < count; i++) {
		name = block_put_span(b, from[i].name);
		if (targets)
			targets[i].name = name;
	}
	return targets;
}

static struct policy_model *block_put_model(struct block *b,
					    const struct policy_model *m)
{
	struct policy_model *copy = block_put(b, m, sizeof(*m));
	struct policy_model parts = *m;

	parts.next = NULL;
	parts.rules = NULL;
	parts.rule_count = 0;
	parts.name = block_put_span(b, m->name);
	parts.file = block_put_span(b, m->file);
	parts.ids = block_put_ids(b, m);
	parts.labels = block_put_labels(b, m);
	parts.inspect = block_put_targets(b, m->inspect, m->inspect_count);
	parts.passthrough =
		block_put_targets(b, m->passthrough, m->passthrough_count);
	if (copy)
		*copy = parts;
	return copy;
}

struct policy_model *policy_model_brief(const struct policy_model *m)
{
	struct block b = { 0 };

	(void)block_put_model(&b, m);
	b.at = must_alloc(b.used);
	b.used = 0;
	return block_put_model(&b, m);
}

/* -- choosing ------------------------------------------------------------- */

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

/* A line of text that stops growing when it is full. Written for each audit
 * record, so not by printf. */
struct line {
	char *dst;
	size_t size, len; /* size: without the NUL */
	bool cut;
};

static void line_put(struct line *l, struct span s)
{
	size_t len = MIN(s.len, l->size - l->len);

	if (l->cut)
		return;
	if (len)
		memcpy(l->dst + l->len, s.ptr, len);
	l->len += len;
	l->cut = len < s.len;
}

static void line_put_port(struct line *l, uint16_t port)
{
	char text[5], *at = text + sizeof(text);
	unsigned rest = port;

	do {
		*--at = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	line_put(l, span_of(at, (size_t)(text + sizeof(text) - at)));
}

static void line_put_target(struct line *l, const struct policy_target *target)
{
	char text[POLICY_TARGET_TEXT_SIZE];

	if (target->kind == TARGET_ADDRESS) {
		line_put(l, span_str(policy_target_text(target, text,
							sizeof(text))));
		return;
	}
	if (target->kind == TARGET_WILDCARD)
		line_put(l, SPAN("*."));
	line_put(l, target->name);
}

static void line_put_ports(struct line *l, const struct policy_rule *rule)
{
	const struct policy_ports *p;
	unsigned i;

	for (i = 0; i < rule->port_count && !l->cut; i++) {
		p = &rule->ports[i];
		line_put(l, i ? SPAN(",") : SPAN(" ports "));
		line_put_port(l, p->first);
		if (p->first == p->last)
			continue;
		line_put(l, SPAN("-"));
		line_put_port(l, p->last);
	}
}

static void line_put_list(struct line *l, const struct span *items,
			  unsigned count)
{
	unsigned i;

	for (i = 0; i < count && !l->cut; i++) {
		line_put(l, i ? SPAN(",") : SPAN(" "));
		line_put(l, items[i]);
	}
}

static bool says_protocol(const struct policy_rule *rule)
{
	return rule->protocol != policy_protocol_default(rule->action) &&
	       !policy_rule_is_constrained(rule);
}

const char *policy_rule_text(const struct policy_rule *rule, char *dst,
			     size_t size)
{
	struct line l = { .dst = dst, .size = size - 1 };

	line_put(&l, span_str(verdict_kind_name(rule->action)));
	line_put(&l, SPAN(" "));
	line_put_target(&l, &rule->target);
	if (says_protocol(rule)) {
		line_put(&l, SPAN(" "));
		line_put(&l, span_str(policy_protocol_name(rule->protocol)));
	}
	line_put_ports(&l, rule);
	line_put_list(&l, rule->methods, rule->method_count);
	line_put_list(&l, rule->paths, rule->path_count);
	dst[l.len] = '\0';
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

static void emit_compiled(struct json_out *o, const struct snapshot *s)
{
	struct policy_rule_room room = {
		.ports = must_alloc(POLICY_LIST_MAX * sizeof(*room.ports)),
		.strings =
			must_alloc(2 * POLICY_LIST_MAX * sizeof(*room.strings)),
		.port_room = POLICY_LIST_MAX,
		.string_room = 2 * POLICY_LIST_MAX,
	};
	struct policy_rule rule;
	uint32_t i;

	for (i = 0; i < snapshot_rule_count(s); i++) {
		policy_rule_read(s, i, &room, &rule);
		emit_rule(o, &rule);
	}
	free(room.ports);
	free(room.strings);
}

static int emit(const struct policy_model *m, const struct snapshot *compiled,
		struct buf *out)
{
	struct json_out o;
	unsigned i;

	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_text(&o, "name", m->name);
	emit_sandboxes(&o, m);
	json_put_str(&o, "defaultAction", verdict_kind_name(m->default_action));
	json_open_array(&o, "egress");
	if (compiled)
		emit_compiled(&o, compiled);
	for (i = 0; !compiled && i < m->rule_count; i++)
		emit_rule(&o, &m->rules[i]);
	json_close(&o);
	emit_targets(&o, "inspect", m->inspect, m->inspect_count);
	emit_targets(&o, "passthrough", m->passthrough, m->passthrough_count);
	policy_limits_emit(&o, &m->limits);
	json_close(&o);
	return json_done(&o);
}

int policy_emit(const struct policy_model *m, struct buf *out)
{
	return emit(m, NULL, out);
}

int policy_emit_compiled(const struct policy_model *m, const struct snapshot *s,
			 struct buf *out)
{
	return emit(m, s, out);
}
