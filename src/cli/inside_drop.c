/* SPDX-License-Identifier: Apache-2.0 */
/* inside_drop.c - take from CMD what could undo the sandbox
 *
 * A list of what stays, not of what goes: a capability that a later kernel
 * invents is gone too. What stays is what an ordinary container has, without
 * NET_RAW (packets the gateway did not see) and MKNOD (disks).
 */

#include <errno.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/cli/inside.h"

static const uint8_t kept[] = {
	CAP_CHOWN,	CAP_DAC_OVERRIDE, CAP_FOWNER,
	CAP_FSETID,	CAP_KILL,	  CAP_SETGID,
	CAP_SETUID,	CAP_SETPCAP,	  CAP_NET_BIND_SERVICE,
	CAP_SYS_CHROOT, CAP_SETFCAP,	  CAP_AUDIT_WRITE,
};

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(kept); i++)
		mask |= (uint64_t)1 << kept[i];
	return mask;
}

static int bounding_drop(uint64_t mask)
{
	unsigned long cap;

	for (cap = 0; cap < 64; cap++) {
		if (mask >> cap & 1)
			continue;
		/* EINVAL: the kernel knows no capability this high */
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) && errno != EINVAL)
			return -errno;
	}
	return 0;
}

static int sets_drop(uint64_t mask)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {
		{ .effective = (uint32_t)mask, .permitted = (uint32_t)mask },
		{ .effective = (uint32_t)(mask >> 32),
		  .permitted = (uint32_t)(mask >> 32) },
	};

	if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) ||
	    syscall(SYS_capset, &head, data))
		return -errno;
	return 0;
}

int inside_drop(void)
{
	int r;

	/* the caller's session keyring may hold its secrets; a kernel without
	 * keyrings has none to hide */
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0 &&
	    errno != ENOSYS)
		r = -errno;
	else
		r = bounding_drop(kept_mask());
	if (!r)
		r = sets_drop(kept_mask());
	if (!r && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		r = -errno;
	if (r)
		fprintf(stderr,
			"sallyport: privileges could not be dropped: "
			"%s\n",
			err_text(r));
	return r;
}
