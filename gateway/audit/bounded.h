/* SPDX-License-Identifier: Apache-2.0 */
/* bounded.h - records of refusals, as many a second as anybody reads
 *
 * A client that is refused may come again at once, thousands of times a second.
 * The first BOUNDED_RECORDS of a second are written as they are; the rest is
 * counted, and one record of each kind at the end of the second says how many
 * it stands for (audit.alike).
 */
#pragma once

#include "gateway/audit/audit.h"

enum { BOUNDED_RECORDS = 10, BOUNDED_MS = 1000 };

struct audit_bound;
struct loop;

/* log is borrowed. */
struct audit_bound *audit_bound_new(struct loop *loop, struct audit_log *log);
/* Writes what is to be said still. NULL is fine; returns NULL. */
struct audit_bound *audit_bound_free(struct audit_bound *b);
void audit_bound_emit(struct audit_bound *b, const struct audit *a);
