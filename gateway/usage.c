/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - what sandboxes use of their limits, for people
 *
 * Quotas are shared and atomic, so the main thread reads them as they are; no
 * worker is asked.
 */

#include "gateway/inside.h"
#include "gateway/registry/quota.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/text/json.h"

enum {
	USAGE_BYTES = 4096,
	LIMITED_MAX = 16, /* in a status: those that were refused most */
};

static void usage_put(struct json_out *o, const char *member,
		      const struct quota *q)
{
	uint64_t now_us = clock_us();
	struct quota_state state;
	enum quota_kind kind;

	json_open_object(o, member);
	for (kind = 0; kind < QUOTA_NUM; kind++) {
		quota_state(q, kind, now_us, &state);
		json_open_object(o, quota_kind_name(kind));
		json_put_u64(o, "used", state.used);
		json_put_u64(o, "limit", state.limit);
		json_put_u64(o, "refused", state.refused);
		json_close(o);
	}
	json_close(o);
}

void usage_put_limited(struct json_out *o, struct quotas *all)
{
	struct quota *most[LIMITED_MAX];
	unsigned count = quotas_most_refused(all, most, LIMITED_MAX), i;

	json_open_array(o, "limited");
	for (i = 0; i < count; i++) {
		json_open_object(o, NULL);
		json_put_str(o, "sandbox", quota_id(most[i]));
		json_put_u64(o, "refused", quota_refused(most[i]));
		usage_put(o, "usage", most[i]);
		json_close(o);
		(void)quota_unref(most[i]);
	}
	json_close(o);
}

void usage_answer(struct gateway *g, const struct msg_scope *asked,
		  uint32_t serial)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(USAGE_BYTES);
	const struct msg_result body = { .status = 0 };
	struct quota *q = quotas_find(g->quotas, span_str(asked->scope));
	struct json_out o;

	json_start(&o, &text);
	if (q)
		usage_put(&o, NULL, q);
	else
		json_put_null(&o, NULL);
	(void)quota_unref(q);
	if (json_done(&o) == 0 && g->control)
		(void)chan_send(g->control, MSG_GATEWAY_USAGE, serial, &body,
				sizeof(body), buf_peek(&text), NULL, 0);
}
