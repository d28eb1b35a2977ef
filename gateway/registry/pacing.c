/* SPDX-License-Identifier: Apache-2.0 */
/* pacing.c - a pace (src/io/pace.h) that draws from a quota */

#include "gateway/registry/pacing.h"

#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/io/pace.h"

struct pacing {
	struct quota *quota;
	enum quota_kind kind;
};

static uint64_t on_draw(void *ctx)
{
	struct pacing *p = ctx;

	return quota_draw(p->quota, p->kind, clock_us());
}

static void on_release(void *ctx)
{
	struct pacing *p = ctx;

	(void)quota_unref(p->quota);
	free(p);
}

struct pace *pacing_new(struct loop *loop, struct quota *q,
			enum quota_kind kind)
{
	static const struct pace_ops ops = {
		.draw = on_draw,
		.release = on_release,
	};
	struct pacing *p = must_alloc(sizeof(*p));

	p->quota = quota_ref(q);
	p->kind = kind;
	return pace_new(loop, &ops, p);
}
