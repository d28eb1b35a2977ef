/* SPDX-License-Identifier: Apache-2.0 */
/* replace.h - a text for another one in a file of any size
 *
 * From left to right, without overlaps. The file is read in pieces and the
 * result written beside it; when nothing is found nothing is written at all.
 * Mode and owner stay, links are followed. A file that somebody else changes
 * meanwhile is left to him. Blocking, in small steps.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct fault;
struct replacement;

/* path: expanded. Texts are borrowed; `old` is not empty. */
struct replacement *replacement_new(const char *path, struct span old,
				    struct span new);
struct replacement *replacement_free(struct replacement *x);
/* One piece. False: it is over, well or with f set. */
bool replacement_step(struct replacement *x, struct fault *f);
uint64_t replacement_count(const struct replacement *x);
