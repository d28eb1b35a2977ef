/* SPDX-License-Identifier: Apache-2.0 */
/* nameserver.c - which upstream server to ask next */

#include "gateway/dns/nameserver.h"

#include "src/base/attrib.h"

enum { DNS_PORT = 53 };

static bool address_eq(const struct addr *a, const struct addr *b)
{
	return addr_eq_ip(a, b) && a->port == b->port &&
	       a->scope_id == b->scope_id;
}

bool nameservers_set(struct nameservers *ns, const struct addr *addrs,
		     unsigned count)
{
	struct nameserver items[NAMESERVERS_MAX] = { 0 };
	bool differs;
	unsigned i;

	count = MIN(count, (unsigned)NAMESERVERS_MAX);
	differs = count != ns->count;
	for (i = 0; i < count; i++) {
		items[i].address = addrs[i];
		if (!items[i].address.port)
			items[i].address.port = DNS_PORT;
		differs |=
			!address_eq(&items[i].address, &ns->items[i].address);
	}
	if (!differs)
		return false;

	memcpy(ns->items, items, sizeof(items));
	ns->count = count;
	ns->generation++;
	return true;
}

int nameservers_pick(const struct nameservers *ns, unsigned except,
		     uint64_t now_ms)
{
	int best = -1;
	unsigned i;

	for (i = 0; i < ns->count; i++) {
		if (except & 1u << i)
			continue;
		if (ns->items[i].down_until_ms <= now_ms)
			return (int)i;
		if (best < 0 ||
		    ns->items[i].down_until_ms < ns->items[best].down_until_ms)
			best = (int)i;
	}
	return best;
}

void nameserver_failed(struct nameserver *server, uint64_t now_ms)
{
	/* failures of questions that were sent together count once */
	if (server->down_until_ms > now_ms)
		return;
	server->down_ms = server->down_ms ? MIN(server->down_ms * 2,
						NAMESERVER_DOWN_MAX_MS)
					  : NAMESERVER_DOWN_MS;
	server->down_until_ms = now_ms + server->down_ms;
}

void nameserver_answered(struct nameserver *server)
{
	server->down_until_ms = 0;
	server->down_ms = 0;
}
