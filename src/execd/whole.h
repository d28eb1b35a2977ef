/* SPDX-License-Identifier: Apache-2.0 */
/* whole.h - whole small files: read into memory, written in one step
 *
 * For files whose place is known and that are read at once: kernel files,
 * certificates. Blocking; files of clients have their own room (files/).
 */
#pragma once

#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

/* Appends all of a regular file. 0; -EFBIG when it does not fit into the
 * buffer, -EINVAL when it is no regular file, else -errno of open and read.
 * Never waits for a FIFO. */
WUNRES int whole_read(const char *path, struct buf *to);
/* The first bytes of a file of the kernel, NUL-terminated: how many, or
 * -errno. No allocation. */
WUNRES ssize_t whole_peek(const char *path, char *dst, size_t size);
/* Puts a new file in the place of the old one (written beside it and renamed,
 * so that a reader sees the old or the new). 0 or -errno; then nothing is
 * changed and nothing is left behind. */
WUNRES int whole_write(const char *path, mode_t mode, struct span bytes);
