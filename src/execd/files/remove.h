/* SPDX-License-Identifier: Apache-2.0 */
/* remove.h - a tree and everything in it, in small steps
 *
 * Goes by a walk, so it removes what was in the tree and nothing behind a
 * link, whatever is swapped meanwhile. What is gone already is fine; who puts
 * new things in while it runs is outrun or, after REMOVE_PASSES_MAX tries,
 * reported. A path that names a link or a file loses just that.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct fault;
struct removal;

enum { REMOVE_PASSES_MAX = 1000 };

struct removal *removal_new(const char *path); /* expanded; copied */
struct removal *removal_free(struct removal *r);
/* One thing less. False: it is over, well or with f set. A thread may block in
 * it. */
bool removal_step(struct removal *r, struct fault *f);
