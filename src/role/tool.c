/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - posix_spawn(), a memfd for input and a pipe for output
 *
 * How it works: input waits complete in a memfd, so writing never blocks on
 * a program that is itself blocked on its output. The pipe is read until its
 * end or the deadline.
 */

#include "src/role/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/fd.h"

enum { FD_ASIDE = 10, READ_BYTES = 4096 };

static int input_fd(struct span input)
{
	CLEANUP_FD int plain = -1;
	ssize_t len;
	int fd;

	plain = memfd_create("tool-input", MFD_CLOEXEC);
	if (plain < 0)
		return err_origin(-errno);
	while (input.len) {
		len = write(plain, input.ptr, input.len);
		if (len < 0)
			return err_origin(-errno);
		input = span_from(input, (size_t)len);
	}
	if (lseek(plain, 0, SEEK_SET) < 0)
		return err_origin(-errno);
	fd = fcntl(plain, F_DUPFD_CLOEXEC, FD_ASIDE);
	return fd < 0 ? err_origin(-errno) : fd;
}

static int tool_start(const char *const argv[], int in, int out, pid_t *ret)
{
	char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char locale[] = "LC_ALL=C";
	char *const envp[] = { path, locale, NULL };
	posix_spawn_file_actions_t actions;
	int r;

	must(posix_spawn_file_actions_init(&actions) == 0);
	r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, out,
						     STDOUT_FILENO);
	if (!r)
		r = posix_spawn_file_actions_adddup2(&actions, out,
						     STDERR_FILENO);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(&actions,
							     STDERR_FILENO + 1);
	if (!r)
		r = posix_spawn(ret, argv[0], &actions, NULL,
				(char *const *)(uintptr_t)argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return r ? err_origin(-r) : 0;
}

/* What no longer fits is read and dropped: the program shall not block. */
static int output_read(int fd, struct buf *output, uint64_t deadline_ms)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	char bytes[READ_BYTES];
	uint64_t now;
	ssize_t len;

	for (;;) {
		now = clock_ms();
		if (now >= deadline_ms)
			return -ETIMEDOUT;
		if (poll(&poller, 1, (int)(deadline_ms - now)) <= 0)
			continue;
		len = read(fd, bytes, sizeof(bytes));
		if (len <= 0)
			return len < 0 ? -errno : 0;
		(void)!buf_put(output, span_of(bytes, (size_t)len));
	}
}

static int tool_wait(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_origin(-errno);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -EPROTO;
}

int tool_run(const char *const argv[], struct span input, struct buf *output,
	     uint32_t timeout_ms)
{
	CLEANUP_FD int in = -1, out = -1, reader = -1;
	int pipe_fds[2], status;
	pid_t pid;
	int r;

	in = input_fd(input);
	if (in < 0)
		return in;
	if (pipe2(pipe_fds, O_CLOEXEC) != 0)
		return err_origin(-errno);
	reader = pipe_fds[0];
	out = fcntl(pipe_fds[1], F_DUPFD_CLOEXEC, FD_ASIDE);
	(void)close(pipe_fds[1]);
	if (out < 0)
		return err_origin(-errno);

	r = tool_start(argv, in, out, &pid);
	if (r)
		return r;
	out = fd_close(out); /* so that the pipe ends with the program */
	r = output_read(reader, output, clock_ms() + timeout_ms);
	if (r)
		(void)kill(pid, SIGKILL);
	status = tool_wait(pid);
	return r ? r : status;
}
