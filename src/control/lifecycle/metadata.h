/* SPDX-License-Identifier: Apache-2.0 */
/* metadata.h - names and values of metadata: labels by Kubernetes' rules
 *
 * A name is [prefix/]name: the prefix a DNS name of at most 253 characters, the
 * name 1 to 63 of letters, digits, '-', '_', '.', letters or digits at its
 * ends. A value is the same, or empty. The prefix "opensandbox.io/" is the
 * server's own. They are labels of the registry, which has room for so many.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct lifecycle_error;

enum { METADATA_NAMES_MAX = 64 };

/* 0; -EINVAL with SANDBOX::INVALID_METADATA_LABEL. value SPAN_NONE: the name
 * alone is looked at. */
WUNRES int metadata_check(struct span name, struct span value,
			  struct lifecycle_error *no);
/* May a sandbox have so many names? As above. */
WUNRES int metadata_check_count(size_t names, struct lifecycle_error *no);
