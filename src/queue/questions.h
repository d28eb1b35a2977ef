/* SPDX-License-Identifier: Apache-2.0 */
/* questions.h - what the gateway was asked and has not answered
 *
 * Answers come in the order of questions, so this is a ring. A question whose
 * time is over loses its packet and keeps its place until it is answered. No
 * sandbox, that is no interface, has more than its share of the ring.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/queue/conntrack.h"

enum {
	QUESTIONS_MAX = 2048,	/* a power of two */
	QUESTIONS_SHARE = 256,	/* of one interface */
	QUESTIONS_REVIEW = 512, /* for flows that are reviewed */
};

enum question_kind {
	QUESTION_OVER,	 /* nothing depends on the answer any more */
	QUESTION_PACKET, /* a packet waits */
	QUESTION_REVIEW, /* a flow that is forwarded already */
};

struct question {
	enum question_kind kind;
	uint32_t serial;
	uint32_t ifindex;
	struct conntrack_key key; /* QUESTION_REVIEW */
	/* QUESTION_PACKET */
	uint32_t packet;
	uint64_t due_ms;
	struct msg_flow flow;
};

struct questions;

struct questions *questions_new(void);
struct questions *questions_free(struct questions *q);

/* A place at the end, zeroed but for kind and ifindex; NULL: the ring is full,
 * or the share is. */
struct question *questions_add(struct questions *q, enum question_kind kind,
			       uint32_t ifindex);
/* The oldest one, or NULL. */
struct question *questions_first(struct questions *q);
/* The oldest one is answered, or never will be. */
void questions_drop_first(struct questions *q);
/* Those of QUESTION_REVIEW that are unanswered. */
uint32_t questions_reviews(const struct questions *q);
/* Another one may be asked in review. */
bool questions_may_review(const struct questions *q);
/* The oldest packet whose time is over becomes QUESTION_OVER; the question as
 * it was, until the next call, or NULL. */
const struct question *questions_expire(struct questions *q, uint64_t now_ms);
/* When the next packet's time is over; 0: no packet waits. */
uint64_t questions_due(const struct questions *q);
