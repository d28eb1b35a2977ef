/* SPDX-License-Identifier: Apache-2.0 */
/* identity.h - the user that a piece of file work is done as
 *
 * Not given (zero) is the daemon itself. Another one is taken on by the thread
 * that works, for the length of a slice, and laid down behind it: files that
 * are made belong to that user, the kernel refuses what it would refuse that
 * user, and no capability of the daemon helps. Its groups are gid and those of
 * the image's /etc/group that name the user.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"

struct httpd_request;

enum { IDENTITY_GROUPS_MAX = 64 };

struct identity {
	bool given;
	bool has_groups; /* they were looked up */
	uid_t uid;
	gid_t gid;
	unsigned group_count; /* besides gid */
	gid_t groups[IDENTITY_GROUPS_MAX];
};

void identity_init(struct identity *i, uid_t uid, gid_t gid);
/* Its groups, once. Reads files of the image: not for the loop. */
void identity_look_up(struct identity *i);
/* The calling thread becomes it, and no other thread does. It must be itself,
 * and i stays as it is until identity_leave(). 0; -errno, and nothing has
 * changed: -EPERM, the daemon may not. Not given: nothing is done. */
WUNRES int identity_enter(const struct identity *i);
/* Back. A thread that cannot come back aborts: it must not go on as either. */
void identity_leave(void);
/* Whom the thread works for; NULL: for the daemon. */
const struct identity *identity_current(void);

/* Of a request, from {uid} and {gid} of its path. False, answered: they are no
 * ids, or the daemon may not be them. */
WUNRES bool identity_check(struct httpd_request *r);
/* The same once more, for what the request starts; not given on routes without
 * them. After identity_check(). */
void identity_of(const struct httpd_request *r, struct identity *ret);
