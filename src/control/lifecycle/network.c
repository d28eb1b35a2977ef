/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - addresses of the bridge by number, taken and given back
 *
 * Number 0 is the network, 1 the bridge, the last one the broadcast address; 2
 * and on belong to sandboxes. For each the time is kept from which it may be
 * taken.
 */

#include "src/control/lifecycle/network.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"

enum {
	V4_BITS = 96, /* of a mapped address before its own begin */
	HOST_FIRST = 2,
	HOST_BITS_LEAST = 3, /* five sandboxes */
	HOST_BITS_MOST = 16,
};

#define TAKEN UINT64_MAX

struct network {
	struct cidr subnet4, subnet6;
	uint32_t count;	    /* numbers, with those of nobody */
	uint64_t free_ms[]; /* by number */
};

/* Only 32 bits are ever added: the subnets have no bit where they go. */
static struct addr address_at(const struct cidr *subnet, uint32_t number)
{
	struct addr a = { 0 };
	int i;

	memcpy(a.ip, subnet->ip, sizeof(a.ip));
	for (i = 15; i > 11; i--, number >>= 8)
		a.ip[i] |= (uint8_t)number;
	return a;
}

/* 0: none of ours. */
static uint32_t number_of(const struct network *n, const struct addr *v4)
{
	uint32_t number = 0;
	struct addr back;
	int i;

	for (i = 12; i < 16; i++)
		number = number << 8 | (uint8_t)(v4->ip[i] & ~n->subnet4.ip[i]);
	if (number < HOST_FIRST || number >= n->count)
		return 0;
	back = address_at(&n->subnet4, number);
	return addr_eq_ip(&back, v4) ? number : 0;
}

int network_new(const struct cidr *subnet4, const struct cidr *subnet6,
		struct network **ret)
{
	unsigned bits = 128U - MIN(subnet4->prefix, 128U);
	struct addr v4 = { 0 }, v6 = { 0 };
	struct network *n;
	uint32_t count;

	memcpy(v4.ip, subnet4->ip, sizeof(v4.ip));
	memcpy(v6.ip, subnet6->ip, sizeof(v6.ip));
	if (!addr_is_v4(&v4) || addr_is_v4(&v6) || subnet4->prefix < V4_BITS ||
	    bits < HOST_BITS_LEAST)
		return err_origin(-EINVAL);
	bits = MIN(bits, (unsigned)HOST_BITS_MOST);
	if (subnet6->prefix > 128U - bits)
		return err_origin(-EINVAL);
	count = (1U << bits) - 1;
	n = must_alloc(sizeof(*n) + count * sizeof(n->free_ms[0]));
	n->subnet4 = *subnet4;
	n->subnet6 = *subnet6;
	n->count = count;
	*ret = n;
	return 0;
}

struct network *network_free(struct network *n)
{
	free(n);
	return NULL;
}

int network_take(struct network *n, uint64_t now_ms, struct addr *v4,
		 struct addr *v6)
{
	uint32_t i;

	for (i = HOST_FIRST; i < n->count; i++) {
		if (n->free_ms[i] > now_ms)
			continue;
		n->free_ms[i] = TAKEN;
		*v4 = address_at(&n->subnet4, i);
		*v6 = address_at(&n->subnet6, i);
		return 0;
	}
	return -ENOSPC;
}

int network_claim(struct network *n, const struct addr *v4,
		  const struct addr *v6)
{
	uint32_t i = number_of(n, v4);
	struct addr pair = address_at(&n->subnet6, i);

	if (!i || !addr_eq_ip(&pair, v6))
		return -ERANGE;
	if (n->free_ms[i] == TAKEN)
		return -EEXIST;
	n->free_ms[i] = TAKEN;
	return 0;
}

void network_give_back(struct network *n, uint64_t now_ms,
		       const struct addr *v4)
{
	uint32_t i = number_of(n, v4);

	if (i)
		n->free_ms[i] = now_ms + NETWORK_REST_MS;
}

void network_gateways(const struct network *n, struct addr *v4, struct addr *v6)
{
	*v4 = address_at(&n->subnet4, 1);
	*v6 = address_at(&n->subnet6, 1);
}

const struct cidr *network_subnet4(const struct network *n)
{
	return &n->subnet4;
}

const struct cidr *network_subnet6(const struct network *n)
{
	return &n->subnet6;
}
