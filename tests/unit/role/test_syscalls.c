/* SPDX-License-Identifier: Apache-2.0 */
/* test_syscalls.c - what each role may do after it was confined, and what
 * ends it
 *
 * Each attempt runs in a child of its own, which exits 0 when the call came
 * back (with whatever result) and dies by SIGSYS when it was not allowed.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/log.h"
#include "src/role/syscalls.h"

enum {
	G = 1 << ROLE_GATEWAY,
	V = 1 << ROLE_VAULT,
	C = 1 << ROLE_CONTROL,
	Q = 1 << ROLE_QUEUE,
	D = 1 << ROLE_NUM, /* control with Docker */
};

static int fds[2]; /* a socket pair, open before */

static void *thread_run(void *arg)
{
	return malloc(100000 + (size_t)(uintptr_t)arg);
}

static void try_thread(void)
{
	pthread_t thread;
	void *made = NULL;

	if (pthread_create(&thread, NULL, thread_run, NULL) ||
	    pthread_join(thread, &made) || !made)
		_exit(1);
	free(made);
}

static void try_memory(void)
{
	void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mlock(p, 4096) != 0 ||
	    madvise(p, 4096, MADV_DONTDUMP) != 0 ||
	    mprotect(p, 4096, PROT_READ) != 0 || munmap(p, 8192) != 0)
		_exit(1);
}

static void try_exec_memory(void)
{
	(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void try_exec_protect(void)
{
	(void)mprotect(fds, 4096, PROT_READ | PROT_EXEC);
}

static void try_messages(void)
{
	struct msghdr m = { 0 };
	struct epoll_event event;
	char byte;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0 || send(fds[0], "x", 1, 0) != 1 ||
	    recv(fds[1], &byte, 1, 0) != 1 ||
	    epoll_wait(epoll, &event, 1, 0) != 0 || getrandom(&byte, 1, 0) != 1)
		_exit(1);
	(void)sendmsg(fds[0], &m, 0);
}

static void try_fstat(void)
{
	struct stat st;

	if (fstat(fds[0], &st) != 0)
		_exit(1);
}

static void try_socket_inet(void)
{
	(void)socket(AF_INET, SOCK_STREAM, 0);
}

static void try_socket_unix(void)
{
	(void)socket(AF_UNIX, SOCK_STREAM, 0);
}

static void try_socket_netlink(void)
{
	(void)socket(AF_NETLINK, SOCK_RAW, 0);
}

static void try_socket_packet(void)
{
	(void)socket(AF_PACKET, SOCK_RAW, 0);
}

static void try_connect(void)
{
	struct sockaddr sa = { .sa_family = AF_UNSPEC };

	(void)connect(fds[0], &sa, sizeof(sa));
}

static void try_accept(void)
{
	(void)accept4(-1, NULL, NULL, SOCK_CLOEXEC);
}

static void try_listen(void)
{
	(void)listen(-1, 1);
}

static void try_splice(void)
{
	(void)splice(-1, NULL, -1, NULL, 1, 0);
}

static void try_open(void)
{
	(void)open("/dev/null", O_RDONLY);
}

static void try_stat(void)
{
	struct stat st;

	(void)stat("/dev/null", &st);
}

static void try_inotify(void)
{
	(void)inotify_init1(IN_CLOEXEC);
}

static void try_fdatasync(void)
{
	(void)fdatasync(-1);
}

static void try_pwritev(void)
{
	(void)!pwritev(-1, NULL, 0, 0);
}

static void try_interface_name(void)
{
	struct ifreq request = { .ifr_ifindex = 1 };

	(void)ioctl(fds[0], SIOCGIFNAME, &request);
}

static void try_interface_up(void)
{
	struct ifreq request = { .ifr_name = "lo" };

	(void)ioctl(fds[0], SIOCSIFFLAGS, &request);
}

static void try_exec(void)
{
	char *argv[] = { NULL };

	(void)execve("/bin/true", argv, argv);
}

static void try_fork(void)
{
	if (fork() == 0)
		_exit(0);
}

static void try_vfork(void)
{
	(void)syscall(SYS_vfork);
}

static void try_ptrace(void)
{
	(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}

static void try_kill(void)
{
	(void)kill(getppid(), 0);
}

static void try_kill_other_thread(void)
{
	(void)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void try_dumpable(void)
{
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void try_setuid(void)
{
	(void)syscall(SYS_setuid, 0);
}

static void try_unmute(void)
{
	(void)signal(SIGSYS, SIG_IGN);
}

static void try_read_process(void)
{
	(void)syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static void try_io_uring(void)
{
	(void)syscall(SYS_io_uring_setup, 1, NULL);
}

static const struct {
	const char *what;
	void (*attempt)(void);
	unsigned roles;	  /* who may */
	const char *call; /* how the report names it; NULL: not looked at */
} attempts[] = {
	{ "threads", try_thread, G | V | C | Q, NULL },
	{ "memory", try_memory, G | V | C | Q, NULL },
	{ "messages", try_messages, G | V | C | Q, NULL },
	{ "fstat", try_fstat, G | V | C | Q, NULL },
	{ "inet socket", try_socket_inet, G | C, "(socket)" },
	{ "unix socket", try_socket_unix, C, "(socket)" },
	{ "netlink socket", try_socket_netlink, C, "(socket)" },
	{ "packet socket", try_socket_packet, 0, "(socket)" },
	{ "connect", try_connect, G | D, "(connect)" },
	{ "accept", try_accept, G | C, "(accept4)" },
	{ "listen", try_listen, C, "(listen)" },
	{ "splice", try_splice, G, "(splice)" },
	{ "open", try_open, C, "(openat)" },
	{ "stat", try_stat, C, NULL },
	{ "inotify", try_inotify, C, "(inotify_init1)" },
	{ "fdatasync", try_fdatasync, V | C, "(fdatasync)" },
	{ "pwritev", try_pwritev, V, NULL },
	{ "interface name", try_interface_name, G | C, "(ioctl)" },
	{ "interface up", try_interface_up, 0, "(ioctl)" },
	{ "executable mmap", try_exec_memory, 0, "(mmap)" },
	{ "executable mprotect", try_exec_protect, 0, "(mprotect)" },
	{ "execve", try_exec, 0, "(execve)" },
	{ "fork", try_fork, 0, "(clone)" },
	{ "vfork", try_vfork, 0, "(vfork)" },
	{ "ptrace", try_ptrace, 0, "(ptrace)" },
	{ "kill", try_kill, 0, "(kill)" },
	{ "tgkill", try_kill_other_thread, 0, "(tgkill)" },
	{ "dumpable", try_dumpable, 0, "(prctl)" },
	{ "setuid", try_setuid, 0, "(setuid)" },
	{ "silencing the report", try_unmute, 0, "(rt_sigaction)" },
	{ "reading a process", try_read_process, 0, "(process_vm_readv)" },
	{ "io_uring", try_io_uring, 0, "(io_uring_setup)" },
};

/* Runs one attempt as a confined role; its log goes to said. */
static int attempt(enum role role, bool docker, void (*fn)(void), char *said,
		   size_t size)
{
	int report[2], status;
	ssize_t len;
	pid_t pid;

	assert_int_equal(pipe(report), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(report[1], STDERR_FILENO);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			_exit(2);
		syscalls_confine(role, docker);
		fn();
		_exit(0);
	}
	(void)close(report[1]);
	len = read(report[0], said, size - 1);
	said[len > 0 ? len : 0] = '\0';
	(void)close(report[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void check_role(enum role role, bool docker)
{
	unsigned who = 1U << role | (docker ? D : 0U);
	char said[512];
	int status;
	size_t i;

	for (i = 0; i < ARRAY_LEN(attempts); i++) {
		bool may = attempts[i].roles & who;

		if (!may && !syscalls_are_enforced())
			continue;
		status = attempt(role, docker, attempts[i].attempt, said,
				 sizeof(said));
		if (may != (WIFEXITED(status) && !WEXITSTATUS(status)))
			fail_msg("%s: %s: status %x %s", role_name(role),
				 attempts[i].what, (unsigned)status, said);
		if (may)
			continue;
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
		if (attempts[i].call && !strstr(said, attempts[i].call))
			fail_msg("%s reported as: %s", attempts[i].what, said);
	}
}

static void syscalls__roles(void **state)
{
	enum role role;

	(void)state;
	for (role = ROLE_GATEWAY; role < ROLE_NUM; role++)
		check_role(role, false);
	check_role(ROLE_CONTROL, true);
}

/* must() and the sanitizers end by abort(), which needs to signal itself. */
static void syscalls__abort_is_abort(void **state)
{
	char said[512];
	int status;

	(void)state;
	status = attempt(ROLE_VAULT, false, abort, said, sizeof(said));
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(syscalls__roles),
		cmocka_unit_test(syscalls__abort_is_abort),
	};

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
