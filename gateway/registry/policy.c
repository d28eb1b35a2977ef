/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - compiled policies received from control, shared by all workers
 *
 * How it works: a policy is a number, a name and a generation, and a body: the
 * bytes. Bodies are found by a hash of their bytes and then compared, so
 * thousands of sandboxes with policies of their own that say the same need the
 * memory of one, and the checks of snapshot_open() happen once. Policies come
 * and go seldom, hence one lock. A body keeps the index alive, so it does not
 * matter who goes first.
 */

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "gateway/registry/facts.h"
#include "src/base/err.h"
#include "src/io/chan.h"

enum {
	/* Below this a copy on the heap is smaller than a mapping of pages. */
	COPY_BYTES = 64 * 1024,
};

struct policy_bodies {
	pthread_mutex_t lock; /* of all that follows, and of bodies' refs */
	unsigned refs;	      /* the owner and the bodies */
	struct map by_hash;   /* -> struct policy_body */
};

struct policy_body {
	struct policy_bodies *all;
	unsigned refs;
	bool found; /* by its hash */
	uint64_t hash;
	void *bytes;
	size_t len;
	bool mapped;		  /* else on the heap */
	struct snapshot snapshot; /* of nobody in particular */
};

/* -- bodies --------------------------------------------------------------- */

static void bodies_lock(struct policy_bodies *all)
{
	must(pthread_mutex_lock(&all->lock) == 0);
}

/* Unlocks; one reference fewer ends them with the last. */
static void bodies_unlock(struct policy_bodies *all, unsigned fewer)
{
	bool last;

	all->refs -= fewer;
	last = !all->refs;
	must(pthread_mutex_unlock(&all->lock) == 0);
	if (!last)
		return;
	map_fini(&all->by_hash);
	(void)pthread_mutex_destroy(&all->lock);
	free(all);
}

struct policy_bodies *policy_bodies_new(void)
{
	struct policy_bodies *all = must_alloc(sizeof(*all));

	must(pthread_mutex_init(&all->lock, NULL) == 0);
	all->refs = 1;
	map_init(&all->by_hash);
	return all;
}

struct policy_bodies *policy_bodies_free(struct policy_bodies *all)
{
	if (!all)
		return NULL;
	bodies_lock(all);
	bodies_unlock(all, 1);
	return NULL;
}

static struct span hash_key(const uint64_t *hash)
{
	return span_of(hash, sizeof(*hash));
}

/* Takes the mapping, or copies it. Heap blocks of glibc are 16-byte aligned, as
 * snapshot_open() wants. */
static struct policy_body *body_new(struct policy_bodies *all, const void *map,
				    size_t len)
{
	struct policy_body *b = must_alloc(sizeof(*b));

	b->all = all;
	b->refs = 1;
	b->len = len;
	b->mapped = len > COPY_BYTES;
	b->bytes = (void *)map;
	if (b->mapped)
		return b;
	b->bytes = must_realloc(NULL, len);
	memcpy(b->bytes, map, len);
	(void)munmap((void *)map, len);
	return b;
}

static void body_free(struct policy_body *b)
{
	if (b->mapped)
		(void)munmap(b->bytes, b->len);
	else
		free(b->bytes);
	free(b);
}

static void body_unref(struct policy_body *b)
{
	struct policy_bodies *all = b->all;
	bool last;

	bodies_lock(all);
	last = !--b->refs;
	if (last && b->found)
		(void)map_take(&all->by_hash, hash_key(&b->hash));
	bodies_unlock(all, last);
	if (last)
		body_free(b);
}

/* One that was there and has the bytes, or NULL. */
static struct policy_body *body_find(struct policy_bodies *all, uint64_t hash,
				     struct span bytes)
{
	struct policy_body *b;

	bodies_lock(all);
	b = map_find(&all->by_hash, hash_key(&hash));
	if (b && !span_eq(span_of(b->bytes, b->len), bytes))
		b = NULL;
	if (b)
		b->refs++;
	bodies_unlock(all, 0);
	return b;
}

/* Now it is sound: others may have it. Should two have the same hash, the first
 * is found. */
static void body_enter(struct policy_body *b, uint64_t hash)
{
	bodies_lock(b->all);
	b->hash = hash;
	b->found = !map_find(&b->all->by_hash, hash_key(&hash));
	if (b->found)
		(void)map_set(&b->all->by_hash, hash_key(&hash), b);
	bodies_unlock(b->all, 0);
}

/* Takes the mapping. */
static int body_at(struct policy_bodies *all, const void *map, size_t len,
		   struct policy_body **ret)
{
	uint64_t hash = map_hash(span_of(map, len));
	struct policy_body *b = body_find(all, hash, span_of(map, len));
	int r;

	if (b) {
		(void)munmap((void *)map, len);
		*ret = b;
		return 0;
	}
	b = body_new(all, map, len);
	r = snapshot_open(b->bytes, len, &b->snapshot);
	if (r) {
		body_free(b);
		return err_trace(r);
	}
	bodies_lock(all);
	all->refs++;
	bodies_unlock(all, 0);
	body_enter(b, hash);
	*ret = b;
	return 0;
}

/* -- policies ------------------------------------------------------------- */

int policy_new(struct policy_bodies *all, const struct msg_policy *msg, int fd,
	       struct policy **ret)
{
	size_t name_len = strlen(msg->name);
	struct policy_body *body = NULL;
	struct policy *p;
	const void *map;
	int r;

	r = chan_map(fd, msg->size, &map);
	if (!r)
		r = body_at(all, map, msg->size, &body);
	if (r)
		return err_trace(r);
	p = must_alloc(sizeof(*p) + name_len + 1);
	atomic_init(&p->refs, 1);
	p->id = msg->policy;
	p->generation = msg->generation;
	p->body = body;
	memcpy(p->name, msg->name, name_len);
	p->snapshot = body->snapshot;
	p->snapshot.generation = p->generation;
	if (name_len)
		p->snapshot.name = span_of(p->name, name_len);
	*ret = p;
	return 0;
}

struct policy *policy_ref(struct policy *p)
{
	if (p)
		atomic_fetch_add_explicit(&p->refs, 1, memory_order_relaxed);
	return p;
}

struct policy *policy_unref(struct policy *p)
{
	if (!p ||
	    atomic_fetch_sub_explicit(&p->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	body_unref(p->body);
	free(p);
	return NULL;
}

bool policy_is_mapped(const struct policy *p)
{
	return p->body->mapped;
}
