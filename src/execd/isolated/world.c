/* SPDX-License-Identifier: Apache-2.0 */
/* world.c - the namespaces of an isolated session: made, kept, entered */

#include "src/execd/isolated/world.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/fd.h"
#include "src/execd/execd.h"
#include "src/execd/isolated/confine.h"
#include "src/execd/isolated/plan.h"
#include "src/execd/isolated/world_inside.h"

static const int kinds[WORLD_NS_NUM] = {
	[WORLD_USER] = CLONE_NEWUSER,	  [WORLD_MOUNT] = CLONE_NEWNS,
	[WORLD_IPC] = CLONE_NEWIPC,	  [WORLD_UTS] = CLONE_NEWUTS,
	[WORLD_NET] = CLONE_NEWNET,	  [WORLD_PID] = CLONE_NEWPID,
	[WORLD_CGROUP] = CLONE_NEWCGROUP,
};

/* -- making --------------------------------------------------------------- */

static void world_clear(struct world *w)
{
	unsigned i;

	for (i = 0; i < WORLD_NS_NUM; i++)
		w->ns[i] = -1;
	w->root = -1;
}

/* Places that are not used hold a folder instead of a namespace. */
static int ns_or_none(int fd)
{
	struct stat is;

	return fstat(fd, &is) || S_ISDIR(is.st_mode) ? fd_close(fd) : fd;
}

/* False: no message, or one that says it does not stand. */
static bool news_take(int channel, struct world *w, char step[WORLD_STEP_SIZE])
{
	struct world_news news = { 0 };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int) * (WORLD_NS_NUM + 1))];
	} control = { 0 };
	struct iovec io = { &news, sizeof(news) };
	struct msghdr m = { .msg_iov = &io,
			    .msg_iovlen = 1,
			    .msg_control = control.space,
			    .msg_controllen = sizeof(control.space) };
	int fds[WORLD_NS_NUM + 1];
	const struct cmsghdr *head;
	unsigned i;

	if (recvmsg(channel, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) !=
	    (ssize_t)sizeof(news))
		return false;
	news.step[sizeof(news.step) - 1] = '\0';
	memcpy(step, news.step, WORLD_STEP_SIZE);
	head = CMSG_FIRSTHDR(&m);
	if (!head || head->cmsg_type != SCM_RIGHTS ||
	    head->cmsg_len != CMSG_LEN(sizeof(fds)))
		return false;
	memcpy(fds, CMSG_DATA(head), sizeof(fds));
	for (i = 0; i < WORLD_NS_NUM; i++)
		w->ns[i] = ns_or_none(fds[i]);
	w->root = fds[WORLD_NS_NUM];
	return true;
}

static int world_start(struct execd *e, const struct plan *plan,
		       struct world *w, int channel)
{
	static const char *const none[] = { "", NULL };
	struct keeper k = { .plan = plan, .uid = geteuid(), .gid = getegid() };
	const struct child_spec spec = {
		.argv = none,
		.env = none + 1,
		.in = -1,
		.out = -1,
		.err = -1,
		.channel = channel,
		.channel_as = KEEPER_CHANNEL,
		.enter = keeper_enter,
		.enter_ctx = &k,
	};
	struct diag d = { 0 };

	return child_start(e, &w->keeper, &spec, &d);
}

int world_new(struct execd *e, const struct plan *plan, struct world *ret,
	      char step[WORLD_STEP_SIZE])
{
	int pair[2], r;

	world_clear(ret);
	memcpy(step, "forking", sizeof("forking"));
	ret->has_uid =
		plan->user == PLAN_SETPRIV && (plan->has_uid || plan->has_gid);
	ret->uid = plan->has_uid ? plan->uid : geteuid();
	ret->gid = plan->has_uid || plan->has_gid ? plan->gid : getegid();
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r = world_start(e, plan, ret, pair[1]);
	(void)fd_close(pair[1]);
	if (!news_take(pair[0], ret, step) && !r)
		r = -EPROTO;
	(void)fd_close(pair[0]);
	if (r)
		world_fini(ret);
	return r;
}

void world_fini(struct world *w)
{
	unsigned i;

	child_fini(&w->keeper);
	for (i = 0; i < WORLD_NS_NUM; i++)
		w->ns[i] = fd_close(w->ns[i]);
	w->root = fd_close(w->root);
}

/* -- entering: in the child ----------------------------------------------- */

static int namespaces_enter(const struct world *w)
{
	unsigned i;

	for (i = 0; i < WORLD_NS_NUM; i++)
		if (w->ns[i] >= 0 && setns(w->ns[i], kinds[i]))
			return -errno;
	return 0;
}

/* A mount namespace is entered at its own root, which need not be ours. */
static int root_enter(const struct world *w)
{
	struct stat root, here;

	if (fchdir(w->root) || fstat(w->root, &root) || stat("/", &here))
		return -errno;
	if (root.st_dev == here.st_dev && root.st_ino == here.st_ino)
		return 0;
	return chroot(".") ? -errno : 0;
}

static int user_become(const struct world *w)
{
	if (!w->has_uid)
		return 0;
	if (setgroups(0, NULL) || setresgid(w->gid, w->gid, w->gid) ||
	    setresuid(w->uid, w->uid, w->uid))
		return -errno;
	return 0;
}

int world_enter(void *ctx, int report)
{
	const struct world *w = ctx;
	pid_t pid;
	int r;

	(void)report;
	r = namespaces_enter(w);
	if (r)
		return r;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid)
		keeper_mirror(pid);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	r = root_enter(w);
	if (!r)
		r = confine_bounds();
	if (!r)
		r = user_become(w);
	return r ? r : confine_self();
}
