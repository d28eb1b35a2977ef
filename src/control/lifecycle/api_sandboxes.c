/* SPDX-License-Identifier: Apache-2.0 */
/* api_sandboxes.c - sandboxes made, listed, looked at, paused, removed */

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/list_query.h"
#include "src/role/config.h"
#include "src/text/json.h"

/* What execd reads of its environment is for us to say. */
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

/* A snapshot that is asked for must be there, and whole. */
static int snapshot_check(const struct lifecycle *l, struct span id,
			  struct lifecycle_error *no)
{
	const struct capture *s;

	if (!id.len)
		return 0;
	s = captures_find(&l->captures, id);
	if (!s)
		return lifecycle_error_set(no, 404, "SNAPSHOT::NOT_FOUND",
					   "there is no such snapshot");
	if (s->state != CAPTURE_READY)
		return lifecycle_error_set(no, 409, "SNAPSHOT::NOT_READY",
					   "the snapshot is %s, not Ready",
					   capture_state_name(s->state));
	return 0;
}

void lifecycle_sandboxes_post(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	const struct config *config = l->control->config;
	struct create_limits limits = {
		.timeout_max_s = config->lifecycle_max_timeout_s,
		.env_refused = env_refused,
	};
	const char **paths = host_paths(config);
	struct create_request *q = NULL;
	struct lifecycle_error no;
	int error;

	limits.host_paths = paths;
	error = create_request_parse(httpd_body(r), &limits, &q, &no);
	free(paths);
	if (!error)
		error = snapshot_check(l, q->box->snapshot_id, &no);
	if (error) {
		create_request_free(q);
		lifecycle_refuse(r, &no);
		return;
	}
	lifecycle_create(l, q, r);
}

/* A state that there is not is one that no sandbox is in. */
static unsigned states_of(const struct list_query *q)
{
	enum box_state state;
	unsigned bits = 0, i;

	for (i = 0; i < q->state_count; i++)
		bits |= 1U << (box_state_by_name(q->states[i], &state)
				       ? (unsigned)state
				       : (unsigned)BOX_STATE_NUM);
	return bits;
}

void lifecycle_sandboxes_list(void *ctx, struct httpd_request *r)
{
	struct buf out = BUF_INIT(ASK_REPLY_MAX);
	struct lifecycle *l = ctx;
	struct boxes_query query;
	struct list_query q = { 0 };
	struct json_out o;

	if (!ask_list(r, &q))
		return;
	query = (struct boxes_query){
		.states = states_of(&q),
		.metadata = q.pairs,
		.metadata_count = q.pair_count,
		.page = q.page,
		.page_size = q.page_size,
	};
	json_start(&o, &out);
	boxes_emit(&o, &l->boxes, &query);
	list_query_fini(&q);
	ask_reply(r, 200, json_done(&o), &out);
}

void lifecycle_sandbox_get(void *ctx, struct httpd_request *r)
{
	const struct box *b = ask_box(ctx, r);

	if (b)
		ask_reply_box(r, b);
}

/* Handlers that have something done, and are told. */
static void ask_for(struct lifecycle *l, struct httpd_request *r,
		    void (*act)(struct lifecycle *l, struct span id,
				lifecycle_done_fn *done, void *ctx),
		    lifecycle_done_fn *done)
{
	const struct box *b = ask_box(l, r);
	struct ask *a;

	if (!b)
		return;
	a = ask_new(l, r, span_str(b->id));
	act(l, span_str(a->id), done, a);
}

void lifecycle_sandbox_delete(void *ctx, struct httpd_request *r)
{
	ask_for(ctx, r, lifecycle_remove, ask_on_removed);
}

void lifecycle_pause_post(void *ctx, struct httpd_request *r)
{
	ask_for(ctx, r, lifecycle_pause, ask_on_accepted);
}

void lifecycle_resume_post(void *ctx, struct httpd_request *r)
{
	ask_for(ctx, r, lifecycle_resume, ask_on_accepted);
}

/* -- what is always the same ---------------------------------------------- */

void lifecycle_health_get(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_json(r, 200, SPAN("{\"status\":\"healthy\"}"));
}

void lifecycle_pools(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	httpd_reply_error(r, 501, "KUBERNETES::POOL_NOT_SUPPORTED",
			  "there are no pools on a node of Docker containers");
}
