/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.h - records of refusals, as many a second as anybody reads
 *
 * A client that is refused may come again at once, thousands of times a second.
 * So many records of a second are written as they are; the rest is counted, and
 * one record of each kind and reason at the end of the second says how many it
 * stands for (audit.alike).
 */
#pragma once

#include "gateway/audit/audit.h"

enum { BOUNDED_MS = 1000 };

/* What is bounded by itself, each with its own number of records. */
enum audit_bounded {
	BOUNDED_FLOOD,	/* over a limit, nobody's, malformed: all alike */
	BOUNDED_DENIAL, /* what was asked for was denied */
	BOUNDED_NUM,
};
enum { BOUNDED_FLOOD_RECORDS = 10, BOUNDED_DENIAL_RECORDS = 100 };

struct audit_bound;
struct loop;

/* log is borrowed. */
struct audit_bound *audit_bound_new(struct loop *loop, struct audit_log *log);
/* Writes what is to be said still. NULL is fine; returns NULL. */
struct audit_bound *audit_bound_free(struct audit_bound *b);
void audit_bound_emit(struct audit_bound *b, enum audit_bounded which,
		      const struct audit *a);
