/* SPDX-License-Identifier: Apache-2.0 */
/* counters.h - the DNS counters of one loop; written by that loop only */
#pragma once

#include <stdint.h>

struct dns_counters {
#define DNS_COUNTER(name, help) uint64_t name;
#include "gateway/dns/counters.def"
#undef DNS_COUNTER
};

/* Adds every counter of `add` to `sum`. */
static inline void dns_counters_add(struct dns_counters *sum,
				    const struct dns_counters *add)
{
#define DNS_COUNTER(name, help) sum->name += add->name;
#include "gateway/dns/counters.def"
#undef DNS_COUNTER
}
