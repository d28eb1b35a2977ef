/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h - a text of any length as arguments of a shell */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct shell_args;

/* "shell -c text", when only `text` is not empty. With more, or with a text
 * that is too long for one argument, a script that evaluates `first` without
 * showing its errors, runs the lines `before`, evaluates the text (with the
 * same $0 and without parameters) and runs the lines `after`. The lines are
 * ours, at most 4 KiB; no text holds a NUL. */
struct shell_texts {
	struct span first, before, text, after;
};
struct shell_args *shell_args_new(const char *shell,
				  const struct shell_texts *texts);
/* For exec; valid until free. */
const char *const *shell_args_list(const struct shell_args *a);
/* NULL is fine; returns NULL. */
struct shell_args *shell_args_free(struct shell_args *a);

/* Where images have programs, then in the daemon's PATH. NULL: nowhere, else
 * valid until the next call. In the loop. */
const char *program_find(const char *name);
/* By its name. */
bool shell_is_bash(const char *path);
