/* SPDX-License-Identifier: Apache-2.0 */
/* delete.c - DELETE /files and DELETE /directories
 *
 * The first removes what is no directory, the second anything with everything
 * in it. What is not there is fine in both. They stop at the first thing that
 * cannot be removed and say which; what came before it is gone.
 */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/job.h"
#include "src/execd/files/path.h"
#include "src/execd/files/paths.h"
#include "src/execd/files/remove.h"

struct deletion {
	struct job job;
	struct paths paths;
	struct removal *removal; /* of the directory at hand */
};

/* The next path, expanded. False: there is none, or the fault is set. */
static bool path_take(struct deletion *x, char path[PATH_BYTES])
{
	struct diag d = { 0 };

	if (x->paths.next == x->paths.count)
		return false;
	if (!path_expand(x->paths.items[x->paths.next++], path, &d))
		return true;
	(void)fault_set(&x->job.fault, 400, ANSWER_INVALID_REQUEST_BODY,
			"path: %s", d.msg);
	return false;
}

static bool file_run(struct job *j)
{
	struct deletion *x = container_of(j, struct deletion, job);
	char path[PATH_BYTES];

	if (!path_take(x, path))
		return false;
	if (!unlink(path) || errno == ENOENT || errno == ENOTDIR)
		return true;
	if (errno == EISDIR)
		(void)fault_set(&j->fault, 500, ANSWER_RUNTIME_ERROR,
				"found a directory, expected a file (DELETE "
				"/directories removes trees): %.600s",
				path);
	else
		(void)fault_errno(&j->fault, errno, "remove", path);
	return false;
}

static bool directory_run(struct job *j)
{
	struct deletion *x = container_of(j, struct deletion, job);
	char path[PATH_BYTES];

	if (!x->removal) {
		if (!path_take(x, path))
			return false;
		x->removal = removal_new(path);
	}
	if (removal_step(x->removal, &j->fault))
		return true;
	x->removal = removal_free(x->removal);
	return !fault_is_set(&j->fault);
}

static void deletion_free(struct job *j)
{
	struct deletion *x = container_of(j, struct deletion, job);

	x->removal = removal_free(x->removal);
	paths_fini(&x->paths);
	free(x);
}

static void deletion_start(struct execd *e, struct httpd_request *r,
			   bool (*run)(struct job *j))
{
	struct paths paths;
	struct deletion *x;

	if (!paths_take(r, &paths))
		return;
	x = must_alloc(sizeof(*x));
	x->paths = paths;
	x->job.run = run;
	x->job.free = deletion_free;
	job_start(e, r, &x->job);
}

void files_delete(void *ctx, struct httpd_request *r)
{
	deletion_start(ctx, r, file_run);
}

void directories_delete(void *ctx, struct httpd_request *r)
{
	deletion_start(ctx, r, directory_run);
}
