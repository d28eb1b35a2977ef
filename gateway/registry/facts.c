/* SPDX-License-Identifier: Apache-2.0 */
/* facts.c - one worker's copy of what control said */

#include "gateway/registry/facts.h"

#include <stdatomic.h>
#include <stdio.h>

#include "gateway/audit/bounded.h"
#include "gateway/dns/names.h"
#include "gateway/registry/bindings.h"
#include "gateway/registry/budget.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/pacing.h"
#include "src/base/err.h"
#include "src/io/pace.h"

void facts_init(struct facts *f, struct quotas *quotas)
{
	*f = (struct facts){ .version = 1, .quotas = quotas };
	map_init(&f->by_addr);
	map_init(&f->by_id);
	map_init(&f->by_device);
	map_init(&f->policies);
	map_init(&f->bindings);
	map_init(&f->stale_policies);
	map_init(&f->stale_bindings);
}

void facts_fini(struct facts *f)
{
	size_t cursor = 0;
	void *item;

	while ((item = map_next(&f->by_id, &cursor, NULL)))
		(void)sandbox_unref(item);
	for (cursor = 0; (item = map_next(&f->policies, &cursor, NULL));)
		(void)policy_unref(item);
	for (cursor = 0; (item = map_next(&f->bindings, &cursor, NULL));)
		(void)bindings_unref(item);
	map_fini(&f->by_addr);
	map_fini(&f->by_id);
	map_fini(&f->by_device);
	map_fini(&f->policies);
	map_fini(&f->bindings);
	map_fini(&f->stale_policies);
	map_fini(&f->stale_bindings);
	f->overlay = policy_unref(f->overlay);
	f->names = names_unref(f->names);
	f->own = own_unref(f->own);
}

static struct span addr_key(const uint8_t ip[16])
{
	return span_of(ip, 16);
}

struct sandbox *facts_find_sandbox(struct facts *f, const struct addr *source,
				   const char *iface)
{
	struct sandbox *s = map_find(&f->by_addr, addr_key(source->ip));

	if (s && s->iface[0] && strcmp(s->iface, iface) != 0)
		return NULL; /* the right address from the wrong wire */
	return s;
}

/* "" for a sandbox without an interface. */
static const char *device_of(const struct sandbox *s)
{
	return s->port[0] ? s->port : s->iface;
}

struct sandbox *facts_find_device(struct facts *f, const struct addr *source,
				  const char *device, bool is_locked)
{
	struct sandbox *s = map_find(&f->by_addr, addr_key(source->ip));

	if (s && (!strcmp(device_of(s), device) ||
		  (is_locked && !strcmp(s->iface, device))))
		return s;
	return map_find(&f->by_device, span_str(device));
}

struct sandbox *sandbox_ref(struct sandbox *s)
{
	s->refs++;
	return s;
}

struct sandbox *sandbox_unref(struct sandbox *s)
{
	if (!s || --s->refs)
		return NULL;
	s->refusals = audit_bound_free(s->refusals);
	s->pace_out = pace_unref(s->pace_out);
	s->pace_in = pace_unref(s->pace_in);
	s->quota = quota_unref(s->quota);
	free(s->id);
	free(s);
	return NULL;
}

static void device_enter(struct facts *f, struct sandbox *s)
{
	if (device_of(s)[0])
		(void)map_set(&f->by_device, span_str(device_of(s)), s);
}

/* Another one may be there, too. */
static void device_leave(struct facts *f, const struct sandbox *s)
{
	struct span device = span_str(device_of(s));
	struct sandbox *other;
	size_t cursor = 0;

	if (map_find(&f->by_device, device) != s)
		return;
	(void)map_take(&f->by_device, device);
	while ((other = map_next(&f->by_id, &cursor, NULL)))
		if (other != s && !strcmp(device_of(other), device_of(s)))
			device_enter(f, other);
}

static void facts_unlink(struct facts *f, struct sandbox *s)
{
	unsigned i;

	for (i = 0; i < s->addr_count; i++)
		if (map_find(&f->by_addr, addr_key(s->addrs[i])) == s)
			(void)map_take(&f->by_addr, addr_key(s->addrs[i]));
	(void)map_take(&f->by_id, span_str(s->id));
	device_leave(f, s);
}

void facts_drop_sandbox(struct facts *f, struct span id)
{
	struct sandbox *s = map_find(&f->by_id, id);

	if (!s)
		return;
	facts_unlink(f, s);
	s->gone = true;
	/* each worker does: only the last can know that none adds any more */
	if (f->learned)
		learned_forget(f->learned, id);
	if (f->budget)
		budget_forget(f->budget, id);
	(void)sandbox_unref(s);
	f->version++;
}

/* -- limits --------------------------------------------------------------- */

static uint64_t limit_of(const struct facts *f,
			 const struct policy_limits *said,
			 enum policy_limit limit)
{
	if (said && said->of[limit] != LIMIT_UNSAID)
		return said->of[limit];
	return f->limits.of[limit];
}

/* Every worker says the same of the shared quota, and the last is right. */
static void sandbox_limit(const struct facts *f, struct sandbox *s)
{
	static const enum policy_limit limits[QUOTA_NUM] = {
		[QUOTA_CONNECTIONS] = LIMIT_CONNECTIONS,
		[QUOTA_CONNECTS] = LIMIT_CONNECTS,
		[QUOTA_BYTES_OUT] = LIMIT_BYTES,
		[QUOTA_BYTES_IN] = LIMIT_BYTES,
		[QUOTA_DNS] = LIMIT_DNS,
		[QUOTA_MINTS] = LIMIT_MINTS,
	};
	const struct snapshot *policy = facts_policy(f, s);
	const struct policy_limits *said;
	unsigned i;

	said = policy ? snapshot_limits(policy) : NULL;
	for (i = 0; i < QUOTA_NUM; i++)
		quota_set_limit(s->quota, (enum quota_kind)i,
				limit_of(f, said, limits[i]));
	if (!s->pace_out)
		return;
	pace_limit(s->pace_out, quota_limit(s->quota, QUOTA_BYTES_OUT) != 0);
	pace_limit(s->pace_in, quota_limit(s->quota, QUOTA_BYTES_IN) != 0);
}

void facts_settle(struct facts *f)
{
	struct sandbox *s;
	size_t cursor = 0;

	if (!f->limits_stale)
		return;
	f->limits_stale = false;
	while ((s = map_next(&f->by_id, &cursor, NULL)))
		sandbox_limit(f, s);
}

/* What was used stays used, though the sandbox is another one now. */
static void sandbox_inherit(const struct facts *f, struct sandbox *s,
			    const struct sandbox *former)
{
	s->quota = quotas_at(f->quotas, span_str(s->id));
	if (former) {
		s->pace_out = pace_ref(former->pace_out);
		s->pace_in = pace_ref(former->pace_in);
	} else if (f->loop) {
		s->pace_out = pacing_new(f->loop, s->quota, QUOTA_BYTES_OUT);
		s->pace_in = pacing_new(f->loop, s->quota, QUOTA_BYTES_IN);
	}
}

/* -- changes -------------------------------------------------------------- */

/* Same identity, so live sessions keep their object; only policy moved. */
static bool sandbox_is_same(const struct sandbox *s,
			    const struct msg_sandbox *msg)
{
	return strcmp(s->iface, msg->iface) == 0 &&
	       strcmp(s->port, msg->port) == 0 &&
	       s->addr_count == msg->addr_count &&
	       memcmp(s->addrs, msg->addrs,
		      sizeof(*s->addrs) * s->addr_count) == 0;
}

void facts_put_sandbox(struct facts *f, const struct msg_sandbox *msg)
{
	struct sandbox *s = map_find(&f->by_id, span_str(msg->id)), *former;
	unsigned i;

	f->version++;
	if (s && sandbox_is_same(s, msg)) {
		s->stale = false;
		s->policy = msg->policy;
		sandbox_limit(f, s);
		return;
	}
	former = s ? sandbox_ref(s) : NULL;
	facts_drop_sandbox(f, span_str(msg->id));

	s = must_alloc(sizeof(*s));
	s->refs = 1;
	s->id = must_strdup(msg->id);
	sandbox_inherit(f, s, former);
	(void)sandbox_unref(former);
	s->policy = msg->policy;
	s->addr_count = MIN(msg->addr_count, (uint32_t)MSG_ADDRS_MAX);
	(void)snprintf(s->iface, sizeof(s->iface), "%s", msg->iface);
	(void)snprintf(s->port, sizeof(s->port), "%s", msg->port);
	memcpy(s->addrs, msg->addrs, sizeof(s->addrs));
	(void)map_set(&f->by_id, span_str(s->id), s);
	device_enter(f, s);
	for (i = 0; i < s->addr_count; i++)
		(void)map_set(&f->by_addr, addr_key(s->addrs[i]), s);
	sandbox_limit(f, s);
}

static struct span id_key(const uint32_t *id)
{
	return span_of(id, sizeof(*id));
}

/* Something to settle is there already, or some sandbox is under the policy:
 * only then does a change of it change anything for anybody. */
static bool policy_matters(const struct facts *f, uint32_t id)
{
	const struct sandbox *s;
	size_t cursor = 0;

	if (f->limits_stale || !id)
		return true;
	while ((s = map_next(&f->by_id, &cursor, NULL)))
		if (s->policy == id)
			return true;
	return false;
}

bool facts_put_policy(struct facts *f, struct policy *p)
{
	f->version++;
	f->limits_stale = policy_matters(f, p->id);
	(void)map_take(&f->stale_policies, id_key(&p->id));
	policy_ref(p);
	if (!p->id) {
		(void)policy_unref(f->overlay);
		f->overlay = p;
		return f->limits_stale;
	}
	(void)policy_unref(map_set(&f->policies, id_key(&p->id), p));
	return f->limits_stale;
}

bool facts_drop_policy(struct facts *f, uint32_t id)
{
	f->version++;
	f->limits_stale = policy_matters(f, id);
	if (!id)
		f->overlay = policy_unref(f->overlay);
	else
		(void)policy_unref(map_take(&f->policies, id_key(&id)));
	return f->limits_stale;
}

void facts_put_bindings(struct facts *f, struct span scope, struct bindings *b)
{
	f->version++;
	(void)map_take(&f->stale_bindings, scope);
	if (scope.len && !bindings_set(b)->count)
		(void)bindings_unref(map_take(&f->bindings, scope));
	else
		(void)bindings_unref(
			map_set(&f->bindings, scope, bindings_ref(b)));
}

/* Every key of `from`, with any value: a set. */
static void map_copy_keys(const struct map *from, struct map *to)
{
	struct span key;
	size_t cursor = 0;
	void *item;

	map_fini(to);
	while ((item = map_next(from, &cursor, &key)))
		(void)map_set(to, key, item);
}

void facts_renew(struct facts *f)
{
	struct sandbox *s;
	size_t cursor = 0;

	while ((s = map_next(&f->by_id, &cursor, NULL)))
		s->stale = true;
	map_copy_keys(&f->policies, &f->stale_policies);
	map_copy_keys(&f->bindings, &f->stale_bindings);
}

void facts_sweep(struct facts *f)
{
	struct span key;
	struct sandbox *s;
	size_t cursor = 0;

	while ((s = map_next(&f->by_id, &cursor, NULL)))
		if (s->stale)
			facts_drop_sandbox(f, span_str(s->id));
	for (cursor = 0; map_next(&f->stale_policies, &cursor, &key);)
		(void)policy_unref(map_take(&f->policies, key));
	for (cursor = 0; map_next(&f->stale_bindings, &cursor, &key);)
		(void)bindings_unref(map_take(&f->bindings, key));
	map_fini(&f->stale_policies);
	map_fini(&f->stale_bindings);
	f->limits_stale = true;
	f->version++;
}

void facts_put_own(struct facts *f, struct own_addresses *own)
{
	f->version++;
	(void)own_unref(f->own);
	atomic_fetch_add(&own->refs, 1);
	f->own = own;
}

void facts_put_names(struct facts *f, struct names *names)
{
	f->version++;
	(void)names_unref(f->names);
	f->names = names_ref(names);
}

const struct snapshot *facts_policy(const struct facts *f,
				    const struct sandbox *s)
{
	const struct policy *p = map_find(&f->policies, id_key(&s->policy));

	return p ? &p->snapshot : NULL;
}

const struct snapshot *facts_overlay(const struct facts *f)
{
	return f->overlay ? &f->overlay->snapshot : NULL;
}

bool facts_is_own(const struct facts *f, const struct addr *a)
{
	unsigned i;

	for (i = 0; f->own && i < f->own->count; i++)
		if (cidr_has(&f->own->items[i], a))
			return true;
	return false;
}

struct own_addresses *own_unref(struct own_addresses *own)
{
	if (own && atomic_fetch_sub(&own->refs, 1) == 1)
		free(own);
	return NULL;
}
