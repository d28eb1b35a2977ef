/* SPDX-License-Identifier: Apache-2.0 */
/* volume.h - one item of "volumes" (contract 4.10) */
#pragma once

#include "src/control/lifecycle/create_request.h"

struct json;

/* Fills q->volumes[at], texts in q's arena. Names and mount paths must differ
 * from those of the items before. Lexical checks only: what a path of the node
 * really leads to is looked at when it is mounted. 0; -EINVAL with no. */
WUNRES int volume_parse(const struct json *j, unsigned at,
			struct create_request *q,
			const struct create_limits *limits,
			struct lifecycle_error *no);
/* Is path, cleaned, one of the allowed or below one? An empty list allows
 * nothing. */
WUNRES bool volume_path_is_allowed(struct span path,
				   const char *const *allowed);
