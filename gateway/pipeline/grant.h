/* SPDX-License-Identifier: Apache-2.0 */
/* grant.h - proof that policy said yes
 *
 * Only decide.c can make one; opening an origin and forwarding demand one, so
 * nothing reaches the network undecided.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct grant;

uint64_t grant_generation(const struct grant *g);
/* Must TLS be opened to decide the requests inside? */
bool grant_inspect(const struct grant *g);
/* Must TLS stay closed, whatever else says? */
bool grant_passthrough(const struct grant *g);
