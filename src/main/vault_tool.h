/* SPDX-License-Identifier: Apache-2.0 */
/* vault_tool.h - sallyport-vault as a command: work on a store without daemon
 */
#pragma once

enum { TOOL_FINE = 0, TOOL_FAILED = 1, TOOL_USAGE = 2 };

/* Returns the exit status. */
int vault_tool_run(int argc, char **argv);
