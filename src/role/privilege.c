/* SPDX-License-Identifier: Apache-2.0 */
/* privilege.c - setresuid, setgroups, capset, and checking that they held
 *
 * How it works: order matters. The bounding set goes first (it needs
 * CAP_SETPCAP), then groups, then the user; the change from uid 0 clears the
 * capability sets, unless some are kept, and capset() sets them for certain.
 * Afterwards we try to come back and die if that works.
 *
 * capset() is called directly: libcap would be one more library in every role
 * for the sake of one call.
 */

#include "src/role/privilege.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/err.h"

enum { CAPABILITY_BITS = 64, PASSWD_BYTES = 16 * 1024 };

#define CAP_BIT(cap) (1ULL << (cap))

/* What the supervisor does itself, and nft and the roles before they confine
 * themselves. */
static const uint64_t supervisor_capabilities =
	CAP_BIT(CAP_NET_ADMIN) |	/* nftables, routes, IP_TRANSPARENT */
	CAP_BIT(CAP_NET_BIND_SERVICE) | /* port 53 */
	CAP_BIT(CAP_SETUID) | CAP_BIT(CAP_SETGID) | /* roles change user */
	CAP_BIT(CAP_SETPCAP) |	    /* roles empty their bounding set */
	CAP_BIT(CAP_KILL) |	    /* end a role that misbehaves */
	CAP_BIT(CAP_DAC_OVERRIDE) | /* folders that belong to the user */
	CAP_BIT(CAP_CHOWN) | CAP_BIT(CAP_FOWNER) |	   /* making them */
	CAP_BIT(CAP_IPC_LOCK) | CAP_BIT(CAP_SYS_RESOURCE); /* locked memory */

int privilege_find_user(const char *name, struct privilege_user *ret)
{
	char text[PASSWD_BYTES];
	struct passwd entry, *found;
	int r;

	if (!*name) {
		*ret = (struct privilege_user){ 0 };
		return 0;
	}
	r = getpwnam_r(name, &entry, text, sizeof(text), &found);
	if (r)
		return -r;
	if (!found)
		return -ENOENT;
	*ret = (struct privilege_user){ .uid = entry.pw_uid,
					.gid = entry.pw_gid };
	return 0;
}

int privilege_find_group(const char *name, gid_t *ret)
{
	char text[PASSWD_BYTES];
	struct group entry, *found;
	int r;

	r = getgrnam_r(name, &entry, text, sizeof(text), &found);
	if (r)
		return -r;
	if (!found)
		return -ENOENT;
	*ret = entry.gr_gid;
	return 0;
}

static int bounding_keep(uint64_t keep)
{
	int cap;

	for (cap = 0; cap < CAPABILITY_BITS; cap++) {
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) != 1)
			continue; /* the kernel does not know it, or gone */
		if (!(keep & CAP_BIT(cap)) &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) != 0)
			return err_origin(-errno);
	}
	return 0;
}

static int capabilities_set(uint64_t keep)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2], now[2];
	unsigned i;

	if (syscall(SYS_capget, &head, now) != 0)
		return err_origin(-errno);
	for (i = 0; i < 2; i++) {
		data[i].permitted =
			now[i].permitted & (uint32_t)(keep >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, data) != 0)
		return err_origin(-errno);
	return 0;
}

static int user_set(const struct privilege_user *user)
{
	const gid_t groups[] = { user->gid, user->more };

	if (setgroups(user->more ? 2 : 1, groups) != 0 ||
	    setresgid(user->gid, user->gid, user->gid) != 0 ||
	    setresuid(user->uid, user->uid, user->uid) != 0)
		return err_origin(-errno);
	return 0;
}

/* Is there a way back? */
static bool is_dropped(const struct privilege_user *user)
{
	if (getuid() != user->uid || geteuid() != user->uid ||
	    getgid() != user->gid || getegid() != user->gid)
		return false;
	return user->uid == 0 || (setuid(0) != 0 && setgid(0) != 0);
}

int privilege_drop(const struct privilege_user *user, uint64_t keep)
{
	int r = 0;

	if (keep && prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0)
		return err_origin(-errno);
	if (geteuid() == 0) {
		r = bounding_keep(keep);
		if (!r)
			r = user_set(user);
	}
	if (!r)
		r = capabilities_set(keep);
	if (!r && prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0)
		r = err_origin(-errno);
	if (r)
		return r;

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return err_origin(-errno);
	return is_dropped(user) ? 0 : err_origin(-EPERM);
}

int privilege_reduce(void)
{
	int r = bounding_keep(supervisor_capabilities);

	if (!r)
		r = capabilities_set(supervisor_capabilities);
	if (!r && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		r = err_origin(-errno);
	return r;
}
