/* SPDX-License-Identifier: Apache-2.0 */
/* net_policy_change.h - a sandbox's network policy changed: stored, in force,
 * answered
 *
 * In control's queue of changes. A patch is made to the policy as it is when
 * its turn comes. No policy comes to be in which a host of one of the sandbox's
 * bindings is not allowed.
 */
#pragma once

#include "src/control/changes.h"

struct json;
struct net_policy;

/* From inside. Takes p, a policy for a sandbox whose box may not be there yet;
 * removes it (404: there is none). */
void net_policy_change_put(struct control *c, struct span id,
			   struct net_policy *p, changed_fn *fn, void *ctx);
void net_policy_change_remove(struct control *c, struct span id, changed_fn *fn,
			      void *ctx);

/* What the answer to a policy that was set has besides its mode. */
enum net_policy_said {
	NET_POLICY_SAY_FORCED, /* "enforcementMode" */
	NET_POLICY_SAY_RESET,  /* why it denies everything */
};

/* Of the egress API; each answers r. Takes p; takes body: the rules, the
 * targets. */
void net_policy_change_set(struct control *c, struct span id,
			   struct net_policy *p, enum net_policy_said said,
			   struct httpd_request *r);
void net_policy_change_patch(struct control *c, struct span id,
			     struct json *body, struct httpd_request *r);
void net_policy_change_delete(struct control *c, struct span id,
			      struct json *body, struct httpd_request *r);
