/* SPDX-License-Identifier: Apache-2.0 */
/* civil.h - Unix time as a date and a time of day, in UTC
 *
 * Not gmtime_r(): libc's first looks for a file of time zones, which roles may
 * not open, and which in a sandbox is the workload's to write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct civil {
	unsigned year;
	unsigned month;	  /* 1..12 */
	unsigned day;	  /* 1..31 */
	unsigned weekday; /* 0 is Sunday */
	unsigned hour, minute, second;
};

/* Gregorian. Years behind 9999 are told as 9999. */
void civil_from_unix(uint64_t seconds, struct civil *ret);
/* The other direction, .weekday is not looked at. False: there is no such day
 * or time of day, or it is before 1970 or behind 9999. */
bool civil_to_unix(const struct civil *c, uint64_t *ret);
