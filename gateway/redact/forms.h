/* SPDX-License-Identifier: Apache-2.0 */
/* forms.h - the spellings in which software repeats a value
 *
 * A value that an origin echoes seldom stands alone: it is quoted in JSON,
 * escaped in a URL or a page, or stands inside something that was encoded as a
 * whole. forms_each() writes every such spelling, one after the other.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	/* Shorter texts are no forms: they stand in any body by chance. Five
	 * random base64 characters meet one in 16 MiB of such text; words and
	 * numbers far oftener, and a body damaged at every "admin" is worse
	 * than what such a "secret" protects. */
	FORM_MIN_BYTES = 6,
	/* The longest value; the longest form is eight times as long and has to
	 * fit one secret. */
	FORM_VALUE_MAX = 12000,
};

/* Borrowed for the call. What is not 0 ends forms_each(). */
typedef int (*form_take)(void *ctx, struct span text);

/* Calls take with each form of value; some are given twice. The text stands in
 * locked memory. 0; what take returned; -ENOMEM; -E2BIG over FORM_VALUE_MAX. */
WUNRES int forms_each(struct span value, form_take take, void *ctx);
