/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.h - records of refusals, as many a second as anybody reads
 *
 * A client that is refused may come again at once, thousands of times a second.
 * The first BOUNDED_RECORDS of a second are written as they are; the rest is
 * counted, and one record at the end of the second says how many it was.
 */
#pragma once

#include <stdint.h>

#include "gateway/audit/audit.h"
#include "src/io/loop.h"

enum { BOUNDED_RECORDS = 10, BOUNDED_MS = 1000 };

struct audit_bound {
	struct audit_log *log; /* borrowed */
	struct timer end;      /* of the second */
	unsigned written;
	uint64_t withheld;
	/* the latest that was withheld, but for what was borrowed */
	struct audit last;
	char sandbox[256];
};

void audit_bound_init(struct audit_bound *b, struct loop *loop,
		      struct audit_log *log);
/* Writes what is to be said still. Fine on cleared memory. */
void audit_bound_fini(struct audit_bound *b);
void audit_bound_emit(struct audit_bound *b, const struct audit *a);
