/* SPDX-License-Identifier: Apache-2.0 */
/* flow_desk.h - the queue role's questions, and the reviews of live flows
 *
 * Belongs to the first worker: that one decides about every flow.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct flow_desk;
struct worker;

struct flow_desk *flow_desk_new(struct worker *w);
/* NULL is fine; returns NULL. */
struct flow_desk *flow_desk_free(struct flow_desk *d);

/* A channel to a new queue role; takes fd. */
void flow_desk_attach(struct flow_desk *d, int fd);

/* Something that a decision rests on is not as it was. NULL is fine. */
void flow_desk_changed(struct flow_desk *d);
/* Every worker has applied what control said before serial.
 * gateway_flows_synced() follows once no flow lives that would be denied now.
 * must_review false: there was no queue role yet, so nothing is waited for. */
void flow_desk_sync(struct flow_desk *d, uint32_t serial, bool must_review);

/* As the queue role last told. */
const struct msg_queue_counters *flow_desk_counters(const struct flow_desk *d);
const struct msg_drops *flow_desk_drops(const struct flow_desk *d);
