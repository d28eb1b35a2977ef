/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one request through the proxy, and its reply */
#pragma once

#include "src/base/list.h"
#include "src/execd/proxy/pool.h"
#include "src/execd/proxy/target.h"

struct httpd_request;

/* Connections that speak something else now; each takes two descriptors. */
enum { TUNNELS_MAX = 1024 };

struct proxy {
	struct pool pool;
	struct list exchanges;
	unsigned tunnels;
};

/* Takes the request. */
void exchange_begin(struct proxy *p, struct httpd_request *r,
		    const struct target *to);
/* Cuts it: the daemon ends. */
void exchange_cut(struct list *link);
