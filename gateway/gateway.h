/* SPDX-License-Identifier: Apache-2.0 */
/* gateway.h - the gateway process: channels on the main loop, traffic on
 * workers
 *
 * How it works: the main thread owns the channels to supervisor, control and
 * vault. Each worker thread owns one event loop and everything that touches
 * live traffic there: sessions, exchanges, pools, a resolver, and its own copy
 * of what control said (struct facts). The main thread changes facts only by
 * posting to each worker's loop, in order; MSG_CONTROL_SYNC is answered when a
 * marker posted behind them came back from every worker. So a hot path takes
 * no lock, and "in force" means in force in every loop.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

struct budget;
struct config;
struct gateway;
struct learned;
struct msg_ingress_client;
struct quotas;
struct ssl_ctx_st;

/* Runs until drained or until the supervisor is gone. Exit status. */
int gateway_run(const struct config *config);
/* What DNS told the sandboxes (registry/learned.h). Any thread. */
struct learned *gateway_learned(struct gateway *g);
/* What they may still have looked up (registry/budget.h). Any thread. */
struct budget *gateway_budget(struct gateway *g);
/* What sandboxes use (registry/quota.h). Any thread. */
struct quotas *gateway_quotas(struct gateway *g);
/* The operator's certificate; NULL: the ingress is HTTP. Any thread. */
struct ssl_ctx_st *gateway_ingress_tls(struct gateway *g);
/* For control, from any thread: a connection to the egress API (takes fd), and
 * that a sandbox was used (ingress_feed.c). */
void gateway_egress_client(struct gateway *g, int fd,
			   const struct msg_ingress_client *body);
void gateway_ingress_accessed(struct gateway *g, const char *id);
/* Any thread: a name that policy denied, for control; copied. */
struct msg_denied;
void gateway_denied(struct gateway *g, const struct msg_denied *body);
