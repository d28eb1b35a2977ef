/* SPDX-License-Identifier: Apache-2.0 */
/* publish.h - what the gateway must know, as messages
 *
 * Each function sends one kind of fact; gateway_link_sync() afterwards tells
 * when it is in force. While the gateway is down nothing is sent and nothing
 * is remembered: a new gateway is sent everything.
 */
#pragma once

#include <stdbool.h>

#include "src/base/span.h"

struct gateway_link;
struct policies;
struct sandbox;
struct sandboxes;
struct vault_state;

/* What changed (all: everything): the overlay, policies, the choice of each
 * sandbox, and numbers that are no longer used, in this order. */
void publish_policies(struct gateway_link *g, struct policies *p,
		      struct sandboxes *all_sandboxes, bool all);
/* Chooses its policy first. */
void publish_sandbox(struct gateway_link *g, const struct policies *p,
		     struct sandbox *s);
void publish_sandbox_drop(struct gateway_link *g, const struct sandbox *s);
/* It is not reached from outside any more. */
void publish_ingress_drop(struct gateway_link *g, const struct sandbox *s);
void publish_bindings(struct gateway_link *g, const struct vault_state *s);
/* json: pins, hosts, upstreams, own addresses (node.h). */
void publish_node(struct gateway_link *g, struct span json);
/* The keys of signed routes, as their file has them; none when empty. */
void publish_route_keys(struct gateway_link *g, struct span text);
