/* SPDX-License-Identifier: Apache-2.0 */
/* flow_decide.h - may a flow of UDP or ICMP be?
 *
 * There is no name in such a flow. What counts instead are the names for which
 * our DNS gave this sandbox this address (registry/learned.h).
 */
#pragma once

#include <stdbool.h>

#include "gateway/audit/audit.h"
#include "policy/policy.h"
#include "src/role/msg.h"
#include "src/wire/host.h"

struct sandbox;
struct worker;

struct flow_decision {
	enum flow_verdict verdict;
	struct addr client, destination;
	const char *scheme;	 /* "udp" or "icmp"; NULL: neither */
	struct sandbox *sandbox; /* borrowed; NULL: not registered */
	enum audit_reason reason;
	struct verdict by; /* of policy */
	struct host host;  /* the name it was decided by, or empty */
	bool quiet;	   /* of no interest to anybody: no record */
};

/* Always fills *ret. An allowed flow keeps its learned names. */
void flow_decide(struct worker *w, const struct msg_flow *flow,
		 struct flow_decision *ret);
