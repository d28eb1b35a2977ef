/* SPDX-License-Identifier: Apache-2.0 */
/* identity_http.c - /v1/filesystem/{uid}/{gid}: files as another user
 *
 * The same handlers as without the prefix. Here is only found out whether the
 * daemon may be that user, by being it for a moment; what the handlers start
 * takes the user from the path again (identity_of) and is it while it works.
 */

#include <errno.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/span.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/files/identity.h"
#include "src/httpd/httpd.h"

/* (uint32_t)-1 means "none" to the kernel and is no id. */
static bool id_parse(struct span s, uint32_t *ret)
{
	uint64_t v;

	if (!span_parse_u64(s, &v) || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool id_take(struct httpd_request *r, const char *name, uint32_t *ret)
{
	struct span text = httpd_param(r, name);

	if (id_parse(text, ret))
		return true;
	answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
		     "%s: found \"%.*s\", expected a number from 0 to "
		     "4294967294",
		     name, (int)MIN(text.len, 64), text.ptr);
	return false;
}

static void refuse(struct httpd_request *r, const struct identity *i, int err)
{
	if (err == -EPERM)
		answer_error(r, 403, ANSWER_NOT_SUPPORTED,
			     "found the user %u with the group %u; the daemon "
			     "is the user %u with the group %u, and may not "
			     "work as another",
			     (unsigned)i->uid, (unsigned)i->gid,
			     (unsigned)geteuid(), (unsigned)getegid());
	else
		answer_error(r, 403, ANSWER_NOT_SUPPORTED,
			     "could not work as the user %u with the group "
			     "%u: %s%s",
			     (unsigned)i->uid, (unsigned)i->gid, err_text(err),
			     err == -EINVAL ? " (the container has no such id)"
					    : "");
}

bool identity_check(struct httpd_request *r)
{
	struct identity i;
	uint32_t uid, gid;
	int err;

	if (!id_take(r, "uid", &uid) || !id_take(r, "gid", &gid))
		return false;
	identity_init(&i, uid, gid);
	err = identity_enter(&i);
	identity_leave();
	if (err)
		refuse(r, &i, err);
	return !err;
}

void identity_of(const struct httpd_request *r, struct identity *ret)
{
	uint32_t uid, gid;

	*ret = (struct identity){ 0 };
	if (id_parse(httpd_param(r, "uid"), &uid) &&
	    id_parse(httpd_param(r, "gid"), &gid))
		identity_init(ret, uid, gid);
}

#define PASS_ON(what)                                            \
	void identity_##what(void *ctx, struct httpd_request *r) \
	{                                                        \
		if (identity_check(r))                           \
			what(ctx, r);                            \
	}
PASS_ON(files_info)
PASS_ON(files_delete)
PASS_ON(files_move)
PASS_ON(files_permissions)
PASS_ON(files_search)
PASS_ON(files_replace)
PASS_ON(files_upload)
PASS_ON(files_download)
PASS_ON(directories_list)
PASS_ON(directories_make)
PASS_ON(directories_delete)
