/* SPDX-License-Identifier: Apache-2.0 */
/* tool.h - run a system program to its end, with text in and text out */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"

/* Runs argv[0], a path, with input on stdin and an environment of PATH and
 * LC_ALL=C; stdout and stderr go into output as far as it takes. Blocks, at
 * most timeout_ms, then the program is killed.
 * 0; > 0 its exit status; -ETIMEDOUT; -EPROTO killed by a signal; -errno. */
WUNRES int tool_run(const char *const argv[], struct span input,
		    struct buf *output, uint32_t timeout_ms);
