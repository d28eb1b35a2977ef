/* SPDX-License-Identifier: Apache-2.0 */
/* hosts.h - the syntax of /etc/hosts: lines of an address and its names */
#pragma once

#include "src/base/addr.h"
#include "src/base/span.h"

enum { HOSTS_ENTRIES_MAX = 65536 };

/* One pair; name is as written (not canonical), borrowed for the call. */
typedef void hosts_fn(void *ctx, struct span name, const struct addr *address);

/* Calls fn for each pair in order. Comments, empty lines, lines whose address
 * is none (or has a zone) are skipped: this file belongs to the node, not to
 * us. Returns the number of pairs, at most HOSTS_ENTRIES_MAX. */
unsigned hosts_parse(struct span text, hosts_fn *fn, void *ctx);
