/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - a shell at a new pseudo-terminal, or at three pipes
 *
 * The shell is bash without its start-up files, so that what a client sees
 * does not depend on the image; or sh. TERM is set when nothing sets it, since
 * images rarely do and full-screen programs need it.
 *
 * The slave is opened through the master (TIOCGPTPEER), not by its name: the
 * workload may have mounted something else over /dev/pts.
 */

#include "src/execd/pty/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/process/child.h"
#include "src/execd/process/env.h"
#include "src/execd/process/shell.h"
#include "src/execd/pty/terminal.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41)
#endif

/* -- the terminal ---------------------------------------------------------- */

static int pty_open_slave(int master)
{
	const int flags = O_RDWR | O_NOCTTY | O_CLOEXEC;
	unsigned number;
	char path[32];
	int fd;

	fd = ioctl(master, TIOCGPTPEER, flags);
	if (fd >= 0 || (errno != EINVAL && errno != ENOTTY))
		return fd < 0 ? -errno : fd;
	/* a kernel that does not know that call */
	if (ioctl(master, TIOCGPTN, &number))
		return -errno;
	(void)snprintf(path, sizeof(path), "/dev/pts/%u", number);
	fd = open(path, flags);
	return fd < 0 ? -errno : fd;
}

static int pty_set_up(int master, int slave, uint16_t cols, uint16_t rows)
{
	const struct winsize size = { .ws_col = cols, .ws_row = rows };
	struct termios mode;

	if (ioctl(master, TIOCSWINSZ, &size) || tcgetattr(slave, &mode))
		return -errno;
	mode.c_iflag |= IUTF8; /* erase whole characters */
	return tcsetattr(slave, TCSANOW, &mode) ? -errno : 0;
}

static int pty_open(const struct terminal *t, int *ret_master, int *ret_slave)
{
	int unlocked = 0, slave = -1, master, r;

	master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
	if (master < 0)
		return -errno;
	r = ioctl(master, TIOCSPTLCK, &unlocked) ? -errno : 0;
	if (!r) {
		slave = pty_open_slave(master);
		r = slave < 0 ? slave : 0;
	}
	if (!r)
		r = pty_set_up(master, slave, t->cols, t->rows);
	if (r) {
		(void)fd_close(slave);
		(void)fd_close(master);
		return r;
	}
	*ret_master = master;
	*ret_slave = slave;
	return 0;
}

/* -- the program ----------------------------------------------------------- */

static int launch_env(struct env *env, bool pty)
{
	const char *term = env_get(env, "TERM");

	if (!pty || (term && *term))
		return 0;
	return env_set(env, SPAN("TERM"), SPAN("xterm-256color"));
}

/* With spec's fds. */
static int launch_start(struct terminal *t, struct child_spec *spec,
			struct diag *d)
{
	const char *shell = child_shell(t->execd);
	const char *const plain[] = { shell, NULL };
	const char *const bare[] = { shell, "--noprofile", "--norc", NULL };
	struct shell_args *args = NULL;
	struct env *env;
	int r;

	if (!shell) {
		(void)diag_set(d, 0, 0, "the image has neither bash nor sh");
		return -ENOENT;
	}
	spec->argv = shell_is_bash(shell) ? bare : plain;
	if (t->command) {
		args = shell_args_new(
			shell,
			&(struct shell_texts){ .text = span_str(t->command) });
		spec->argv = shell_args_list(args);
	}
	env = env_new();
	r = launch_env(env, spec->terminal);
	spec->env = env_list(env);
	spec->cwd = t->cwd;
	if (!r)
		r = child_start(t->execd, &t->child, spec, d);
	(void)env_free(env);
	(void)shell_args_free(args);
	return r;
}

static int launch_pty(struct terminal *t, struct terminal_fds *ret,
		      struct diag *d)
{
	struct child_spec spec = { .terminal = true };
	int r;

	r = pty_open(t, &ret->out, &ret->slave);
	if (r) {
		(void)diag_set(d, 0, 0, "no terminal could be opened: %s",
			       err_text(r));
		return r;
	}
	ret->in = fcntl(ret->out, F_DUPFD_CLOEXEC, 0);
	if (ret->in < 0) {
		r = -errno;
		(void)diag_set(d, 0, 0, "no terminal could be opened: %s",
			       err_text(r));
		return r;
	}
	spec.in = spec.out = spec.err = ret->slave;
	return launch_start(t, &spec, d);
}

/* A pipe of which our end (0 reads, 1 writes) does not block. */
static int launch_pipe(int ours, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	*ret_ours = fds[ours];
	*ret_theirs = fds[!ours];
	return fcntl(fds[ours], F_SETFL, O_NONBLOCK) ? -errno : 0;
}

static int launch_pipes(struct terminal *t, struct terminal_fds *ret,
			struct diag *d)
{
	struct child_spec spec = { .in = -1, .out = -1, .err = -1 };
	int r;

	r = launch_pipe(1, &ret->in, &spec.in);
	if (!r)
		r = launch_pipe(0, &ret->out, &spec.out);
	if (!r)
		r = launch_pipe(0, &ret->err, &spec.err);
	if (r)
		(void)diag_set(d, 0, 0, "no pipe could be made: %s",
			       err_text(r));
	else
		r = launch_start(t, &spec, d);
	(void)fd_close(spec.in);
	(void)fd_close(spec.out);
	(void)fd_close(spec.err);
	return r;
}

int terminal_launch(struct terminal *t, bool pty, struct terminal_fds *ret,
		    struct diag *d)
{
	struct terminal_fds fds = { -1, -1, -1, -1 };
	int r;

	r = pty ? launch_pty(t, &fds, d) : launch_pipes(t, &fds, d);
	if (r) {
		(void)fd_close(fds.out);
		(void)fd_close(fds.err);
		(void)fd_close(fds.in);
		(void)fd_close(fds.slave);
		return r;
	}
	*ret = fds;
	return 0;
}
