/* SPDX-License-Identifier: Apache-2.0 */
/* fd.h - file descriptors: -1 when empty, closed in one way */
#pragma once

#include <unistd.h>

#include "src/base/attrib.h"

/* Closes when >= 0; always returns -1: x->fd = fd_close(x->fd). */
static inline int fd_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static inline void cleanup_fd(int *fd)
{
	*fd = fd_close(*fd);
}
#define CLEANUP_FD CLEANUP(cleanup_fd)
