/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - run another program to its end, and find programs */

#include "src/cli/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/fd.h"

int proc_status(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return 128 + WTERMSIG(wait_status);
}

/* The child: default signals, stdin from the pipe, nothing else inherited. */
NORETURN static void proc_child(const char *const *argv, int in)
{
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in, STDIN_FILENO) < 0 ||
	    dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		_exit(127);
	(void)close_range(3, ~0u, 0);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int feed(int fd, struct span input)
{
	ssize_t n;

	while (input.len) {
		n = write(fd, input.ptr, input.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		input = span_from(input, (size_t)n);
	}
	return 0;
}

int proc_run(const char *const *argv, struct span input)
{
	int status, r, fds[2];
	sigset_t pipe_only, before;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	/* a program that does not read all its input is no reason to die */
	(void)sigemptyset(&pipe_only);
	(void)sigaddset(&pipe_only, SIGPIPE);
	(void)sigprocmask(SIG_BLOCK, &pipe_only, &before);
	pid = fork();
	if (!pid)
		proc_child(argv, fds[0]);
	(void)fd_close(fds[0]);
	r = pid < 0 ? -errno : feed(fds[1], input);
	(void)fd_close(fds[1]);
	(void)sigtimedwait(&pipe_only, NULL, &(struct timespec){ 0 });
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	if (pid < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return proc_status(status);
}

bool proc_find(const char *name, char *ret_path, size_t size)
{
	struct span rest = span_str(getenv("PATH")), folder;
	int len;

	if (!rest.len)
		rest = SPAN("/usr/sbin:/usr/bin:/sbin:/bin");
	while (rest.len) {
		folder = span_cut(&rest, ':');
		len = snprintf(ret_path, size, "%.*s/%s", SPAN_FMT(folder),
			       name);
		if (len > 0 && (size_t)len < size && !access(ret_path, X_OK))
			return true;
	}
	return false;
}

bool proc_folder(char *ret_path, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", ret_path, size);
	char *slash;

	if (len <= 0 || (size_t)len >= size)
		return false;
	ret_path[len] = '\0';
	slash = strrchr(ret_path, '/');
	if (!slash)
		return false;
	*slash = '\0';
	return true;
}
