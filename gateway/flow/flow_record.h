/* SPDX-License-Identifier: Apache-2.0 */
/* flow_record.h - what is written down about flows, and how much of it */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct flow_decision;
struct flow_rate;
struct msg_flow;
struct worker;

struct flow_rate *flow_rate_new(void);
struct flow_rate *flow_rate_free(struct flow_rate *r);
/* May one more record be written? It is counted then. */
WUNRES bool flow_rate_allows(struct flow_rate *r, struct span sandbox,
			     uint64_t now_ms);

/* One audit record of a decision, unless the sandbox or the node has had its
 * share for the moment: a packet costs its sender too little to fill a disk
 * with. What is left out is counted. */
void flow_record(struct worker *w, struct flow_rate *rate,
		 const struct msg_flow *flow, const struct flow_decision *d);
