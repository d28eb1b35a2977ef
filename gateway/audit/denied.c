/* SPDX-License-Identifier: Apache-2.0 */
/* denied.c - which records are news, and the message to control */

#include "gateway/audit/denied.h"

#include <stdio.h>
#include <stdlib.h>

#include "gateway/audit/audit.h"
#include "gateway/gateway.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/recent.h"
#include "src/role/msg.h"

struct denied {
	struct gateway *gateway;
	uint64_t quiet_ms;
	uint64_t full_at_ms; /* when the bucket will be full again */
	struct recent said;
};

struct denied *denied_new(struct gateway *g, uint64_t quiet_ms)
{
	struct denied *d = must_alloc(sizeof(*d));

	d->gateway = g;
	d->quiet_ms = quiet_ms;
	return d;
}

struct denied *denied_free(struct denied *d)
{
	free(d);
	return NULL;
}

/* A name that was said, denied by policy and not for want of something. */
static bool is_meant(const struct audit *a)
{
	return !a->allowed && a->reason == AUDIT_REASON_POLICY &&
	       a->sandbox.len && a->host.len && !a->host_learned;
}

/* False: there were too many of late. */
static bool bucket_take(struct denied *d, uint64_t now_ms)
{
	uint64_t begin = MAX(d->full_at_ms, now_ms);
	uint64_t each = 1000 / DENIED_PER_SECOND;

	if (begin + each > now_ms + DENIED_AT_ONCE * each)
		return false;
	d->full_at_ms = begin + each;
	return true;
}

void denied_look(struct denied *d, const struct audit *a, uint64_t now_ms)
{
	char key[2 * MSG_NAME_SIZE];
	struct msg_denied body = { .port = a->port };
	size_t len;

	if (!is_meant(a) || !span_copy(a->sandbox, body.id, sizeof(body.id)) ||
	    !span_copy(a->host, body.host, sizeof(body.host)))
		return;
	len = (size_t)snprintf(key, sizeof(key), "%s %s", body.id, body.host);
	if (recent_was_said(&d->said, span_of(key, len), now_ms, d->quiet_ms) ||
	    !bucket_take(d, now_ms))
		return;
	body.wall_ms = clock_wall_ms();
	(void)snprintf(body.kind, sizeof(body.kind), "%s",
		       audit_kind_name(a->kind));
	(void)span_copy(span_of(a->detail.ptr,
				MIN(a->detail.len, sizeof(body.text) - 1)),
			body.text, sizeof(body.text));
	gateway_denied(d->gateway, &body);
}
