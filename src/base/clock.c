/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - monotonic and wall time in milliseconds */

#include "src/base/clock.h"

#include <stdio.h>
#include <time.h>

#include "src/base/civil.h"
#include "src/base/err.h"

static uint64_t clock_read(clockid_t id, uint64_t per_second)
{
	struct timespec ts;

	must(clock_gettime(id, &ts) == 0);
	return (uint64_t)ts.tv_sec * per_second +
	       (uint64_t)ts.tv_nsec / (1000000000u / per_second);
}

uint64_t clock_ms(void)
{
	return clock_read(CLOCK_MONOTONIC, 1000);
}

uint64_t clock_us(void)
{
	return clock_read(CLOCK_MONOTONIC, 1000000);
}

uint64_t clock_wall_ms(void)
{
	return clock_read(CLOCK_REALTIME, 1000);
}

void clock_text(uint64_t wall_ms, char *dst, size_t size)
{
	struct civil c;

	must(size >= CLOCK_TEXT_SIZE);
	civil_from_unix(wall_ms / 1000, &c);
	(void)snprintf(dst, size, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
		       c.year % 10000u, c.month % 100u, c.day % 100u,
		       c.hour % 100u, c.minute % 100u, c.second % 100u,
		       (unsigned)(wall_ms % 1000));
}
