/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - counts and rates of a sandbox, without locks where traffic is */

#include "gateway/registry/quota.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/map.h"

enum {
	CACHE_LINE = 64,
	/* A second of bytes comes in so many chunks: many enough that a
	 * thousand connections have a turn each; of a low rate fewer, so that
	 * a turn is worth its system call. */
	CHUNKS_PER_S = 1024,
	CHUNKS_PER_S_LOW = 64,
	CHUNK_WORTH = 1460, /* a segment */
};
#define SECOND_NS UINT64_C(1000000000)

static const char *const kind_names[] = {
	[QUOTA_CONNECTIONS] = "connections",
	[QUOTA_CONNECTS] = "connectionsPerSecond",
	[QUOTA_BYTES_OUT] = "bytesPerSecondOut",
	[QUOTA_BYTES_IN] = "bytesPerSecondIn",
	[QUOTA_DNS] = "dnsPerSecond",
	[QUOTA_MINTS] = "mintsPerSecond",
};
_Static_assert(ARRAY_LEN(kind_names) == QUOTA_NUM, "a name per kind");

/* level: the TAT in ns of the monotonic clock, or how many are open. */
struct bucket {
	_Alignas(CACHE_LINE) _Atomic uint64_t level;
	_Atomic uint64_t refused;
};

struct quota {
	/* hardly ever written */
	_Alignas(CACHE_LINE) _Atomic uint64_t limits[QUOTA_NUM];
	struct quotas *all;
	unsigned refs; /* under the lock of all */
	char *id;
	struct bucket buckets[QUOTA_NUM];
};
_Static_assert(sizeof(struct quota) % CACHE_LINE == 0, "shares no line");

struct quotas {
	pthread_mutex_t lock;
	struct map by_id;
	bool closed; /* ends with the last quota */
};

const char *quota_kind_name(enum quota_kind kind)
{
	must(kind < QUOTA_NUM);
	return kind_names[kind];
}

/* -- life ----------------------------------------------------------------- */

struct quotas *quotas_new(void)
{
	struct quotas *all = must_alloc(sizeof(*all));

	must(pthread_mutex_init(&all->lock, NULL) == 0);
	map_init(&all->by_id);
	return all;
}

static void quotas_lock(struct quotas *all)
{
	must(pthread_mutex_lock(&all->lock) == 0);
}

/* all may be gone. */
static void quotas_unlock(struct quotas *all)
{
	bool over = all->closed && !map_count(&all->by_id);

	must(pthread_mutex_unlock(&all->lock) == 0);
	if (!over)
		return;
	map_fini(&all->by_id);
	(void)pthread_mutex_destroy(&all->lock);
	free(all);
}

struct quotas *quotas_free(struct quotas *all)
{
	if (!all)
		return NULL;
	quotas_lock(all);
	all->closed = true;
	quotas_unlock(all);
	return NULL;
}

static struct quota *quota_new(struct quotas *all, struct span id)
{
	struct quota *q = aligned_alloc(CACHE_LINE, sizeof(*q));

	must(q != NULL);
	*q = (struct quota){ .all = all };
	q->id = must_alloc(id.len + 1);
	memcpy(q->id, id.ptr, id.len);
	(void)map_set(&all->by_id, id, q);
	return q;
}

struct quota *quotas_at(struct quotas *all, struct span id)
{
	struct quota *q;

	quotas_lock(all);
	q = map_find(&all->by_id, id);
	if (!q)
		q = quota_new(all, id);
	q->refs++;
	quotas_unlock(all);
	return q;
}

struct quota *quotas_find(struct quotas *all, struct span id)
{
	struct quota *q;

	quotas_lock(all);
	q = map_find(&all->by_id, id);
	if (q)
		q->refs++;
	quotas_unlock(all);
	return q;
}

struct quota *quota_ref(struct quota *q)
{
	quotas_lock(q->all);
	q->refs++;
	quotas_unlock(q->all);
	return q;
}

struct quota *quota_unref(struct quota *q)
{
	struct quotas *all = q ? q->all : NULL;
	bool last;

	if (!q)
		return NULL;
	quotas_lock(all);
	last = --q->refs == 0;
	if (last)
		(void)map_take(&all->by_id, span_str(q->id));
	quotas_unlock(all);
	if (!last)
		return NULL;
	free(q->id);
	free(q);
	return NULL;
}

/* -- limits --------------------------------------------------------------- */

static uint64_t limit_max(enum quota_kind kind)
{
	return kind == QUOTA_BYTES_OUT || kind == QUOTA_BYTES_IN
		       ? QUOTA_BYTES_MAX
		       : QUOTA_RATE_MAX;
}

void quota_set_limit(struct quota *q, enum quota_kind kind, uint64_t limit)
{
	limit = MIN(limit, limit_max(kind));
	if (quota_limit(q, kind) != limit) /* the line stays shared */
		atomic_store_explicit(&q->limits[kind], limit,
				      memory_order_relaxed);
}

uint64_t quota_limit(const struct quota *q, enum quota_kind kind)
{
	return atomic_load_explicit(&q->limits[kind], memory_order_relaxed);
}

/* -- taking --------------------------------------------------------------- */

static void bucket_refused(struct bucket *b)
{
	atomic_fetch_add_explicit(&b->refused, 1, memory_order_relaxed);
}

/* cost_ns: how far n tokens move the TAT; depth_ns: how far ahead it may be. */
static bool bucket_take(struct bucket *b, uint64_t cost_ns, uint64_t depth_ns,
			uint64_t now_ns)
{
	uint64_t tat = atomic_load_explicit(&b->level, memory_order_relaxed);
	uint64_t next;

	do {
		next = MAX(tat, now_ns) + cost_ns;
		if (next - now_ns > depth_ns) {
			bucket_refused(b);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&b->level, &tat, next,
							memory_order_relaxed,
							memory_order_relaxed));
	return true;
}

bool quota_take(struct quota *q, enum quota_kind kind, uint64_t now_us)
{
	uint64_t rate = quota_limit(q, kind);

	if (!rate)
		return true;
	return bucket_take(&q->buckets[kind], SECOND_NS / rate, SECOND_NS,
			   now_us * 1000);
}

bool quota_open(struct quota *q)
{
	struct bucket *b = &q->buckets[QUOTA_CONNECTIONS];
	uint64_t limit = quota_limit(q, QUOTA_CONNECTIONS);
	uint64_t open;

	open = atomic_fetch_add_explicit(&b->level, 1, memory_order_relaxed);
	if (!limit || open < limit)
		return true;
	quota_close(q);
	bucket_refused(b);
	return false;
}

void quota_close(struct quota *q)
{
	struct bucket *b = &q->buckets[QUOTA_CONNECTIONS];

	must(atomic_fetch_sub_explicit(&b->level, 1, memory_order_relaxed) > 0);
}

/* -- bytes ---------------------------------------------------------------- */

static uint64_t bytes_depth_ns(void)
{
	return SECOND_NS / 4;
}

static uint64_t bytes_chunk(uint64_t rate)
{
	uint64_t low = MIN(rate / CHUNKS_PER_S_LOW, (uint64_t)CHUNK_WORTH);
	uint64_t chunk = MAX(rate / CHUNKS_PER_S, MAX(low, 1));

	return MIN(chunk, (uint64_t)QUOTA_CHUNK_MAX);
}

uint64_t quota_draw(struct quota *q, enum quota_kind kind, uint64_t now_us)
{
	uint64_t rate = quota_limit(q, kind), chunk;

	if (!rate)
		return UINT64_MAX;
	chunk = bytes_chunk(rate);
	if (!bucket_take(&q->buckets[kind], chunk * SECOND_NS / rate,
			 MAX(bytes_depth_ns(), SECOND_NS / rate),
			 now_us * 1000))
		return 0;
	return chunk;
}

/* -- for people ----------------------------------------------------------- */

/* Rounded up: a part of a token cannot be taken. 64 bits do not hold ns times
 * bytes per second. */
static uint64_t tokens_in(uint64_t ns, uint64_t rate)
{
	unsigned __int128 parts = (unsigned __int128)ns * rate;

	return (uint64_t)((parts + SECOND_NS - 1) / SECOND_NS);
}

void quota_state(const struct quota *q, enum quota_kind kind, uint64_t now_us,
		 struct quota_state *ret)
{
	const struct bucket *b = &q->buckets[kind];
	uint64_t level, now_ns = now_us * 1000;

	level = atomic_load_explicit(&b->level, memory_order_relaxed);
	*ret = (struct quota_state){
		.used = level,
		.limit = quota_limit(q, kind),
		.refused =
			atomic_load_explicit(&b->refused, memory_order_relaxed),
	};
	if (kind != QUOTA_CONNECTIONS)
		ret->used = level > now_ns
				    ? tokens_in(level - now_ns, ret->limit)
				    : 0;
}

uint64_t quota_refused(const struct quota *q)
{
	uint64_t sum = 0;
	unsigned i;

	for (i = 0; i < QUOTA_NUM; i++)
		sum += atomic_load_explicit(&q->buckets[i].refused,
					    memory_order_relaxed);
	return sum;
}

const char *quota_id(const struct quota *q)
{
	return q->id;
}

/* q into its place of a list in order; the last may fall out. */
static unsigned most_insert(struct quota **list, unsigned count, unsigned max,
			    struct quota *q)
{
	uint64_t refused = quota_refused(q);
	unsigned at = count;

	if (!refused)
		return count;
	while (at && quota_refused(list[at - 1]) < refused)
		at--;
	if (at == max)
		return count;
	count = MIN(count + 1, max);
	memmove(&list[at + 1], &list[at], (count - at - 1) * sizeof(*list));
	list[at] = q;
	return count;
}

unsigned quotas_most_refused(struct quotas *all, struct quota **ret,
			     unsigned max)
{
	unsigned count = 0, i;
	size_t cursor = 0;
	struct quota *q;

	quotas_lock(all);
	while ((q = map_next(&all->by_id, &cursor, NULL)))
		count = most_insert(ret, count, max, q);
	for (i = 0; i < count; i++)
		ret[i]->refs++;
	quotas_unlock(all);
	return count;
}
