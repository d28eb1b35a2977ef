/* SPDX-License-Identifier: Apache-2.0 */
/* archive.h - a tar archive of a few small files, to be unpacked as root
 *
 * Pure. Format: POSIX ustar (IEEE Std 1003.1, pax(1)), owner 0:0, no links.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

/* All: 0; -ENOBUFS; -ENAMETOOLONG over 99 bytes of path. path: without a slash
 * in front. */
WUNRES int archive_put_folder(struct buf *out, const char *path, unsigned mode);
WUNRES int archive_put_file(struct buf *out, const char *path, unsigned mode,
			    struct span bytes);
WUNRES int archive_end(struct buf *out);
