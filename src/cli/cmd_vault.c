/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_vault.c - sallyport vault: credentials and the keys they lie under
 *
 * A running daemon holds the vault, so what it can do is asked of it. What
 * needs the vault for itself (init, rotate-kek), and everything when no daemon
 * answers, is done by the vault's own program beside this one.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/cli/api.h"
#include "src/cli/body.h"
#include "src/cli/command.h"
#include "src/cli/proc.h"
#include "src/cli/routes.h"
#include "src/cli/simple.h"
#include "src/role/spawn.h"
#include "src/text/json.h"

enum { BODY_MAX = 1024 * 1024 };

static const struct column credential_columns[] = {
	{ "NAME", "name" },
	{ "REVISION", "revision" },
	{ 0 },
};

/* Becomes sallyport-vault. Returns only on failure. */
static int tool_become(const char *const *argv)
{
	char path[PATH_MAX];

	(void)fflush(stdout);
	if (!spawn_beside(argv[0], path, sizeof(path)))
		(void)execv(path, (char *const *)(uintptr_t)argv);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	fprintf(stderr, "sallyport: sallyport-vault could not be run: %s\n",
		err_text(errno));
	return CLI_FAILED;
}

/* The same words, of a subcommand that was parsed. */
static int tool_instead(const char *verb, const struct simple_words *w)
{
	const char *argv[8] = { "sallyport-vault", verb };
	unsigned at = 2, i;

	if (w->daemon.config) {
		argv[at++] = "--config";
		argv[at++] = w->daemon.config;
	}
	for (i = 0; i < w->rest.count && i < 2; i++)
		argv[at++] = w->rest.items[i];
	return tool_become(argv);
}

/* What needs the vault for itself is always the tool's, with all its options.
 */
static int tool_only(const char *verb, int argc, char **argv)
{
	const char **words CLEANUP_FREE =
		must_alloc(((size_t)argc + 2) * sizeof(*words));
	int i;

	words[0] = "sallyport-vault";
	words[1] = verb;
	for (i = 1; i < argc; i++)
		words[i + 1] = argv[i];
	return tool_become(words);
}

static int tool_list(const struct simple_words *w)
{
	return tool_instead("list", w);
}

static int tool_rm(const struct simple_words *w)
{
	return tool_instead("rm", w);
}

static int tool_rotate_dek(const struct simple_words *w)
{
	return tool_instead("rotate-dek", w);
}

static int tool_verify(const struct simple_words *w)
{
	return tool_instead("verify", w);
}

static int tool_put(const struct simple_words *w)
{
	return tool_instead("put", w);
}

int cmd_vault_init(int argc, char **argv)
{
	return tool_only("init", argc, argv);
}

int cmd_vault_rotate_kek(int argc, char **argv)
{
	return tool_only("rotate-kek", argc, argv);
}

/* -- what a running daemon does, and the tool when none runs -------------- */

int cmd_vault_list(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault list",
		.path = ROUTE_CREDENTIALS,
		.otherwise = tool_list,
		.member = "credentials",
		.columns = credential_columns,
	};

	return simple_list(&s, argc, argv);
}

int cmd_vault_rm(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault rm NAME",
		.path = ROUTE_CREDENTIALS,
		.otherwise = tool_rm,
	};

	return simple_rm(&s, argc, argv);
}

int cmd_vault_rotate_dek(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault rotate-dek",
		.path = ROUTE_ROTATE_DEK,
		.otherwise = tool_rotate_dek,
	};

	return simple_post(&s, "rotated", argc, argv);
}

int cmd_vault_verify(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault verify",
		.path = ROUTE_VERIFY,
		.otherwise = tool_verify,
	};

	return simple_post(&s, "sound", argc, argv);
}

/* -- put ------------------------------------------------------------------ */

static int value_send(const struct api *api, struct span name,
		      const struct secret *value)
{
	struct buf body CLEANUP(buf_wipe) = BUF_INIT(BODY_MAX);
	struct api_path path;
	struct json_out out;

	if (!body_value_is_sound(name, value))
		return CLI_FAILED;
	json_start(&out, &body);
	body_put_credential(&out, name, value);
	if (json_done(&out))
		return CLI_FAILED;
	api_path_set(&path, ROUTE_CREDENTIALS, name);
	return api_do(api, "PUT", path.text, buf_peek(&body));
}

int cmd_vault_put(int argc, char **argv)
{
	const struct simple s = { .line = "vault put NAME [@FILE]" };
	struct simple_words w = { 0 };
	struct secret *value;
	struct api api;
	int r;

	r = simple_parse(&s, 1, 2, argc, argv, &w);
	if (r)
		return opts_exit(r);
	secret_process_init();
	if (api_init(&api, &w.daemon))
		return CLI_FAILED;
	if (!api_answers(&api))
		return tool_put(&w);
	if (value_read(w.rest.count > 1 ? w.rest.items[1] : "-", &value))
		return CLI_FAILED;
	r = value_send(&api, span_str(w.rest.items[0]), value);
	value = secret_free(value);
	return r;
}
