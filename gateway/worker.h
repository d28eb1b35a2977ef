/* SPDX-License-Identifier: Apache-2.0 */
/* worker.h - one thread, one event loop, and what its sessions share
 *
 * Everything here belongs to the worker's thread unless said otherwise.
 */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "gateway/audit/audit.h"
#include "gateway/dns/counters.h"
#include "gateway/registry/facts.h"
#include "src/base/list.h"
#include "src/base/span.h"
#include "src/io/loop.h"

struct chain;
struct config;
struct denied;
struct dns_server;
struct flow_desk;
struct gateway;
struct ingress;
struct leaf_source;
struct listener;
struct loop;
struct origin_pool;
struct resolver;
struct ssl_ctx_st;

enum { WORKER_SCRATCH_BYTES = 256 * 1024 };

/* What one worker counts: X(name, help). DNS counts for itself. */
#define WORKER_COUNTERS(X)                                                 \
	X(connections, "client connections accepted")                      \
	X(connections_open, "client connections open now")                 \
	X(connections_unknown, "refused: source is no registered sandbox") \
	X(connections_limited, "refused: the sandbox is at a limit")       \
	X(exchanges, "HTTP exchanges finished")                            \
	X(allowed, "exchanges and connections allowed by policy")          \
	X(denied, "exchanges and connections denied")                      \
	X(injected, "exchanges that carried a credential")                 \
	X(spliced, "TLS or TCP connections passed through unopened")       \
	X(origins_new, "connections made to origins")                      \
	X(origins_reused, "exchanges that reused an origin connection")    \
	X(leaves_minted, "leaf certificates signed by the vault")          \
	X(leaves_cached, "leaf certificates found in the cache")           \
	X(handshakes, "client TLS handshakes finished")                    \
	X(handshakes_resumed, "client TLS handshakes resumed")             \
	X(bytes_in, "bytes from sandboxes, on the wire")                   \
	X(bytes_out, "bytes to sandboxes, on the wire")                    \
	X(malformed, "requests or hellos refused as malformed")            \
	X(abused, "HTTP/2 connections ended for a flood")                  \
	X(flows, "questions about flows of UDP and ICMP answered")         \
	X(flows_allowed, "flows allowed to begin")                         \
	X(flows_denied, "flows refused")                                   \
	X(flows_cut, "live flows ended by a change of policy")             \
	X(flows_unrecorded, "flows without a record: too many at a time")  \
	X(ingress, "exchanges through the ingress finished")               \
	X(ingress_refused, "requests that the ingress refused")            \
	X(packets_dropped, "dropped packets that the queue role told of")  \
	X(accept_errors, "accept failures, such as too many open files")

enum worker_counter {
#define COUNTER_ENUM(name, help) COUNTER_##name,
	WORKER_COUNTERS(COUNTER_ENUM)
#undef COUNTER_ENUM
		COUNTER_NUM,
};

struct worker {
	struct gateway *gateway;
	const struct config *config; /* const after start */
	unsigned index;
	pthread_t thread;
	struct loop *loop;

	struct facts facts;
	struct resolver *resolver;
	struct chain *chain; /* NULL: origins are reached directly */
	struct origin_pool *pool;
	struct leaf_source *leaves;
	struct audit_log *audit_log;
	struct denied *denied;	      /* NULL: there is no webhook */
	struct audit_bound *refusals; /* of whom we do not know */
	struct ssl_ctx_st
		*client_ctx; /* shared, for connections of sandboxes */
	struct ssl_ctx_st *origin_ctx; /* shared, for connections to origins */

	struct list listeners;
	struct list sessions; /* every live session */
	struct list h2_dirty; /* HTTP/2 connections with output due */
	struct dns_server *dns;
	struct ingress *ingress; /* for those outside */
	struct flow_desk *flows; /* of the first worker; else NULL */
	int probe; /* any socket: asks the kernel for names of interfaces */
	/* worker_facts_changed() is due; bindings decide nothing about flows */
	bool facts_dirty, bindings_dirty;
	bool draining;
	uint64_t exhausted_ms; /* when descriptors last ran out; 0 never */
	struct timer drain;    /* looks whether the last session is gone */
	struct timer quiet;    /* looks whether memory may be given back */
	uint64_t quiet_mark, trimmed; /* work done by then, see worker.c */
	uint64_t drain_until_ms;

	/* WORKER_SCRATCH_BYTES each: to read into, from clients and from
	 * origins, and to build output in */
	char *scratch_front, *scratch_back, *assembly;

	uint64_t counters[COUNTER_NUM];
	struct dns_counters dns_counters;
};

#define worker_counted(w, name)	       ((w)->counters[COUNTER_##name]++)
#define worker_counted_by(w, name, by) ((w)->counters[COUNTER_##name] += (by))

/* Everything but the thread. Dies on failure. */
void worker_init(struct worker *w, struct gateway *g, unsigned index);
WUNRES int worker_start(struct worker *w);
/* Stops the thread, waits for it, frees what it had. */
void worker_fini(struct worker *w);

/* Policies, bindings or names changed: live connections that would not be
 * allowed any more are cut. Kept origin connections are asked about again when
 * they are taken. */
void worker_facts_changed(struct worker *w);
/* No new connections; idle ones end, exchanges may finish for grace_ms. Then
 * gateway_worker_drained(). */
void worker_drain(struct worker *w, uint32_t grace_ms);

/* Records a refusal that a client may repeat at will (bounded.h). s NULL: the
 * source is unknown. */
void worker_refused(struct worker *w, struct sandbox *s, const struct audit *a);
/* Records what a sandbox asked for, denied or not: the former is bounded. */
void worker_record(struct worker *w, struct sandbox *s, const struct audit *a);

const char *worker_counter_name(enum worker_counter which);
