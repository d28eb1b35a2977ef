/* SPDX-License-Identifier: Apache-2.0 */
/* leaf.h - sign a leaf for one name; vault role only */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct ca;
struct diag;

enum {
	LEAF_DAYS = 7,
	LEAF_BACKDATE_S = 3600, /* sandboxes with a slow clock */
};

/* A server certificate for exactly `name`: a canonical host name
 * (src/wire/host.h) or an IP literal, and the P-256 key of `spki`. Valid from
 * an hour before now_ms (wall clock) to LEAF_DAYS after it, never longer than
 * the CA. Appends the DER to dst. 0; -EINVAL with d: a name that is not
 * canonical, a key that is no P-256 key, an expired CA; -ENOBUFS, -EIO. */
WUNRES int leaf_sign(const struct ca *ca, struct span name, struct span spki,
		     uint64_t now_ms, struct buf *dst, struct diag *d);
