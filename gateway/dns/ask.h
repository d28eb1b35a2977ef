/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - one question to the upstream servers, until one of them answers
 *
 * How an answer is trusted: a fresh connected UDP socket per try (so the
 * kernel drops other senders and the port is random), a random id, the same
 * question in the reply. What does not fit is ignored, and after
 * ASK_BOGUS_MAX of it the try moves to TCP.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

struct ask;
struct dns_message;
struct dns_name;
struct nameservers;

enum {
	ASK_TRIES_MAX = 6,
	ASK_BOGUS_MAX = 16,
	ASKS_MAX = 4096, /* under way in one loop */
};

/* reply: NOERROR or NXDOMAIN, not truncated, borrowed for the call; NULL when
 * every server failed or the time was up. The ask is dead when this is called.
 * Called from the loop, never from inside ask_new(). */
typedef void ask_fn(void *ctx, const struct dns_message *reply);

/* NULL: ASKS_MAX are under way. The name is copied. */
struct ask *ask_new(struct nameservers *ns, const struct dns_name *name,
		    uint16_t type, uint64_t deadline_ms, ask_fn *fn, void *ctx);
/* No callback any more. NULL is fine; returns NULL. */
struct ask *ask_free(struct ask *a);
