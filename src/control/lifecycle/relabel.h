/* SPDX-License-Identifier: Apache-2.0 */
/* relabel.h - the registry follows a sandbox's metadata
 *
 * Metadata are labels of the registry, by which policies choose; who changes
 * them changes what is chosen.
 */
#pragma once

#include "src/control/changes.h"

struct box;
struct lifecycle;

/* Is there room in the registry for that many names? */
bool relabel_fits(const struct box *b);
/* Gives the entry of b's id the labels that b has; fn as in changes.h. One that
 * is not registered is content. */
void relabel(struct lifecycle *l, const struct box *b, changed_fn *fn,
	     void *ctx);
/* Everything was read: entries that have not followed, since the daemon or its
 * vault ended between the two changes, follow now. */
void relabel_all(struct lifecycle *l);
