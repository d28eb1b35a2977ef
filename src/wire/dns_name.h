/* SPDX-License-Identifier: Apache-2.0 */
/* dns_name.h - DNS names: from the wire, to and from host names, for people
 *
 * Names from the wire may hold any byte; what is compared with policy is the
 * canonical host name (wire/host.h), and names that have none say so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/host.h"

enum {
	DNS_HEAD_SIZE = 12,
	DNS_NAME_MAX = 255, /* on the wire, with the root label */
};

/* A name in wire form, uncompressed: length-prefixed labels and the root. */
struct dns_name {
	uint8_t len; /* 1..255 once filled */
	uint8_t wire[DNS_NAME_MAX];
};

/* False: host is not a canonical name that fits. */
WUNRES bool dns_name_from_host(struct span host, struct dns_name *ret);
/* False: not a host name (the root, spaces, "*", dots inside a label ...). */
WUNRES bool dns_name_to_host(const struct dns_name *name, struct host *ret);
/* ASCII case does not matter (RFC 4343). */
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
/* For people: foreign bytes as \DDD, cut with "..." to fit. Returns dst. */
const char *dns_name_text(const struct dns_name *name, char *dst, size_t size);
/* Reads the name at *at and moves *at behind it. Pointers must go strictly
 * backwards, and not into the header. False: nothing changed. */
WUNRES bool dns_name_read(struct span message, size_t *at,
			  struct dns_name *ret);
