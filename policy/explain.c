/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - where a verdict came from, as fields and as a sentence */

#include "policy/explain.h"

#include <stdio.h>

#include "policy/compile.h"
#include "policy/foreign.h"
#include "policy/rules.h"
#include "src/base/err.h"

static const char *const source_names[VERDICT_SOURCE_NUM] = {
	[VERDICT_NOTHING] = "no policy",
	[VERDICT_FOREIGN_RESOLVER] = "foreign resolver",
	[VERDICT_OVERLAY_DENY] = "operator deny",
	[VERDICT_OVERLAY_ALLOW] = "operator allow",
	[VERDICT_ADDRESS_DENY] = "address rule",
	[VERDICT_RULE] = "rule",
	[VERDICT_DEFAULT] = "default action",
};

const char *verdict_source_name(enum verdict_source source)
{
	return source < VERDICT_SOURCE_NUM ? source_names[source] : "unknown";
}

/* Index in the snapshot's rules: allow overlays stand behind the denying. */
static uint32_t note_index(const struct snapshot *s, const struct verdict *v)
{
	return v->rule +
	       (v->source == VERDICT_OVERLAY_ALLOW ? s->head->deny_count : 0);
}

/* Each port, method and path takes two bytes of the text at least. */
enum { LISTED_MAX = POLICY_RULE_TEXT_SIZE / 2 };

static void origin_of_rule(const struct snapshot *s, const struct verdict *v,
			   struct verdict_origin *ret)
{
	struct policy_ports ports[LISTED_MAX];
	struct span strings[LISTED_MAX];
	struct policy_rule_room room = { .ports = ports,
					 .strings = strings,
					 .port_room = LISTED_MAX,
					 .string_room = LISTED_MAX };
	struct policy_rule rule;
	uint32_t index;

	if (!s)
		return;
	index = note_index(s, v);
	if (index >= snapshot_rule_count(s))
		return;
	policy_rule_read(s, index, &room, &rule);
	ret->policy = s->name;
	ret->rule =
		span_str(policy_rule_text(&rule, ret->text, sizeof(ret->text)));
	ret->file = rule.file;
	ret->line = rule.line;
}

void policy_origin(const struct snapshot *overlay,
		   const struct snapshot *policy, const struct verdict *v,
		   struct verdict_origin *ret)
{
	ret->policy = ret->rule = ret->file = SPAN("");
	ret->line = 0;
	switch (v->source) {
	case VERDICT_OVERLAY_DENY:
	case VERDICT_OVERLAY_ALLOW:
		origin_of_rule(overlay, v, ret);
		return;
	case VERDICT_ADDRESS_DENY:
	case VERDICT_RULE:
		origin_of_rule(policy, v, ret);
		return;
	case VERDICT_DEFAULT:
		if (!policy)
			return;
		ret->policy = policy->name;
		ret->file = snap_text(policy->head, policy->head->file);
		ret->line = policy->head->line;
		return;
	case VERDICT_FOREIGN_RESOLVER:
	case VERDICT_NOTHING:
	case VERDICT_SOURCE_NUM:
		return;
	}
}

const char *policy_sentence(const struct snapshot *overlay,
			    const struct snapshot *policy,
			    const struct verdict *v, char *dst, size_t size)
{
	const char *did = v->kind == VERDICT_ALLOW ? "allowed" : "denied";
	struct verdict_origin o;

	policy_origin(overlay, policy, v, &o);
	switch (v->source) {
	case VERDICT_OVERLAY_DENY:
	case VERDICT_OVERLAY_ALLOW:
		(void)snprintf(dst, size,
			       "%s by operator %s rule %u "
			       "(%.*s, %.*s:%u)",
			       did, verdict_kind_name(v->kind), v->rule + 1,
			       SPAN_FMT(o.rule), SPAN_FMT(o.file), o.line);
		return dst;
	case VERDICT_ADDRESS_DENY:
	case VERDICT_RULE:
		(void)snprintf(dst, size,
			       "%s by %s %u of policy %.*s "
			       "(%.*s, %.*s:%u)",
			       did, verdict_source_name(v->source), v->rule + 1,
			       SPAN_FMT(o.policy), SPAN_FMT(o.rule),
			       SPAN_FMT(o.file), o.line);
		return dst;
	case VERDICT_DEFAULT:
		(void)snprintf(dst, size,
			       "%s by the default action of policy "
			       "%.*s (%.*s:%u)",
			       did, SPAN_FMT(o.policy), SPAN_FMT(o.file),
			       o.line);
		return dst;
	case VERDICT_FOREIGN_RESOLVER:
		(void)snprintf(dst, size,
			       "denied as a resolver of others: no rule allows "
			       "exactly this host or address");
		return dst;
	case VERDICT_NOTHING:
	case VERDICT_SOURCE_NUM:
		break;
	}
	(void)snprintf(dst, size, "denied because no policy applies");
	return dst;
}

static int pair_open(const struct buf *bytes, int r, uint64_t generation,
		     struct snapshot *ret)
{
	if (r)
		return r;
	/* we made them, so they are sound */
	must(!snapshot_open(buf_peek(bytes).ptr, buf_len(bytes), ret));
	ret->generation = generation;
	return 0;
}

int policy_pair_init(struct policy_pair *ret, const struct policy_set *set,
		     const struct policy_model *m, uint64_t generation)
{
	int r;

	*ret = (struct policy_pair){ .has_policy = m != NULL };
	buf_init(&ret->overlay_bytes, SNAPSHOT_MAX_BYTES);
	buf_init(&ret->policy_bytes, SNAPSHOT_MAX_BYTES);
	r = policy_compile_overlay(set, &ret->overlay_bytes);
	r = pair_open(&ret->overlay_bytes, r, generation, &ret->overlay);
	if (r || !m)
		return r;
	r = policy_compile(m, &ret->policy_bytes);
	r = pair_open(&ret->policy_bytes, r, generation, &ret->policy);
	ret->policy.name = m->name;
	return r;
}

void policy_pair_fini(struct policy_pair *pair)
{
	buf_fini(&pair->overlay_bytes);
	buf_fini(&pair->policy_bytes);
}

void policy_pair_match(const struct policy_pair *pair,
		       const struct policy_query *q, struct verdict *ret)
{
	foreign_match(&pair->overlay, pair->has_policy ? &pair->policy : NULL,
		      q, pair->foreign_allowed, ret);
}

const char *policy_pair_sentence(const struct policy_pair *pair,
				 const struct verdict *v, char *dst,
				 size_t size)
{
	return policy_sentence(&pair->overlay,
			       pair->has_policy ? &pair->policy : NULL, v, dst,
			       size);
}

const char *policy_verdict_text(const struct verdict *v, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%s%s%s%s", verdict_kind_name(v->kind),
		       v->inspect ? " inspect" : "",
		       v->passthrough ? " passthrough" : "",
		       v->by_address ? " by-address" : "");
	return dst;
}
