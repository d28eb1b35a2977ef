/* SPDX-License-Identifier: Apache-2.0 */
/* links.h - which network interfaces there are, and which come and go */
#pragma once

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"

struct links;
struct loop;

struct link {
	char name[IFNAMSIZ];
	char master[IFNAMSIZ]; /* the bridge that it is a port of, or "" */
	uint32_t index;
	bool is_bridge, is_veth;
	bool is_far; /* its other end is in another network namespace */
	bool gone;   /* it was removed */
};

typedef void link_fn(void *ctx, const struct link *link);

/* Calls fn for every interface that there is, before it returns, and from the
 * loop for each that appears, changes or goes; an interface may be told of
 * again without a change. 0 or -errno. */
WUNRES int links_new(struct loop *loop, link_fn *fn, void *ctx,
		     struct links **ret);
/* NULL is fine; returns NULL. */
struct links *links_free(struct links *l);

/* Asks the kernel. 0, -ENODEV, -errno. */
WUNRES int link_find(const char *name, struct link *ret);
/* The same about all; fn may be told of one twice. 0 or -errno. */
WUNRES int links_each(link_fn *fn, void *ctx);
/* Has the kernel remove it, a veth with its other end. 0, -ENODEV, -errno. */
WUNRES int link_remove(uint32_t index);
