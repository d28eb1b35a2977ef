/* SPDX-License-Identifier: Apache-2.0 */
/* child.c - a program started for a client: its process group and its pipes
 *
 * How it works: a fork, and a pipe that closes by itself when the program is
 * executed. What arrives in it instead is what could not be done. Usually that
 * is known at once. When it is not, the pipe is kept and looked at again when
 * the process has exited.
 */

#include "src/execd/process/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/execd.h"
#include "src/execd/process/child_exec.h"
#include "src/execd/users.h"

static void user_find(const struct child_spec *spec, struct child_user *ret)
{
	struct user user;
	bool known;

	*ret = (struct child_user){ 0 };
	if (!spec->has_uid)
		return;
	known = users_by_id(spec->uid, &user);
	ret->uid = spec->uid;
	ret->gid = spec->has_gid ? spec->gid
		   : known	 ? user.gid
				 : (gid_t)spec->uid;
	if (known)
		ret->group_count =
			groups_of(user.name, ret->groups, CHILD_GROUPS_MAX - 1);
	/* nothing to change; and who is not root may not */
	ret->change = geteuid() == 0 || ret->uid != geteuid() ||
		      ret->gid != getegid();
}

/* -- starting ------------------------------------------------------------- */

static size_t words_bytes(const char *const *words)
{
	size_t bytes = 0;

	for (; *words; words++)
		bytes += strlen(*words) + 1 + sizeof(*words);
	return bytes;
}

/* No system takes as much, so nothing is copied for it. */
static bool is_too_long(const struct child_spec *spec)
{
	return words_bytes(spec->argv) + words_bytes(spec->env) >
	       CHILD_WORDS_MAX;
}

static pid_t child_fork(struct execd *e, const struct child_spec *spec,
			const struct child_user *user, int report)
{
	sigset_t all, before;
	pid_t pid;
	int error;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (!pid)
		child_become(spec, user, &e->config->files, report);
	error = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	errno = error;
	return pid;
}

/* 0 it runs; 1 *f tells why not; -ETIMEDOUT: it is not known yet. */
static int report_wait(int report, struct child_failure *f)
{
	uint64_t end_ms = clock_ms() + CHILD_START_MS, now_ms;
	struct pollfd p = { .fd = report, .events = POLLIN };

	for (;;) {
		now_ms = clock_ms();
		if (now_ms >= end_ms)
			return -ETIMEDOUT;
		if (poll(&p, 1, (int)(end_ms - now_ms)) <= 0)
			continue;
		return read(report, f, sizeof(*f)) == (ssize_t)sizeof(*f);
	}
}

static int say_failure(struct child *c, const struct child_spec *spec,
		       enum child_stage stage, int error, struct diag *d)
{
	const char *why = err_text(error);

	c->failed = stage;
	switch (stage) {
	case CHILD_STAGE_FORK:
		(void)diag_set(d, 0, 0, "no process could be made: %s", why);
		break;
	case CHILD_STAGE_FILES:
		(void)diag_set(d, 0, 0,
			       "the program's descriptors could not be set up: "
			       "%s",
			       why);
		break;
	case CHILD_STAGE_ENTER:
		(void)diag_set(d, 0, 0,
			       "the session's namespaces could not be entered: "
			       "%s",
			       why);
		break;
	case CHILD_STAGE_USER:
		(void)diag_set(d, 0, 0, "could not become uid %u: %s",
			       (unsigned)spec->uid, why);
		break;
	case CHILD_STAGE_CWD:
		(void)diag_set(d, 0, 0, "cwd \"%s\" could not be entered: %s",
			       spec->cwd, why);
		break;
	case CHILD_STAGE_EXEC:
	case CHILD_STAGE_NUM:
		(void)diag_set(d, 0, 0, "\"%s\" could not be run: %s%s",
			       spec->argv[0], why,
			       error == E2BIG
				       ? " (command and environment together)"
				       : "");
		break;
	}
	return -error;
}

/* The process is dead: what it could not do is in the pipe, or nothing is. */
static void report_read(struct child *c)
{
	struct child_failure f;
	struct pollfd p = { .fd = c->report, .events = POLLIN };

	if (c->report < 0)
		return;
	if (poll(&p, 1, 0) > 0 &&
	    read(c->report, &f, sizeof(f)) == (ssize_t)sizeof(f)) {
		c->failed = (enum child_stage)f.stage;
		c->late_error = f.error;
	}
	c->report = fd_close(c->report);
}

static void on_reaped(struct reaper_child *r, int status)
{
	struct child *c = container_of(r, struct child, reaped);

	report_read(c);
	c->exited = true;
	c->status = status;
	c->on_exit(c);
	/* c may be gone */
}

/* The parent's side of a fork that worked. Takes report. */
static int child_follow(struct child *c, const struct child_spec *spec,
			pid_t pid, int report, struct diag *d)
{
	struct child_failure f = { 0 };
	int r;

	r = report_wait(report, &f);
	if (r == -ETIMEDOUT)
		c->report = report;
	else
		(void)fd_close(report);
	if (r > 0) /* the reaper finds the process */
		return say_failure(c, spec, (enum child_stage)f.stage, f.error,
				   d);
	c->pid = c->reaped.pid = pid;
	c->reaped.exited = on_reaped;
	reaper_add(c->execd->reaper, &c->reaped);
	return 0;
}

int child_start(struct execd *e, struct child *c, const struct child_spec *spec,
		struct diag *d)
{
	struct child_user user;
	int report[2];
	pid_t pid;
	int error;

	c->execd = e;
	c->pid = c->reaped.pid = 0;
	c->exited = false;
	c->late_error = 0;
	c->report = -1;
	if (is_too_long(spec))
		return say_failure(c, spec, CHILD_STAGE_EXEC, E2BIG, d);
	user_find(spec, &user);
	if (pipe2(report, O_CLOEXEC))
		return say_failure(c, spec, CHILD_STAGE_FORK, errno, d);
	pid = child_fork(e, spec, &user, report[1]);
	error = errno;
	(void)fd_close(report[1]);
	if (pid < 0) {
		(void)fd_close(report[0]);
		return say_failure(c, spec, CHILD_STAGE_FORK, error, d);
	}
	return child_follow(c, spec, pid, report[0], d);
}

/* -- afterwards ----------------------------------------------------------- */

void child_signal(struct child *c, int signal, bool always)
{
	if (c->pid && (!c->exited || always))
		(void)kill(-c->pid, signal);
}

bool child_group_lives(const struct child *c)
{
	return c->pid && (!kill(-c->pid, 0) || errno == EPERM);
}

bool child_late_failure(const struct child *c, char dst[CHILD_LATE_SIZE])
{
	static const char *const what[CHILD_STAGE_NUM] = {
		[CHILD_STAGE_FORK] = "no process could be made",
		[CHILD_STAGE_FILES] = "its descriptors could not be set up",
		[CHILD_STAGE_USER] = "it could not become its user",
		[CHILD_STAGE_CWD] = "cwd could not be entered",
		[CHILD_STAGE_EXEC] = "the program could not be run",
	};

	if (!c->late_error || (unsigned)c->failed >= CHILD_STAGE_NUM)
		return false;
	(void)snprintf(dst, CHILD_LATE_SIZE, "%s: %s", what[c->failed],
		       err_text(c->late_error));
	return true;
}

void child_fini(struct child *c)
{
	if (!c->pid)
		return;
	child_signal(c, SIGKILL, false);
	if (!c->exited)
		c->report = fd_close(c->report);
	reaper_remove(c->execd->reaper, &c->reaped);
	c->pid = 0;
}
