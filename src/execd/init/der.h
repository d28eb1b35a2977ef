/* SPDX-License-Identifier: Apache-2.0 */
/* der.h - reading and writing elements of DER (X.690): tag, length, value */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;

enum der_tag {
	DER_INTEGER = 0x02,
	DER_OCTETS = 0x04,
	DER_OID = 0x06,
	DER_SEQUENCE = 0x30,
	DER_SET = 0x31,
	DER_CONTEXT_0 = 0xa0, /* constructed */
};

struct der {
	uint8_t tag;
	struct span value, whole;
};

/* Takes the next element off *in. Tags of one byte, definite lengths of at
 * most four, as short as they can be. False: *in and *ret untouched. */
bool der_next(struct span *in, struct der *ret);
/* The same, and it must be of that tag. */
bool der_take(struct span *in, uint8_t tag, struct span *value);
/* 0 or -ENOBUFS. */
WUNRES int der_put(struct buf *to, uint8_t tag, struct span value);
