/* SPDX-License-Identifier: Apache-2.0 */
/* host_path.h - what a path of the node really leads to, before it is mounted
 */
#pragma once

#include "src/control/lifecycle/create_request.h"

enum { HOST_PATH_SIZE = 4096 };

/* The folder that v names (source and subPath), symbolic links resolved, into
 * dst; made first when it is missing. 0; -EINVAL with no: it leads out of what
 * is allowed, is missing and cannot be made, or is none. allowed is
 * NULL-terminated. Blocks for the file system. */
WUNRES int host_path_resolve(const struct create_volume *v,
			     const char *const *allowed,
			     char dst[HOST_PATH_SIZE],
			     struct lifecycle_error *no);
