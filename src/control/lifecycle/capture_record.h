/* SPDX-License-Identifier: Apache-2.0 */
/* capture_record.h - the records of snapshots, changed in order, stored first
 *
 * fn as in changes.h; it may be NULL.
 */
#pragma once

#include "src/control/changes.h"

#include "src/control/lifecycle/capture.h"

struct lifecycle;

/* Takes s. */
void capture_record_add(struct lifecycle *l, struct capture *s, changed_fn *fn,
			void *ctx);
/* 409 when it is in none of the states `from` (bits) by then; message may be
 * NULL. */
void capture_record_move(struct lifecycle *l, struct span id, unsigned from,
			 enum capture_state to, const char *message,
			 changed_fn *fn, void *ctx);
void capture_record_remove(struct lifecycle *l, struct span id, changed_fn *fn,
			   void *ctx);
