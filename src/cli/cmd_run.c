/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_run.c - sallyport run: one command in a sandbox of its own
 *
 * How it works, in this order:
 *
 *	daemon		the one that answers, or a standalone one
 *	secrets		read; their files will be masked
 *	register	policy, sandbox, credentials, bindings
 *	child		the sandbox's first process, waiting
 *	net		the interface between here and there
 *	wait		CMD runs; signals are passed on
 *	summary		what the audit says
 *
 * and back in the other direction, whatever went wrong on the way. The
 * daemon's packet rules hold for the interface before it exists, and the
 * sandbox is registered before that, so no packet is ever undecided.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/cli/command.h"
#include "src/cli/proc.h"
#include "src/cli/routes.h"
#include "src/cli/run.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { MASKS_MAX = 128, ARGV_MAX = 2 * MASKS_MAX + 32 };

struct run {
	/* asked for */
	struct opt_daemon where;
	const char *policy_file, *binding_file, *wanted_id;
	struct opt_list credentials, labels;
	bool standalone, keep, quiet;
	struct opt_words command;
	/* made */
	char since[CLOCK_TEXT_SIZE];
	char id[RUN_ID_SIZE];
	char folder[PATH_MAX];
	char address[RUN_ADDRESS_SIZE + 4], address6[RUN_ADDRESS_SIZE + 4];
	char *masks[MASKS_MAX];
	unsigned mask_count;
	struct api api;
	struct run_daemon daemon;
	struct run_secrets secrets;
	struct run_net net;
	struct run_registration registration;
	struct run_child child;
};

/* -- what was asked ------------------------------------------------------- */

static int run_parse(struct run *run, int argc, char **argv)
{
	const struct opt opts[] = {
		{ "policy", OPT_TEXT, &run->policy_file, "FILE",
		  "policy of this sandbox, JSON or YAML", 'p' },
		{ "credential", OPT_LIST, &run->credentials, "NAME=@FILE",
		  "credential of this sandbox; NAME=- reads stdin" },
		{ "binding", OPT_TEXT, &run->binding_file, "FILE",
		  "where the credentials go, JSON", 'b' },
		{ "id", OPT_TEXT, &run->wanted_id, "ID",
		  "name of the sandbox; default run-<8 hex>" },
		{ "label", OPT_LIST, &run->labels, "KEY=VALUE",
		  "label, for the daemon's policies to choose by", 'l' },
		{ "config", OPT_TEXT, &run->where.config, "FILE",
		  "configuration file of the daemon to use", 'c' },
		{ "socket", OPT_TEXT, &run->where.socket, "PATH",
		  "admin socket of the daemon to use", 's' },
		{ "standalone", OPT_FLAG, &run->standalone, NULL,
		  "use a daemon just for runs, not the machine's" },
		{ "keep", OPT_FLAG, &run->keep, NULL,
		  "leave sandbox, policy and daemon registered" },
		{ "quiet", OPT_FLAG, &run->quiet, NULL, "print no summary",
		  'q' },
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "run [options] -- CMD [ARG...]",
		.min = 1,
		.max = OPT_ANY,
		.stop_at_word = true,
		.opts = opts,
	};

	return opts_parse(&usage, argc, argv, &run->command);
}

/* -- what the sandbox must not see ---------------------------------------- */

static void mask_add(struct run *run, const char *path)
{
	if (path && path[0] == '/' && path[1] && run->mask_count < MASKS_MAX)
		run->masks[run->mask_count++] = must_strdup(path);
}

static int masks_gather(struct run *run)
{
	struct config *config = NULL;
	unsigned i;
	int r;

	r = api_config(&run->where, &config);
	if (r)
		return r;
	mask_add(run, config->state_dir);
	mask_add(run, config->run_dir);
	mask_add(run, config->vault_key_file);
	mask_add(run, config->vault_passphrase_file);
	mask_add(run, config->admin_key);
	mask_add(run, config->audit_file);
	config_free(config);
	mask_add(run, run->api.socket);
	for (i = 0; i < run->secrets.count; i++)
		mask_add(run, run->secrets.items[i].path);
	return 0;
}

/* -- the pieces in order -------------------------------------------------- */

static int start_daemon(struct run *run)
{
	const bool named = run->where.socket || run->where.config;

	if (api_init(&run->api, &run->where))
		return CLI_FAILED;
	if (!run->standalone && api_answers(&run->api))
		return CLI_OK;
	if (!run->standalone && named) {
		fprintf(stderr, "sallyport: no daemon answers at %s\n",
			run->api.socket);
		return CLI_UNREACHABLE;
	}
	if (!run->policy_file)
		fputs("sallyport: no --policy and no daemon with policies: the "
		      "sandbox will reach nothing\n",
		      stderr);
	return run_daemon_start(&run->daemon, &run->api) ? CLI_UNREACHABLE
							 : CLI_OK;
}

static int start_registration(struct run *run)
{
	const struct run_wishes wishes = {
		.policy_file = run->policy_file,
		.binding_file = run->binding_file,
		.labels = &run->labels,
		.secrets = &run->secrets,
		.net = &run->net,
	};

	if (run_net_choose(&run->net))
		return CLI_FAILED;
	if (run->wanted_id &&
	    !span_copy(span_str(run->wanted_id), run->id, sizeof(run->id))) {
		fprintf(stderr, "sallyport: an id has at most %d bytes\n",
			RUN_ID_SIZE - 1);
		return CLI_USAGE;
	}
	if (!run->wanted_id)
		(void)snprintf(run->id, sizeof(run->id), "run-%s",
			       run->net.iface + strlen("sp-"));
	run->registration.id = run->id;
	return run_register_start(&run->registration, &run->api, &wishes);
}

static void init_words(struct run *run, const char **argv)
{
	const char *const fixed[] = {
		"sallyport",  "run-init",     "--hostname", run->id,
		"--resolver", run->net.outer, "--folder",   run->folder,
		"--address",  run->address,   "--address6", run->address6,
		"--route",    run->net.outer, "--route6",   run->net.outer6,
	};
	unsigned at = 0, i;

	for (i = 0; i < ARRAY_LEN(fixed); i++)
		argv[at++] = fixed[i];
	for (i = 0; i < run->mask_count; i++) {
		argv[at++] = "--mask";
		argv[at++] = run->masks[i];
	}
	argv[at++] = "--";
	for (i = 0; i < run->command.count; i++)
		argv[at++] = run->command.items[i];
	argv[at] = NULL;
}

static int start_child(struct run *run, struct span ca)
{
	char **environment CLEANUP_FREE =
		run_secrets_environment(&run->secrets, environ);
	const char **argv CLEANUP_FREE =
		must_alloc((ARGV_MAX + run->command.count) * sizeof(*argv));

	if (!getcwd(run->folder, sizeof(run->folder)))
		(void)span_copy(SPAN("/"), run->folder, sizeof(run->folder));
	(void)snprintf(run->address, sizeof(run->address), "%s/%d",
		       run->net.inner, RUN_NET_PREFIX);
	(void)snprintf(run->address6, sizeof(run->address6), "%s/%d",
		       run->net.inner6, RUN_NET_PREFIX6);
	init_words(run, argv);
	if (run_child_start(&run->child, ca, (char *const *)(uintptr_t)argv,
			    environment))
		return CLI_FAILED;
	return run_net_start(&run->net, run->child.pid) ? CLI_FAILED : CLI_OK;
}

/* Everything up to the moment before CMD starts. */
static int run_start(struct run *run)
{
	struct api_reply ca CLEANUP_REPLY = { 0 };
	int r;

	r = start_daemon(run);
	if (!r && run_secrets_read(&run->secrets, &run->credentials))
		r = CLI_FAILED;
	if (!r && masks_gather(run))
		r = CLI_FAILED;
	if (!r)
		r = start_registration(run);
	if (!r)
		r = api_call(&run->api, "GET", ROUTE_CA, SPAN_NONE, &ca);
	if (!r && run_child_is_interrupted())
		r = CLI_FAILED;
	if (!r)
		r = start_child(run, buf_peek(&ca.body));
	return r;
}

static void run_stop(struct run *run)
{
	unsigned i;

	run_child_stop(&run->child);
	run_net_stop(&run->net);
	run_register_stop(&run->registration, &run->api, run->keep);
	run_secrets_wipe(&run->secrets);
	run_daemon_stop(&run->daemon, run->keep);
	for (i = 0; i < run->mask_count; i++)
		free(run->masks[i]);
}

int cmd_run(int argc, char **argv)
{
	struct run *run CLEANUP_FREE = must_alloc(sizeof(*run));
	int r;

	r = run_parse(run, argc, argv);
	if (r)
		return opts_exit(r);
	if (geteuid() != 0) {
		fputs("sallyport: run makes network namespaces and needs "
		      "root\n",
		      stderr);
		return CLI_FAILED;
	}
	secret_process_init();
	clock_text(clock_wall_ms(), run->since, sizeof(run->since));
	run_child_signals(&run->child);
	r = run_start(run);
	if (!r) {
		r = run_child_wait(&run->child);
		if (!run->quiet)
			run_summary_print(&run->api, run->id, run->since);
	}
	run_stop(run);
	return r;
}
