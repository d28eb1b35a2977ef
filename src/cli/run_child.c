/* SPDX-License-Identifier: Apache-2.0 */
/* run_child.c - clone the sandbox's first process, pass signals, wait
 *
 * How it works: the child is cloned straight into its namespaces and executes
 * this program again as run-init, so its memory and /proc/1/environ hold
 * nothing but what is given here. It waits on a pipe until the interface is
 * there. Signals that come from a terminal reach CMD by themselves, since it
 * is in our process group; only those that somebody sent to us are passed on.
 */

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"
#include "src/io/chan.h"

static const int passed_on[] = { SIGHUP,  SIGINT,   SIGQUIT, SIGTERM, SIGUSR1,
				 SIGUSR2, SIGWINCH, SIGCONT, SIGALRM };

static void signals_set(sigset_t *set)
{
	unsigned i;

	(void)sigemptyset(set);
	(void)sigaddset(set, SIGCHLD);
	for (i = 0; i < ARRAY_LEN(passed_on); i++)
		(void)sigaddset(set, passed_on[i]);
}

void run_child_signals(struct run_child *child)
{
	sigset_t set;

	signals_set(&set);
	(void)sigprocmask(SIG_BLOCK, &set, &child->before);
}

bool run_child_is_interrupted(void)
{
	sigset_t pending;

	return !sigpending(&pending) && (sigismember(&pending, SIGINT) == 1 ||
					 sigismember(&pending, SIGTERM) == 1 ||
					 sigismember(&pending, SIGHUP) == 1 ||
					 sigismember(&pending, SIGQUIT) == 1);
}

NORETURN static void child_exec(const sigset_t *mask, int go, int ca,
				char *const *argv, char *const *environment)
{
	/* past the numbers they shall get, whatever they were */
	go = fcntl(go, F_DUPFD_CLOEXEC, 10);
	ca = fcntl(ca, F_DUPFD_CLOEXEC, 10);
	if (go < 0 || ca < 0 || dup2(go, RUN_FD_GO) < 0 ||
	    dup2(ca, RUN_FD_CA) < 0)
		_exit(125);
	(void)close_range(RUN_FD_CA + 1, ~0u, 0);
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execve("/proc/self/exe", argv, environment);
	_exit(125);
}

int run_child_start(struct run_child *child, struct span ca, char *const *argv,
		    char *const *environment)
{
	const unsigned long flags = CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID |
				    CLONE_NEWIPC | CLONE_NEWUTS | SIGCHLD;
	int memfd CLEANUP_FD = chan_memfd(ca);
	int fds[2];
	long pid;

	if (memfd < 0 || pipe2(fds, O_CLOEXEC)) {
		fprintf(stderr, "sallyport: %s\n", err_text(errno));
		return -errno;
	}
	(void)fflush(NULL);
	pid = syscall(SYS_clone, flags, NULL, NULL, NULL, 0UL);
	if (!pid)
		child_exec(&child->before, fds[0], memfd, argv, environment);
	(void)fd_close(fds[0]);
	if (pid < 0) {
		(void)fd_close(fds[1]);
		fprintf(stderr,
			"sallyport: the kernel made no namespaces: "
			"%s\n",
			err_text(errno));
		return -errno;
	}
	child->pid = (pid_t)pid;
	child->go = fds[1];
	return 0;
}

int run_child_wait(struct run_child *child)
{
	int status, signal, r = write(child->go, "g", 1) == 1 ? 0 : -EPIPE;
	siginfo_t info;
	sigset_t set;

	signals_set(&set);
	child->go = fd_close(child->go) + 1;
	if (r)
		return 125;
	for (;;) {
		if (waitpid(child->pid, &status, WNOHANG) == child->pid) {
			child->pid = 0;
			return proc_status(status);
		}
		signal = sigwaitinfo(&set, &info);
		if (signal > 0 && signal != SIGCHLD &&
		    info.si_code != SI_KERNEL)
			(void)kill(child->pid, signal);
	}
}

void run_child_stop(struct run_child *child)
{
	int status;

	if (child->go)
		child->go = fd_close(child->go) + 1;
	if (child->pid) {
		(void)kill(child->pid, SIGKILL);
		while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
			;
		child->pid = 0;
	}
}
