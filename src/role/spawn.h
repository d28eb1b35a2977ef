/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - starting the executable of a role */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct config;

/* "sallyport-gateway"; NULL for a role that is not spawned. */
const char *spawn_program(enum role role);

/* The path of a program beside our own executable. 0 or -errno. */
WUNRES int spawn_beside(const char *program, char *dst, size_t size);

struct spawned {
	pid_t pid;
	int pidfd; /* readable once the process ended; the caller closes it */
};

/* Starts path as that role: fd 3 is a duplicate of channel_fd, fd 4 of
 * config_fd, stdin is /dev/null, stdout and stderr are ours, all else is
 * closed. The environment is empty (the vault gets CREDENTIALS_DIRECTORY),
 * signals are at their defaults. Both fds are borrowed. 0, or -errno when it
 * could not be started. */
WUNRES int spawn_role(enum role role, const char *path, int channel_fd,
		      int config_fd, struct spawned *ret);

/* A memfd of what role_init() reads. The fd, or -errno. */
WUNRES int spawn_config(const struct config *config);
