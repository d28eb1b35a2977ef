/* SPDX-License-Identifier: Apache-2.0 */
/* base64.h - base64 (RFC 4648 4), strictly: padded, no white space */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

#define BASE64_SIZE(len) (((len) + 2) / 3 * 4)

/* Writes BASE64_SIZE(bytes.len) characters, without a NUL. */
void base64_encode(struct span bytes, char *dst);
/* At most size bytes into dst. False: not base64 (also when bits that pad are
 * not zero), or too long; dst then holds nothing to rely on. */
WUNRES bool base64_decode(struct span text, uint8_t *dst, size_t size,
			  size_t *ret_len);
