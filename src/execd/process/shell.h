/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h - a text of any length as arguments of a shell */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct shell_args;

/* "shell -c text". The texts hold no NUL.
 *
 * `before` (may be empty) is a text that is evaluated first, whose errors are
 * not shown; `setup` (may be empty) are lines of ours, at most 4 KiB, that run
 * between the two. Neither, and a short text: the argument is the text itself.
 * Otherwise it is evaluated, with the same $0 and without parameters. */
struct shell_args *shell_args_new(const char *shell, struct span before,
				  struct span text, struct span setup);
/* For exec; valid until free. */
const char *const *shell_args_list(const struct shell_args *a);
/* NULL is fine; returns NULL. */
struct shell_args *shell_args_free(struct shell_args *a);

/* By its name. */
bool shell_is_bash(const char *path);
