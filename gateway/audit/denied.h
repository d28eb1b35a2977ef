/* SPDX-License-Identifier: Apache-2.0 */
/* denied.h - tell control of host names that policy denied, for the webhook
 *
 * Every audit record is looked at when it is written. What control is told is
 * bounded here, where a sandbox makes the denials: the same name of the same
 * sandbox once in webhook.quietS, and so many names a second of all sandboxes
 * of a worker. One worker's; nothing of it is shared.
 */
#pragma once

#include <stdint.h>

struct audit;
struct denied;
struct gateway;

enum { DENIED_PER_SECOND = 50, DENIED_AT_ONCE = 200 };

struct denied *denied_new(struct gateway *g, uint64_t quiet_ms);
/* NULL is fine; returns NULL. */
struct denied *denied_free(struct denied *d);
/* now_ms: of the loop. */
void denied_look(struct denied *d, const struct audit *a, uint64_t now_ms);
