/* SPDX-License-Identifier: Apache-2.0 */
/* run_daemon.c - a standalone daemon for a machine where none is running
 *
 * How it works: two daemons cannot share a machine's packet rules, so all
 * `sallyport run` without a daemon share one, in FOLDER. Whoever uses it holds
 * `users` shared; whoever starts or stops it holds `turn` exclusively. Who
 * leaves and then gets `users` exclusively was the last and stops it. A run
 * that was killed holds no locks; the next one finds the daemon answering and
 * joins it.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <poll.h>
#include <pwd.h>
#include <time.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"
#include "src/role/spawn.h"

#define FOLDER "/run/sallyport-standalone"
#define NODE   FOLDER "/node" /* all that goes with the daemon */

enum {
	START_MS = 15000,
	STOP_MS = 20000, /* the daemon drains for 10 s at most by default */
	TICK_MS = 20,
	LOG_TAIL = 2000,
};

static int complain(const char *what, int r)
{
	fprintf(stderr, "sallyport: standalone daemon: %s: %s\n", what,
		err_text(r));
	return r;
}

static int lock_open(const char *path, int how)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	while (flock(fd, how)) {
		if (errno == EINTR)
			continue;
		(void)fd_close(fd);
		return -errno;
	}
	return fd;
}

/* -- stopping ------------------------------------------------------------- */

/* A descriptor of the daemon's process, or -1 when it is gone. That the number
 * was not taken by somebody else in between is told by its name. */
static int daemon_find(void)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(64);
	char path[64], name[PATH_MAX];
	uint64_t pid;
	ssize_t len;
	int fd;

	if (file_read(NODE "/pid", &text) ||
	    !span_parse_u64(buf_peek(&text), &pid))
		return -1;
	fd = pidfd_open((pid_t)pid, 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	len = readlink(path, name, sizeof(name));
	if (len < 0 || !memmem(name, (size_t)len, "/sallyportd", 11))
		fd = fd_close(fd);
	return fd;
}

/* The kernel rules outlive a daemon on purpose; they shall not outlive the
 * last run of a machine that has none. */
static void rules_remove(void)
{
	char program[PATH_MAX];
	const char *const argv[] = { program, "--config",
				     NODE "/sallyport.json", "--remove-rules",
				     NULL };

	if (spawn_beside("sallyportd", program, sizeof(program)) ||
	    access(program, X_OK))
		(void)span_copy(SPAN("sallyportd"), program, sizeof(program));
	(void)!proc_run(argv, SPAN_NONE);
}

static void daemon_stop(void)
{
	static const char *const argv[] = { "rm", "-rf", NODE, NULL };
	int fd CLEANUP_FD = daemon_find();
	struct pollfd gone = { .fd = fd, .events = POLLIN };
	siginfo_t info;

	if (fd >= 0) {
		(void)pidfd_send_signal(fd, SIGTERM, NULL, 0);
		if (poll(&gone, 1, STOP_MS) == 0) {
			fprintf(stderr, "sallyport: the standalone daemon did "
					"not stop, killing it\n");
			(void)pidfd_send_signal(fd, SIGKILL, NULL, 0);
			(void)poll(&gone, 1, STOP_MS);
		}
		/* ours, or that of another run: then there is none to wait for
		 */
		(void)waitid(P_PIDFD, (id_t)fd, &info, WEXITED | WNOHANG);
	}
	rules_remove();
	(void)!proc_run(argv, SPAN_NONE);
}

/* -- starting ------------------------------------------------------------- */

/* The roles run as the account that the installation made, if it did. */
static int config_write(void)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(4096);
	int r;

	r = buf_putf(&text,
		     "{\"stateDir\": \"" NODE "/state\","
		     " \"runDir\": \"" NODE "\","
		     " \"policyDir\": \"" NODE "/policies\","
		     " \"auditFile\": \"" NODE "/audit.jsonl\","
		     " \"vault\": {\"keyFile\": \"" NODE "/vault.key\"}%s}\n",
		     getpwnam("sallyport") ? "" : ", \"user\": \"\"");
	return r ? r
		 : file_write(NODE "/sallyport.json", 0644, buf_peek(&text));
}

static int key_write(void)
{
	char key[32];
	int r;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return -EIO;
	r = file_write(NODE "/vault.key", 0600, span_of(key, sizeof(key)));
	secret_wipe(key, sizeof(key));
	return r;
}

static int folder_fill(void)
{
	static const char *const argv[] = { "rm", "-rf", NODE, NULL };
	int r = proc_run(argv, SPAN_NONE);

	if (!r)
		r = folder_make(NODE "/policies", 0755);
	if (!r)
		r = folder_make(NODE "/state", 0700);
	if (!r)
		r = key_write();
	if (!r)
		r = config_write();
	return r;
}

/* Our own child, in a session of its own, its log in a file. */
NORETURN static void daemon_exec(void)
{
	static char program[] = "sallyportd", option[] = "--config",
		    file[] = NODE "/sallyport.json";
	static char *const argv[] = { program, option, file, NULL };
	char path[PATH_MAX];
	int in = open("/dev/null", O_RDWR);
	int log = open(NODE "/daemon.log",
		       O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	sigset_t none;

	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (in < 0 || log < 0 || setsid() < 0 || chdir("/") ||
	    dup2(in, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
		_exit(127);
	(void)close_range(3, ~0u, 0);
	if (!spawn_beside(program, path, sizeof(path)))
		(void)execv(path, argv);
	(void)execvp(argv[0], argv);
	fprintf(stderr, "sallyportd is neither beside sallyport nor in PATH\n");
	_exit(127);
}

/* The end of the daemon's log, for the person who has to know. */
static void log_show(void)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(1024 * 1024);
	struct span all;

	if (file_read(NODE "/daemon.log", &text))
		return;
	all = buf_peek(&text);
	if (all.len > LOG_TAIL)
		all = span_from(all, all.len - LOG_TAIL);
	(void)fwrite(all.ptr, 1, all.len, stderr);
}

static int daemon_await(const struct api *api, pid_t pid)
{
	const struct timespec tick = { .tv_nsec = TICK_MS * 1000000L };
	int i, status;

	for (i = 0; i < START_MS / TICK_MS; i++) {
		if (api_is_ready(api))
			return 0;
		if (waitpid(pid, &status, WNOHANG) == pid) {
			log_show();
			return complain("it ended at once", -ECHILD);
		}
		(void)nanosleep(&tick, NULL);
	}
	log_show();
	return complain("it did not answer", -ETIMEDOUT);
}

static int daemon_start(const struct api *api)
{
	char text[32];
	pid_t pid;
	int r;

	r = folder_fill();
	if (r)
		return complain(NODE, r > 0 ? -EIO : r);
	pid = fork();
	if (pid < 0)
		return complain("fork", -errno);
	if (!pid)
		daemon_exec();
	(void)snprintf(text, sizeof(text), "%d", (int)pid);
	r = file_write(NODE "/pid", 0600, span_str(text));
	return r ? complain(NODE "/pid", r) : daemon_await(api, pid);
}

int run_daemon_start(struct run_daemon *daemon, struct api *api)
{
	int turn CLEANUP_FD = -1;
	int users, r;

	r = folder_make(FOLDER, 0755);
	if (r)
		return complain(FOLDER, r);
	turn = lock_open(FOLDER "/turn", LOCK_EX);
	users = turn < 0 ? turn : lock_open(FOLDER "/users", LOCK_SH);
	if (users < 0)
		return complain(FOLDER, users);
	(void)snprintf(api->socket, sizeof(api->socket), "%s",
		       NODE "/admin.sock");
	r = api_answers(api) ? 0 : daemon_start(api);
	if (r) {
		daemon_stop(); /* nobody can be using it */
		(void)fd_close(users);
		return r;
	}
	daemon->lock = users;
	return 0;
}

void run_daemon_stop(struct run_daemon *daemon, bool keep)
{
	int turn CLEANUP_FD = -1;

	if (!daemon->lock)
		return;
	turn = lock_open(FOLDER "/turn", LOCK_EX);
	/* from shared to exclusive: only the last one gets it */
	if (turn >= 0 && !keep && !flock(daemon->lock, LOCK_EX | LOCK_NB))
		daemon_stop();
	else if (keep)
		fputs("sallyport: the standalone daemon stays, its "
		      "files are in " NODE "\n",
		      stderr);
	daemon->lock = fd_close(daemon->lock) + 1;
}
