/* SPDX-License-Identifier: Apache-2.0 */
/* glob.h - patterns for the names of files
 *
 * "*" and "**" any text, "?" one character (of UTF-8), "[a-z]" one of a set
 * ("[!...]" or "[^...]": none of it), "{a,b}" either, "\x" the character x. A
 * pattern is held against a name, not a path: "**" and a slash in front change
 * nothing, a slash elsewhere never matches.
 *
 * Pure. The braces are worked out at once, into at most GLOB_PATTERNS_MAX plain
 * patterns; each is then matched in time proportional to name times pattern.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct glob;

enum { GLOB_BYTES_MAX = 512, GLOB_PATTERNS_MAX = 256 };

/* 0; -EINVAL with a sentence in d. */
WUNRES int glob_new(struct span pattern, struct glob **ret, struct diag *d);
struct glob *glob_free(struct glob *g);
bool glob_matches(const struct glob *g, struct span name);
