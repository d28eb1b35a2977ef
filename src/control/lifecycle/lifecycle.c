/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.c - the lifecycle API put together */

#include "src/control/lifecycle/lifecycle.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/capturing.h"
#include "src/control/lifecycle/inside.h"
#include "src/control/lifecycle/network.h"
#include "src/control/lifecycle/proxy.h"
#include "src/control/lifecycle/relabel.h"
#include "src/control/lifecycle/runtime.h"
#include "src/control/lifecycle/server.h"
#include "src/role/config.h"

int lifecycle_new(struct control *c, struct lifecycle **ret)
{
	const struct config *config = c->config;
	struct lifecycle *l;
	int r;

	*ret = NULL;
	if (!config->lifecycle_listen.port)
		return 0;
	l = must_alloc(sizeof(*l));
	l->control = c;
	boxes_init(&l->boxes);
	capturing_init(l);
	proxies_init(l);
	lifecycle_secrets_init(&l->secrets);
	buf_init(&l->description, LIFECYCLE_DESCRIPTION_MAX);
	r = network_new(&config->subnet4, &config->subnet6, &l->network);
	if (!r)
		r = docker_new(c->loop, config->docker_socket, &l->docker);
	if (!r)
		r = runtime_new(l, &l->runtime);
	if (!r)
		r = lifecycle_server_new(l, &l->httpd);
	if (r) {
		lifecycle_free(l);
		return err_trace(r);
	}
	*ret = l;
	return 0;
}

void lifecycle_give_secrets(struct lifecycle *l, struct lifecycle_secrets *s)
{
	lifecycle_secrets_fini(&l->secrets);
	l->secrets = *s;
	lifecycle_secrets_init(s);
}

void lifecycle_end(struct lifecycle *l)
{
	if (l)
		l->ended = true;
}

struct lifecycle *lifecycle_free(struct lifecycle *l)
{
	if (!l)
		return NULL;
	l->ended = true;
	docker_free(l->docker);
	runtime_free(l->runtime);
	proxies_fini(l);
	httpd_free(l->httpd);
	network_free(l->network);
	capturing_fini(l);
	boxes_fini(&l->boxes);
	lifecycle_secrets_fini(&l->secrets);
	buf_fini(&l->description);
	free(l);
	return NULL;
}

/* An address that a record has is taken, each time the records are read. */
static void addresses_claim(struct lifecycle *l)
{
	size_t cursor = 0;
	struct box *b;
	int r;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL))) {
		r = network_claim(l->network, &b->v4, &b->v6);
		if (r == -ERANGE)
			log_warn("sandbox %s has an address that is none of "
				 "lifecycle.subnet4 and subnet6",
				 b->id);
	}
}

/* What is not there any more has no inside, and its addresses are free: its
 * removal was stored by a vault that went away before it said so. */
static void former_drop(struct lifecycle *l, const struct boxes *next)
{
	size_t cursor = 0;
	struct box *b;

	while ((b = map_next(&l->boxes.by_id, &cursor, NULL))) {
		if (boxes_find(next, span_str(b->id)))
			continue;
		inside_drop(l, span_str(b->id));
		network_give_back(l->network, clock_ms(), &b->v4);
	}
}

/* A state that was set since a list of containers was asked for is newer than
 * the list, though it was read again meanwhile. */
static void changes_keep(struct lifecycle *l, struct boxes *next)
{
	const struct box *former;
	size_t cursor = 0;
	struct box *b;

	while ((b = map_next(&next->by_id, &cursor, NULL))) {
		former = boxes_find(&l->boxes, span_str(b->id));
		if (former)
			b->change = b->state == former->state ? former->change
							      : ++l->changes;
	}
}

void lifecycle_loaded(struct lifecycle *l, struct boxes *all,
		      struct captures *captures)
{
	if (!l)
		return;
	former_drop(l, all);
	changes_keep(l, all);
	boxes_fini(&l->boxes);
	l->boxes = *all;
	boxes_init(all);
	captures_fini(&l->captures);
	l->captures = *captures;
	captures_init(captures);
	addresses_claim(l);
}

void lifecycle_start(struct lifecycle *l)
{
	if (!l)
		return;
	relabel_all(l);
	runtime_start(l);
	runtime_look(l);
	capturing_resume(l);
}
