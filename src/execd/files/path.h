/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - paths of clients: expanded, opened safely
 *
 * A path may begin with "~" or "~user" ("~" is the home of whom the work is done
 * for) and hold $NAME or ${NAME} of the
 * daemon's environment ("$$" is a dollar sign); it is then made absolute
 * against the daemon's working directory and cleaned of "." and "..", as text.
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
struct identity;

enum { PATH_BYTES = 4096 };

/* 0; -EINVAL (empty, NUL inside, unknown user, variable that is not set),
 * -ENAMETOOLONG, -ENOENT (relative, and our working directory is gone) with a
 * sentence in d. Secrets of the daemon are no variables. */
WUNRES int path_expand(struct span text, char dst[PATH_BYTES], struct diag *d);
/* The same for whom it is asked, instead of whom the thread works for. */
WUNRES int path_expand_as(const struct identity *as, struct span text,
			  char dst[PATH_BYTES], struct diag *d);

/* The name behind the last '/' of an expanded path; "" of the root. */
const char *path_base(const char *path);
/* The directory that holds it; of the root, the root. */
void path_parent(const char *path, char dst[PATH_BYTES]);
/* While the path names a symbolic link, makes it what the link says: where
 * open(2) for writing would create the file. Also to what is not there. 0,
 * -ELOOP, -ENAMETOOLONG. */
WUNRES int path_follow(char path[PATH_BYTES]);
