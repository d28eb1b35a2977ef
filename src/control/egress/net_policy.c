/* SPDX-License-Identifier: Apache-2.0 */
/* net_policy.c - read, merged, written
 *
 * Targets are compared lower-cased, as whole texts: "*.a.com" and "a.com" are
 * two targets. Ports are compared as sets.
 *
 * Our policies have no target for every address, so a rule without a target is
 * compiled as two, one for each family of addresses.
 */

#include "src/control/egress/net_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/load.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/map.h"
#include "src/text/json.h"

enum { ARENA_MAX = 4 * 1024 * 1024, OWN_MAX = 8 * 1024 * 1024 };

static struct net_policy *policy_new(unsigned rules)
{
	struct net_policy *p = must_alloc(sizeof(*p));

	arena_init(&p->arena, ARENA_MAX);
	p->rules = must_alloc(((size_t)rules + 1) * sizeof(*p->rules));
	return p;
}

struct net_policy *net_policy_free(struct net_policy *p)
{
	if (!p)
		return NULL;
	arena_fini(&p->arena);
	free(p->rules);
	free(p);
	return NULL;
}

static int finish(struct net_policy *p, int r, struct net_policy **ret,
		  struct diag *d)
{
	if (!r && arena_overflowed(&p->arena))
		r = diag_set(d, 0, 0, "targets of more than %d bytes together",
			     ARENA_MAX);
	if (r) {
		net_policy_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

/* -- reading -------------------------------------------------------------- */

/* member: "egress action" or "defaultAction"; empty means deny. */
static int action_parse(const struct json *j, const char *member, bool *allow,
			struct diag *d)
{
	struct span text = span_trim(json_text(j));

	*allow = false;
	if (json_kind(j) != JSON_KIND_NONE && json_kind(j) != JSON_KIND_NULL &&
	    json_kind(j) != JSON_KIND_STRING)
		return diag_set(d, 0, 0,
				"%s: expected \"allow\" or \"deny\", found %s",
				member, json_kind_name(json_kind(j)));
	if (!text.len || span_eq_nocase(text, SPAN("deny")))
		return 0;
	*allow = span_eq_nocase(text, SPAN("allow"));
	if (*allow)
		return 0;
	return diag_set(d, 0, 0,
			"%s: unsupported action \"%.*s\", expected "
			"\"allow\" or \"deny\"",
			member, SPAN_FMT(text));
}

static int port_parse(const struct json *j, size_t at, uint16_t *ret,
		      struct diag *d)
{
	uint64_t port;

	if (!json_u64(j, &port) || !port || port > UINT16_MAX)
		return diag_set(d, 0, 0,
				"egress[%zu].ports: expected numbers from 1 to "
				"65535",
				at);
	*ret = (uint16_t)port;
	return 0;
}

/* An empty list is refused: an allowing rule would open every port where its
 * writer meant none. */
static int ports_parse(struct net_policy *p, const struct json *list, size_t at,
		       struct net_rule *ret, struct diag *d)
{
	size_t count = json_count(list), i;
	uint16_t *ports;
	int r = 0;

	if (json_kind(list) <= JSON_KIND_NULL)
		return 0;
	if (json_kind(list) != JSON_KIND_ARRAY || !count ||
	    count > NET_PORTS_MAX)
		return diag_set(d, 0, 0,
				"egress[%zu].ports: expected an array of 1 to "
				"%d ports, or none",
				at, NET_PORTS_MAX);
	ports = arena_alloc(&p->arena, count * sizeof(*ports));
	for (i = 0; ports && !r && i < count; i++)
		r = port_parse(json_item(list, i), at, &ports[i], d);
	ret->ports = ports;
	ret->port_count = ports ? (unsigned)count : 0;
	return r;
}

static int rule_parse(struct net_policy *p, const struct json *j, size_t at,
		      struct net_rule *ret, struct diag *d)
{
	struct span target = span_trim(json_text(json_find(j, "target")));
	char member[48];
	int r;

	(void)snprintf(member, sizeof(member), "egress[%zu].action", at);
	if (json_kind(j) != JSON_KIND_OBJECT)
		return diag_set(d, 0, 0,
				"egress[%zu]: expected an object, "
				"found %s",
				at, json_kind_name(json_kind(j)));
	r = action_parse(json_find(j, "action"), member, &ret->allow, d);
	if (r)
		return r;
	r = ports_parse(p, json_find(j, "ports"), at, ret, d);
	if (r)
		return r;
	if (!target.len && !ret->port_count)
		return diag_set(d, 0, 0,
				"egress[%zu]: egress target cannot be "
				"empty of a rule without ports",
				at);
	ret->target = target.len ? arena_dup(&p->arena, target) : SPAN_NONE;
	return 0;
}

static int rules_parse(struct net_policy *p, const struct json *list,
		       struct diag *d)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < json_count(list); i++) {
		r = rule_parse(p, json_item(list, i), i, &p->rules[p->count],
			       d);
		p->count++;
	}
	return r;
}

int net_policy_parse(const struct json *j, struct net_policy **ret,
		     unsigned *total, struct diag *d)
{
	const struct json *list = json_find(j, "egress");
	struct net_policy *p;
	int r;

	if (json_kind(j) > JSON_KIND_NULL && json_kind(j) != JSON_KIND_OBJECT)
		return diag_set(d, 0, 0, "expected an object, found %s",
				json_kind_name(json_kind(j)));
	if (json_kind(list) > JSON_KIND_NULL &&
	    json_kind(list) != JSON_KIND_ARRAY)
		return diag_set(d, 0, 0, "egress: expected an array, found %s",
				json_kind_name(json_kind(list)));
	*total = (unsigned)MIN(json_count(list), (size_t)UINT32_MAX);
	if (*total > NET_RULES_MAX)
		return NET_POLICY_E_MANY;
	p = policy_new(*total);
	r = action_parse(json_find(j, "defaultAction"), "defaultAction",
			 &p->default_allow, d);
	if (!r)
		r = rules_parse(p, list, d);
	return finish(p, r, ret, d);
}

/* -- merging -------------------------------------------------------------- */

/* A set of them, lower-cased, with or without ports. */
struct targets {
	struct map map;
	struct arena scratch;
};

static void targets_init(struct targets *t)
{
	map_init(&t->map);
	arena_init(&t->scratch, ARENA_MAX);
}

/* What did not fit was not looked up: then nothing of it counts. */
static int targets_fini(struct targets *t, struct diag *d)
{
	bool overflowed = arena_overflowed(&t->scratch);

	map_fini(&t->map);
	arena_fini(&t->scratch);
	return !overflowed ? 0
			   : diag_set(d, 0, 0,
				      "targets of more than %d bytes together",
				      ARENA_MAX);
}

static bool targets_have(struct targets *t, struct span target)
{
	return target.len &&
	       map_find(&t->map, arena_dup_lower(&t->scratch, target));
}

static void targets_add(struct targets *t, struct span target)
{
	if (target.len)
		(void)map_set(&t->map, arena_dup_lower(&t->scratch, target), t);
}

static int by_number(const void *a, const void *b)
{
	const uint16_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* What two equal rules share: the target, a NUL, the ports in ascending order,
 * each once. */
static struct span rule_key(struct targets *t, const struct net_rule *rule)
{
	uint16_t ports[NET_PORTS_MAX] = { 0 };
	size_t len = rule->target.len, i;
	unsigned count = 0;
	char *key;

	if (rule->port_count)
		memcpy(ports, rule->ports, rule->port_count * sizeof(*ports));
	qsort(ports, rule->port_count, sizeof(*ports), by_number);
	for (i = 0; i < rule->port_count; i++)
		if (!count || ports[count - 1] != ports[i])
			ports[count++] = ports[i];
	key = arena_alloc(&t->scratch, len + 1 + count * sizeof(*ports));
	if (!key)
		return SPAN_NONE;
	for (i = 0; i < len; i++)
		key[i] = span_lower_char(rule->target.ptr[i]);
	memcpy(key + len + 1, ports, count * sizeof(*ports));
	return span_of(key, len + 1 + count * sizeof(*ports));
}

static bool rules_have(struct targets *t, const struct net_rule *rule)
{
	return map_find(&t->map, rule_key(t, rule));
}

/* False: it was there. */
static bool rules_add(struct targets *t, const struct net_rule *rule)
{
	return !map_set(&t->map, rule_key(t, rule), t);
}

static void add(struct net_policy *p, const struct net_rule *rule)
{
	size_t size = rule->port_count * sizeof(*rule->ports);
	struct net_rule *to = &p->rules[p->count++];
	uint16_t *ports = NULL;

	if (size)
		ports = arena_alloc(&p->arena, size);
	if (ports)
		memcpy(ports, rule->ports, size);
	*to = (struct net_rule){
		.allow = rule->allow,
		.target = rule->target.len ? arena_dup(&p->arena, rule->target)
					   : SPAN_NONE,
		.ports = ports,
		.port_count = ports ? rule->port_count : 0,
	};
}

/* The first of equal rules in front, then what they do not replace. */
static int merge(struct net_policy *p, const struct net_policy *front,
		 const struct net_policy *base, struct diag *d)
{
	struct targets named;
	unsigned i;

	targets_init(&named);
	for (i = 0; i < front->count; i++)
		if (rules_add(&named, &front->rules[i]))
			add(p, &front->rules[i]);
	for (i = 0; i < base->count; i++)
		if (!rules_have(&named, &base->rules[i]))
			add(p, &base->rules[i]);
	p->default_allow = base->default_allow;
	return targets_fini(&named, d);
}

int net_policy_patch(const struct net_policy *base, const struct json *rules,
		     struct net_policy **ret, unsigned *total, struct diag *d)
{
	struct net_policy *front, *p;
	int r;

	if (json_kind(rules) != JSON_KIND_ARRAY)
		return diag_set(d, 0, 0, "expected an array of rules, found %s",
				json_kind_name(json_kind(rules)));
	*total = (unsigned)MIN(json_count(rules), (size_t)UINT32_MAX);
	if (!*total)
		return diag_set(d, 0, 0, "empty array");
	if (*total > NET_RULES_MAX)
		return NET_POLICY_E_MANY;
	front = policy_new(*total);
	r = rules_parse(front, rules, d);
	if (r) {
		net_policy_free(front);
		return r;
	}
	p = policy_new(front->count + base->count);
	r = merge(p, front, base, d);
	net_policy_free(front);
	*total = p->count;
	if (!r && p->count > NET_RULES_MAX) {
		net_policy_free(p);
		return NET_POLICY_E_MANY;
	}
	return finish(p, r, ret, d);
}

int net_policy_remove(const struct net_policy *base, const struct json *targets,
		      struct net_policy **ret, unsigned *removed,
		      struct diag *d)
{
	struct targets named;
	struct net_policy *p;
	unsigned i;

	if (json_kind(targets) != JSON_KIND_ARRAY)
		return diag_set(d, 0, 0,
				"expected an array of targets, found %s",
				json_kind_name(json_kind(targets)));
	if (!json_count(targets))
		return diag_set(d, 0, 0, "empty array");
	if (json_count(targets) > NET_RULES_MAX)
		return diag_set(d, 0, 0,
				"found %zu targets, expected at most %d",
				json_count(targets), NET_RULES_MAX);
	json_for_each(t, targets)
	{
		if (json_kind(t) != JSON_KIND_STRING)
			return diag_set(d, 0, 0,
					"expected targets as strings, found %s",
					json_kind_name(json_kind(t)));
	}
	p = policy_new(base->count);
	p->default_allow = base->default_allow;
	targets_init(&named);
	json_for_each(t, targets)
	{
		targets_add(&named, span_trim(json_text(t)));
	}
	for (i = 0; i < base->count; i++)
		if (!targets_have(&named, base->rules[i].target))
			add(p, &base->rules[i]);
	*removed = base->count - p->count;
	return finish(p, targets_fini(&named, d), ret, d);
}

/* -- writing -------------------------------------------------------------- */

static const char *action_name(bool allow)
{
	return allow ? "allow" : "deny";
}

const char *net_policy_mode(const struct net_policy *p)
{
	if (p->count)
		return "enforcing";
	return p->default_allow ? "allow_all" : "deny_all";
}

static void put_rule(struct json_out *o, const struct net_rule *rule,
		     struct span target)
{
	unsigned i;

	json_open_object(o, NULL);
	json_put_str(o, "action", action_name(rule->allow));
	if (target.len)
		json_put_text(o, "target", target);
	if (rule->port_count)
		json_open_array(o, "ports");
	for (i = 0; i < rule->port_count; i++)
		json_put_u64(o, NULL, rule->ports[i]);
	if (rule->port_count)
		json_close(o);
	json_close(o);
}

void net_policy_emit(struct json_out *o, const char *name,
		     const struct net_policy *p)
{
	unsigned i;

	json_open_object(o, name);
	json_open_array(o, "egress");
	for (i = 0; i < p->count; i++)
		put_rule(o, &p->rules[i], p->rules[i].target);
	json_close(o);
	json_put_str(o, "defaultAction", action_name(p->default_allow));
	json_close(o);
}

static void put_own_rule(struct json_out *o, const struct net_rule *rule)
{
	if (rule->target.len) {
		put_rule(o, rule, rule->target);
		return;
	}
	put_rule(o, rule, SPAN("0.0.0.0/0"));
	put_rule(o, rule, SPAN("::/0"));
}

void net_policy_emit_own(struct json_out *o, const struct net_policy *p,
			 struct span id)
{
	char name[64];
	unsigned i;

	(void)snprintf(name, sizeof(name), "sandbox.%.*s", SPAN_FMT(id));
	json_open_object(o, NULL);
	json_put_str(o, "name", name);
	json_open_object(o, "sandboxes");
	json_open_array(o, "ids");
	json_put_text(o, NULL, id);
	json_close(o);
	json_close(o);
	json_put_str(o, "defaultAction", action_name(p->default_allow));
	json_open_array(o, "egress");
	for (i = 0; i < p->count; i++)
		put_own_rule(o, &p->rules[i]);
	json_close(o);
	json_close(o);
}

int net_policy_check(const struct net_policy *p, struct diag *d)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(OWN_MAX);
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	struct json_out o;

	json_start(&o, &text);
	net_policy_emit_own(&o, p, SPAN("new"));
	if (json_done(&o))
		return diag_set(d, 0, 0, "a policy of more than %d bytes",
				OWN_MAX);
	return policy_load_one(buf_peek(&text), "networkPolicy", SPAN_NONE,
			       &set, d);
}
