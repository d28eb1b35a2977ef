/* SPDX-License-Identifier: Apache-2.0 */
/* role.c - the first and the last steps of a role that are not its own work
 *
 * How it works: role_init() runs with all the rights of the supervisor and
 * may only read what the supervisor wrote. Between it and role_confine() the
 * role opens its files. role_confine() is a list of named steps, each of which
 * takes something away; the order is said at the steps. Nothing gives anything
 * back.
 */

#include "src/role/role.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/role/privilege.h"
#include "src/role/syscalls.h"

/* Verdicts on packets and entries of connection tracking: each message to the
 * kernel needs it. */
#define QUEUE_CAPABILITIES (1ULL << CAP_NET_ADMIN)

static pid_t supervisor_pid;

static NORETURN void role_die(const char *what, int r)
{
	log_error("could not %s: %s", what, err_text(r));
	_exit(EXIT_FAILURE);
}

/* Started by hand the role would take whatever is open as its supervisor. */
static void channel_check(void)
{
	socklen_t size = sizeof(int);
	int type = 0;

	if (getsockopt(ROLE_FD_SUPERVISOR, SOL_SOCKET, SO_TYPE, &type, &size) ==
		    0 &&
	    type == SOCK_SEQPACKET)
		return;
	log_error("was not started by sallyportd; start that instead");
	_exit(EXIT_FAILURE);
}

static void signals_set(void)
{
	static const int ignored[] = { SIGPIPE, SIGTERM, SIGINT, SIGHUP };
	sigset_t none;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(ignored); i++)
		if (signal(ignored[i], SIG_IGN) == SIG_ERR)
			role_die("ignore a signal", errno);
	(void)sigemptyset(&none);
	if (sigprocmask(SIG_SETMASK, &none, NULL) != 0)
		role_die("unblock signals", errno);
}

/* When the supervisor is gone nobody restarts or stops us. The channel tells
 * too; this also holds while we are busy. */
static void follow_parent(void)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0)
		role_die("follow the supervisor", errno);
	if (getppid() != supervisor_pid)
		_exit(EXIT_FAILURE); /* it went before we asked */
}

static void limit_raise(int resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(resource, &limit);
}

/* Connections are descriptors; secrets are locked memory. */
static void limits_raise(void)
{
	const struct rlimit unlimited = { RLIM_INFINITY, RLIM_INFINITY };

	limit_raise(RLIMIT_NOFILE);
	if (setrlimit(RLIMIT_MEMLOCK, &unlimited) != 0)
		limit_raise(RLIMIT_MEMLOCK);
}

static struct config *config_take(void)
{
	struct config *config;
	struct stat st;
	void *bytes;
	int r;

	if (fstat(ROLE_FD_CONFIG, &st) != 0)
		role_die("read the configuration", errno);
	if (st.st_size <= 0 || st.st_size > CONFIG_BYTES_MAX)
		role_die("read the configuration", EINVAL);
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE,
		     ROLE_FD_CONFIG, 0);
	if (bytes == MAP_FAILED)
		role_die("read the configuration", errno);

	r = config_unpack(span_of(bytes, (size_t)st.st_size), &config);
	if (r == CONFIG_OTHER_BUILD) {
		log_error("is of another build than the sallyportd that "
			  "started it: that one has to be restarted");
		_exit(EXIT_FAILURE);
	}
	if (r)
		role_die("read the configuration", r);
	(void)munmap(bytes, (size_t)st.st_size);
	(void)fd_close(ROLE_FD_CONFIG);
	return config;
}

void role_init(enum role role, struct config **ret_config)
{
	log_init(role_name(role), LOG_INFO);
	channel_check();
	closefrom(ROLE_FD_CONFIG + 1);
	secret_process_init();
	(void)umask(022);
	signals_set();
	supervisor_pid = getppid();
	follow_parent();
	limits_raise();

	*ret_config = config_take();
	log_set_level((*ret_config)->log_level);
}

/* The group of the Docker daemon's socket, for control, where it is to use it.
 * Before there is a socket there may be the group that it will have. */
static gid_t docker_group(const struct config *config)
{
	const char *name = config->docker_group;
	struct stat st;
	gid_t gid = 0;
	int r;

	if (!config->lifecycle_listen.port)
		return 0;
	if (!name[0] && stat(config->docker_socket, &st) == 0)
		return st.st_gid;
	r = privilege_find_group(name[0] ? name : "docker", &gid);
	if (r && name[0])
		role_die("find the group \"lifecycle.dockerGroup\"", r);
	return gid;
}

void role_confine(enum role role, const struct config *config)
{
	struct privilege_user user;
	int r;

	/* who we become: needs files and libraries, so it comes first */
	r = privilege_find_user(config->user, &user);
	if (r == -ENOENT) {
		log_error("found no account \"%s\" to run as: adduser --system "
			  "--group %s, or set \"user\"",
			  config->user, config->user);
		_exit(EXIT_FAILURE);
	}
	if (r)
		role_die("look up the account of \"user\"", r);
	if (role == ROLE_CONTROL)
		user.more = docker_group(config);
	/* no rights of root: before the filter, which forbids these calls */
	r = privilege_drop(&user, role == ROLE_QUEUE ? QUEUE_CAPABILITIES : 0);
	if (r)
		role_die("give up the rights of root", r);
	/* a change of user makes a process dumpable by its new equals, and
	 * forgets the wish to follow */
	secret_process_init();
	follow_parent();
	/* last: no other system calls */
	syscalls_confine(role, role == ROLE_CONTROL &&
				       (config->lifecycle_listen.port ||
					config->webhook_url[0]));
}
