/* SPDX-License-Identifier: Apache-2.0 */
/* fence_watch.h - keeps the kernel rules as they were installed */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct config;
struct fence_rules;
struct fence_watch;
struct loop;

/* Call right after fence_install(): what stands now is how it shall stay.
 * config and loop are borrowed. 0 or -errno. */
WUNRES int fence_watch_new(struct loop *loop, const struct config *config,
			   const struct fence_rules *rules,
			   struct fence_watch **ret);
/* NULL is fine; returns NULL. The rules stay. */
struct fence_watch *fence_watch_free(struct fence_watch *f);

/* How the rules are now: a restoration may have found another way. */
const struct fence_rules *fence_watch_rules(const struct fence_watch *f);

/* The table, the queue's rule and the routing stood as installed when last
 * looked at. */
bool fence_watch_is_ok(const struct fence_watch *f);
