/* SPDX-License-Identifier: Apache-2.0 */
/* execd.c - sallyport-execd: the execution daemon inside a sandbox
 *
 * Reads what it is told, opens its socket, runs until SIGTERM or SIGINT. Then
 * nobody new is served, what clients still run is killed, and it is over.
 */

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/heap.h"
#include "src/base/log.h"
#include "src/execd/config.h"
#include "src/execd/execd.h"
#include "src/execd/init/init.h"
#include "src/execd/init/mounts.h"
#include "src/io/loop.h"

enum { EXIT_USAGE = 2 };

/* -- start ---------------------------------------------------------------- */

static void say_usage(const struct diag *d)
{
	char text[sizeof(*d) + 64];

	(void)fprintf(stderr, "sallyport-execd: %s (--help lists the flags)\n",
		      diag_text(d, text, sizeof(text)));
}

/* A connection is a descriptor, and a running program some more. */
static void files_raise(struct rlimit *ret_before)
{
	struct rlimit all;

	must(getrlimit(RLIMIT_NOFILE, ret_before) == 0);
	all = *ret_before;
	all.rlim_cur = all.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &all);
}

static int start(const struct execd_config *config, struct loop **ret_loop,
		 struct execd **ret)
{
	int r;

	r = loop_new(ret_loop);
	if (r) {
		log_error("could not make the event loop: %s", err_text(r));
		return r;
	}
	return execd_new(*ret_loop, config, ret);
}

/* -- the end -------------------------------------------------------------- */

struct life {
	struct execd *execd;
	int status;
	bool ends;
};

static void on_stopped(void *ctx)
{
	loop_stop(ctx);
}

/* The first time asks for an orderly end, the second does not. */
static void on_over(void *ctx, int status)
{
	struct life *life = ctx;

	if (life->ends) {
		loop_stop(life->execd->loop);
		return;
	}
	life->ends = true;
	life->status = status;
	log_info("stops");
	execd_stop(life->execd, on_stopped, life->execd->loop);
}

static int run(struct execd *e)
{
	struct life life = { .execd = e };
	struct init *init;
	int r;

	r = init_new(e, on_over, &life, &init);
	if (r) {
		log_error("could not take signals: %s", err_text(r));
		return EXIT_FAILURE;
	}
	loop_run(e->loop);
	(void)init_free(init);
	return life.status;
}

int main(int argc, char **argv)
{
	struct execd_settings settings = { 0 };
	struct diag d = { 0 };
	struct execd *e = NULL;
	struct loop *loop = NULL;
	int r, status;

	log_init("execd", LOG_INFO);
	mounts_confirm(argv);
	init_source(argv);
	/* The workload runs beside us, often as the same user: it must not
	 * look into this memory. No limit on cores: programs inherit limits. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)signal(SIGPIPE, SIG_IGN);
	heap_keep_little();
	r = config_read(argc, argv, &settings, &d);
	if (r == CONFIG_E_HELP) {
		config_help();
		return EXIT_SUCCESS;
	}
	if (r == CONFIG_E_VERSION) {
		(void)printf("sallyport-execd %s\n", SALLYPORT_VERSION);
		return EXIT_SUCCESS;
	}
	if (r) {
		say_usage(&d);
		return EXIT_USAGE;
	}
	log_init("execd", settings.log_level);
	files_raise(&settings.config.files);
	r = start(&settings.config, &loop, &e);
	status = r ? EXIT_FAILURE : run(e);
	(void)execd_free(e);
	(void)loop_free(loop);
	return status;
}
