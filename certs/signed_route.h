/* SPDX-License-Identifier: Apache-2.0 */
/* signed_route.h - the signature of a shared link (contract 3.3) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

enum {
	SIGNED_ROUTE_SIZE = 9,	  /* 8 hex digits and the key's id */
	SIGNED_EXPIRES_SIZE = 13, /* unix seconds in base 36 */
	SIGNED_KEYS_MAX = 36,
};

struct signed_keys {
	struct {
		char id; /* [0-9a-z]; 0: no key */
		struct span secret;
	} keys[SIGNED_KEYS_MAX];
};

/* Checks form, time and signature, the last in constant time. */
WUNRES bool signed_route_check(const struct signed_keys *keys, struct span id,
			       uint16_t port, struct span expires,
			       struct span signature, uint64_t now_s);
/* The other direction, for endpoints: expires in base 36 and the signature. */
WUNRES bool signed_route_make(const struct signed_keys *keys, char key_id,
			      struct span id, uint16_t port, uint64_t expires_s,
			      char expires[SIGNED_EXPIRES_SIZE + 1],
			      char signature[SIGNED_ROUTE_SIZE + 1]);
