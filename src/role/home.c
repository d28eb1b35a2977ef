/* SPDX-License-Identifier: Apache-2.0 */
/* home.c - folders, lock and audit file, with the owners they need
 *
 * A folder that we make, or find empty (a service manager made it), belongs to
 * the roles' user. One that holds something keeps its owner and mode: a slip
 * of the pen (runDir "/run") must not give a system folder away. It is refused
 * when it belongs to a third account.
 */

#include "src/role/home.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/role/config.h"
#include "src/role/privilege.h"

enum { PATH_SIZE = 4096, READ_BYTES = 16 * 1024 };

static int refuse(struct diag *d, const char *what, const char *path, int r)
{
	return diag_set(d, 0, 0, "could not %s %s: %s", what, path,
			err_text(r));
}

int home_read(const char *path, size_t max, struct buf *out, struct diag *d)
{
	CLEANUP_FD int fd = -1;
	ssize_t len;
	char *into;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return refuse(d, "open", path, errno);
	for (;;) {
		if (buf_len(out) > max || buf_reserve(out, READ_BYTES, &into))
			return diag_set(d, 0, 0,
					"found %s too large, expected at most "
					"%zu bytes",
					path, max);
		len = read(fd, into, READ_BYTES);
		if (len < 0)
			return refuse(d, "read", path, errno);
		if (!len)
			return 0;
		buf_commit(out, (size_t)len);
	}
}

/* The folders above path, as everybody's folders are. */
static int parents_make(const char *path)
{
	char part[PATH_SIZE];
	size_t i, len = strlen(path);

	must(len < sizeof(part));
	memcpy(part, path, len + 1);
	for (i = 1; i < len; i++) {
		if (part[i] != '/')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			return -errno;
		part[i] = '/';
	}
	return 0;
}

static int folder_give(const char *path, mode_t mode,
		       const struct privilege_user *user, struct diag *d)
{
	CLEANUP_FD int fd = -1;

	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchmod(fd, mode) != 0 ||
	    fchown(fd, user->uid, user->gid) != 0)
		return refuse(d, "set the owner of", path, errno);
	return 0;
}

static bool folder_is_empty(const char *path)
{
	DIR *folder = opendir(path);
	struct dirent *entry;
	bool empty = folder != NULL;

	while (empty && (entry = readdir(folder)))
		empty = !strcmp(entry->d_name, ".") ||
			!strcmp(entry->d_name, "..");
	if (folder)
		(void)closedir(folder);
	return empty;
}

static int folder_check(const char *path, mode_t mode,
			const struct privilege_user *user, struct diag *d)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return refuse(d, "look at", path, errno);
	if (!S_ISDIR(st.st_mode))
		return refuse(d, "use", path, ENOTDIR);
	if (st.st_uid != 0 && st.st_uid != user->uid)
		return diag_set(d, 0, 0,
				"found %s to belong to account %u, expected "
				"root or \"user\"",
				path, (unsigned)st.st_uid);
	if (folder_is_empty(path))
		return folder_give(path, mode, user, d);
	if (st.st_mode & ~mode & 0777)
		log_warn("found %s with mode %03o, more open than %03o", path,
			 (unsigned)st.st_mode & 0777, (unsigned)mode);
	return 0;
}

static int folder_make(const char *path, mode_t mode,
		       const struct privilege_user *user, struct diag *d)
{
	int r = parents_make(path);

	if (r)
		return refuse(d, "make the folders above", path, r);
	if (mkdir(path, mode) == 0)
		return folder_give(path, mode, user, d);
	if (errno == EEXIST)
		return folder_check(path, mode, user, d);
	return refuse(d, "make", path, errno);
}

int home_make(const struct config *config, const struct privilege_user *user,
	      struct diag *d)
{
	const struct privilege_user readers = { 0, user->gid };
	char audit[PATH_SIZE];
	int r;

	r = folder_make(config->state_dir, 0700, user, d);
	if (!r)
		r = folder_make(config->run_dir, 0755, user, d);
	if (r)
		return r;

	(void)snprintf(audit, sizeof(audit), "%s", config->audit_file);
	*strrchr(audit, '/') = '\0'; /* the path is absolute */
	if (!*audit || access(audit, F_OK) == 0)
		return 0;
	return folder_make(audit, 0750, &readers, d);
}

int home_lock(const struct config *config, struct diag *d)
{
	char path[PATH_SIZE];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/sallyportd.lock",
		       config->run_dir);
	fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(d, "open", path, errno);
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	(void)fd_close(fd);
	return diag_set(d, 0, 0, "found another sallyportd running with %s",
			config->run_dir);
}

int home_open_audit(const struct config *config,
		    const struct privilege_user *user, struct diag *d)
{
	const char *path = config->audit_file;
	struct stat st;
	int fd;

	fd = open(path,
		  O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK |
			  O_NOCTTY | O_CLOEXEC,
		  0640);
	if (fd < 0)
		return refuse(d, "open", path, errno);
	if (fstat(fd, &st) == 0 && S_ISCHR(st.st_mode))
		return fd; /* /dev/null, or a terminal */
	if (S_ISREG(st.st_mode) && fchown(fd, (uid_t)-1, user->gid) == 0 &&
	    fchmod(fd, 0640) == 0)
		return fd;
	(void)fd_close(fd);
	return diag_set(d, 0, 0,
			"could not use %s for the audit, expected a file of "
			"our own",
			path);
}
