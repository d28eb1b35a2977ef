/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.h - connections that pass through unopened */
#pragma once

struct session;

/* SESSION_DIAL: connects to the destination, then splices. */
void tunnel_dial(struct session *s);
/* SESSION_SPLICE: ends it now, policy changed. */
void tunnel_cut(struct session *s);
