/* SPDX-License-Identifier: Apache-2.0 */
/* facts.h - what one worker knows: sandboxes, policies, bindings, names
 *
 * A sandbox is found by the source address of a packet and, where it was
 * registered with one, by the interface the packet came in on (case: identity
 * is never read from a payload). Policies, bindings and names are immutable
 * and shared between workers by reference count.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/registry/quota.h"
#include "policy/limits.h"
#include "policy/policy.h"
#include "src/base/addr.h"
#include "src/base/map.h"
#include "src/base/span.h"
#include "src/role/msg.h"

struct audit_bound;
struct bindings;
struct budget;
struct learned;
struct loop;
struct names;
struct pace;

struct policy_bodies;
struct policy_body;

/* A compiled policy in this process; shared, reference counted. */
struct policy {
	_Atomic unsigned refs;
	uint32_t id;
	uint64_t generation;
	struct snapshot snapshot;
	struct policy_body *body; /* what the snapshot borrows */
	char name[];		  /* the same */
};

/* The bytes of policies: those that say the same have them together. */
struct policy_bodies *policy_bodies_new(void);
/* They live on as long as policies do. NULL is fine; returns NULL. */
struct policy_bodies *policy_bodies_free(struct policy_bodies *all);

/* Takes the memfd's content; small policies are copied, large ones stay
 * mapped. 0, or -errno. Any thread. */
WUNRES int policy_new(struct policy_bodies *all, const struct msg_policy *msg,
		      int fd, struct policy **ret);
struct policy *policy_ref(struct policy *p);
struct policy *policy_unref(struct policy *p); /* any thread */
bool policy_is_mapped(const struct policy *p); /* for tests */

struct sandbox {
	char *id;
	char iface[MSG_IFACE_SIZE]; /* "" = any sandbox interface */
	char port[MSG_IFACE_SIZE];  /* its port of the bridge iface, or "" */
	uint32_t policy;
	unsigned addr_count;
	uint8_t addrs[MSG_ADDRS_MAX][16];
	unsigned refs;	     /* worker-local: sessions hold one */
	bool gone;	     /* deregistered; its sessions end */
	bool stale;	     /* see facts_renew() */
	struct quota *quota; /* of the id, shared by all workers */
	/* what is read from the sandbox, and from origins for it; NULL in
	 * tests without a loop */
	struct pace *pace_out, *pace_in;
	struct audit_bound *refusals; /* worker_record(); NULL: none yet */
	unsigned streams;	      /* requests of HTTP/2 that are open */
	size_t held_bytes; /* content of theirs that nobody took yet */
};

/* Addresses of this node itself; never dialled for a sandbox. */
struct own_addresses {
	_Atomic unsigned refs;
	unsigned count;
	struct cidr items[];
};

struct facts {
	struct map by_addr;	/* 16 bytes of address -> struct sandbox */
	struct map by_id;	/* id -> struct sandbox */
	struct map by_device;	/* interface or port -> struct sandbox */
	struct map policies;	/* 4 bytes of id -> struct policy */
	struct map bindings;	/* scope -> struct bindings */
	struct policy *overlay; /* policy 0, or NULL */
	struct names *names;
	struct own_addresses *own;
	struct budget *budget;	 /* the node's, as below */
	struct learned *learned; /* the node's, borrowed; NULL in tests */
	struct quotas *quotas;	 /* the node's, borrowed */
	struct loop *loop;	 /* the worker's; NULL in tests */
	/* of sandboxes whose policy says nothing: every one is said */
	struct policy_limits limits;
	bool limits_stale; /* facts_settle() is due */
	uint64_t version;  /* moves with every change */
	/* Keys that a new control has not said again; see facts_renew(). */
	struct map stale_policies, stale_bindings;
};

void facts_init(struct facts *f, struct quotas *quotas);
void facts_fini(struct facts *f);

/* Control is a new process and says everything again. Until it is through,
 * what the old one said stays in force; then facts_sweep() drops what was not
 * repeated: it was taken back while nobody listened. */
void facts_renew(struct facts *f);
void facts_sweep(struct facts *f);

/* Borrowed: a session that keeps it calls sandbox_ref(). NULL: unknown. */
struct sandbox *facts_find_sandbox(struct facts *f, const struct addr *source,
				   const char *iface);
/* For records of packets whose source may be a lie: who is plugged in there.
 * Of several at one interface the one with the source address, else any. NULL:
 * nobody. With is_locked, the lock has let the packet pass, so that its source
 * counts behind a bridge too. */
struct sandbox *facts_find_device(struct facts *f, const struct addr *source,
				  const char *device, bool is_locked);
struct sandbox *sandbox_ref(struct sandbox *s);
struct sandbox *sandbox_unref(struct sandbox *s);

void facts_put_sandbox(struct facts *f, const struct msg_sandbox *msg);
void facts_drop_sandbox(struct facts *f, struct span id);
/* Take a reference of their own. False: no sandbox is under the policy, so
 * nothing that was decided is to be looked at again. */
bool facts_put_policy(struct facts *f, struct policy *p);
bool facts_drop_policy(struct facts *f, uint32_t id);
/* After changes of policies: brings limits into force. */
void facts_settle(struct facts *f);
void facts_put_bindings(struct facts *f, struct span scope, struct bindings *b);
void facts_put_own(struct facts *f, struct own_addresses *own);
void facts_put_names(struct facts *f, struct names *names);

/* NULL: none, which denies everything. */
const struct snapshot *facts_policy(const struct facts *f,
				    const struct sandbox *s);
const struct snapshot *facts_overlay(const struct facts *f);
bool facts_is_own(const struct facts *f, const struct addr *a);

struct own_addresses *own_unref(struct own_addresses *own);
