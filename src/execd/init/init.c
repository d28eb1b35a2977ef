/* SPDX-License-Identifier: Apache-2.0 */
/* init.c - what comes before and around the container's own program
 *
 * How it works: a row of states, each entered by one function.
 *
 *	WAITING    the CA is not there; looked for again and again
 *	BROWSERS   certutil runs (nss.h)
 *	RUNNING    the program runs (or there is none to run)
 *	LEAVING    it ended; the rest has SIGTERM, then SIGKILL
 *	OVER       nobody is left but who is answered
 *
 * Everything that dies is reaped by process/reaper: as process 1 we get what
 * was orphaned, and as another process we ask for it (subreaper).
 */

#include "src/execd/init/init.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/execd.h"
#include "src/execd/init/nss.h"
#include "src/execd/init/trust.h"
#include "src/execd/process/child.h"
#include "src/execd/process/env.h"
#include "src/execd/whole.h"
#include "src/io/loop.h"

enum state {
	STATE_WAITING,
	STATE_BROWSERS,
	STATE_RUNNING,
	STATE_LEAVING,
	STATE_OVER,
};

enum {
	CA_POLL_MS = 50,
	LEAVE_POLL_MS = 10,
	CHILDREN_SIZE = 4096, /* of the kernel's list, read in pieces */
	COMMAND_MAX = 128 * 1024,
};

static const int forwarded[] = { SIGTERM, SIGINT,  SIGHUP,  SIGQUIT,
				 SIGUSR1, SIGUSR2, SIGWINCH };

struct forward {
	struct init *init;
	int signal;
};

struct init {
	struct execd *execd;
	enum state state;
	struct forward forward[ARRAY_LEN(forwarded)];
	struct timer timer; /* of WAITING and LEAVING */
	uint64_t end_ms;    /* of WAITING and of the grace */
	struct nss *nss;
	struct child child; /* the program */
	bool is_started;
	int status; /* to end with */
	void (*over)(void *ctx, int status);
	void *ctx;
};

/* -- leaving -------------------------------------------------------------- */

/* Signals what is left. As process 1 that is everybody; otherwise our
 * children, among whom are the orphans we asked for. False: nobody. */
static bool signal_rest(int signal)
{
	char path[64], list[CHILDREN_SIZE];
	struct span rest;
	uint64_t pid;
	bool any = false;

	if (getpid() == 1)
		return !kill(-1, signal);
	(void)snprintf(path, sizeof(path), "/proc/self/task/%ld/children",
		       (long)getpid());
	if (whole_peek(path, list, sizeof(list)) <= 0)
		return false;
	for (rest = span_str(list); rest.len;)
		if (span_parse_u64(span_cut(&rest, ' '), &pid) && pid > 1 &&
		    pid <= INT32_MAX)
			any |= !kill((pid_t)pid, signal);
	return any;
}

/* The end comes from the loop, never from inside of who is ended. */
static void leave_look(struct init *i)
{
	bool late = clock_ms() >= i->end_ms;

	if (signal_rest(late ? SIGKILL : 0) && !late) {
		timer_start(&i->timer, LEAVE_POLL_MS);
		return;
	}
	i->state = STATE_OVER;
	i->over(i->ctx, i->status);
}

static void leave(struct init *i, int status, bool anybody)
{
	i->state = STATE_LEAVING;
	i->status = status;
	i->end_ms = clock_ms() + (anybody ? INIT_GRACE_MS : 0);
	if (anybody) {
		(void)signal_rest(SIGTERM);
		(void)signal_rest(SIGCONT);
	}
	timer_start(&i->timer, 0);
}

static void on_program_exit(struct child *c)
{
	struct init *i = container_of(c, struct init, child);
	int status = WIFSIGNALED(c->status) ? 128 + WTERMSIG(c->status)
					    : WEXITSTATUS(c->status);

	log_info("the container's program ended with status %d", status);
	leave(i, status, true);
}

/* -- the program ---------------------------------------------------------- */

/* Ours with what is not for commands but for the container: EXECD_*, and the
 * token that its Jupyter server is to be started with. The token of our own
 * API is in no environment any more. */
static struct env *program_env(const struct execd *e)
{
	struct env *v = env_new();
	struct span rest, name;
	char **at;

	for (at = environ; *at; at++) {
		rest = span_str(*at);
		name = span_cut(&rest, '=');
		if (span_starts(name, SPAN("EXECD_")) &&
		    !span_eq(name, SPAN("EXECD_BOOTSTRAP_SOURCED")))
			(void)!env_set(v, name, rest);
	}
	if (e->config->jupyter_token)
		(void)!env_set(v, SPAN("JUPYTER_TOKEN"),
			       span_str(e->config->jupyter_token));
	return v;
}

/* "-c" and words: a command of the shell. */
static int join_words(const char *const *words, struct buf *to)
{
	int r = 0;

	for (; !r && *words; words++) {
		r = buf_put_str(to, *words);
		if (!r)
			r = buf_put(to, words[1] ? SPAN(" ") : SPAN("\0"));
	}
	return r;
}

static const char *shell_of(const struct execd *e)
{
	const char *named = getenv("BOOTSTRAP_SHELL");

	return named && *named ? named : child_shell((struct execd *)e);
}

/* What the words mean: BOOTSTRAP_CMD goes before them, "-c" is the shell's.
 * *argv stays NULL when there is nothing to run. */
static int words_read(const struct execd *e, struct buf *command,
		      const char *shell_words[4], const char *const **argv)
{
	const char *const *words = e->config->entrypoint;
	const char *bootstrap = getenv("BOOTSTRAP_CMD");
	int r = 0;

	if (bootstrap && *bootstrap)
		r = buf_put(command, span_of(bootstrap, strlen(bootstrap) + 1));
	else if (words && words[0] && !strcmp(words[0], "-c") && words[1])
		r = join_words(words + 1, command);
	if (r)
		return r;
	if (!buf_len(command)) {
		*argv = words && words[0] ? words : NULL;
		return 0;
	}
	shell_words[0] = shell_of(e);
	shell_words[1] = "-c";
	shell_words[2] = buf_peek(command).ptr;
	shell_words[3] = NULL;
	*argv = shell_words;
	return shell_words[0] ? 0 : -ENOENT;
}

static int descriptor_or_none(int fd)
{
	return fcntl(fd, F_GETFD) < 0 ? -1 : fd;
}

static void program_start(struct init *i)
{
	struct buf command CLEANUP(buf_fini) = BUF_INIT(COMMAND_MAX);
	struct child_spec spec = {
		.in = descriptor_or_none(STDIN_FILENO),
		.out = descriptor_or_none(STDOUT_FILENO),
		.err = descriptor_or_none(STDERR_FILENO),
		.foreground = true,
	};
	const char *shell_words[4];
	struct diag d = { 0 };
	struct env *env;
	int r;

	i->state = STATE_RUNNING;
	r = words_read(i->execd, &command, shell_words, &spec.argv);
	if (!r && !spec.argv)
		return;
	env = program_env(i->execd);
	spec.env = env_list(env);
	if (r)
		(void)diag_set(&d, 0, 0, "the image has no shell");
	else
		r = child_start(i->execd, &i->child, &spec, &d);
	(void)env_free(env);
	if (r) {
		log_error("the container's program was not started: %s", d.msg);
		leave(i,
		      r == -ENOENT || r == -ENOTDIR ? INIT_EXIT_NOT_FOUND
						    : INIT_EXIT_NOT_RUNNABLE,
		      false);
		return;
	}
	i->is_started = true;
}

/* -- before it ------------------------------------------------------------ */

static void on_browsers_done(void *ctx)
{
	struct init *i = ctx;

	i->nss = nss_free(i->nss);
	program_start(i);
}

static void trust_done(struct init *i, bool is_trusted)
{
	i->state = STATE_BROWSERS;
	if (is_trusted)
		i->nss = nss_new(i->execd, i->execd->config->ca_file,
				 on_browsers_done, i);
	if (!i->nss)
		program_start(i);
}

static void trust_try(struct init *i)
{
	const struct trust_config config = {
		.ca = i->execd->config->ca_file,
		.bundle = i->execd->config->ca_bundle,
	};
	bool is_done = getenv("EXECD_BOOTSTRAP_SOURCED") != NULL;
	int r = is_done ? 0 : trust_install(&config);

	if (r == -ENOENT && clock_ms() < i->end_ms) {
		timer_start(&i->timer, CA_POLL_MS);
		return;
	}
	if (r == -ENOENT)
		log_error("the CA %s was not there in %d s: programs will not "
			  "trust the gateway",
			  config.ca, INIT_CA_WAIT_MS / 1000);
	trust_done(i, !r);
}

static void on_timer(struct timer *t)
{
	struct init *i = container_of(t, struct init, timer);

	if (i->state == STATE_WAITING)
		trust_try(i);
	else
		leave_look(i);
}

/* -- signals -------------------------------------------------------------- */

/* Without a program of the container's, TERM and INT are meant for us. */
static void on_signal(void *ctx)
{
	struct forward *f = ctx;
	struct init *i = f->init;
	bool is_end = f->signal == SIGTERM || f->signal == SIGINT;

	if (i->state == STATE_LEAVING || i->state == STATE_OVER) {
		if (is_end && i->state == STATE_OVER)
			i->over(i->ctx, i->status);
		else if (is_end)
			i->end_ms = clock_ms();
		return;
	}
	if (i->is_started)
		child_signal(&i->child, f->signal, false);
	else if (is_end && i->state == STATE_RUNNING)
		leave(i, EXIT_SUCCESS, i->execd->config->init);
	else if (is_end)
		leave(i, 128 + f->signal, true);
}

static int signals_take(struct init *i)
{
	unsigned k;
	int r = 0;

	for (k = 0; !r && k < ARRAY_LEN(forwarded); k++) {
		i->forward[k] = (struct forward){ i, forwarded[k] };
		if (!i->execd->config->init && forwarded[k] != SIGTERM &&
		    forwarded[k] != SIGINT)
			continue;
		r = loop_on_signal(i->execd->loop, forwarded[k], on_signal,
				   &i->forward[k]);
	}
	return r;
}

static void become_init(void)
{
	if (getpid() != 1 && prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
		log_warn("orphans will not be ours: %s", err_text(errno));
	/* the terminal is the program's: our log may not stop us */
	(void)signal(SIGTTOU, SIG_IGN);
	(void)signal(SIGTTIN, SIG_IGN);
}

int init_new(struct execd *e, void (*over)(void *ctx, int status), void *ctx,
	     struct init **ret)
{
	struct init *i = must_alloc(sizeof(*i));
	int r;

	i->execd = e;
	i->over = over;
	i->ctx = ctx;
	i->child.on_exit = on_program_exit;
	i->end_ms = clock_ms() + INIT_CA_WAIT_MS;
	timer_init(&i->timer, e->loop, on_timer);
	if (e->config->init)
		become_init();
	r = signals_take(i);
	if (r) {
		free(i);
		return r;
	}
	*ret = i;
	if (e->config->trust)
		trust_try(i);
	else
		program_start(i);
	return 0;
}

struct init *init_free(struct init *i)
{
	if (!i)
		return NULL;
	timer_stop(&i->timer);
	i->nss = nss_free(i->nss);
	child_fini(&i->child);
	free(i);
	return NULL;
}
