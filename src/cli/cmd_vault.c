/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_vault.c - sallyport vault: credentials and the keys they lie under
 *
 * A running daemon holds the vault, so what it can do is asked of it. What
 * needs the vault for itself (init, rotate-kek), and everything when no daemon
 * answers, is done by the vault's own program beside this one.
 */

#include <errno.h>
#include <fcntl.h>
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

/* Becomes sallyport-vault with the same words. Returns only on failure. */
static int tool_become(const char *verb, const struct simple_words *w)
{
	const char *config =
		w->daemon.config ? w->daemon.config : CLI_CONFIG_FILE;
	const char *argv[8] = { "sallyport-vault", verb, "--config", config };
	char path[PATH_MAX];
	unsigned at = 4;

	if (w->sandbox) {
		argv[at++] = "--sandbox";
		argv[at++] = w->sandbox;
	}
	argv[at] = w->rest.count ? w->rest.items[0] : NULL;
	(void)fflush(stdout);
	if (!spawn_beside(argv[0], path, sizeof(path)))
		(void)execv(path, (char *const *)(uintptr_t)argv);
	(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
	fprintf(stderr, "sallyport: sallyport-vault could not be run: %s\n",
		err_text(errno));
	return CLI_FAILED;
}

static int tool_list(const struct simple_words *w)
{
	return tool_become("list", w);
}

static int tool_rm(const struct simple_words *w)
{
	return tool_become("rm", w);
}

static int tool_rotate_dek(const struct simple_words *w)
{
	return tool_become("rotate-dek", w);
}

static int tool_verify(const struct simple_words *w)
{
	return tool_become("verify", w);
}

/* The tool reads the value from stdin. */
static int tool_put(const struct simple_words *w, const char *from)
{
	int fd = -1;

	if (from[0] == '@') {
		fd = open(from + 1, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || dup2(fd, STDIN_FILENO) < 0) {
			fprintf(stderr, "sallyport: %s: %s\n", from + 1,
				err_text(errno));
			return CLI_FAILED;
		}
	}
	return tool_become("put", w);
}

/* What needs the vault for itself: always the tool. */
static int tool_only(const struct simple *s, const char *verb, unsigned count,
		     int argc, char **argv)
{
	struct simple_words w = { 0 };
	int r = simple_parse(s, count, count, argc, argv, &w);

	return r ? opts_exit(r) : tool_become(verb, &w);
}

int cmd_vault_init(int argc, char **argv)
{
	const struct simple s = { .line = "vault init [--config FILE]" };

	return tool_only(&s, "init", 0, argc, argv);
}

int cmd_vault_rotate_kek(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault rotate-kek NEWKEYFILE [--config FILE]",
	};

	return tool_only(&s, "rotate-kek", 1, argc, argv);
}

/* -- what a running daemon does, and the tool when none runs -------------- */

int cmd_vault_list(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault list [--sandbox ID]",
		.root = ROUTE_ROOT,
		.path = ROUTE_CREDENTIALS,
		.scoped = true,
		.otherwise = tool_list,
		.member = "credentials",
		.columns = credential_columns,
	};

	return simple_list(&s, argc, argv);
}

int cmd_vault_rm(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault rm NAME [--sandbox ID]",
		.root = ROUTE_ROOT,
		.path = ROUTE_CREDENTIALS,
		.scoped = true,
		.otherwise = tool_rm,
	};

	return simple_rm(&s, argc, argv);
}

int cmd_vault_rotate_dek(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault rotate-dek",
		.root = ROUTE_ROOT,
		.path = ROUTE_ROTATE_DEK,
		.otherwise = tool_rotate_dek,
	};

	return simple_post(&s, "rotated", argc, argv);
}

int cmd_vault_verify(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault verify",
		.root = ROUTE_ROOT,
		.path = ROUTE_VERIFY,
		.otherwise = tool_verify,
	};

	return simple_post(&s, "sound", argc, argv);
}

/* -- put ------------------------------------------------------------------ */

static int value_send(const struct simple *s, const struct simple_words *w,
		      const struct secret *value)
{
	struct buf body CLEANUP(buf_wipe) = BUF_INIT(BODY_MAX);
	const struct span name = span_str(w->rest.items[0]);
	struct api_path path;
	struct json_out out;
	struct api api;

	if (!body_value_is_sound(name, value))
		return CLI_FAILED;
	json_start(&out, &body);
	body_put_credential(&out, name, value);
	if (json_done(&out) || api_init(&api, &w->daemon))
		return CLI_FAILED;
	simple_path(&path, s, w->sandbox, name);
	return api_do(&api, "PUT", path.text, buf_peek(&body));
}

int cmd_vault_put(int argc, char **argv)
{
	const struct simple s = {
		.line = "vault put NAME [@FILE] [--sandbox ID]",
		.root = ROUTE_ROOT,
		.path = ROUTE_CREDENTIALS,
		.scoped = true,
	};
	struct simple_words w = { 0 };
	struct secret *value;
	struct api api;
	const char *from;
	int r;

	r = simple_parse(&s, 1, 2, argc, argv, &w);
	if (r)
		return opts_exit(r);
	secret_process_init();
	if (api_init(&api, &w.daemon))
		return CLI_FAILED;
	from = w.rest.count > 1 ? w.rest.items[1] : "-";
	if (!api_answers(&api))
		return tool_put(&w, from);
	if (value_read(from, &value))
		return CLI_FAILED;
	r = value_send(&s, &w, value);
	value = secret_free(value);
	return r;
}
