/* SPDX-License-Identifier: Apache-2.0 */
/* url.h - canonical paths for comparison; the bytes sent stay as they were
 *
 * url_canon_path(): query and fragment cut, percent-encoded unreserved bytes
 * decoded, remaining escapes upper-cased, "." and ".." segments removed (RFC
 * 3986 5.2.4), "//" kept. It refuses what two parsers would read differently:
 * encoded separators (%2F, %5C), encoded dots that form a dot segment, escapes
 * that are themselves escaped (%2541), dot segments with a parameter ("..;x"),
 * overlong UTF-8, a backslash, bad escapes, NUL or controls, bytes over 0x7e,
 * ".." above the root or right behind "//".
 */
#pragma once

#include <stdbool.h>

#include "src/base/arena.h"
#include "src/base/span.h"

enum url_path_result {
	URL_PATH_OK,
	URL_PATH_AMBIGUOUS, /* a credential or a path rule must not apply */
	URL_PATH_BAD,	    /* no path at all: does not begin with '/' */
	URL_PATH_NO_MEMORY,
};

/* target: a path with or without query. *ret, in the arena, only with
 * URL_PATH_OK; never longer than the path, NUL-terminated. */
enum url_path_result url_canon_path(struct arena *arena, struct span target,
				    struct span *ret);

/* Exact, or prefix when the pattern ends in '*' (contract 2.7). */
bool url_path_matches(struct span pattern, struct span path);
