/* SPDX-License-Identifier: Apache-2.0 */
/* leaf_source.c - wait for leaves, many sessions for one signature */

#include "gateway/tls/leaf_source.h"

#include <openssl/x509.h>

#include "certs/leaf_cache.h"
#include "gateway/gateway.h"
#include "gateway/registry/quota.h"
#include "gateway/sign.h"
#include "gateway/worker.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/map.h"

enum { NAMES_PENDING_MAX = 1024 };

struct pending {
	struct list waits;
};

struct leaf_wait {
	struct list link;
	leaf_fn *fn;
	void *ctx;
};

struct leaf_source {
	struct worker *worker;
	struct map pending; /* name -> struct pending */
};

struct leaf_source *leaf_source_new(struct worker *w)
{
	struct leaf_source *source = must_alloc(sizeof(*source));

	source->worker = w;
	map_init(&source->pending);
	return source;
}

static void pending_free(struct pending *p)
{
	list_for_each(it, &p->waits)
		list_remove(it); /* the waits are their sessions' */
	free(p);
}

struct leaf_source *leaf_source_free(struct leaf_source *source)
{
	struct pending *p;
	size_t cursor = 0;

	if (!source)
		return NULL;
	while ((p = map_next(&source->pending, &cursor, NULL)))
		pending_free(p);
	map_fini(&source->pending);
	free(source);
	return NULL;
}

/* NULL: a limit. */
static struct pending *pending_at(struct leaf_source *source,
				  const struct leaf_wish *wish)
{
	struct pending *p = map_find(&source->pending, wish->name);
	const struct sandbox *s = wish->sandbox;

	if (p)
		return p;
	if (map_count(&source->pending) >= NAMES_PENDING_MAX ||
	    !quota_take(s->quota, QUOTA_MINTS, clock_us()))
		return NULL;
	p = must_alloc(sizeof(*p));
	list_init(&p->waits);
	(void)map_set(&source->pending, wish->name, p);
	gateway_sign(source->worker, wish->name, span_str(s->id));
	return p;
}

int leaf_get(struct leaf_source *source, const struct leaf_wish *wish,
	     struct x509_st **ret_leaf, struct leaf_wait **ret_wait)
{
	X509 *leaf = leaf_cache_get(gateway_leaf_cache(source->worker->gateway),
				    wish->name, clock_wall_ms());
	struct pending *p;
	struct leaf_wait *wait;

	*ret_leaf = leaf;
	*ret_wait = NULL;
	if (leaf) {
		worker_counted(source->worker, leaves_cached);
		return 0;
	}
	p = pending_at(source, wish);
	if (!p)
		return LEAF_E_LIMIT;
	wait = must_alloc(sizeof(*wait));
	wait->fn = wish->fn;
	wait->ctx = wish->ctx;
	list_init(&wait->link);
	list_push(&p->waits, &wait->link);
	*ret_wait = wait;
	return 0;
}

struct leaf_wait *leaf_wait_cancel(struct leaf_wait *wait)
{
	if (!wait)
		return NULL;
	list_remove(&wait->link);
	free(wait);
	return NULL;
}

void leaf_source_answer(struct leaf_source *source, struct span name,
			struct x509_st *leaf)
{
	struct pending *p = map_take(&source->pending, name);
	struct leaf_wait *wait;

	if (leaf)
		worker_counted(source->worker, leaves_minted);
	while (p && (wait = list_first(&p->waits, struct leaf_wait, link))) {
		leaf_fn *fn = wait->fn;
		void *ctx = wait->ctx;

		(void)leaf_wait_cancel(wait);
		if (leaf)
			X509_up_ref(leaf);
		fn(ctx, leaf);
	}
	free(p);
	X509_free(leaf);
}
