/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_users.c - passwd(5) and group(5) of an image: what is found by its name
 * is found by its number, and belongs to a line that is there
 *
 * The input is both files, the second behind the first "====\n", or none.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/execd/users.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { GROUPS = 8 };

/* A file in memory that is read by its path, as those of /etc are. */
static int file_of(struct span text, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0);
	must(write(fd, text.ptr ? text.ptr : "", text.len) ==
	     (ssize_t)text.len);
	(void)snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void check_user(struct span name)
{
	char text[USERS_NAME_SIZE];
	gid_t groups[GROUPS];
	struct user u, by_id;

	if (!users_by_name(name, &u))
		return;
	must(span_eq(span_str(u.name), name));
	must(u.uid != (uid_t)-1 && u.gid != (gid_t)-1);
	must(users_by_id(u.uid, &by_id) && by_id.uid == u.uid);
	users_name(u.uid, text);
	must(!strcmp(text, by_id.name));
	must(groups_of(u.name, groups, GROUPS) <= GROUPS);
}

static void check_group(struct span name)
{
	char text[USERS_NAME_SIZE];
	gid_t gid = (gid_t)-1;

	if (!groups_by_name(name, &gid))
		return;
	must(gid != (gid_t)-1);
	groups_name(gid, text);
	must(text[0]);
}

/* Asks for all that lines begin with. */
static void check_all(struct span text)
{
	struct span line, name;

	while (text.len) {
		line = span_cut(&text, '\n');
		name = span_cut(&line, ':');
		check_user(name);
		check_group(name);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span all = span_of(data, size), group = SPAN("");
	const char *cut = size ? memmem(data, size, "====\n", 5) : NULL;
	char passwd_path[64], group_path[64];
	int passwd_fd, group_fd;

	if (size > 64 * 1024)
		return 0; /* each name is looked for from the beginning */
	if (cut) {
		group = span_from(all, (size_t)(cut - all.ptr) + 5);
		all.len = (size_t)(cut - all.ptr);
	}
	passwd_fd = file_of(all, passwd_path);
	group_fd = file_of(group, group_path);
	users_set_files(passwd_path, group_path);
	check_all(all);
	check_all(group);
	users_set_files("/etc/passwd", "/etc/group");
	(void)close(passwd_fd);
	(void)close(group_fd);
	return 0;
}
