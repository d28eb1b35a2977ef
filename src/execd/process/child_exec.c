/* SPDX-License-Identifier: Apache-2.0 */
/* child_exec.c - what a new process does until it is the program it was made
 * for
 *
 * It runs with every signal blocked until its handlers are the default ones:
 * a signal met by a handler of the daemon would be told to the daemon, through
 * the descriptors they share. The directory is entered as the user it will be.
 */

#include "src/execd/process/child_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { EXIT_FAILED = 127, FIRST_FREE = 3 };
/* In thousandths of the memory there is (proc_pid_oom_score_adj(5)): half of it
 * is more than the daemon ever has. */
enum { OOM_STEP = 500, OOM_MAX = 1000 };

static const char path_usual[] =
	"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

NORETURN static void fail(int report, enum child_stage stage)
{
	const struct child_failure f = { .stage = (int)stage, .error = errno };

	(void)!write(report, &f, sizeof(f));
	_exit(EXIT_FAILED);
}

static void signals_reset(void)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t none;
	int i;

	for (i = 1; i < NSIG; i++)
		(void)sigaction(i, &plain, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* A copy that dup2() onto 0, 1 and 2 does not hit; -1: none. */
static int descriptor_lift(int fd, int access)
{
	return fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE)
		       : open("/dev/null", access | O_CLOEXEC);
}

/* A program of another user could not open /dev/stdout again otherwise. */
static void descriptor_give(int fd, const struct child_user *user)
{
	struct stat st;

	if (user->change && !fstat(fd, &st) &&
	    (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)))
		(void)!fchown(fd, user->uid, user->gid);
}

static int channel_number(const struct child_spec *spec)
{
	return spec->channel_as ? spec->channel_as : FIRST_FREE;
}

static bool channel_set(const struct child_spec *spec)
{
	if (spec->channel <= 0)
		return true;
	if (spec->channel == channel_number(spec)) /* dup2() would do nothing */
		return fcntl(spec->channel, F_SETFD, 0) >= 0;
	return dup2(spec->channel, channel_number(spec)) >= 0;
}

static bool descriptors_set(const struct child_spec *spec,
			    const struct child_user *user)
{
	const int given[] = { spec->in, spec->out, spec->err };
	int lifted[3], i;

	/* what was not opened close-on-exec by mistake stays ours */
	(void)syscall(SYS_close_range, FIRST_FREE, ~0U, CLOSE_RANGE_CLOEXEC);
	for (i = 0; i < 3; i++) {
		lifted[i] = descriptor_lift(given[i], i ? O_WRONLY : O_RDONLY);
		if (lifted[i] < 0)
			return false;
		if (i && given[i] >= 0)
			descriptor_give(lifted[i], user);
	}
	for (i = 0; i < 3; i++)
		if (dup2(lifted[i], i) < 0)
			return false;
	return channel_set(spec);
}

/* A group in the background may only do this with SIGTTOU blocked. `in` may be
 * no terminal, or not ours: then there is nothing to get. */
static void terminal_get(void)
{
	sigset_t stop;

	(void)sigemptyset(&stop);
	(void)sigaddset(&stop, SIGTTOU);
	(void)sigprocmask(SIG_BLOCK, &stop, NULL);
	(void)tcsetpgrp(STDIN_FILENO, getpid());
	(void)sigprocmask(SIG_UNBLOCK, &stop, NULL);
}

static bool group_lead(const struct child_spec *spec)
{
	if (!spec->terminal && setpgid(0, 0))
		return false;
	if (spec->foreground)
		terminal_get();
	if (!spec->terminal)
		return true;
	return setsid() >= 0 && !ioctl(STDIN_FILENO, TIOCSCTTY, 0);
}

static bool user_become(const struct child_user *user)
{
	if (!user->change)
		return true;
	return !setgroups(user->group_count, user->groups) &&
	       !setresgid(user->gid, user->gid, user->gid) &&
	       !setresuid(user->uid, user->uid, user->uid);
}

/* Where memory is short the kernel kills the largest, and among small programs
 * that fill a tmpfs the daemon is the largest: with it goes the container. So
 * programs go first. Who may not say so (a daemon that is not root: it may not
 * be looked into, and its children are like it until they are programs) lets it
 * be; lowering it again is the program's own business. */
static void memory_goes_first(void)
{
	int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
	char text[16] = "";
	long now;
	int len;

	if (fd < 0)
		return;
	if (read(fd, text, sizeof(text) - 1) > 0) {
		now = strtol(text, NULL, 10);
		now = now > OOM_MAX - OOM_STEP ? OOM_MAX : now + OOM_STEP;
		len = snprintf(text, sizeof(text), "%ld", now);
		(void)!write(fd, text, (size_t)len);
	}
	(void)close(fd);
}

static const char *path_of(const char *const *env)
{
	for (; *env; env++)
		if (!strncmp(*env, "PATH=", 5))
			return *env + 5;
	return path_usual;
}

static void exec_at(const char *path, const struct child_spec *spec)
{
	(void)execve(path, (char *const *)(uintptr_t)spec->argv,
		     (char *const *)(uintptr_t)spec->env);
}

/* As a shell looks: what may not be run here may be found further on, and is
 * what is told when nothing is. */
static void exec_search(const char *name, const struct child_spec *spec)
{
	const char *path = path_of(spec->env), *end;
	char file[PATH_MAX];
	bool refused = false;
	int n;

	for (;; path = end + 1) {
		end = strchrnul(path, ':');
		n = snprintf(file, sizeof(file), "%.*s%s%s", (int)(end - path),
			     path, end > path ? "/" : "", name);
		if (n > 0 && (size_t)n < sizeof(file)) {
			exec_at(file, spec);
			if (errno == EACCES)
				refused = true;
			else if (errno != ENOENT && errno != ENOTDIR)
				return;
		}
		if (!*end)
			break;
	}
	errno = refused ? EACCES : ENOENT;
}

void child_become(const struct child_spec *spec, const struct child_user *user,
		  const struct rlimit *files, int report)
{
	/* out of the way of what is put in place */
	int lifted = fcntl(report, F_DUPFD_CLOEXEC, channel_number(spec) + 1);

	if (lifted < 0)
		fail(report, CHILD_STAGE_FILES);
	report = lifted;
	signals_reset();
	if (!descriptors_set(spec, user) || !group_lead(spec))
		fail(report, CHILD_STAGE_FILES);
	memory_goes_first();
	if (files->rlim_max)
		(void)setrlimit(RLIMIT_NOFILE, files);
	if (spec->enter) {
		errno = -spec->enter(spec->enter_ctx, report);
		if (errno)
			fail(report, CHILD_STAGE_ENTER);
	}
	if (!user_become(user))
		fail(report, CHILD_STAGE_USER);
	if (spec->cwd && chdir(spec->cwd))
		fail(report, CHILD_STAGE_CWD);
	if (strchr(spec->argv[0], '/'))
		exec_at(spec->argv[0], spec);
	else
		exec_search(spec->argv[0], spec);
	fail(report, CHILD_STAGE_EXEC);
}
