/* SPDX-License-Identifier: Apache-2.0 */
/* net_policies.h - the network policy of each sandbox, as its client wrote it
 *
 * Kept in the vault as pieces of its text, RECORD_NET_POLICY "{id}.00",
 * "{id}.01" and on, since one may be larger than a record. What is enforced is
 * made of it: a policy of the API by the name "sandbox.{id}", which is not
 * stored by itself.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/map.h"
#include "src/control/egress/net_policy.h"

struct diag;
struct msg_record;
struct vault_link;

enum {
	NET_POLICY_PIECE = 64 * 1024,
	NET_POLICY_PIECES_MAX = 24,
	NET_POLICY_TEXT_MAX = NET_POLICY_PIECES_MAX * NET_POLICY_PIECE,
	NET_POLICY_OWN_MAX = 8 * 1024 * 1024,
	NET_POLICY_NAME_SIZE = 64,
};

struct net_policies {
	struct map by_id; /* sandbox id -> struct kept_policy, owned */
};

void net_policies_init(struct net_policies *all);
void net_policies_fini(struct net_policies *all);
/* NULL: the sandbox has none. */
const struct net_policy *net_policies_find(const struct net_policies *all,
					   struct span id);
/* Takes p. */
void net_policies_put(struct net_policies *all, struct span id,
		      struct net_policy *p, unsigned pieces);
void net_policies_remove(struct net_policies *all, struct span id);

/* "sandbox.{id}"; id is that of a box. */
void net_policies_name(struct span id, char dst[NET_POLICY_NAME_SIZE]);
/* Is it such a name, of a sandbox that has a policy? */
bool net_policies_own(const struct net_policies *all, struct span name);

/* Puts the pieces of text, as net_policy_emit() writes it, of at most
 * NET_POLICY_TEXT_MAX, into the open transaction, and removes those of the
 * policy that was. How many they are. */
unsigned net_policies_store(const struct net_policies *all, struct span id,
			    struct span text, struct vault_link *link);
void net_policies_store_none(const struct net_policies *all, struct span id,
			     struct vault_link *link);

/* -- reading them back ---------------------------------------------------- */

struct net_policy_texts {
	struct map by_id; /* sandbox id -> struct kept_text, owned */
};

void net_policy_texts_init(struct net_policy_texts *t);
void net_policy_texts_fini(struct net_policy_texts *t);
/* Records come in order of their names. False: it is none of ours. */
bool net_policy_texts_add(struct net_policy_texts *t, struct span name,
			  struct span value);
/* Parses them all; what cannot be is told to the log and left out. */
void net_policy_texts_parse(const struct net_policy_texts *t,
			    struct net_policies *all);
