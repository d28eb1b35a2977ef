/* SPDX-License-Identifier: Apache-2.0 */
/* replace_http.c - POST /files/replace: {path: {old, new}} */

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/job.h"
#include "src/execd/files/path.h"
#include "src/execd/files/replace.h"
#include "src/text/json.h"

struct replacing {
	struct job job;
	struct json *body;
	void *cursor;
	bool told, verbose, checked;
	struct json_out json;
	struct span name; /* of the file at hand */
	struct replacement *now;
};

static bool item_read(struct fault *f, struct span name,
		      const struct json *value, char path[PATH_BYTES],
		      struct span texts[2])
{
	struct diag d = { 0 };
	int r;

	r = path_expand(name, path, &d);
	if (!r)
		r = json_want(value, JSON_KIND_OBJECT, "item", &d);
	if (!r)
		r = json_get_text(value, "item", "old", &texts[0], &d);
	if (!r)
		r = json_get_text(value, "item", "new", &texts[1], &d);
	if (r == JSON_E_ABSENT)
		r = diag_set(&d, 0, 0, "expected \"old\" and \"new\"");
	if (!r && !texts[0].len)
		r = diag_set(&d, 0, 0, "\"old\" must not be empty");
	if (r)
		(void)fault_set(f, 400, ANSWER_INVALID_REQUEST_BODY, "%.*s: %s",
				(int)MIN(name.len, 300), name.ptr, d.msg);
	return !r;
}

/* All of it, before any file is touched. */
static void check_all(struct replacing *x)
{
	const struct json *value;
	struct span name, texts[2];
	char path[PATH_BYTES];
	void *cursor = NULL;

	while ((value = json_next(x->body, &cursor, &name)))
		if (!item_read(&x->job.fault, name, value, path, texts))
			return;
	if (x->told) {
		json_start(&x->json, &x->job.json);
		json_open_object(&x->json, NULL);
	}
}

/* The next file. False: there is none. */
static bool item_begin(struct replacing *x)
{
	const struct json *value = json_next(x->body, &x->cursor, &x->name);
	struct span texts[2];
	char path[PATH_BYTES];

	if (!value || !item_read(&x->job.fault, x->name, value, path, texts))
		return false;
	x->now = replacement_new(path, texts[0], texts[1]);
	return true;
}

static void item_end(struct replacing *x)
{
	if (x->verbose) {
		json_put_name(&x->json, x->name);
		json_open_object(&x->json, NULL);
		json_put_u64(&x->json, "replacedCount",
			     replacement_count(x->now));
		json_close(&x->json);
	}
	x->now = replacement_free(x->now);
}

static void replacing_end(struct replacing *x)
{
	if (!x->told || fault_is_set(&x->job.fault))
		return;
	json_close(&x->json);
	if (json_done(&x->json))
		(void)fault_set(&x->job.fault, 500, ANSWER_RUNTIME_ERROR,
				"the answer is too large");
}

static bool replacing_run(struct job *j)
{
	struct replacing *x = container_of(j, struct replacing, job);

	if (!x->checked) {
		check_all(x);
		x->checked = true;
		return !fault_is_set(&j->fault);
	}
	if (!x->now) {
		if (item_begin(x))
			return true;
		replacing_end(x);
		return false;
	}
	if (replacement_step(x->now, &j->fault))
		return true;
	if (fault_is_set(&j->fault))
		return false;
	item_end(x);
	return true;
}

static void replacing_free(struct job *j)
{
	struct replacing *x = container_of(j, struct replacing, job);

	x->now = replacement_free(x->now);
	x->body = json_free(x->body);
	free(x);
}

void files_replace(void *ctx, struct httpd_request *r)
{
	struct json *body = answer_body(r, false);
	struct replacing *x;

	if (!body)
		return;
	x = must_alloc(sizeof(*x));
	x->body = body;
	/* Who says "false" outright may be a client that reads an object. */
	x->told = httpd_query(r, "verbose").len > 0;
	x->verbose = span_eq(httpd_query(r, "verbose"), SPAN("true"));
	x->job.run = replacing_run;
	x->job.free = replacing_free;
	job_start(ctx, r, &x->job);
}
