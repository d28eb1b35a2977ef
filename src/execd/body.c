/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - large bodies are parsed beside the loop
 *
 * How it works: the request stays where it is, with its body, until somebody
 * answers it. What was parsed lies in .ready while its handler is called, and
 * what the handler did not want is freed behind it.
 */

#include "src/execd/body.h"

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/files/files.h"
#include "src/execd/files/workers.h"
#include "src/text/json.h"

struct large {
	struct work work;
	struct execd *execd;
	struct httpd_request *request;
	httpd_handler *handler;
	struct json *json;
	struct diag diag;
	bool over;
};

/* The loop's: of the request whose handler is being called. */
static struct {
	const struct httpd_request *request;
	struct json *json;
} ready;

int body_take(const struct httpd_request *r, struct span text,
	      struct json **ret, struct diag *d)
{
	if (ready.request != r)
		return json_parse_within(text, EXECD_VALUES_MAX, ret, d);
	*ret = take_ptr(ready.json);
	ready.request = NULL;
	return 0;
}

static enum work_next large_step(struct work *w)
{
	struct large *l = container_of(w, struct large, work);
	struct span text = span_trim(httpd_body(l->request));

	(void)!json_parse_within(text, EXECD_VALUES_MAX, &l->json, &l->diag);
	l->over = true;
	return WORK_DONE;
}

static void large_handle(struct large *l)
{
	ready.request = l->request;
	ready.json = take_ptr(l->json);
	l->handler(l->execd, l->request);
	/* the request may be gone */
	ready.request = NULL;
	ready.json = json_free(ready.json);
}

static void large_done(struct work *w)
{
	struct large *l = container_of(w, struct large, work);
	char why[sizeof(struct diag) + 64];

	if (!l->over || workers_are_ending(l->execd->files->workers))
		answer_error(l->request, 503, ANSWER_RUNTIME_ERROR,
			     "the daemon is ending");
	else if (l->json)
		large_handle(l);
	else
		answer_error(l->request, 400, ANSWER_INVALID_REQUEST_BODY, "%s",
			     diag_text(&l->diag, why, sizeof(why)));
	(void)json_free(l->json);
	free(l);
}

void body_first(struct execd *e, struct httpd_request *r,
		httpd_handler *handler)
{
	struct large *l;

	if (httpd_body(r).len <= BODY_LARGE ||
	    !span_eq(httpd_method(r), SPAN("POST"))) {
		handler(e, r);
		return;
	}
	l = must_alloc(sizeof(*l));
	l->execd = e;
	l->request = r;
	l->handler = handler;
	list_init(&l->work.link);
	l->work.step = large_step;
	l->work.done = large_done;
	workers_give(e->files->workers, &l->work);
}
