/* SPDX-License-Identifier: Apache-2.0 */
/* shell.c - which shell there is, and how a text of any length is given to it
 *
 * How it works: one argument of a program may have 128 KiB (MAX_ARG_STRLEN), a
 * command may have 1 MiB. A longer text is given in pieces, as positional
 * parameters which a short script puts together again and evaluates. That needs
 * nothing of the image: no /proc, no writable directory, no descriptor that the
 * command would inherit.
 */

#include "src/execd/process/shell.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/lines.h"
#include "src/execd/process/child.h"

enum { ARG_MAX_BYTES = 128 * 1024 - 1, SCRIPT_MAX = 64 * 1024 };

/* -- finding it ----------------------------------------------------------- */

static const char *program_at(const char *folder, size_t len, const char *name)
{
	static char path[4096];
	int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, folder, name);

	if (n < 0 || (size_t)n >= sizeof(path) || access(path, X_OK))
		return NULL;
	return path;
}

/* Where images have it, then in the daemon's PATH: that may begin with folders
 * in which the workload can put a program of its own. */
const char *program_find(const char *name)
{
	static const char *const folders[] = { "/bin", "/usr/bin",
					       "/usr/local/bin", "/busybox" };
	const char *path = getenv("PATH"), *end, *found;
	size_t i;

	for (i = 0; i < ARRAY_LEN(folders); i++) {
		found = program_at(folders[i], strlen(folders[i]), name);
		if (found)
			return found;
	}
	for (; path && *path; path = *end ? end + 1 : end) {
		end = strchrnul(path, ':');
		if (*path != '/')
			continue;
		found = program_at(path, (size_t)(end - path), name);
		if (found)
			return found;
	}
	return NULL;
}

const char *child_shell(const struct execd *e)
{
	const char *found;

	if (e->config->entrypoint_shell)
		return access(e->config->entrypoint_shell, X_OK)
			       ? NULL
			       : e->config->entrypoint_shell;
	found = program_find("bash");
	return found ? found : program_find("sh");
}

bool shell_is_bash(const char *path)
{
	const char *slash = strrchr(path, '/');

	return !strcmp(slash ? slash + 1 : path, "bash");
}

/* -- its arguments -------------------------------------------------------- */

struct shell_args {
	char **argv; /* shell -c script name piece... */
	size_t count, size;
};

static void argv_put(struct shell_args *a, char *arg)
{
	if (a->count + 2 > a->size) {
		a->size = a->size ? 2 * a->size : 16;
		a->argv = must_realloc(a->argv, a->size * sizeof(*a->argv));
	}
	a->argv[a->count++] = arg;
	a->argv[a->count] = NULL;
}

static char *text_copy(struct span s)
{
	char *copy = must_alloc(s.len + 1);

	if (s.len)
		memcpy(copy, s.ptr, s.len);
	return copy;
}

/* Puts the text as pieces and its name in the script: "${5}${6}". */
static void pieces_put(struct shell_args *a, struct span text, size_t *number,
		       struct buf *script)
{
	struct span piece;

	do {
		piece = span_of(text.ptr, MIN(text.len, (size_t)ARG_MAX_BYTES));
		if (piece.len < text.len)
			piece.len = lines_whole(piece);
		argv_put(a, text_copy(piece));
		must(!buf_putf(script, "${%zu}", ++*number));
		text = span_from(text, piece.len);
	} while (text.len);
}

static bool is_plain(const struct shell_texts *t)
{
	return !t->first.len && !t->before.len && !t->after.len &&
	       t->text.len <= ARG_MAX_BYTES;
}

struct shell_args *shell_args_new(const char *shell,
				  const struct shell_texts *texts)
{
	struct shell_args *a = must_alloc(sizeof(*a));
	struct buf script = BUF_INIT(SCRIPT_MAX);
	size_t number = 0;

	argv_put(a, must_strdup(shell));
	argv_put(a, must_strdup("-c"));
	if (is_plain(texts)) {
		argv_put(a, text_copy(texts->text));
		return a;
	}
	argv_put(a, NULL); /* the script comes here */
	argv_put(a, must_strdup(shell));
	if (texts->first.len) {
		must(!buf_put_str(&script, "eval \""));
		pieces_put(a, texts->first, &number, &script);
		must(!buf_put_str(&script, "\" 2>/dev/null; "));
	}
	must(!buf_put(&script, texts->before));
	must(!buf_put_str(&script, "eval \"set --;"));
	pieces_put(a, texts->text, &number, &script);
	must(!buf_put_str(&script, "\""));
	must(!buf_put(&script, texts->after));
	a->argv[2] = text_copy(buf_peek(&script));
	buf_fini(&script);
	return a;
}

const char *const *shell_args_list(const struct shell_args *a)
{
	return (const char *const *)a->argv;
}

struct shell_args *shell_args_free(struct shell_args *a)
{
	size_t i;

	if (!a)
		return NULL;
	for (i = 0; i < a->count; i++)
		free(a->argv[i]);
	free(a->argv);
	free(a);
	return NULL;
}
