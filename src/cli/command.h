/* SPDX-License-Identifier: Apache-2.0 */
/* command.h - what a subcommand of `sallyport` is, and its exit codes
 *
 * One table (main.c) serves dispatch, usage and completion. A subcommand is a
 * function in a file cmd_<name>.c; a group such as `policy` has a table of its
 * own below it.
 */
#pragma once

enum {
	CLI_OK,
	CLI_FAILED,	 /* refused, denied, or it went wrong */
	CLI_USAGE,	 /* asked in a way that has no meaning */
	CLI_UNREACHABLE, /* no daemon answers */
};

/* argv[0] is the name of the subcommand, argv[argc] is NULL. */
typedef int command_fn(int argc, char **argv);

struct command {
	const char *name;	   /* NULL ends a table */
	command_fn *fn;		   /* NULL: a group */
	const struct command *sub; /* of a group */
	const char *help;	   /* one line; NULL: not shown */
};

command_fn cmd_audit_tail;
command_fn cmd_binding_list, cmd_binding_put, cmd_binding_rm;
command_fn cmd_ca_export;
command_fn cmd_policy_check, cmd_policy_explain, cmd_policy_list;
command_fn cmd_policy_put, cmd_policy_reload, cmd_policy_rm, cmd_policy_test;
command_fn cmd_run, cmd_run_init;
command_fn cmd_sandbox_add, cmd_sandbox_list, cmd_sandbox_rm, cmd_sandbox_show;
command_fn cmd_status;
command_fn cmd_token_create, cmd_token_list, cmd_token_rm;
command_fn cmd_vault_init, cmd_vault_list, cmd_vault_put, cmd_vault_rm;
command_fn cmd_vault_rotate_dek, cmd_vault_rotate_kek, cmd_vault_verify;
