/* SPDX-License-Identifier: Apache-2.0 */
/* gateway_link.h - control's channel to the gateway: facts out, "in force" back
 *
 * Sends are dropped while the gateway is down: publish.c sends everything
 * again to a new channel. gateway_link_sync() answers when every loop of the
 * gateway has applied what was sent before it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/span.h"
#include "src/role/msg.h"

struct gateway_link;
struct loop;

enum { GATEWAY_SYNC_MS = 5000, GATEWAY_STATUS_MS = 2000 };

struct gateway_link_ops {
	void (*up)(void *ctx); /* a new channel: send everything */
	void (*down)(void *ctx);
	void (*accuse)(void *ctx);
	/* Takes fd, on which a client speaks to the egress API of client->id. */
	void (*egress_client)(void *ctx, const struct msg_ingress_client *client,
			      int fd);
	/* The sandbox was used through the ingress. */
	void (*accessed)(void *ctx, const char *id);
	/* policy denied a sandbox a name */
	void (*denied)(void *ctx, const struct msg_denied *body);
};

WUNRES int gateway_link_new(struct loop *loop,
			    const struct gateway_link_ops *ops, void *ctx,
			    struct gateway_link **ret);
/* Open questions end with EPIPE first. */
struct gateway_link *gateway_link_free(struct gateway_link *g);
/* Takes fd; replaces the channel that was. */
void gateway_link_connect(struct gateway_link *g, int fd);
bool gateway_link_is_up(const struct gateway_link *g);

/* memfd -1 = none (borrowed). A gateway that takes nothing more is treated as
 * lost. */
void gateway_link_send(struct gateway_link *g, uint16_t type, const void *body,
		       int memfd);

/* status: 0; ENOTCONN the gateway is down; EPIPE it was lost meanwhile;
 * ETIMEDOUT; or what the gateway says, with its text. tail: JSON of a status
 * or usage reply. */
typedef void gateway_result_fn(void *ctx, int status, const char *text,
			       struct span tail);
void gateway_link_sync(struct gateway_link *g, gateway_result_fn *fn,
		       void *ctx);
void gateway_link_status(struct gateway_link *g, gateway_result_fn *fn,
			 void *ctx);
/* What a sandbox uses of its limits; tail: JSON, null when the gateway does not
 * know it. */
void gateway_link_usage(struct gateway_link *g, struct span sandbox,
			gateway_result_fn *fn, void *ctx);
