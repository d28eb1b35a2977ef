/* SPDX-License-Identifier: Apache-2.0 */
/* h2_health.h - is anybody still there at the other end of a connection?
 *
 * How it works: an origin, or a middlebox before it, may forget a connection
 * without a word; requests on it would wait until "timeouts.firstByteMs". So a
 * connection on which nothing was heard for "http2.pingMs", idle or with
 * streams that wait, is asked by a PING (RFC 9113 6.7). Who does not say
 * anything at all within "http2.pingTimeoutMs" is gone: every stream ends, and
 * those that may be repeated are (exchange_retry()).
 *
 * Some origins count PINGs and hang up after three of them in less than five
 * minutes each, unless they sent a head or data in between (gRPC's
 * "too_many_pings"). So there are two at that pace, one while the connection is
 * idle, and then one in five minutes until the origin says something of its
 * own.
 *
 * There is one timer for a connection. Nothing is started or stopped for an
 * exchange: what happens is noted, and read when the timer fires.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/io/loop.h"

struct h2_conn;

struct h2_health {
	struct h2_conn *conn;
	struct timer timer;
	uint64_t asked_ms;  /* the last request went out */
	uint64_t pinged_ms; /* the last PING did */
	uint64_t heard_ms;  /* as it was then */
	unsigned pings;	    /* since the origin sent a head or data */
	bool waiting;	    /* for an answer */
};

/* conn is borrowed, and outlives it. */
void h2_health_start(struct h2_health *h, struct h2_conn *conn);
void h2_health_stop(struct h2_health *h);
/* A request went out. */
void h2_health_asked(struct h2_health *h);
