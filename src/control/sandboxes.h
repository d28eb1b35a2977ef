/* SPDX-License-Identifier: Apache-2.0 */
/* sandboxes.h - the registry: which sandbox is behind which address
 *
 *   {"id": "build-7", "interface": "sp-build", "addresses": ["10.9.0.2"],
 *    "mac": "02:42:0a:09:00:02", "labels": {"team": "infra"},
 *    "defaultPolicy": "open",
 *    "ingress": {"execdTokenSha256": "...", "secureTokenSha256": "..."}}
 *
 * A sandbox is known by (interface, source address); no two sandboxes may
 * claim the same pair. A sandbox without an interface claims its addresses on
 * every interface, and is not locked to its addresses.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/model.h"
#include "src/base/addr.h"
#include "src/base/map.h"
#include "src/role/msg.h"

struct buf;
struct diag;
struct json_out;

enum {
	SANDBOXES_MAX = 65536,
	SANDBOX_ID_MAX = 128,
	SANDBOX_LABELS_MAX = 64,
	SANDBOX_LABEL_MAX = 320, /* bytes of a key or a value; a key as
				    Kubernetes has them is 317 at most */
};

enum sandbox_lock {
	LOCK_NONE, /* it has no interface, or nobody was asked yet */
	LOCK_HELD,
	LOCK_FAILED, /* it stays cut off: the gateway does not know it */
};

/* How it is reached from outside (docs/lifecycle.md): SHA-256 of tokens. */
struct sandbox_ingress {
	bool is_open; /* it is reached at all */
	bool has_execd_token, has_secure_token;
	bool renews; /* not stored: of a sandbox of the lifecycle API */
	uint8_t execd_token[MSG_HASH_SIZE], secure_token[MSG_HASH_SIZE];
};

struct sandbox {
	struct span id; /* NUL-terminated */
	char iface[MSG_IFACE_SIZE];
	char port[MSG_IFACE_SIZE]; /* its port of the bridge iface, or "" */
	uint8_t mac[6];
	bool has_mac;
	struct sandbox_ingress ingress;
	enum sandbox_lock lock;
	bool on_bridge;	  /* locked to a bridge, not to a port of one */
	bool awaits_port; /* until it has one, nothing of it passes */
	struct addr *addrs;
	unsigned addr_count;
	struct policy_label *labels; /* in order of keys */
	unsigned label_count;
	struct span default_policy; /* where none chooses it; "": denied */
	uint64_t bytes_per_s; /* of its flows, as the supervisor was told */
	uint32_t policy; /* selected by policies_select(); POLICY_ID_NONE */
	/* What the spans and lists point to is behind it, in the same block;
	 * there are many sandboxes. */
};

/* 1..SANDBOX_ID_MAX of letters, digits, '.', '_', '-', ':'; the first is a
 * letter or a digit. */
bool sandbox_id_is_valid(struct span id);

/* name: of the path (the body may repeat it), or SPAN_NONE. 0; -EINVAL. */
WUNRES int sandbox_parse(struct span text, struct span name,
			 struct sandbox **ret, struct diag *d);
struct sandbox *sandbox_free(struct sandbox *s);
/* As it was given (stored so). */
void sandbox_emit(struct json_out *o, const struct sandbox *s);
/* What the supervisor answered to the wish to lock it. */
void sandbox_set_lock(struct sandbox *s, const struct msg_locked *reply);
/* "lockedAt" and "lockNote": not stored, for who asks. */
void sandbox_emit_lock(struct json_out *o, const struct sandbox *s);
/* Puts id, interface and addresses into a message to the gateway. */
void sandbox_fill(const struct sandbox *s, struct msg_sandbox *ret);
/* Puts what the ingress is to know; link-local addresses are not dialled. */
void sandbox_fill_ingress(const struct sandbox *s, struct msg_ingress *ret);

struct sandboxes {
	struct map by_id;
	struct map by_addr; /* 16 bytes -> struct address_claims */
};

void sandboxes_init(struct sandboxes *all);
void sandboxes_fini(struct sandboxes *all);
struct sandbox *sandboxes_find(const struct sandboxes *all, struct span id);
/* The sandbox, other than one of the same id, that has an address of s, by
 * whichever interface: flows of UDP are told apart by addresses alone, in the
 * kernel as in the gateway. NULL = none. *ret_addr: the address. */
const struct sandbox *sandboxes_conflict(const struct sandboxes *all,
					 const struct sandbox *s,
					 const struct addr **ret_addr);
/* Takes s; replaces the one of the same id. */
void sandboxes_put(struct sandboxes *all, struct sandbox *s);
void sandboxes_remove(struct sandboxes *all, struct span id);
/* In order of ids; the caller frees the array. */
struct sandbox **sandboxes_sorted(const struct sandboxes *all,
				  unsigned *ret_count);
