/* SPDX-License-Identifier: Apache-2.0 */
/* questions.c - a ring, and how many of it belong to which interface
 *
 * How it works: packets are asked about in the order they came, all with the
 * same time to live, so that the oldest is due first. `expired` is the first
 * place that has not been looked at for that. Shares are counted in a small
 * hash table without chains: two interfaces that meet in one cell share, which
 * with so many cells is rare and costs somebody busy a packet.
 */

#include "src/queue/questions.h"

#include <stdlib.h>

#include "src/base/err.h"

enum { CELLS = 4096, MASK = QUESTIONS_MAX - 1 };

struct questions {
	struct question ring[QUESTIONS_MAX];
	uint32_t first, end; /* of those unanswered; positions only grow */
	uint32_t expired;    /* first <= expired <= end */
	uint32_t reviews;
	uint16_t shares[CELLS];
};

struct questions *questions_new(void)
{
	return must_alloc(sizeof(struct questions));
}

struct questions *questions_free(struct questions *q)
{
	free(q);
	return NULL;
}

/* Interfaces are numbered one after another: the lower bits differ. */
static uint16_t *share_of(struct questions *q, uint32_t ifindex)
{
	return &q->shares[ifindex % CELLS];
}

/* Gives back what it counts for. */
static void question_over(struct questions *q, struct question *x)
{
	if (x->kind == QUESTION_PACKET)
		--*share_of(q, x->ifindex);
	else if (x->kind == QUESTION_REVIEW)
		q->reviews--;
	x->kind = QUESTION_OVER;
}

struct question *questions_add(struct questions *q, enum question_kind kind,
			       uint32_t ifindex)
{
	struct question *x = &q->ring[q->end & MASK];

	if (q->end - q->first == QUESTIONS_MAX)
		return NULL;
	if (kind == QUESTION_REVIEW) {
		q->reviews++;
	} else {
		if (*share_of(q, ifindex) == QUESTIONS_SHARE)
			return NULL;
		++*share_of(q, ifindex);
	}
	*x = (struct question){ .kind = kind, .ifindex = ifindex };
	q->end++;
	return x;
}

struct question *questions_first(struct questions *q)
{
	return q->first == q->end ? NULL : &q->ring[q->first & MASK];
}

void questions_drop_first(struct questions *q)
{
	must(q->first != q->end);
	question_over(q, &q->ring[q->first & MASK]);
	if (q->expired == q->first)
		q->expired++;
	q->first++;
}

uint32_t questions_reviews(const struct questions *q)
{
	return q->reviews;
}

bool questions_may_review(const struct questions *q)
{
	return q->reviews < QUESTIONS_REVIEW &&
	       q->end - q->first < QUESTIONS_MAX - QUESTIONS_SHARE;
}

/* The first packet from `expired` on; end when there is none. */
static uint32_t next_packet(const struct questions *q)
{
	uint32_t at = q->expired;

	while (at != q->end && q->ring[at & MASK].kind != QUESTION_PACKET)
		at++;
	return at;
}

const struct question *questions_expire(struct questions *q, uint64_t now_ms)
{
	struct question *x;

	q->expired = next_packet(q);
	if (q->expired == q->end)
		return NULL;
	x = &q->ring[q->expired & MASK];
	if (x->due_ms > now_ms)
		return NULL;
	question_over(q, x);
	q->expired++;
	return x; /* its place is kept until it is answered */
}

uint64_t questions_due(const struct questions *q)
{
	uint32_t at = next_packet(q);

	return at == q->end ? 0 : q->ring[at & MASK].due_ms;
}
