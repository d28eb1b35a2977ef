/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one request through the proxy, and its reply */
#pragma once

#include "src/base/list.h"
#include "src/execd/proxy/pool.h"
#include "src/execd/proxy/target.h"

struct httpd_request;

struct proxy {
	struct pool pool;
	struct list exchanges;
};

/* Takes the request. */
void exchange_begin(struct proxy *p, struct httpd_request *r,
		    const struct target *to);
/* Cuts it: the daemon ends. */
void exchange_cut(struct list *link);
