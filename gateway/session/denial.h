/* SPDX-License-Identifier: Apache-2.0 */
/* denial.h - a refusal that agents and people can read
 *
 * One JSON object with one plain sentence in it that names the rule; the
 * sentence alone for who accepts text and no JSON; and the header
 * Sallyport-Denied with the reason, so that a program need not parse.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct audit;
struct buf;
struct response;

enum { DENIAL_BODY_BYTES = 16 * 1024, DENIAL_LENGTH_SIZE = 16 };

/* The response for a->status: its head in *ret (length_text is borrowed by it)
 * and its body in body. accept: the request's field, or empty. 0 or -ENOBUFS.
 */
WUNRES int denial_compose(const struct audit *a, struct span accept,
			  struct buf *body,
			  char length_text[DENIAL_LENGTH_SIZE],
			  struct response *ret);
