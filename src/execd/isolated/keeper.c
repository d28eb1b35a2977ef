/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - process 1 of an isolated session (all of it in the child)
 *
 * The forked process leaves the container's namespaces and forks again: its
 * child is the keeper, it itself stays outside of the session and waits.
 * Whichever ends, the others do: the kernel tells the keeper of its parent's
 * death, and it of the daemon's.
 */

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/execd/isolated/confine.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/isolated/world_inside.h"

static const char *const names[WORLD_NS_NUM] = {
	[WORLD_USER] = "user",	   [WORLD_MOUNT] = "mnt", [WORLD_IPC] = "ipc",
	[WORLD_UTS] = "uts",	   [WORLD_NET] = "net",	  [WORLD_PID] = "pid",
	[WORLD_CGROUP] = "cgroup",
};

void keeper_step(struct keeper *k, const char *what, const char *of)
{
	(void)snprintf(k->step, sizeof(k->step), "%s%s%.64s", what,
		       *of ? " " : "", of);
}

void keeper_mirror(pid_t pid)
{
	siginfo_t info = { 0 };
	sigset_t all;

	(void)prctl(PR_SET_NAME, "isolated");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	while (waitid(P_PID, (id_t)pid, &info, WEXITED) && errno == EINTR)
		;
	if (info.si_code == CLD_EXITED)
		_exit(info.si_status);
	/* the same signal, which has its default handler here */
	(void)sigfillset(&all);
	(void)sigdelset(&all, info.si_status);
	(void)kill(getpid(), info.si_status);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	_exit(128 + info.si_status);
}

/* -- namespaces ----------------------------------------------------------- */

static int text_write(const char *path, const char *text)
{
	int fd CLEANUP_FD = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

/* One user and one group, mapped to ours: all that needs no privilege. */
static int user_map(struct keeper *k)
{
	const struct plan *p = k->plan;
	char text[64];
	int r;

	keeper_step(k, "mapping the user", "");
	/* what is not dumpable may not write its own map */
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	r = text_write("/proc/self/setgroups", "deny");
	snprintf(text, sizeof(text), "%u %u 1", p->has_uid ? p->uid : k->uid,
		 k->uid);
	if (!r || r == -ENOENT)
		r = text_write("/proc/self/uid_map", text);
	snprintf(text, sizeof(text), "%u %u 1",
		 p->has_uid || p->has_gid ? p->gid : k->gid, k->gid);
	if (!r)
		r = text_write("/proc/self/gid_map", text);
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	return r;
}

static int namespaces_leave(struct keeper *k)
{
	int flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS;
	int r;

	if (k->plan->user == PLAN_USERNS) {
		keeper_step(k, "making a user namespace", "");
		if (unshare(CLONE_NEWUSER))
			return -errno;
		r = user_map(k);
		if (r)
			return r;
	}
	if (!k->plan->share_net)
		flags |= CLONE_NEWNET;
	keeper_step(k, "making namespaces", "");
	if (unshare(flags))
		return -errno;
	(void)unshare(CLONE_NEWCGROUP);
	return 0;
}

/* A network of its own has at least itself. */
static void loopback_up(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd CLEANUP_FD = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		(void)ioctl(fd, SIOCSIFFLAGS, &lo);
}

/* -- telling the daemon --------------------------------------------------- */

/* Of a namespace that is the container's there is nothing to enter. */
static bool is_own(const struct keeper *k, enum world_ns ns)
{
	return (ns != WORLD_USER || k->plan->user == PLAN_USERNS) &&
	       (ns != WORLD_NET || !k->plan->share_net);
}

static int news_send(const struct keeper *k, bool stands)
{
	struct world_news news = { 0 };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * (WORLD_NS_NUM + 1))];
	} control = { 0 };
	struct iovec io = { &news, sizeof(news) };
	struct msghdr m = { .msg_iov = &io, .msg_iovlen = 1 };
	int fds[WORLD_NS_NUM + 1];
	char path[64];
	unsigned i;

	if (!stands)
		memcpy(news.step, k->step, sizeof(news.step));
	for (i = 0; stands && i < WORLD_NS_NUM; i++) {
		/* a place that is not used is filled by the root */
		snprintf(path, sizeof(path), "/proc/self/ns/%s", names[i]);
		fds[i] = open(is_own(k, i) ? path : "/",
			      O_CLOEXEC | (is_own(k, i) ? O_RDONLY : O_PATH));
		if (fds[i] < 0)
			return -errno;
	}
	if (stands) {
		fds[WORLD_NS_NUM] = open("/", O_PATH | O_CLOEXEC);
		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		CMSG_FIRSTHDR(&m)->cmsg_level = SOL_SOCKET;
		CMSG_FIRSTHDR(&m)->cmsg_type = SCM_RIGHTS;
		CMSG_FIRSTHDR(&m)->cmsg_len = CMSG_LEN(sizeof(fds));
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), fds, sizeof(fds));
	}
	return sendmsg(KEEPER_CHANNEL, &m, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

/* -- keeping -------------------------------------------------------------- */

/* Takes the daemon's descriptors from the session, and reaps for ever. */
NORETURN static void keep(void)
{
	sigset_t children;
	int signal;

	(void)prctl(PR_SET_NAME, "isolated-init");
	(void)syscall(SYS_close_range, 0, ~0U, 0);
	(void)sigfillset(&children);
	(void)sigprocmask(SIG_SETMASK, &children, NULL);
	(void)sigemptyset(&children);
	(void)sigaddset(&children, SIGCHLD);
	for (;;) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		(void)sigwait(&children, &signal);
	}
}

static int world_make(struct keeper *k)
{
	int r;

	keeper_step(k, "following its parent", "");
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	if (!k->plan->share_net)
		loopback_up();
	(void)!sethostname("sandbox", strlen("sandbox"));
	r = mounts_make(k);
	if (r)
		return r;
	keeper_step(k, "entering the root", "");
	return chdir("/") ? -errno : 0;
}

int keeper_enter(void *ctx, int report)
{
	struct keeper *k = ctx;
	pid_t pid;
	int r;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	r = namespaces_leave(k);
	pid = r ? 0 : fork();
	if (pid > 0)
		keeper_mirror(pid);
	if (pid < 0)
		r = -errno;
	if (!r)
		r = world_make(k);
	if (!r) {
		keeper_step(k, "telling of it", "");
		r = news_send(k, true);
	}
	if (!r)
		r = confine_bounds();
	if (!r)
		r = confine_self();
	if (r) {
		(void)!news_send(k, false);
		return r;
	}
	(void)fd_close(report);
	keep();
}
