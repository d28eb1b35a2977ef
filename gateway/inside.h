/* SPDX-License-Identifier: Apache-2.0 */
/* inside.h - the gateway's main thread, shared by the files of this folder */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/gateway.h"
#include "gateway/worker.h"
#include "src/base/list.h"
#include "src/io/chan.h"
#include "src/role/msg.h"

struct evp_pkey_st;
struct ingress_box;
struct ingress_keys;
struct leaf_cache;
struct learned;
struct parcel;
struct policy_bodies;
struct quotas;
struct ssl_ctx_st;
struct trust;

enum { GATEWAY_LISTENERS_MAX = 1024 };

/* A listening socket waiting to be given to its worker. */
struct gateway_socket {
	int fd;
	enum listener_kind kind;
	unsigned loop;
};

struct gateway {
	const struct config *config;
	struct loop *loop; /* the main thread's */
	struct worker *workers;
	unsigned worker_count;
	int exit_status;

	struct chan *supervisor, *control, *vault;

	/* const after start, shared with workers */
	struct trust *trust;
	struct ssl_ctx_st *client_ctx, *origin_ctx;
	struct ssl_ctx_st *ingress_tls; /* NULL: HTTP */
	struct leaf_cache *leaf_cache;
	struct learned *learned;
	struct budget *budget;
	struct quotas *quotas;
	struct policy_bodies *policies;
	struct evp_pkey_st *leaf_key;
	char leaf_spki[256];
	size_t leaf_spki_len;

	/* accepting begins when both are true */
	bool started; /* the supervisor said START */
	bool synced;  /* control has told everything once */
	bool renewed; /* a new control has not told everything yet */
	struct gateway_socket sockets[GATEWAY_LISTENERS_MAX];
	unsigned socket_count;

	struct list signs;	/* sign.c: requests under way at the vault */
	struct list lease_jobs; /* lease.c: bindings waiting for values */
	struct list syncs;	/* feed.c: barriers waiting for lease jobs */
	unsigned drained;
	unsigned adopted; /* clients of the ingress that control had */
	unsigned fed; /* sandboxes and policies since the last rest */
	struct timer rest;
};

/* -- parcel.c: something for every worker --------------------------------- */

enum parcel_kind {
	PARCEL_NONE,
	PARCEL_SANDBOX,
	PARCEL_SANDBOX_DROP,
	PARCEL_POLICY,
	PARCEL_POLICY_DROP,
	PARCEL_BINDINGS,
	PARCEL_NODE,
	PARCEL_AUDIT,
	PARCEL_RENEW,
	PARCEL_SWEEP,
	PARCEL_BARRIER,
	PARCEL_STATUS,
	PARCEL_LISTENERS,
	PARCEL_INGRESS,
	PARCEL_INGRESS_DROP,
	PARCEL_INGRESS_KEYS,
	PARCEL_DRAIN,
};

enum { PARCEL_UPSTREAMS_MAX = 8 };

/* What a NODE parcel carries. */
struct parcel_node {
	struct names *names;
	struct own_addresses *own;
	struct addr upstreams[PARCEL_UPSTREAMS_MAX];
	unsigned upstream_count;
};

/* Counters of all workers, added up by each in its own thread. */
struct parcel_sums {
	uint64_t counters[COUNTER_NUM];
	struct dns_counters dns;
	struct msg_queue_counters queue;
	struct msg_drops drops;
	uint64_t sandboxes;
	bool exhausted; /* some worker lacked descriptors a moment ago */
};

struct parcel {
	_Atomic unsigned refs; /* one per worker that has not applied it */
	enum parcel_kind kind;
	struct gateway *gateway;
	uint32_t serial; /* BARRIER, STATUS: what to answer */
	uint32_t grace_ms;
	int audit_fd;
	struct msg_sandbox sandbox;
	uint32_t policy_id;
	struct policy *policy;
	char scope[MSG_NAME_SIZE];
	struct bindings *bindings;
	struct parcel_node node;
	struct ingress_box *ingress_box;
	struct ingress_keys *ingress_keys;
	pthread_mutex_t lock; /* of sums */
	struct parcel_sums sums;
};

struct parcel *parcel_new(struct gateway *g, enum parcel_kind kind);
/* Posts it to every worker, in order with all others; takes it. When the last
 * worker is done, gateway_parcel_done() runs on the main loop, then it is
 * freed. */
void parcel_send(struct parcel *p);

/* -- gateway.c ---------------------------------------------------------------
 */

/* Main loop: every worker applied p. Borrowed. */
void gateway_parcel_done(struct gateway *g, struct parcel *p);
/* Any thread: no flow is left that what control said before serial denies. */
void gateway_flows_synced(struct gateway *g, uint32_t serial);
/* Any thread. */
void gateway_worker_drained(struct gateway *g);
/* A role broke the protocol: the supervisor is told, the channel ends. */
void gateway_accuse(struct gateway *g, enum role role);

/* -- feed.c: what control says -----------------------------------------------
 */

void feed_on_message(struct gateway *g, struct chan_msg *m);
/* A lease job ended: barriers that waited may go. */
void feed_leases_ready(struct gateway *g);
void feed_answer_status(struct gateway *g, const struct parcel *p);

/* -- ingress_feed.c: what control says of the ingress ------------------------
 */

void ingress_feed_box(struct gateway *g, const struct msg_ingress *body);
void ingress_feed_drop(struct gateway *g, const struct msg_ingress *body);
void ingress_feed_keys(struct gateway *g, const struct msg_scope *body, int fd);
/* Takes fd. */
void ingress_feed_client(struct gateway *g,
			 const struct msg_ingress_client *body, int fd);

/* -- usage.c: what sandboxes use of their limits ------------------------------
 */

struct json_out;
/* Member "limited" of the open object: the sandboxes refused most. */
void usage_put_limited(struct json_out *o, struct quotas *all);
void usage_answer(struct gateway *g, const struct msg_scope *asked,
		  uint32_t serial);

/* -- lease.c: values from the vault ------------------------------------------
 */

struct bindings;
/* Fetches what b needs, then sends it to the workers; takes b. */
void lease_begin(struct gateway *g, const char *scope, struct bindings *b);
void lease_on_message(struct gateway *g, struct chan_msg *m);
/* The vault is new: everything under way is asked again. */
void lease_resume(struct gateway *g);
void lease_fini(struct gateway *g);

/* -- sign.c: leaves from the vault -------------------------------------------
 */

void sign_on_message(struct gateway *g, struct chan_msg *m);
void sign_resume(struct gateway *g);
void sign_fini(struct gateway *g);
