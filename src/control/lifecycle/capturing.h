/* SPDX-License-Identifier: Apache-2.0 */
/* capturing.h - snapshots made and removed, in the background */
#pragma once

#include "src/control/lifecycle/lifecycle.h"

struct capture;

/* Takes s, a new one of b, the record first: done when it is stored. Its image
 * is made afterwards, and its state tells of that. */
void capturing_begin(struct lifecycle *l, struct capture *s,
		     lifecycle_done_fn *done, void *ctx);
/* Image and record. done as above, when both are gone. */
void capturing_remove(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx);
/* The records were read, or Docker was met: what nobody works at any more
 * failed, or is removed now. */
void capturing_resume(struct lifecycle *l);
/* Docker was met: images of ours that no record knows are removed. */
void capturing_sweep(struct lifecycle *l);
/* A sandbox has become this image: is it one of a snapshot? */
void capturing_appeared(struct lifecycle *l, struct span image);
/* The members of struct lifecycle that are about snapshots. */
void capturing_init(struct lifecycle *l);
void capturing_fini(struct lifecycle *l);
