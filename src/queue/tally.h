/* SPDX-License-Identifier: Apache-2.0 */
/* tally.h - the counters of our rules, as they stand in the kernel
 *
 * They begin anew with their table; who reads them sees sums that only grow.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/role/drop.h"

struct tally;

/* Packets since tally_open(). */
struct tally_sums {
	uint64_t dropped[DROP_NUM];
	uint64_t queued, unqueued; /* DROP_COUNTER_* */
};

/* Before the role is confined. 0 or -errno. Needs CAP_NET_ADMIN, as the other
 * call. */
WUNRES int tally_open(struct tally **ret);
/* NULL is fine; returns NULL. */
struct tally *tally_free(struct tally *t);
/* Asks the kernel, which answers in the same call. 0 or -errno: the sums are
 * those of before. */
int tally_read(struct tally *t, struct tally_sums *ret);
