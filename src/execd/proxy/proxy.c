/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - what is asked of /proxy/, and whom it is given to */

#include "src/execd/proxy/proxy.h"

#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/proxy/exchange.h"
#include "src/wire/h1.h"

struct proxy *proxy_new(struct execd *e)
{
	struct proxy *p = must_alloc(sizeof(*p));

	pool_init(&p->pool, e->loop);
	list_init(&p->exchanges);
	return p;
}

struct proxy *proxy_free(struct proxy *p)
{
	if (!p)
		return NULL;
	list_for_each(it, &p->exchanges) exchange_cut(it);
	pool_fini(&p->pool);
	free(p);
	return NULL;
}

void proxy_any(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct target to;

	if (!target_parse(httpd_head(r)->path, &to)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "the path is /proxy/PORT/..., with a port from 1 "
			     "to 65535");
		return;
	}
	if (to.port == e->config->listen.port) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "port %u is this daemon: it is no proxy to itself",
			     to.port);
		return;
	}
	if (httpd_head(r)->upgrade && e->proxy->tunnels >= TUNNELS_MAX) {
		answer_error(r, 503, ANSWER_RUNTIME_ERROR,
			     "there are %d upgraded connections; no more are "
			     "allowed",
			     TUNNELS_MAX);
		return;
	}
	exchange_begin(e->proxy, r, &to);
}
