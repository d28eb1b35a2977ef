/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - whole files in, whole files out, and who writes to them */
#pragma once

#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct loop;

/* Appends all of a file; -EFBIG when it does not fit into the buffer. */
WUNRES int file_read(const char *path, struct buf *out);
/* Replaces a file in one step (a new file, renamed over it). */
WUNRES int file_write(const char *path, mode_t mode, struct span bytes);

/* Calls changed from the loop, once per burst: after quiet_ms without further
 * events on any file of a folder (writes, renames, removals). A folder that is
 * not there (yet), or goes, is looked for again every few seconds. */
struct file_watch;
WUNRES int file_watch_new(struct loop *loop, const char *folder,
			  unsigned quiet_ms, void (*changed)(void *ctx),
			  void *ctx, struct file_watch **ret);
struct file_watch *file_watch_free(struct file_watch *w);
