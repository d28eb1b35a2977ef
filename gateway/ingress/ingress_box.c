/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_box.c - counted references, and two clocks that workers share
 *
 * Failures: a moment that moves on by INGRESS_FAILURE_MS with each of them; as
 * long as one more would not move it further ahead of now than
 * INGRESS_FAILURES_AT_ONCE of those, an attempt is looked at.
 */

#include "gateway/ingress/ingress_box.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/err.h"

enum { AHEAD_MAX_MS = INGRESS_FAILURES_AT_ONCE * INGRESS_FAILURE_MS };

struct ingress_box *ingress_box_new(const struct msg_ingress *msg)
{
	struct ingress_box *b = must_alloc(sizeof(*b));

	atomic_init(&b->refs, 1);
	b->msg = *msg;
	return b;
}

struct ingress_box *ingress_box_ref(struct ingress_box *b)
{
	(void)atomic_fetch_add(&b->refs, 1);
	return b;
}

struct ingress_box *ingress_box_unref(struct ingress_box *b)
{
	if (b && atomic_fetch_sub(&b->refs, 1) == 1)
		free(b);
	return NULL;
}

uint64_t ingress_box_wait_ms(const struct ingress_box *b, uint64_t now_ms)
{
	const uint64_t next = atomic_load(&b->failures_ms) + INGRESS_FAILURE_MS;

	return next > now_ms + AHEAD_MAX_MS ? next - now_ms - AHEAD_MAX_MS : 0;
}

void ingress_box_failed(struct ingress_box *b, uint64_t now_ms)
{
	uint64_t until = atomic_load(&b->failures_ms);

	while (!atomic_compare_exchange_weak(&b->failures_ms, &until,
					     MAX(until, now_ms) +
						     INGRESS_FAILURE_MS))
		;
}

static void clock_follow(_Atomic uint64_t *clock, uint64_t ms)
{
	uint64_t now = atomic_load(clock);

	while (now < ms && !atomic_compare_exchange_weak(clock, &now, ms))
		;
}

void ingress_box_follow(struct ingress_box *b, const struct ingress_box *former)
{
	clock_follow(&b->failures_ms, atomic_load(&former->failures_ms));
	clock_follow(&b->told_ms, atomic_load(&former->told_ms));
}

bool ingress_box_accessed(struct ingress_box *b, uint64_t now_ms)
{
	uint64_t told = atomic_load(&b->told_ms);

	if (!b->msg.renews || (told && now_ms - told < INGRESS_TOLD_MS))
		return false;
	return atomic_compare_exchange_strong(&b->told_ms, &told, now_ms);
}

int ingress_keys_new(struct span text, struct ingress_keys **ret,
		     struct diag *d)
{
	struct ingress_keys *k = must_alloc(sizeof(*k));
	int r;

	atomic_init(&k->refs, 1);
	arena_init(&k->arena, SIGNED_KEYS_MAX * (SIGNED_SECRET_MAX + 64));
	r = signed_keys_parse(text, &k->arena, &k->keys, d);
	if (r)
		(void)ingress_keys_unref(k);
	else
		*ret = k;
	return r;
}

struct ingress_keys *ingress_keys_ref(struct ingress_keys *k)
{
	(void)atomic_fetch_add(&k->refs, 1);
	return k;
}

struct ingress_keys *ingress_keys_unref(struct ingress_keys *k)
{
	if (!k || atomic_fetch_sub(&k->refs, 1) != 1)
		return NULL;
	arena_wipe(&k->arena);
	free(k);
	return NULL;
}
