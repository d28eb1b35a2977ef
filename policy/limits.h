/* SPDX-License-Identifier: Apache-2.0 */
/* limits.h - how much one sandbox may use, as a policy says it
 *
 *   "limits": {"connections": 256, "bytesPerSecond": 1000000}
 *
 * What a policy does not say, the daemon's configuration says (its section
 * `limits` has the same keywords). 0 is no limit.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"

struct json_out;

/* X(id, keyword, largest) */
#define POLICY_LIMITS(X)                                            \
	/* open TCP connections */                                  \
	X(CONNECTIONS, "connections", 1048576)                      \
	/* new TCP connections and UDP flows */                     \
	X(CONNECTS, "connectionsPerSecond", 1000000)                \
	/* in each direction */                                     \
	X(BYTES, "bytesPerSecond", UINT64_C(1000) * 1000 * 1000000) \
	/* DNS questions */                                         \
	X(DNS, "dnsPerSecond", 1000000)                             \
	/* leaf certificates signed, one per name that is opened */ \
	X(MINTS, "mintsPerSecond", 1000000)

enum policy_limit {
#define LIMIT_ENUM(id, keyword, largest) LIMIT_##id,
	POLICY_LIMITS(LIMIT_ENUM)
#undef LIMIT_ENUM
		LIMIT_NUM,
};

#define LIMIT_UNSAID UINT64_MAX

struct policy_limits {
	uint64_t of[LIMIT_NUM]; /* or LIMIT_UNSAID */
};

void policy_limits_init(struct policy_limits *l); /* says nothing */
bool policy_limits_say(const struct policy_limits *l);

const char *policy_limit_name(enum policy_limit limit);
uint64_t policy_limit_max(enum policy_limit limit);
/* LIMIT_NUM: there is no such keyword. */
enum policy_limit policy_limit_find(struct span keyword);

/* As member "limits" of the open object; nothing when nothing is said. */
void policy_limits_emit(struct json_out *o, const struct policy_limits *l);
/* "connections=256,bytesPerSecond=1000000", "" when nothing is said. Returns
 * dst. */
enum { POLICY_LIMITS_TEXT_SIZE = 256 };
const char *policy_limits_text(const struct policy_limits *l, char *dst,
			       size_t size);
