/* SPDX-License-Identifier: Apache-2.0 */
/* launch.h - starts the program of a terminal */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct diag;
struct terminal;

/* Our sides, non-blocking; -1: there is none. */
struct terminal_fds {
	int out, err, in;
	int slave; /* the other side of a terminal, kept open */
};

/* A shell, or t->command in one, as t->child; at a terminal of t's size, or at
 * pipes. 0, or -errno with a sentence in d and nothing left behind. */
WUNRES int terminal_launch(struct terminal *t, bool pty,
			   struct terminal_fds *ret, struct diag *d);
