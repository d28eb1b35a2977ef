/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the command line: one table of subcommands, dispatch and usage */

#include <stdio.h>
#include <string.h>

#include "src/base/diag.h"
#include "src/base/log.h"
#include "src/base/attrib.h"
#include "src/cli/command.h"

static command_fn cmd_help, cmd_version;

static const struct command audit_commands[] = {
	{ "tail", cmd_audit_tail, NULL,
	  "print audit records, -f: as they come" },
	{ 0 },
};

static const struct command binding_commands[] = {
	{ "list", cmd_binding_list, NULL, "list bindings" },
	{ "put", cmd_binding_put, NULL,
	  "create or replace bindings of a file" },
	{ "rm", cmd_binding_rm, NULL, "remove a binding" },
	{ 0 },
};

static const struct command ca_commands[] = {
	{ "export", cmd_ca_export, NULL, "print the CA certificate as PEM" },
	{ 0 },
};

static const struct command policy_commands[] = {
	{ "check", cmd_policy_check, NULL,
	  "check policy files, say what is wrong" },
	{ "explain", cmd_policy_explain, NULL,
	  "say what would decide a request" },
	{ "list", cmd_policy_list, NULL, "list the policies in force" },
	{ "put", cmd_policy_put, NULL,
	  "create or replace the policies of a file" },
	{ "reload", cmd_policy_reload, NULL, "read the policy folder again" },
	{ "rm", cmd_policy_rm, NULL, "remove a policy that was put" },
	{ "test", cmd_policy_test, NULL, "run policy case files" },
	{ 0 },
};

static const struct command sandbox_commands[] = {
	{ "add", cmd_sandbox_add, NULL, "register a sandbox" },
	{ "list", cmd_sandbox_list, NULL, "list sandboxes" },
	{ "rm", cmd_sandbox_rm, NULL, "remove a sandbox" },
	{ "show", cmd_sandbox_show, NULL, "print one sandbox" },
	{ 0 },
};

static const struct command token_commands[] = {
	{ "create", cmd_token_create, NULL,
	  "make an admin token, print it once" },
	{ "list", cmd_token_list, NULL, "list admin tokens" },
	{ "rm", cmd_token_rm, NULL, "revoke an admin token" },
	{ 0 },
};

static const struct command vault_commands[] = {
	{ "init", cmd_vault_init, NULL, "make a new vault and its key file" },
	{ "list", cmd_vault_list, NULL, "list credentials, never values" },
	{ "put", cmd_vault_put, NULL,
	  "store a credential from stdin or @FILE" },
	{ "rm", cmd_vault_rm, NULL, "remove a credential" },
	{ "rotate-dek", cmd_vault_rotate_dek, NULL,
	  "encrypt all records anew" },
	{ "rotate-kek", cmd_vault_rotate_kek, NULL, "wrap the data key anew" },
	{ "verify", cmd_vault_verify, NULL, "check every record" },
	{ 0 },
};

static const struct command commands[] = {
	{ "run", cmd_run, NULL, "run a command in a sandbox" },
	{ "run-init", cmd_run_init, NULL, NULL }, /* inside that sandbox */
	{ "policy", NULL, policy_commands,
	  "check, test, explain, change policy" },
	{ "vault", NULL, vault_commands, "credentials and their keys" },
	{ "binding", NULL, binding_commands, "which credential goes where" },
	{ "sandbox", NULL, sandbox_commands, "who lives behind an interface" },
	{ "audit", NULL, audit_commands, "what was allowed, denied, injected" },
	{ "token", NULL, token_commands, "admin API tokens" },
	{ "ca", NULL, ca_commands, "the CA that sandboxes trust" },
	{ "status", cmd_status, NULL, "how the daemon is" },
	{ "version", cmd_version, NULL, "print the version" },
	{ "help", cmd_help, NULL, "explain a command" },
	{ 0 },
};

static const struct command *command_find(const struct command *table,
					  const char *name)
{
	for (; table->name; table++)
		if (!strcmp(table->name, name))
			return table;
	return NULL;
}

static void table_print(const struct command *table, const char *prefix,
			FILE *out)
{
	fprintf(out, "usage: sallyport %s%sCOMMAND ...\n", prefix,
		*prefix ? " " : "");
	for (; table->name; table++)
		if (table->help)
			fprintf(out, "  %-12s %s\n", table->name, table->help);
	fprintf(out, "COMMAND --help explains one of them.\n");
}

static int command_unknown(const struct command *table, const char *prefix,
			   const char *name)
{
	const char *words[32] = { 0 }, *near;
	unsigned count = 0;

	for (; table->name && count < ARRAY_LEN(words) - 1; table++)
		if (table->help)
			words[count++] = table->name;
	near = diag_suggest(name, words);
	fprintf(stderr, "sallyport: there is no command '%s%s%s'%s%s%s\n",
		prefix, *prefix ? " " : "", name,
		near ? ", did you mean '" : "", near ? near : "",
		near ? "'?" : "");
	return CLI_USAGE;
}

static int command_run(const struct command *table, const char *prefix,
		       int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		table_print(table, prefix, stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		table_print(table, prefix, stdout);
		return CLI_OK;
	}
	c = command_find(table, argv[1]);
	if (!c)
		return command_unknown(table, prefix, argv[1]);
	if (c->fn)
		return c->fn(argc - 1, argv + 1);
	return command_run(c->sub, c->name, argc - 1, argv + 1);
}

/* help [COMMAND [SUBCOMMAND]] is COMMAND [SUBCOMMAND] --help */
static int cmd_help(int argc, char **argv)
{
	static char help[] = "--help";
	char *words[] = { argv[0], help, NULL, NULL, NULL };
	int count = 0;

	if (argc > 3)
		return command_unknown(commands, "help", argv[3]);
	for (; count + 1 < argc; count++)
		words[count + 1] = argv[count + 1];
	words[count + 1] = help;
	return command_run(commands, "", count + 2, words);
}

static int cmd_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	puts("sallyport " SALLYPORT_VERSION);
	return CLI_OK;
}

int main(int argc, char **argv)
{
	int r;

	log_init("cli", LOG_WARN);
	if (argc == 2 && !strcmp(argv[1], "--version"))
		return cmd_version(argc, argv);
	r = command_run(commands, "", argc, argv);
	if (fflush(stdout) && r == CLI_OK)
		r = CLI_FAILED; /* nobody got the answer */
	return r;
}
