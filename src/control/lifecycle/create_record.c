/* SPDX-License-Identifier: Apache-2.0 */
/* create_record.c - the first step of a creation and the last: its record */

#include <string.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/id.h"
#include "src/control/lifecycle/network.h"
#include "src/control/lifecycle/record.h"
#include "src/control/policies.h"
#include "src/text/json.h"

enum { RECORD_BYTES = 1024 * 1024 };

/* Seconds of the request count from now, not from when it came. */
static void box_give(struct box *b, const struct create_request *q)
{
	uint64_t now = clock_wall_ms();

	id_make(b->id);
	token_make(b->execd_token);
	token_make(b->egress_token);
	token_make(b->proxy_token);
	if (b->secure_access)
		token_make(b->secure_token);
	b->created_ms = now;
	b->expires_ms = q->timeout_s ? now + q->timeout_s * 1000 : 0;
	box_set_state(b, BOX_PENDING, "CONTAINER_STARTING",
		      "The sandbox is being made.", now);
	box_set_mac(b);
}

/* The one that is kept; ours stays with the request. NULL: too large. */
static struct box *box_twin(const struct box *b)
{
	struct buf text = BUF_INIT(RECORD_BYTES);
	struct box *twin = NULL;
	struct diag d = { 0 };
	struct json_out o;

	json_start(&o, &text);
	box_emit_stored(&o, b);
	if (!json_done(&o) && box_parse(buf_peek(&text), &twin, &d))
		twin = NULL;
	buf_wipe(&text);
	return twin;
}

static void on_kept(void *ctx, const struct refusal *why)
{
	struct creation *c = ctx;

	if (why->status && !c->lifecycle->ended) {
		network_give_back(c->lifecycle->network, clock_ms(),
				  &c->q->box->v4);
		/* a vault that went away may have stored it */
		c->was_kept = !strcmp(why->code, "VAULT_LOST");
	}
	creation_changed(c, why);
}

void step_record(struct creation *c)
{
	struct lifecycle *l = c->lifecycle;
	struct box *b = c->q->box, *twin;

	if (!container_image(c->q, c->image)) {
		creation_fail(c, 400, "SANDBOX::INVALID_PARAMETER",
			      "image.uri: longer than %d bytes",
			      CONTAINER_IMAGE_MAX - 1);
		return;
	}
	if (network_take(l->network, clock_ms(), &b->v4, &b->v6)) {
		creation_fail(c, 503, "DOCKER::SANDBOX_START_FAILED",
			      "all addresses of the sandboxes' network are "
			      "taken");
		return;
	}
	box_give(b, c->q);
	memcpy(c->id, b->id, sizeof(c->id));
	twin = box_twin(b);
	if (!twin) {
		network_give_back(l->network, clock_ms(), &b->v4);
		creation_fail(c, 400, "SANDBOX::INVALID_PARAMETER",
			      "the request is too large");
		return;
	}
	c->was_kept = c->is_bound = true;
	record_add(l, twin, on_kept, c);
}

void step_running(struct creation *c)
{
	c->is_bound = true;
	record_set_state(
		c->lifecycle, span_str(c->id), BOX_RUNNING, "CONTAINER_RUNNING",
		"Sandbox container started successfully.", creation_changed, c);
}
