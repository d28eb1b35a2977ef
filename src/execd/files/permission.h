/* SPDX-License-Identifier: Apache-2.0 */
/* permission.h - {"mode", "owner", "group"} of the contract (5.6)
 *
 * mode is the octal digits written as a decimal integer: 644 is 0644; 0 means
 * that it is not given. Owner and group are names of the image's users and
 * groups, or numbers; an empty one is not given.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"

struct diag;
struct json;

struct permission {
	bool has_mode;
	mode_t mode;
	uid_t uid; /* -1: not given */
	gid_t gid;
};

#define PERMISSION_NONE \
	((struct permission){ .uid = (uid_t)-1, .gid = (gid_t)-1 })

/* 0; -EINVAL with a sentence in d. Members that are none of these are no
 * concern of it. */
WUNRES int permission_parse(const struct json *object, struct permission *ret,
			    struct diag *d);
/* Owner and group first: changing them takes set-id bits away. Both 0 or
 * -errno. The second follows links. */
WUNRES int permission_set_fd(const struct permission *p, int fd);
WUNRES int permission_set_path(const struct permission *p, const char *path);
/* 0644 as 644. */
unsigned permission_decimal(mode_t mode);
