/* SPDX-License-Identifier: Apache-2.0 */
/* entry.h - FileInfo of the contract: what there is to say about one file
 *
 * {path, type, size, modified_at, created_at, owner, group, mode}. A path that
 * is not UTF-8 has U+FFFD for each broken byte, and besides a member
 * "path_escaped": the same path percent-encoded, as a query may carry it.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/users.h"

struct json_out;

/* Names looked up last: most files of a tree have one owner. */
struct entry_names {
	bool has_owner, has_group;
	uid_t uid;
	gid_t gid;
	char owner[USERS_NAME_SIZE], group[USERS_NAME_SIZE];
};

/* Of the thing itself, not of what a link leads to. 0 or -errno. */
WUNRES int entry_stat(int dir_fd, const char *name, struct statx *ret);
/* As the next item of an array, or the value of a member just named. */
void entry_put(struct entry_names *names, struct json_out *o, struct span path,
	       const struct statx *st);
