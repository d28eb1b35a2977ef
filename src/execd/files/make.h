/* SPDX-License-Identifier: Apache-2.0 */
/* make.h - directories with those above them */
#pragma once

#include "src/base/attrib.h"

struct fault;
struct permission;

/* Makes the directory and what is missing above it. New ones get owner and
 * group of p, the last one also its mode (if new); what was there before is
 * left as it is. p NULL: nothing is set. 0; -errno with f set. Blocking. */
WUNRES int make_directories(const char *path, const struct permission *p,
			    struct fault *f);
/* Those above what the path names. */
WUNRES int make_parents(const char *path, const struct permission *p,
			struct fault *f);
