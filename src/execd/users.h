/* SPDX-License-Identifier: Apache-2.0 */
/* users.h - names of users and groups, from the image's /etc/passwd and group
 *
 * Read by ourselves: a static program has no NSS, and an image may have no
 * libc at all. A missing file is an empty one. Files are read anew when their
 * time of change is another one. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/span.h"

enum { USERS_NAME_SIZE = 64, USERS_HOME_SIZE = 256 };

struct user {
	char name[USERS_NAME_SIZE], home[USERS_HOME_SIZE];
	uid_t uid;
	gid_t gid;
};

bool users_by_name(struct span name, struct user *ret);
bool users_by_id(uid_t uid, struct user *ret);
bool groups_by_name(struct span name, gid_t *ret);
/* The name, or the number as text. */
void users_name(uid_t uid, char dst[USERS_NAME_SIZE]);
void groups_name(gid_t gid, char dst[USERS_NAME_SIZE]);
/* Groups that name the user as a member; how many were written. */
unsigned groups_of(const char *user, gid_t *dst, unsigned max);

/* Other files instead of those of /etc; borrowed. For tests. */
void users_set_files(const char *passwd, const char *group);
