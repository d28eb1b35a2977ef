/* SPDX-License-Identifier: Apache-2.0 */
/* confine.c - what a process of an isolated session may not do any more
 *
 * The filter is a list of what is refused, not of what is allowed: sessions run
 * whatever a client brings. Its bound are the namespaces; the filter keeps the
 * kernel's larger surfaces out of reach. A call of another architecture's table
 * (i386, x32) is refused as a whole: its numbers mean something else.
 */

#include "src/execd/isolated/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const unsigned kept[] = {
	CAP_CHOWN,  CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID,
	CAP_SETGID, CAP_SETUID,	      CAP_KILL,
};

static const int refused[] = {
	__NR_mount,
	__NR_umount2,
	__NR_chroot,
	__NR_pivot_root,
	__NR_open_tree,
	__NR_move_mount,
	__NR_fsopen,
	__NR_fsmount,
	__NR_fspick,
	__NR_mount_setattr,
	__NR_unshare,
	__NR_setns,
	__NR_ptrace,
	__NR_process_vm_readv,
	__NR_process_vm_writev,
	__NR_kcmp,
	__NR_init_module,
	__NR_finit_module,
	__NR_delete_module,
	__NR_kexec_load,
	__NR_kexec_file_load,
	__NR_bpf,
	__NR_perf_event_open,
	__NR_userfaultfd,
	__NR_personality,
	__NR_add_key,
	__NR_request_key,
	__NR_keyctl,
	__NR_reboot,
	__NR_syslog,
	__NR_swapon,
	__NR_swapoff,
	__NR_acct,
	__NR_name_to_handle_at,
	__NR_open_by_handle_at,
#ifdef __NR_iopl
	__NR_iopl,
	__NR_ioperm,
#endif
	__NR_io_uring_setup,
};

#if defined(__x86_64__)
#define OUR_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_ARCH AUDIT_ARCH_AARCH64
#else
#define OUR_ARCH 0
#endif
_Static_assert(OUR_ARCH, "the calls of this architecture are not known here");
#define X32_BIT 0x40000000U

static uint64_t kept_mask(void)
{
	uint64_t mask = 0;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(kept); i++)
		mask |= UINT64_C(1) << kept[i];
	return mask;
}

int confine_bounds(void)
{
	const uint64_t mask = kept_mask();
	int cap, has;

	for (cap = 0; cap < 64; cap++) {
		has = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (has < 0)
			return 0; /* the kernel knows no more */
		if (has && !(mask >> cap & 1) &&
		    prctl(PR_CAPBSET_DROP, cap, 0, 0, 0))
			return -errno;
	}
	return 0;
}

static int capabilities_drop(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];
	const uint64_t mask = kept_mask();
	unsigned i;

	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, data))
		return -errno;
	for (i = 0; i < 2; i++) {
		data[i].permitted &= (uint32_t)(mask >> (32 * i));
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) ? -errno : 0;
}

static struct sock_filter statement(unsigned code, uint32_t k)
{
	return (struct sock_filter){ .code = (uint16_t)code, .k = k };
}

static struct sock_filter jump(unsigned code, uint32_t k, size_t yes, size_t no)
{
	return (struct sock_filter){ .code = (uint16_t)code,
				     .jt = (uint8_t)yes,
				     .jf = (uint8_t)no,
				     .k = k };
}

/* load arch, is it ours?; load number; one comparison per call; allow; refuse
 */
static int filter_install(void)
{
	enum { COUNT = ARRAY_LEN(refused), SIZE = COUNT + 6 };
	struct sock_filter f[SIZE];
	const struct sock_fprog program = { .len = SIZE, .filter = f };
	size_t at = 0, i;

	_Static_assert(SIZE < 256, "jumps are one byte");
	f[at++] = statement(BPF_LD | BPF_W | BPF_ABS,
			    offsetof(struct seccomp_data, arch));
	f[at] = jump(BPF_JMP | BPF_JEQ | BPF_K, OUR_ARCH, 0, SIZE - 2 - at);
	at++;
	f[at++] = statement(BPF_LD | BPF_W | BPF_ABS,
			    offsetof(struct seccomp_data, nr));
	f[at] = jump(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, SIZE - 2 - at, 0);
	at++;
	for (i = 0; i < COUNT; i++, at++)
		f[at] = jump(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)refused[i],
			     SIZE - 2 - at, 0);
	f[at++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	f[at++] = statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0)
		       ? -errno
		       : 0;
}

int confine_self(void)
{
	const struct rlimit none = { 0 };
	int r;

	(void)setrlimit(RLIMIT_CORE, &none);
	r = capabilities_drop();
	if (!r && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		r = -errno;
	return r ? r : filter_install();
}
