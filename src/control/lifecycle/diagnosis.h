/* SPDX-License-Identifier: Apache-2.0 */
/* diagnosis.h - a sandbox and its container in words
 *
 * Pure. container: what Docker says when it is inspected, foreign; NULL: there
 * is none.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct box;
struct buf;
struct json;

/* A line "Name: value" each. What does not fit into out is left out. */
void diagnosis_put_state(struct buf *out, const struct box *b,
			 const struct json *container);
/* A line for each thing that happened, in the order of time; the last `most`.
 */
void diagnosis_put_events(struct buf *out, const struct box *b,
			  const struct json *container, uint64_t most);
/* "90s", "10m", "2h", "1d"; a number alone is seconds. */
WUNRES bool diagnosis_duration(struct span text, uint64_t *ret_s);
