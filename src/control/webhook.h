/* SPDX-License-Identifier: Apache-2.0 */
/* webhook.h - a receiver of the operator's is told of denied host names
 *
 *   {"hostname": "evil.example", "timestamp": "2026-11-30T12:00:00.123Z",
 *    "source": "opensandbox-egress", "sandboxId": "...",
 *    "kind": "dns", "port": 53, "reason": "denied by rule 2 of policy ..."}
 *
 * The first four members are the contract's (1.10), the others ours. A POST for
 * each name, WEBHOOK_AT_ONCE at a time. A failure of the connection or a status
 * from 500 on is tried again, WEBHOOK_RETRIES times, after 1, 2, 4 seconds; any
 * other status is an end. Nothing is followed.
 *
 * Names that find webhook.queue others waiting are dropped and counted: the
 * audit log has them all. What is posted are names, ids and rules; no path, no
 * header, no value. The URL itself may have a token in it, so no log line and
 * no error shows it.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

struct config;
struct json_out;
struct loop;
struct msg_denied;
struct webhook;

enum { WEBHOOK_AT_ONCE = 4, WEBHOOK_RETRIES = 3, WEBHOOK_BACKOFF_MS = 1000 };

/* Before the role is confined: what resolving names and TLS load is loaded,
 * which the role may not do later. Blocks some seconds at most. */
void webhook_prepare(const struct config *config);

/* config is borrowed. *ret NULL: there is no URL. 0 or -ENOMEM. */
WUNRES int webhook_new(struct loop *loop, const struct config *config,
		       struct webhook **ret);
/* What was not posted is not. NULL is fine; returns NULL. */
struct webhook *webhook_free(struct webhook *w);
/* NULL is fine. */
void webhook_tell(struct webhook *w, const struct msg_denied *denied);
/* {"sent", "failed", "dropped", "waiting"}; w NULL: null. */
void webhook_status_put(struct json_out *o, const char *member,
			const struct webhook *w);
