/* SPDX-License-Identifier: Apache-2.0 */
/* privilege.h - user, groups, capabilities: giving them up for good */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "src/base/attrib.h"

struct privilege_user {
	uid_t uid;
	gid_t gid;
	gid_t more; /* one more group, or 0: none */
};

/* Looks up an account; "" is root itself. 0; -ENOENT when there is no such
 * account; -errno. */
WUNRES int privilege_find_user(const char *name, struct privilege_user *ret);

/* Looks up a group. 0; -ENOENT; -errno. */
WUNRES int privilege_find_group(const char *name, gid_t *ret);

/* Becomes that user with no group but its own (and .more), no capability in any set but
 * those of keep (bits 1 << CAP_...), no_new_privs. Without root: fine when
 * already that user and keep is 0. 0 or -errno; after a failure the process
 * must end. */
WUNRES int privilege_drop(const struct privilege_user *user, uint64_t keep);

/* The supervisor's: keeps the capabilities it and nft need, empties the rest
 * of the bounding set, no_new_privs. 0 or -errno. */
WUNRES int privilege_reduce(void);
