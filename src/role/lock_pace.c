/* SPDX-License-Identifier: Apache-2.0 */
/* lock_pace.c - set elements that are token buckets
 *
 * How it works: an element of these sets has an expression of its own, which
 * nf_tables runs when a packet finds the element: a limit in bytes per second.
 * The key is interface and address, since several sandboxes may be behind one
 * bridge; so a sandbox with addresses of both families has the rate for each.
 * The bucket is a second deep, or one packet if that is more.
 */

#include "src/role/lock_pace.h"

#include <linux/netfilter.h>
#include <string.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/role/lock_script.h"

static const struct nfnl_table table = { NFPROTO_INET, LOCK_TABLE };

/* direction, family */
static const char *const sets[2][2] = {
	{ "out4", "out6" },
	{ "in4", "in6" },
};

void lock_pace_set(struct nfnl *n, const struct msg_lock *m, bool add)
{
	char key[MSG_IFACE_SIZE + sizeof(m->addrs[0])] = { 0 };
	struct addr a = { 0 };
	uint32_t i, direction;
	size_t len;
	bool is_v4;

	if (!m->bytes_per_s || m->bytes_per_s > LOCK_PACE_MAX)
		return;
	memcpy(key, m->iface, strlen(m->iface));
	for (i = 0; i < m->addr_count; i++) {
		memcpy(a.ip, m->addrs[i], sizeof(a.ip));
		is_v4 = addr_is_v4(&a);
		len = is_v4 ? 4 : sizeof(a.ip);
		memcpy(key + MSG_IFACE_SIZE, a.ip + sizeof(a.ip) - len, len);
		for (direction = 0; direction < ARRAY_LEN(sets); direction++)
			nfnl_element_limit(n, &table,
					   sets[direction][is_v4 ? 0 : 1],
					   span_of(key, MSG_IFACE_SIZE + len),
					   add ? m->bytes_per_s : 0);
	}
}

void lock_pace_flush(struct nfnl *n)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(sets); i++) {
		nfnl_flush_set(n, &table, sets[i][0]);
		nfnl_flush_set(n, &table, sets[i][1]);
	}
}
