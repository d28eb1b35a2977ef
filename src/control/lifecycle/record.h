/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the record of a sandbox, changed in order and stored first
 *
 * Every change is made to the box as it is when its turn comes, so two that
 * wait do not undo each other. fn as in changes.h; it may be NULL.
 */
#pragma once

#include "src/control/changes.h"

#include "src/control/lifecycle/box.h"

struct lifecycle;

/* Takes b. */
void record_add(struct lifecycle *l, struct box *b, changed_fn *fn, void *ctx);
/* Changes the box; false: it is not to be changed any more, which is answered
 * 409 NOT_CHANGED. data is freed afterwards. */
typedef bool record_edit_fn(void *data, struct box *b);
void record_edit(struct lifecycle *l, struct span id, record_edit_fn *edit,
		 void *data, changed_fn *fn, void *ctx);
void record_remove(struct lifecycle *l, struct span id, changed_fn *fn,
		   void *ctx);

/* The common edit: of the state, unless the box is being removed. */
void record_set_state(struct lifecycle *l, struct span id, enum box_state state,
		      const char *reason, const char *message, changed_fn *fn,
		      void *ctx);
