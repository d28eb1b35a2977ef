/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - paths of clients: expanded, opened safely
 *
 * A path may begin with "~" or "~user" and hold $NAME or ${NAME} of the
 * daemon's environment; it is then made absolute against the daemon's working
 * directory and cleaned of "." and "..", as text.
 *
 * The daemon is often root and the workload beside it may replace any part of
 * a path by a symbolic link at any moment. Following links is what clients ask
 * for in ordinary reads and writes; what must never be led astray (removing a
 * tree, listing, changing owners below a directory) walks by file descriptors
 * and never through a link.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;

enum { PATH_BYTES = 4096 };

/* 0; -EINVAL (empty, NUL inside, unknown user), -ENAMETOOLONG with a sentence
 * in d. */
WUNRES int path_expand(struct span text, char dst[PATH_BYTES], struct diag *d);
