/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_execd_command.c - the body of a command: refused with a sentence, or
 * something that can be given to a program */

#include <stdint.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/command/body.h"
#include "src/execd/process/env.h"
#include "src/execd/process/shell.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(const struct command_body *b)
{
	struct env *env = env_new_empty();
	struct shell_args *args;
	struct diag d = { 0 };
	const char *const *at;

	must(!b->command.len != !b->argv);
	must(!b->command.len || !memchr(b->command.ptr, 0, b->command.len));
	json_for_each(word, b->argv)
		must(json_text(word).ptr &&
		     !memchr(json_text(word).ptr, 0, json_text(word).len));
	must(!b->argv || json_text(json_item(b->argv, 0)).len);
	must(!b->has_gid || b->has_uid);
	must(!command_body_envs(b, env, &d) == !diag_is_set(&d));
	for (at = env_list(env); *at; at++)
		must(strchr(*at, '=') && **at != '=');
	args = shell_args_new("/bin/sh",
			      &(struct shell_texts){ .text = b->command });
	for (at = shell_args_list(args); *at; at++)
		must(strlen(*at) < 128 * 1024);
	(void)shell_args_free(args);
	(void)env_free(env);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct command_body b;
	struct diag d = { 0 };
	struct json *j;

	if (json_parse(span_of(data, size), &j, NULL))
		return 0;
	if (!command_body_read(j, &b, &d))
		use(&b);
	else
		must(diag_is_set(&d));
	json_free(j);
	return 0;
}
