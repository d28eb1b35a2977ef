/* SPDX-License-Identifier: Apache-2.0 */
/* daemon.h - the life of sallyportd */
#pragma once

#include "src/base/attrib.h"

struct config;

/* Installs the rules, runs the roles until SIGTERM or SIGINT, leaves the node
 * closed. Closes every descriptor but 0, 1 and 2. 0, or -errno when it did not
 * start or the roles did not (said in the log). */
WUNRES int daemon_run(const struct config *config);
