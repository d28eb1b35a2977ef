/* SPDX-License-Identifier: Apache-2.0 */
/* diag.h - an error that a person will read: configuration, policy, API
 *
 * The first error wins; later ones are ignored. A message says what was found
 * and what was expected, and never repeats a credential value.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"

struct diag {
	char file[256];	    /* "" when not from a file */
	unsigned line, col; /* 1-based; 0 = unknown */
	char msg[512];	    /* "" = no error */
};

static inline bool diag_is_set(const struct diag *d)
{
	return d->msg[0] != '\0';
}

/* Always returns -EINVAL, so that a parser can `return diag_set(...)`. */
int diag_set(struct diag *d, unsigned line, unsigned col, const char *fmt, ...)
	PRINTF(4, 5);

/* "file:line:col: msg", leaving out what is unknown. Returns dst. */
const char *diag_text(const struct diag *d, char *dst, size_t size);

/* The word of `words` (NULL-terminated) nearest to `typed` by edit distance,
 * or NULL when nothing is near. For "did you mean". */
const char *diag_suggest(const char *typed, const char *const *words);
