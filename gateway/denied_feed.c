/* SPDX-License-Identifier: Apache-2.0 */
/* denied_feed.c - what workers tell control of denied names */

#include <stdlib.h>

#include "gateway/inside.h"
#include "src/base/err.h"

struct denied_post {
	struct gateway *gateway;
	struct msg_denied body;
};

/* Without control, or with one that does not read, it is not told: the audit
 * log has it. */
static void on_denied(void *ctx)
{
	struct denied_post *post = ctx;
	struct gateway *g = post->gateway;

	if (g->control)
		(void)chan_send(g->control, MSG_GATEWAY_DENIED, 0, &post->body,
				sizeof(post->body), SPAN_NONE, NULL, 0);
	free(post);
}

void gateway_denied(struct gateway *g, const struct msg_denied *body)
{
	struct denied_post *post = must_alloc(sizeof(*post));

	post->gateway = g;
	post->body = *body;
	loop_post(g->loop, on_denied, post);
}
