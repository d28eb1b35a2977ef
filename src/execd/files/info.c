/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - GET /files/info: {path as asked: FileInfo} */

#include <fcntl.h>
#include <stdlib.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/entry.h"
#include "src/execd/files/job.h"
#include "src/execd/files/path.h"
#include "src/execd/files/paths.h"
#include "src/text/json.h"

struct info {
	struct job job;
	struct paths paths;
	struct entry_names names;
	struct json_out json;
	bool begun;
};

/* A path that was asked for twice is one member. */
static bool was_told(const struct paths *p)
{
	unsigned i;

	for (i = 0; i < p->next; i++)
		if (span_eq(p->items[i], p->items[p->next]))
			return true;
	return false;
}

static void info_tell(struct info *x, struct span asked)
{
	struct fault *f = &x->job.fault;
	char path[PATH_BYTES];
	struct diag d = { 0 };
	struct statx st;
	int r;

	if (path_expand(asked, path, &d)) {
		(void)fault_set(f, 400, ANSWER_INVALID_REQUEST_BODY, "path: %s",
				d.msg);
		return;
	}
	r = entry_stat(AT_FDCWD, path, &st);
	if (r) {
		(void)fault_errno(f, r, "look at", path);
		return;
	}
	json_put_name(&x->json, asked);
	entry_put(&x->names, &x->json, span_str(path), &st);
}

static bool info_run(struct job *j)
{
	struct info *x = container_of(j, struct info, job);

	if (!x->begun) {
		json_start(&x->json, &j->json);
		json_open_object(&x->json, NULL);
		x->begun = true;
	}
	if (x->paths.next == x->paths.count) {
		json_close(&x->json);
		if (json_done(&x->json))
			(void)fault_set(&j->fault, 500, ANSWER_RUNTIME_ERROR,
					"the answer is too large");
		return false;
	}
	if (!was_told(&x->paths))
		info_tell(x, x->paths.items[x->paths.next]);
	x->paths.next++;
	return !fault_is_set(&j->fault);
}

static void info_free(struct job *j)
{
	struct info *x = container_of(j, struct info, job);

	paths_fini(&x->paths);
	free(x);
}

void files_info(void *ctx, struct httpd_request *r)
{
	struct paths paths;
	struct info *x;

	if (!paths_take(r, &paths))
		return;
	x = must_alloc(sizeof(*x));
	x->paths = paths;
	x->job.run = info_run;
	x->job.free = info_free;
	job_start(ctx, r, &x->job);
}
