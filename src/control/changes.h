/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - the registry and the policies changed by control itself
 *
 * The same changes as those of the admin API's routes, in the same queue
 * (change.h), for who asks from inside: nobody is replied to, fn is told.
 */
#pragma once

#include "src/base/span.h"
#include "src/control/change.h"

struct sandbox;

/* why: status 0: it is in force; else what the route would have answered. May
 * be called before the function that asked returns. fn may be NULL. */
typedef void changed_fn(void *ctx, const struct refusal *why);

/* Takes s; replaces one of the same id. Status 503 NOT_LOCKED: it is registered
 * and cut off. */
void sandbox_change_put(struct control *c, struct sandbox *s, changed_fn *fn,
			void *ctx);
/* One that is not there: 404. */
void sandbox_change_remove(struct control *c, struct span id, changed_fn *fn,
			   void *ctx);

/* name is POLICY_NAME_MAX long at most, text a policy (both copied). */
void policy_change_put(struct control *c, struct span name, struct span text,
		       changed_fn *fn, void *ctx);
void policy_change_remove(struct control *c, struct span name, changed_fn *fn,
			  void *ctx);
