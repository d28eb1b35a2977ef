/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - the files of an isolated session's workspace
 *
 * A workspace that is rw or ro is the container's own folder, so its files are
 * those that /files reads and writes, under the same paths; all that is
 * different is that a session that may only read has an API that only reads.
 * What an overlay holds is nowhere but in the session's own mounts: its
 * programs alone reach it.
 */

#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/isolated/isolation_inside.h"

enum use { USE_READ, USE_WRITE };

/* False: answered. */
static bool may(struct execd *e, struct httpd_request *r, enum use use)
{
	const struct isolated *s = isolated_of_path(e, r);

	if (!s)
		return false;
	if (s->plan.mode == PLAN_OVERLAY) {
		answer_error(r, 503, ANSWER_NOT_SUPPORTED,
			     "the workspace is an overlay, which only the "
			     "session's programs see; expected one that is rw "
			     "or ro");
		return false;
	}
	if (s->plan.mode == PLAN_READ_ONLY && use == USE_WRITE) {
		answer_error(r, 403, ANSWER_NOT_SUPPORTED,
			     "the workspace is read-only");
		return false;
	}
	return true;
}

#define PASS_ON(what, use)                                       \
	void isolated_##what(void *ctx, struct httpd_request *r) \
	{                                                        \
		if (may(ctx, r, use))                            \
			what(ctx, r);                            \
	}
PASS_ON(files_info, USE_READ)
PASS_ON(files_download, USE_READ)
PASS_ON(files_search, USE_READ)
PASS_ON(files_upload, USE_WRITE)
PASS_ON(files_delete, USE_WRITE)
PASS_ON(files_move, USE_WRITE)
PASS_ON(files_permissions, USE_WRITE)
PASS_ON(files_replace, USE_WRITE)
PASS_ON(directories_list, USE_READ)
PASS_ON(directories_make, USE_WRITE)
PASS_ON(directories_delete, USE_WRITE)
