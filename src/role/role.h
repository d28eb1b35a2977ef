/* SPDX-License-Identifier: Apache-2.0 */
/* role.h - what every role process does first and last
 *
 * A role's main():  role_init() -> open what it needs -> role_confine() ->
 * its own loop, MSG_ROLE_READY when it serves -> return on
 * MSG_SUPERVISOR_DRAIN or when the supervisor's channel closes.
 *
 * File descriptors at exec: 3 = channel to the supervisor, 4 = configuration
 * (memfd, see spawn_config()). The environment is emptied by the
 * supervisor, but for the vault's CREDENTIALS_DIRECTORY.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/role/config.h"
#include "src/role/msg.h"

enum { ROLE_FD_SUPERVISOR = 3, ROLE_FD_CONFIG = 4 };

/* No cores, log set up, signals (PIPE ignored, TERM/HUP/INT left to the
 * supervisor's messages), configuration parsed. Dies with a log line. */
void role_init(enum role role, struct config **ret_config);

/* Gives up everything the role does not need: chroot-like emptiness (own
 * mount view is the supervisor's), user and groups, capabilities,
 * no_new_privs, then the seccomp list of this role. Dies on failure. */
void role_confine(enum role role, const struct config *config);
