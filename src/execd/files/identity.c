/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - a thread becomes another user, and itself again
 *
 * How it works: the kernel keeps credentials for each thread; only libc makes
 * them those of the process. So these calls go to the kernel directly. The
 * effective ids are changed, and the ids of files with them; the real and the
 * saved ones stay the daemon's, which is the way back, and keeps the user from
 * signalling or tracing the thread meanwhile. The ids of files alone would not
 * do: /proc/sys asks for the effective one. Whoever is not root has no
 * effective capability then, not even those that the daemon kept for itself.
 *
 * A change of credentials makes a process dumpable as the system has it; ours
 * is not (its memory holds the token), and is made so again at once.
 */

#include "src/execd/files/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/execd/users.h"

enum { CAPS_WORDS = _LINUX_CAPABILITY_U32S_3 };

struct caps {
	struct __user_cap_data_struct words[CAPS_WORDS];
};

/* What the daemon is: does not change. */
static struct {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t *groups;
} own;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static _Thread_local const struct identity *current;
static _Thread_local struct caps caps_before;

static void own_read(void)
{
	own.uid = geteuid();
	own.gid = getegid();
	own.group_count = getgroups(0, NULL);
	must(own.group_count >= 0);
	own.groups = must_alloc(((size_t)own.group_count + 1) * sizeof(gid_t));
	must(getgroups(own.group_count, own.groups) == own.group_count);
}

/* -- the calls, for this thread alone ------------------------------------- */

static int caps_get(struct caps *ret)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};

	return syscall(SYS_capget, &head, ret->words) ? -errno : 0;
}

static int caps_set(const struct caps *c)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};

	return syscall(SYS_capset, &head, c->words) ? -errno : 0;
}

static int groups_set(size_t count, const gid_t *groups)
{
	return syscall(SYS_setgroups, count, groups) ? -errno : 0;
}

/* The effective one, and that of files. */
static int gid_set(gid_t gid)
{
	return syscall(SYS_setresgid, -1L, (long)gid, -1L) ? -errno : 0;
}

static int uid_set(uid_t uid)
{
	return syscall(SYS_setresuid, -1L, (long)uid, -1L) ? -errno : 0;
}

/* -- there and back ------------------------------------------------------- */

static bool is_own(const struct identity *i)
{
	return i->uid == own.uid && i->gid == own.gid;
}

static int become(const struct identity *i)
{
	gid_t groups[IDENTITY_GROUPS_MAX + 1];
	struct caps none = caps_before;
	unsigned n;
	int r = 0;

	if (!is_own(i)) {
		groups[0] = i->gid;
		for (n = 0; n < i->group_count; n++)
			groups[n + 1] = i->groups[n];
		r = groups_set(n + 1, groups);
		if (!r)
			r = gid_set(i->gid);
		if (!r)
			r = uid_set(i->uid);
	}
	for (n = 0; n < CAPS_WORDS; n++)
		none.words[n].effective = 0;
	return !r && i->uid ? caps_set(&none) : r;
}

/* The ids need no capability, the groups do. Where groups may not be set (a
 * user namespace may say so) they were not set either. */
static void come_back(void)
{
	int r;

	must(!uid_set(own.uid));
	must(!caps_set(&caps_before));
	must(!gid_set(own.gid));
	r = groups_set((size_t)own.group_count, own.groups);
	must(!r || r == -EPERM);
}

static void dumpable_keep(int before)
{
	if (!before)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

int identity_enter(const struct identity *i)
{
	int dumpable, r;

	if (!i->given)
		return 0;
	must(!current);
	must(pthread_once(&own_once, own_read) == 0);
	dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	r = caps_get(&caps_before);
	if (r)
		return r;
	r = become(i);
	if (r)
		come_back();
	else
		current = i;
	dumpable_keep(dumpable);
	return r;
}

void identity_leave(void)
{
	int dumpable = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);

	if (!current)
		return;
	come_back();
	current = NULL;
	dumpable_keep(dumpable);
}

const struct identity *identity_current(void)
{
	return current;
}

void identity_init(struct identity *i, uid_t uid, gid_t gid)
{
	*i = (struct identity){ .given = true, .uid = uid, .gid = gid };
}

void identity_look_up(struct identity *i)
{
	struct user user;

	if (!i->given || i->has_groups)
		return;
	i->has_groups = true;
	if (users_by_id(i->uid, &user))
		i->group_count =
			groups_of(user.name, i->groups, IDENTITY_GROUPS_MAX);
}
