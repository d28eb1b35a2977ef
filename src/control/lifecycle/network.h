/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - the bridge of all sandboxes, and who has which address
 *
 * Addresses are counted here and not by Docker: the fence must hold for an
 * address before there is a container that has it. An address that was given
 * back is not given out again for a minute, so that no late packet and no entry
 * of a cache meets the next owner.
 */
#pragma once

#include "src/base/addr.h"
#include "src/base/attrib.h"

struct docker;
struct network;

enum { NETWORK_REST_MS = 60 * 1000 };

/* subnets: prefixes; the first address of each is the bridge's own. 0; -EINVAL
 * when one is too small. */
WUNRES int network_new(const struct addr *subnet4, unsigned bits4,
		       const struct addr *subnet6, unsigned bits6,
		       struct network **ret);
struct network *network_free(struct network *n);
/* The next free pair, and the MAC that belongs to it (02:42 and the IPv4
 * address). -ENOSPC when all are taken. */
WUNRES int network_take(struct network *n, uint64_t now_ms, struct addr *v4,
			struct addr *v6, uint8_t mac[6]);
/* One that a record says is taken. -EEXIST: somebody has it. */
WUNRES int network_claim(struct network *n, const struct addr *v4);
void network_give_back(struct network *n, uint64_t now_ms,
		       const struct addr *v4);
void network_gateways(const struct network *n, struct addr *v4,
		      struct addr *v6);
