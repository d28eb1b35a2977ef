/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - posix_spawn() of a role with two descriptors and hardly a variable
 */

#include "src/role/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/chan.h"
#include "src/role/role.h"

enum { ENVIRONMENT_BYTES = 4096, FD_ASIDE = 10 };

static const char *const programs[ROLE_NUM] = {
	[ROLE_GATEWAY] = "sallyport-gateway",
	[ROLE_VAULT] = "sallyport-vault",
	[ROLE_CONTROL] = "sallyport-control",
	[ROLE_QUEUE] = "sallyport-queue",
};

const char *spawn_program(enum role role)
{
	return (unsigned)role < ROLE_NUM ? programs[role] : NULL;
}

int spawn_beside(const char *program, char *dst, size_t size)
{
	ssize_t len = readlink("/proc/self/exe", dst, size - 1);
	char *slash;

	if (len < 0)
		return err_origin(-errno);
	dst[len] = '\0';
	slash = strrchr(dst, '/');
	if (!slash || (size_t)(slash + 1 - dst) + strlen(program) >= size)
		return err_origin(-ENAMETOOLONG);
	memcpy(slash + 1, program, strlen(program) + 1);
	return 0;
}

/* The channel may be fd 4 and the configuration fd 3: both are set aside
 * first, so that neither dup2() overwrites the other. */
static int actions_fill(posix_spawn_file_actions_t *actions, int channel_fd,
			int config_fd)
{
	int r;

	r = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null",
					     O_RDONLY, 0);
	if (!r)
		r = posix_spawn_file_actions_adddup2(actions, channel_fd,
						     ROLE_FD_SUPERVISOR);
	if (!r)
		r = posix_spawn_file_actions_adddup2(actions, config_fd,
						     ROLE_FD_CONFIG);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(
			actions, ROLE_FD_CONFIG + 1);
	return -r;
}

static int attributes_fill(posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int r;

	(void)sigfillset(&all);
	(void)sigemptyset(&none);
	r = posix_spawnattr_setsigdefault(attributes, &all);
	if (!r)
		r = posix_spawnattr_setsigmask(attributes, &none);
	if (!r)
		r = posix_spawnattr_setflags(attributes,
					     POSIX_SPAWN_SETSIGDEF |
						     POSIX_SPAWN_SETSIGMASK);
	return -r;
}

static int spawn_with(const char *path, char *const argv[], char *const envp[],
		      const int fds[2], pid_t *ret)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r;

	must(posix_spawn_file_actions_init(&actions) == 0);
	must(posix_spawnattr_init(&attributes) == 0);
	r = actions_fill(&actions, fds[0], fds[1]);
	if (!r)
		r = attributes_fill(&attributes);
	if (!r)
		r = -posix_spawn(ret, path, &actions, &attributes, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)posix_spawnattr_destroy(&attributes);
	return r;
}

/* systemd names the folder of its credentials in our environment; only the
 * vault reads it. The gateway's threads keep more freed blocks of each small
 * size at hand than the seven that malloc has of itself: a turn of the loop
 * with a hundred streams of HTTP/2 frees hundreds and wants them back in the
 * next. Many more would be memory that connections at rest do not give back. */
static void environment_fill(enum role role, char *text, size_t size,
			     char *envp[2])
{
	static char tunables[] = "GLIBC_TUNABLES=glibc.malloc.tcache_count=64";
	const char *folder = getenv("CREDENTIALS_DIRECTORY");

	envp[0] = envp[1] = NULL;
	if (role == ROLE_GATEWAY)
		envp[0] = tunables;
	if (role != ROLE_VAULT || !folder)
		return;
	if ((size_t)snprintf(text, size, "CREDENTIALS_DIRECTORY=%s", folder) <
	    size)
		envp[0] = text;
}

int spawn_role(enum role role, const char *path, int channel_fd, int config_fd,
	       struct spawned *ret)
{
	char *argv[] = { (char *)(uintptr_t)spawn_program(role), NULL };
	CLEANUP_FD int channel = -1;
	CLEANUP_FD int config = -1;
	char text[ENVIRONMENT_BYTES];
	char *envp[2];
	pid_t pid;
	int r;

	channel = fcntl(channel_fd, F_DUPFD_CLOEXEC, FD_ASIDE);
	config = fcntl(config_fd, F_DUPFD_CLOEXEC, FD_ASIDE);
	if (channel < 0 || config < 0)
		return err_origin(-errno);
	environment_fill(role, text, sizeof(text), envp);
	r = spawn_with(path, argv, envp, (int[]){ channel, config }, &pid);
	if (r)
		return err_trace(r);

	/* the child stays a zombie until we wait: the number is still its own
	 */
	ret->pidfd = pidfd_open(pid, PIDFD_NONBLOCK);
	if (ret->pidfd < 0) {
		r = -errno;
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		return err_origin(r);
	}
	ret->pid = pid;
	return 0;
}

int spawn_config(const struct config *config)
{
	struct buf bytes = BUF_INIT(CONFIG_BYTES_MAX);
	int r = config_pack(config, &bytes);

	if (!r)
		r = chan_memfd(buf_peek(&bytes));
	buf_fini(&bytes);
	return r;
}
