/* SPDX-License-Identifier: Apache-2.0 */
/* syscalls.c - the seccomp filter of a role, made from syscalls.def
 *
 * How it works: the default is SECCOMP_RET_TRAP: the call is not made, the
 * kernel sends SIGSYS instead. Our handler writes which call it was and lets
 * the signal kill the process: with plain RET_KILL nobody would ever learn
 * what a new libc version needs. The handler cannot be replaced, because
 * rt_sigaction(SIGSYS) is outside the list; blocking SIGSYS makes the kernel
 * kill at once. A foreign architecture is killed without words. (Hostile code
 * inside could get past the handler's report, never past the filter.)
 *
 * Arguments are looked at where the call is dangerous by its argument: no
 * executable memory, no process but threads, sockets of known families only.
 * clone3() hides its flags in memory that a filter cannot read; it is answered
 * ENOSYS, and libc falls back to clone(), whose flags we see.
 */

#include "src/role/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/log.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer) || \
	defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define FILTER_DEFAULT SCMP_ACT_LOG
#else
#define FILTER_DEFAULT SCMP_ACT_TRAP
#endif

enum {
	G = 1 << ROLE_GATEWAY,
	V = 1 << ROLE_VAULT,
	C = 1 << ROLE_CONTROL,
	Q = 1 << ROLE_QUEUE,
	D = 1 << ROLE_NUM, /* of a control that asks others */
	ALL = G | V | C | Q,
	NAMES_MAX = 512,
};

static const struct {
	unsigned roles;
	int number;
} calls[] = {
#define CALL(who, name) { who, SCMP_SYS(name) },
#include "src/role/syscalls.def"
#undef CALL
};

/* An int argument is the lower half of its register; the rest is undefined. */
#define INT_BITS 0xffffffffULL

/* A call that is allowed when one argument (a & mask) == value. */
static const struct {
	unsigned roles;
	int number;
	unsigned arg;
	scmp_datum_t mask, value;
} conditional[] = {
	/* no memory that can be executed: no dlopen(), no injected code */
	{ ALL, SCMP_SYS(mmap), 2, PROT_EXEC, 0 },
	{ ALL, SCMP_SYS(mprotect), 2, PROT_EXEC, 0 },
	/* threads only */
	{ ALL, SCMP_SYS(clone), 0, CLONE_THREAD | CLONE_VM,
	  CLONE_THREAD | CLONE_VM },
	{ ALL, SCMP_SYS(prctl), 0, INT_BITS, PR_SET_NAME },
	/* libc's fstat(); a path needs another flag word */
	{ G | V | Q, SCMP_SYS(newfstatat), 3, INT_BITS, AT_EMPTY_PATH },
	/* how much is there to read; the name of an interface */
	{ ALL, SCMP_SYS(ioctl), 1, INT_BITS, FIONREAD },
	{ ALL, SCMP_SYS(ioctl), 1, INT_BITS, FIONBIO },
	{ G | C, SCMP_SYS(ioctl), 1, INT_BITS, SIOCGIFNAME },
	{ G | C, SCMP_SYS(ioctl), 1, INT_BITS, SIOCGIFINDEX },
	/* traffic, admin listeners; netlink for the node's own addresses */
	{ G | C, SCMP_SYS(socket), 0, INT_BITS, AF_INET },
	{ G | C, SCMP_SYS(socket), 0, INT_BITS, AF_INET6 },
	{ C, SCMP_SYS(socket), 0, INT_BITS, AF_UNIX },
	{ C, SCMP_SYS(socket), 0, INT_BITS, AF_NETLINK },
	/* limits may be read (a null new limit), not set */
	{ ALL, SCMP_SYS(prlimit64), 2, ~0ULL, 0 },
};

/* A call that fails with an errno instead of ending the role. */
static const struct {
	int number, error;
} refused[] = {
	{ SCMP_SYS(clone3), ENOSYS },
};

static const char *names[NAMES_MAX];

static NORETURN void filter_failed(int r)
{
	log_error("could not install the system call filter: %s", err_text(r));
	_exit(EXIT_FAILURE);
}

static void allow(scmp_filter_ctx filter, int number,
		  const struct scmp_arg_cmp *args, unsigned count)
{
	int r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, count,
				       args);

	if (r)
		filter_failed(r);
}

static void filter_fill(scmp_filter_ctx filter, unsigned who)
{
	struct scmp_arg_cmp args[1];
	unsigned i;
	int r = 0;

	for (i = 0; i < ARRAY_LEN(calls); i++)
		if (calls[i].roles & who)
			allow(filter, calls[i].number, NULL, 0);
	for (i = 0; i < ARRAY_LEN(conditional); i++) {
		if (!(conditional[i].roles & who))
			continue;
		args[0] = SCMP_CMP(conditional[i].arg, SCMP_CMP_MASKED_EQ,
				   conditional[i].mask, conditional[i].value);
		allow(filter, conditional[i].number, args, 1);
	}
	/* our own report stays; a signal reaches nobody but ourselves */
	args[0] = SCMP_CMP(0, SCMP_CMP_NE, SIGSYS);
	allow(filter, SCMP_SYS(rt_sigaction), args, 1);
	args[0] = SCMP_CMP(0, SCMP_CMP_MASKED_EQ, INT_BITS,
			   (scmp_datum_t)getpid());
	allow(filter, SCMP_SYS(tgkill), args, 1);

	for (i = 0; !r && i < ARRAY_LEN(refused); i++)
		r = seccomp_rule_add(filter,
				     SCMP_ACT_ERRNO((uint32_t)refused[i].error),
				     refused[i].number, 0);
	if (r)
		filter_failed(r);
}

/* Async-signal-safe, and the default action follows: SA_RESETHAND was set and
 * the signal we raise is delivered when this returns. */
static void on_sigsys(int signal, siginfo_t *info, void *context)
{
	int number = info->si_syscall;

	(void)context;
	log_error("made a system call outside its list: %d (%s)", number,
		  number >= 0 && number < NAMES_MAX && names[number]
			  ? names[number]
			  : "unknown");
	(void)raise(signal);
}

/* Names are looked up now: the handler may not allocate. So is the time zone,
 * which libc reads from a file when the first log line wants the time. */
static void report_prepare(void)
{
	const struct sigaction action = {
		.sa_sigaction = on_sigsys,
		.sa_flags = SA_SIGINFO | (int)SA_RESETHAND,
	};
	int i;

	tzset();
	for (i = 0; i < NAMES_MAX; i++)
		names[i] =
			seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
	if (sigaction(SIGSYS, &action, NULL) != 0)
		filter_failed(errno);
}

bool syscalls_are_enforced(void)
{
	return FILTER_DEFAULT != SCMP_ACT_LOG;
}

void syscalls_confine(enum role role, bool asks)
{
	scmp_filter_ctx filter = seccomp_init(FILTER_DEFAULT);
	int r;

	must(role == ROLE_GATEWAY || role == ROLE_VAULT ||
	     role == ROLE_CONTROL || role == ROLE_QUEUE);
	if (!filter)
		filter_failed(ENOMEM);
	report_prepare();

	r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH,
			     SCMP_ACT_KILL_PROCESS);
	if (!r)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (!r) /* a binary tree instead of a list: every call pays for it */
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r)
		filter_failed(r);
	filter_fill(filter, 1U << role | (asks ? D : 0U));

	r = seccomp_load(filter);
	seccomp_release(filter);
	if (r)
		filter_failed(r);
}
