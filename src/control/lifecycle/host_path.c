/* SPDX-License-Identifier: Apache-2.0 */
/* host_path.c - realpath, and whether that is allowed too
 *
 * A request is checked by its text first (volume.c). Here the links are
 * followed. Both the path and what is allowed are taken as they really are, so
 * that an allowed folder may itself be behind a link. What exists is compared
 * before anything is made, and once more afterwards.
 *
 * Between this and the mount somebody who may write there could exchange a
 * folder for a link: that is why sandboxes should mount what is allowed itself,
 * or folders of which no sandbox can write the parent (docs/SECURITY.md).
 */

#include "src/control/lifecycle/host_path.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/attrib.h"
#include "src/base/err.h"
#include "src/control/lifecycle/volume.h"

static_assert(HOST_PATH_SIZE >= PATH_MAX, "realpath() fits");

enum { FOLDER_MODE = 0755 };

static bool path_join(const struct create_volume *v, char dst[HOST_PATH_SIZE])
{
	int n = snprintf(dst, HOST_PATH_SIZE, "%.*s%s%.*s", SPAN_FMT(v->source),
			 v->sub_path.len ? "/" : "", (int)v->sub_path.len,
			 v->sub_path.ptr ? v->sub_path.ptr : "");

	return n > 0 && n < HOST_PATH_SIZE;
}

/* As they really are; those that are not there allow nothing. */
static bool real_is_allowed(const char *real, const char *const *allowed)
{
	char folder[PATH_MAX];
	const char *one[] = { folder, NULL };
	size_t i;

	for (i = 0; allowed[i]; i++)
		if (realpath(allowed[i], folder) &&
		    volume_path_is_allowed(span_str(real), one))
			return true;
	return false;
}

/* The longest beginning of path that exists, resolved. */
static bool nearest_is_allowed(const char *path, const char *const *allowed)
{
	char cut[HOST_PATH_SIZE], real[PATH_MAX];
	char *slash;

	(void)snprintf(cut, sizeof(cut), "%s", path);
	while (!realpath(cut, real)) {
		slash = strrchr(cut, '/');
		if (errno != ENOENT || !slash || slash == cut)
			return false;
		*slash = '\0';
	}
	return real_is_allowed(real, allowed);
}

/* mkdir -p */
static int folders_make(const char *path)
{
	char part[HOST_PATH_SIZE];
	size_t i;

	(void)snprintf(part, sizeof(part), "%s", path);
	for (i = 1;; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, FOLDER_MODE) != 0 && errno != EEXIST)
			return -errno;
		if (path[i] == '\0')
			return 0;
		part[i] = '/';
	}
}

static int not_allowed(const char *path, struct lifecycle_error *no)
{
	return lifecycle_error_set(no, 400, "VOLUME::HOST_PATH_NOT_ALLOWED",
				   "%s leads out of lifecycle.hostPaths", path);
}

int host_path_resolve(const struct create_volume *v, const char *const *allowed,
		      char dst[HOST_PATH_SIZE], struct lifecycle_error *no)
{
	char path[HOST_PATH_SIZE];
	struct stat st;
	int r;

	if (!path_join(v, path))
		return lifecycle_error_set(no, 400, "VOLUME::INVALID_HOST_PATH",
					   "a path of the node is too long");
	if (!realpath(path, dst) && errno == ENOENT) {
		if (!nearest_is_allowed(path, allowed))
			return not_allowed(path, no);
		r = folders_make(path);
		if (r)
			return lifecycle_error_set(
				no, 500, "VOLUME::HOST_PATH_CREATE_FAILED",
				"%s could not be made: %s", path, err_text(r));
	}
	if (!realpath(path, dst))
		return lifecycle_error_set(no, 400,
					   "VOLUME::HOST_PATH_NOT_FOUND",
					   "%s: %s", path, err_text(errno));
	if (!real_is_allowed(dst, allowed))
		return not_allowed(path, no);
	if (stat(dst, &st) != 0 || !S_ISDIR(st.st_mode))
		return lifecycle_error_set(no, 400, "VOLUME::INVALID_HOST_PATH",
					   "%s is not a folder", path);
	return 0;
}
