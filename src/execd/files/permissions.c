/* SPDX-License-Identifier: Apache-2.0 */
/* permissions.c - POST /files/permissions and POST /directories
 *
 * Both are told {path: {mode, owner, group}}. All of it is read before anything
 * is changed, so a body with a mistake in it changes nothing.
 */

#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/job.h"
#include "src/execd/files/make.h"
#include "src/execd/files/path.h"
#include "src/execd/files/permission.h"
#include "src/text/json.h"

struct permissions {
	struct job job;
	struct json *body;
	void *cursor;
	bool checked;
	/* Does it to one path; sets the fault. */
	void (*apply)(const char *path, const struct permission *p,
		      struct fault *f);
};

static bool member_read(struct fault *f, struct span name,
			const struct json *value, char path[PATH_BYTES],
			struct permission *p)
{
	struct diag d = { 0 };

	if (!path_expand(name, path, &d) && !permission_parse(value, p, &d))
		return true;
	(void)fault_set(f, 400, ANSWER_INVALID_REQUEST_BODY, "%.*s: %s",
			(int)MIN(name.len, 300), name.ptr, d.msg);
	return false;
}

static void check_all(struct permissions *x)
{
	const struct json *value;
	char path[PATH_BYTES];
	struct permission p;
	void *cursor = NULL;
	struct span name;

	while ((value = json_next(x->body, &cursor, &name)))
		if (!member_read(&x->job.fault, name, value, path, &p))
			return;
}

static bool permissions_run(struct job *j)
{
	struct permissions *x = container_of(j, struct permissions, job);
	const struct json *value;
	char path[PATH_BYTES];
	struct permission p;
	struct span name;

	if (!x->checked) {
		check_all(x);
		x->checked = true;
		return !fault_is_set(&j->fault);
	}
	value = json_next(x->body, &x->cursor, &name);
	if (!value)
		return false;
	if (member_read(&j->fault, name, value, path, &p))
		x->apply(path, &p, &j->fault);
	return !fault_is_set(&j->fault);
}

static void permissions_free(struct job *j)
{
	struct permissions *x = container_of(j, struct permissions, job);

	x->body = json_free(x->body);
	free(x);
}

static void permissions_start(struct execd *e, struct httpd_request *r,
			      void (*apply)(const char *path,
					    const struct permission *p,
					    struct fault *f))
{
	struct json *body = answer_body(r, false);
	struct permissions *x;

	if (!body)
		return;
	x = must_alloc(sizeof(*x));
	x->body = body;
	x->apply = apply;
	x->job.run = permissions_run;
	x->job.free = permissions_free;
	job_start(e, r, &x->job);
}

static void apply_to_file(const char *path, const struct permission *p,
			  struct fault *f)
{
	int r;

	r = permission_set_path(p, path);
	if (r)
		(void)fault_errno(f, r, "change the permissions of", path);
}

static void apply_to_directory(const char *path, const struct permission *p,
			       struct fault *f)
{
	(void)!make_directories(path, p, f);
}

void files_permissions(void *ctx, struct httpd_request *r)
{
	permissions_start(ctx, r, apply_to_file);
}

void directories_make(void *ctx, struct httpd_request *r)
{
	permissions_start(ctx, r, apply_to_directory);
}
