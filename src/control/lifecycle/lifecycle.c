/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.c - the lifecycle API put together */

#include "src/control/lifecycle/lifecycle.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/network.h"
#include "src/control/lifecycle/runtime.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { REPLY_BYTES = 4 * 1024 * 1024 };

void lifecycle_refuse(struct httpd_request *r, const struct lifecycle_error *no)
{
	httpd_reply_error(r, no->status, no->code, "%s", no->message);
}

/* -- routes --------------------------------------------------------------- */

static const char *const env_refused[] = {
	"EXECD_ACCESS_TOKEN", "EXECD_LISTEN",	 "EXECD_INIT",
	"EXECD_CA_FILE",      "EXECD_CA_BUNDLE", NULL,
};

static const char **host_paths(const struct config *config)
{
	const struct config_strings *s = &config->host_paths;
	const char **all = must_alloc((s->count + 1) * sizeof(*all));
	unsigned i;

	for (i = 0; i < s->count; i++)
		all[i] = s->items[i];
	return all;
}

void lifecycle_sandboxes_post(void *ctx, struct httpd_request *r)
{
	struct create_limits limits = { .env_refused = env_refused };
	struct lifecycle *l = ctx;
	const char **paths = host_paths(l->control->config);
	struct lifecycle_error no;
	struct create_request *q;
	int error;

	limits.host_paths = paths;
	error = create_request_parse(httpd_body(r), &limits, &q, &no);
	free(paths);
	if (error)
		lifecycle_refuse(r, &no);
	else
		lifecycle_create(l, q, r);
}

static void refuse_unknown(struct httpd_request *r)
{
	httpd_reply_error(r, 404, "DOCKER::SANDBOX_NOT_FOUND",
			  "there is no such sandbox");
}

void lifecycle_sandbox_get(void *ctx, struct httpd_request *r)
{
	struct buf out = BUF_INIT(REPLY_BYTES);
	struct lifecycle *l = ctx;
	const struct box *b = boxes_find(&l->boxes, httpd_param(r, "id"));
	struct json_out o;

	if (!b) {
		refuse_unknown(r);
		return;
	}
	json_start(&o, &out);
	box_emit(&o, b, true);
	must(!json_done(&o));
	httpd_reply_json(r, 200, buf_peek(&out));
	buf_fini(&out);
}

static void on_removed(void *ctx, const struct lifecycle_error *no)
{
	struct httpd_request *r = ctx;

	if (no)
		lifecycle_refuse(r, no);
	else
		httpd_reply_empty(r);
}

void lifecycle_sandbox_delete(void *ctx, struct httpd_request *r)
{
	struct span id = httpd_param(r, "id");
	struct lifecycle *l = ctx;

	if (boxes_find(&l->boxes, id))
		lifecycle_remove(l, id, on_removed, r);
	else
		refuse_unknown(r);
}

/* -- the server ----------------------------------------------------------- */

static const struct httpd_route routes[] = {
#define ROUTE(method, path, auth, handler)  \
	{ method, path, auth, handler, 0 }, \
		{ method, "/v1" path, auth, handler, 0 },
#include "src/control/lifecycle/routes.def"
#undef ROUTE
};

/* The node itself, and nobody else. */
static unsigned authorise(void *ctx, const struct httpd_request *r)
{
	const struct lifecycle *l = ctx;

	if (addr_kind(&httpd_peer(r)->address) != ADDR_LOOPBACK)
		return 403;
	return l->control->ever_loaded ? 0 : 503;
}

static const struct httpd_ops server = { .authorise = authorise };

/* -- life ----------------------------------------------------------------- */

int lifecycle_new(struct control *c, struct lifecycle **ret)
{
	const struct config *config = c->config;
	struct lifecycle *l;
	int r;

	*ret = NULL;
	if (!config->lifecycle_listen.port)
		return 0;
	l = must_alloc(sizeof(*l));
	l->control = c;
	boxes_init(&l->boxes);
	r = network_new(&config->subnet4, &config->subnet6, &l->network);
	if (!r)
		r = docker_new(c->loop, config->docker_socket, &l->docker);
	if (!r)
		r = runtime_new(l, &l->runtime);
	if (!r)
		r = httpd_new(c->loop, routes, ARRAY_LEN(routes), &server, l,
			      &l->httpd);
	if (r) {
		lifecycle_free(l);
		return err_trace(r);
	}
	*ret = l;
	return 0;
}

void lifecycle_end(struct lifecycle *l)
{
	if (l)
		l->ended = true;
}

struct lifecycle *lifecycle_free(struct lifecycle *l)
{
	if (!l)
		return NULL;
	l->ended = true;
	docker_free(l->docker);
	runtime_free(l->runtime);
	httpd_free(l->httpd);
	network_free(l->network);
	boxes_fini(&l->boxes);
	free(l);
	return NULL;
}

/* An address that a record has is taken, each time the records are read. */
static void addresses_claim(struct lifecycle *l)
{
	size_t cursor = 0;
	struct box *b;
	int r;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL))) {
		r = network_claim(l->network, &b->v4, &b->v6);
		if (r == -ERANGE)
			log_warn("sandbox %s has an address that is none of "
				 "lifecycle.subnet4 and subnet6",
				 b->id);
	}
}

void lifecycle_loaded(struct lifecycle *l, struct boxes *all)
{
	if (!l)
		return;
	boxes_fini(&l->boxes);
	l->boxes = *all;
	boxes_init(all);
	addresses_claim(l);
}

void lifecycle_start(struct lifecycle *l)
{
	if (!l)
		return;
	runtime_start(l);
	runtime_look(l);
}
