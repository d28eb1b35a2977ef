/* SPDX-License-Identifier: Apache-2.0 */
/* chase.c - the addresses of one family for a name, through its aliases */

#include "gateway/dns/chase.h"

#include "gateway/dns/ask.h"

static void chase_end(struct chase *c, enum name_status status)
{
	c->done = true;
	c->status = status;
	c->fn(c);
	/* c may be gone */
}

static void chase_take_addr(struct chase *c, const struct addr *a)
{
	unsigned i;

	for (i = 0; i < c->count; i++)
		if (addr_eq_ip(&c->addrs[i], a))
			return;
	if (c->count < NAME_ADDRS_MAX)
		c->addrs[c->count++] = *a;
}

/* Collects the addresses of c->name in the answer section. Without any, true
 * and the name it is an alias of, if it is one. */
static bool chase_scan(struct chase *c, const struct dns_message *m,
		       struct dns_name *ret_target)
{
	struct dns_walk w = DNS_WALK(m);
	uint32_t alias_ttl_s = UINT32_MAX;
	struct dns_record record;
	bool is_alias = false;
	struct span before;
	struct addr a;

	while (dns_walk_next(&w, m, &record) && record.section == DNS_ANSWER) {
		if (record.rclass != DNS_CLASS_IN ||
		    !dns_name_eq(&record.name, &c->name))
			continue;
		if (record.type == c->type && dns_record_addr(m, &record, &a)) {
			chase_take_addr(c, &a);
			c->ttl_s = MIN(c->ttl_s, record.ttl_s);
		} else if (record.type == DNS_TYPE_CNAME && !is_alias) {
			is_alias = dns_record_target(m, &record, &before,
						     ret_target);
			alias_ttl_s = record.ttl_s;
		}
	}
	if (c->count || !is_alias)
		return false;
	c->ttl_s = MIN(c->ttl_s, alias_ttl_s);
	return true;
}

/* Does the authority section speak for the end of the chain? Then its SOA says
 * how long the negative answer holds. */
static bool chase_take_soa(struct chase *c, const struct dns_message *m)
{
	struct dns_walk w = DNS_WALK(m);
	struct dns_record record;
	uint32_t ttl_s;

	while (dns_walk_next(&w, m, &record)) {
		if (record.section != DNS_AUTHORITY ||
		    !dns_record_negative_ttl(m, &record, &ttl_s))
			continue;
		c->ttl_s = MIN(c->ttl_s, ttl_s);
		return true;
	}
	return false;
}

static void chase_on_reply(void *ctx, const struct dns_message *m)
{
	struct dns_name target;
	struct chase *c = ctx;
	bool moved = false;
	bool has_soa;

	c->ask = NULL;
	if (!m) {
		chase_end(c, NAME_FAILED);
		return;
	}
	while (chase_scan(c, m, &target)) {
		if (++c->links > CHASE_LINKS_MAX) {
			chase_end(c, NAME_FAILED);
			return;
		}
		c->name = target;
		moved = true;
	}
	if (c->count) {
		chase_end(c, NAME_OK);
		return;
	}

	has_soa = chase_take_soa(c, m);
	if (!has_soa)
		c->ttl_s = moved ? c->ttl_s : 0;
	if (m->rcode == DNS_NXDOMAIN)
		chase_end(c, NAME_NXDOMAIN);
	else if (!moved || has_soa)
		chase_end(c, NAME_NODATA);
	else if (!chase_start(c))
		chase_end(c, NAME_FAILED);
}

bool chase_start(struct chase *c)
{
	if (!c->links)
		c->ttl_s = UINT32_MAX;
	c->ask = ask_new(c->ns, &c->name, c->type, c->deadline_ms,
			 chase_on_reply, c);
	c->done = !c->ask;
	return c->ask != NULL;
}

void chase_stop(struct chase *c)
{
	c->ask = ask_free(c->ask);
	c->done = true;
}
