/* SPDX-License-Identifier: Apache-2.0 */
/* strays.h - ports of the sandboxes' bridge that lead nowhere
 *
 * How it works: Docker makes a pair of devices, puts one end on the bridge and
 * moves the other into the container; when it removes a container it moves that
 * end back first. If it is killed in between, it forgets them: a port whose
 * other end is here. Nothing is behind it, and nothing passes the fence that
 * was registered for nobody; but they would add up. So what was such a port at
 * every look for a minute, longer than Docker ever takes, is removed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/map.h"

struct config;
struct link;
struct loop;

enum { STRAY_MS = 60 * 1000, STRAY_LOOK_MS = 15 * 1000 };

/* -- which: without the kernel -------------------------------------------- */

struct stray_looks {
	struct map by_name; /* -> struct stray_look */
	uint64_t look;	    /* counts them */
};

void stray_looks_init(struct stray_looks *all);
void stray_looks_fini(struct stray_looks *all);
/* A look begins; what was not seen in the one before is forgotten. */
void stray_looks_begin(struct stray_looks *all);
/* A device as it is now. True: it is to be removed. */
bool stray_looks_see(struct stray_looks *all, const struct link *link,
		     uint64_t now_ms);

/* -- the object ------------------------------------------------------------ */

struct strays;

/* Looks and removes, now and then, where there is a lifecycle API. */
struct strays *strays_new(struct loop *loop, const struct config *config);
/* NULL is fine; returns NULL. */
struct strays *strays_free(struct strays *s);
