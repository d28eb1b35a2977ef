/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h - the two clocks of the project
 *
 * Durations use clock_ms() (monotonic). Records that people or certificates
 * read use clock_wall_ms() (Unix time). Units are in the names, always ms.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

uint64_t clock_ms(void);
uint64_t clock_us(void);
uint64_t clock_wall_ms(void);

/* "2026-11-29T21:42:13.123Z"; size must be at least CLOCK_TEXT_SIZE. */
enum { CLOCK_TEXT_SIZE = 25 };
void clock_text(uint64_t wall_ms, char *dst, size_t size);
