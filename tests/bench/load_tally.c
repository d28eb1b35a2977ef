/* SPDX-License-Identifier: Apache-2.0 */
/* load_tally.c - count exchanges and know the quantiles of their times */

#include <inttypes.h>
#include <stdio.h>

#include "tests/bench/load.h"

static unsigned histogram_slot(uint64_t v)
{
	unsigned shift;

	if (v < TALLY_STEPS)
		return (unsigned)v;
	shift = 63 - (unsigned)__builtin_clzll(v) - 7;
	return (shift + 1) * TALLY_STEPS +
	       (unsigned)((v >> shift) - TALLY_STEPS);
}

static uint64_t histogram_value(unsigned slot)
{
	unsigned shift = slot / TALLY_STEPS;
	uint64_t step = slot % TALLY_STEPS;

	return shift ? (step + TALLY_STEPS) << (shift - 1) : step;
}

static uint64_t tally_quantile(const struct tally *t, double q)
{
	uint64_t want = (uint64_t)(q * (double)t->exchanges), seen = 0;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(t->histogram); i++) {
		seen += t->histogram[i];
		if (seen > want)
			return histogram_value(i);
	}
	return t->max_us;
}

void tally_add(struct tally *t, uint64_t us, bool injected)
{
	t->exchanges++;
	t->injected += injected;
	t->max_us = MAX(t->max_us, us);
	t->histogram[histogram_slot(us)]++;
}

void tally_print(const struct tally *t, uint64_t took_us)
{
	double seconds = (double)took_us / 1e6;

	printf("exchanges=%" PRIu64 " injected=%" PRIu64 " errors=%" PRIu64
	       " seconds=%.4f bytes=%" PRIu64 " p50_us=%" PRIu64
	       " p99_us=%" PRIu64 " max_us=%" PRIu64 " handshakes=%" PRIu64
	       " resumed=%" PRIu64 "\n",
	       t->exchanges, t->injected, t->errors, seconds, t->bytes,
	       tally_quantile(t, 0.5), tally_quantile(t, 0.99), t->max_us,
	       t->handshakes, t->resumed);
	(void)fflush(stdout);
}
