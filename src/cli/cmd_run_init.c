/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run_init.c - the first process inside a sandbox of `sallyport run`
 *
 * How it works: `sallyport run` clones this process into fresh namespaces and
 * executes the program anew, so that nothing of the caller's memory or
 * environment comes along. It waits for the word that the interface is there,
 * prepares the sandbox, gives up its privileges, starts CMD, passes signals on
 * to it, reaps what CMD leaves behind, and exits as CMD did. As process 1 of
 * its namespace its end is the end of everything in the sandbox.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/cli/command.h"
#include "src/cli/inside.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"

enum { NOT_RUN = 125, NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

struct init {
	struct inside_view view;
	const char *folder;  /* where CMD starts */
	const char *address; /* "a/len" lists for the interface, */
	const char *route;   /* and the way out */
	const char *address6, *route6;
	struct buf ca;
	struct opt_words command;
};

/* The parent's word that the interface is here; end of file: it gave up. */
static bool init_wait(void)
{
	char word;
	ssize_t n;

	do {
		n = read(RUN_FD_GO, &word, 1);
	} while (n < 0 && errno == EINTR);
	(void)close(RUN_FD_GO);
	return n == 1;
}

static int init_network(const struct init *in)
{
	static const char *const argv[] = { "ip", "-batch", "-", NULL };
	struct buf text CLEANUP(buf_fini) = BUF_INIT(4096);
	int r;

	r = buf_putf(&text,
		     "link set lo up\n"
		     "addr add %s dev eth0\n"
		     "addr add %s dev eth0 nodad\n"
		     "link set eth0 up\n"
		     "route add default via %s\n"
		     "route add ::/0 via %s\n",
		     in->address, in->address6, in->route, in->route6);
	return r ? r : proc_run(argv, buf_peek(&text));
}

static int init_prepare(struct init *in)
{
	int r;

	r = file_read("/proc/self/fd/4", &in->ca);
	if (r)
		fprintf(stderr, "sallyport: no CA was handed over\n");
	if (!r)
		r = init_network(in);
	if (!r)
		r = inside_mount(&in->view);
	if (!r)
		r = inside_trust(buf_peek(&in->ca));
	if (!r && chdir(in->folder)) {
		fprintf(stderr,
			"sallyport: %s is not in the sandbox, starting "
			"in /\n",
			in->folder);
		if (chdir("/"))
			r = -errno;
	}
	return r ? r : inside_drop();
}

NORETURN static void command_exec(char **argv, const sigset_t *mask)
{
	int e;

	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)close_range(3, ~0u, 0);
	(void)execvp(argv[0], argv);
	e = errno;
	fprintf(stderr, "sallyport: %s: %s\n", argv[0], err_text(e));
	_exit(e == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

/* Waits for CMD; reaps orphans; passes every other signal on. */
static int command_wait(pid_t pid, const sigset_t *all)
{
	int status, signal;
	pid_t done;

	for (;;) {
		signal = sigwaitinfo(all, NULL);
		if (signal > 0 && signal != SIGCHLD)
			(void)kill(pid, signal);
		while ((done = waitpid(-1, &status, WNOHANG)) > 0)
			if (done == pid)
				return proc_status(status);
		if (done < 0 && errno == ECHILD)
			return NOT_RUN;
	}
}

static int init_parse(int argc, char **argv, struct init *in)
{
	const struct opt opts[] = {
		{ "hostname", OPT_TEXT, &in->view.hostname, "NAME", "" },
		{ "resolver", OPT_TEXT, &in->view.resolver, "ADDRESS", "" },
		{ "mask", OPT_LIST, &in->view.masks, "PATH", "" },
		{ "folder", OPT_TEXT, &in->folder, "PATH", "" },
		{ "address", OPT_TEXT, &in->address, "CIDR", "" },
		{ "address6", OPT_TEXT, &in->address6, "CIDR", "" },
		{ "route", OPT_TEXT, &in->route, "ADDRESS", "" },
		{ "route6", OPT_TEXT, &in->route6, "ADDRESS", "" },
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "run-init (only `sallyport run` calls this)",
		.min = 1,
		.max = OPT_ANY,
		.stop_at_word = true,
		.opts = opts,
	};
	int r = opts_parse(&usage, argc, argv, &in->command);

	if (r)
		return r;
	if (getpid() != 1 || !in->view.hostname || !in->view.resolver ||
	    !in->folder || !in->address || !in->address6 || !in->route ||
	    !in->route6)
		return -EINVAL;
	return 0;
}

int cmd_run_init(int argc, char **argv)
{
	struct init in = { .ca = BUF_INIT(RUN_CA_MAX) };
	sigset_t all, before;
	pid_t pid;
	int r;

	if (init_parse(argc, argv, &in)) {
		fputs("sallyport: run-init is for `sallyport run`\n", stderr);
		return CLI_USAGE;
	}
	/* blocked signals wait; nobody but sigwaitinfo() takes them */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &before);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || !init_wait())
		return NOT_RUN;
	if (init_prepare(&in))
		return NOT_RUN;

	(void)fflush(NULL);
	pid = fork();
	if (pid < 0)
		return NOT_RUN;
	if (!pid)
		command_exec(in.command.items, &before);
	r = command_wait(pid, &all);
	buf_fini(&in.ca);
	return r;
}
