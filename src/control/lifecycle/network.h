/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - which sandbox has which address on the bridge
 *
 * Addresses are counted here and not by Docker: the fence must hold for an
 * address before there is a container that has it. An address that was given
 * back is not given out again for a minute, so that no late packet and no entry
 * of a cache meets the next owner.
 *
 * A pair of addresses has one number, which is the host part of both; so the
 * IPv4 address alone says which pair it is.
 */
#pragma once

#include "src/base/addr.h"
#include "src/base/attrib.h"

struct network;

enum { NETWORK_REST_MS = 60 * 1000, NETWORK_HOSTS_MAX = 65534 };

/* subnets: prefixes; the first address of each is the bridge's own. 0; -EINVAL
 * when one is no network of its family, or too small. */
WUNRES int network_new(const struct cidr *subnet4, const struct cidr *subnet6,
		       struct network **ret);
struct network *network_free(struct network *n);
/* The lowest free pair. -ENOSPC when all are taken or at rest. */
WUNRES int network_take(struct network *n, uint64_t now_ms, struct addr *v4,
			struct addr *v6);
/* One that a record says is taken. -EEXIST: somebody has it; -ERANGE: it is
 * none of ours, or v6 does not belong to it. */
WUNRES int network_claim(struct network *n, const struct addr *v4,
			 const struct addr *v6);
/* One of another network is passed over. */
void network_give_back(struct network *n, uint64_t now_ms,
		       const struct addr *v4);
void network_gateways(const struct network *n, struct addr *v4,
		      struct addr *v6);
const struct cidr *network_subnet4(const struct network *n);
const struct cidr *network_subnet6(const struct network *n);
