/* SPDX-License-Identifier: Apache-2.0 */
/* header.h - HTTP header fields as views, and what is known about their names
 *
 * Order and case are kept as received. Known names are rows of header.def with
 * flags; lookup is by perfect comparison of length and lower-cased bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"

enum header_id {
	HEADER_OTHER, /* zero: not in the table */
#define HEADER_ENUM(id, name, flags) HEADER_##id,
#include "src/wire/header.def"
#undef HEADER_ENUM
	HEADER_ID_NUM,
};

enum header_flags {
	HEADER_HOP = 1, /* hop-by-hop: never forwarded (RFC 9110 7.6.1) */
	HEADER_CREDENTIAL = 2, /* Connection may not name it (case 34) */
	HEADER_FRAMING = 4,    /* decides where a message ends */
	HEADER_RESERVED = 8,   /* a binding may not set it */
};

struct header {
	struct span name;  /* RFC 9110 token, as received */
	struct span value; /* trimmed; never CR, LF, NUL */
	enum header_id id;
	bool sensitive; /* never to be indexed by HPACK: it came so marked, or
			   its maker says so */
};

enum {
	HEADERS_MAX = 192,
	HEADER_KNOWN_MAX = 32, /* no name in header.def is longer */
};

struct headers {
	struct header items[HEADERS_MAX];
	unsigned count;
};

/* Of the fields there are; a plain assignment would move 8 KiB through the
 * caches. */
void headers_copy(struct headers *dst, const struct headers *src);

/* HEADER_OTHER when the name is in no row. */
enum header_id header_id_of(struct span name);
/* As HTTP/2 writes it ("content-type"), for ever; empty for HEADER_OTHER. */
struct span header_name(enum header_id id);
unsigned header_flags_of(enum header_id id);
bool header_name_is_valid(struct span name); /* RFC 9110 token, 1..256 */
/* No CR, LF, NUL and no other control but HTAB. */
bool header_value_is_valid(struct span value);

/* First match or NULL. */
const struct header *headers_find(const struct headers *h, enum header_id id);
const struct header *headers_find_name(const struct headers *h,
				       struct span name);
unsigned headers_count(const struct headers *h, enum header_id id);
/* Walks the comma-separated members of a field value: returns the next member
 * (trimmed, quotes respected, empty members skipped) or a span with ptr NULL at
 * the end. */
struct span header_next_member(struct span *rest);
/* Is `token` a member of any field of this id, case-insensitively? */
bool headers_have_token(const struct headers *h, enum header_id id,
			struct span token);
