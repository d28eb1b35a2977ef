/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.h - connections that pass through unopened */
#pragma once

struct destination;
struct grant;
struct session;

/* SESSION_OPENING: connects to the destination; opening_connected() or
 * opening_unreachable() follows. */
void tunnel_reach(struct session *s, const struct destination *d,
		  const struct grant *grant);
/* SESSION_DIAL: connects to the destination, unless tunnel_reach() has, then
 * splices. */
void tunnel_dial(struct session *s);
/* SESSION_SPLICE: ends it now, "timeouts.totalMs" have passed. */
void tunnel_too_long(struct session *s);
/* SESSION_SPLICE: ends it now, policy changed. */
void tunnel_cut(struct session *s);
