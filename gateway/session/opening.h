/* SPDX-License-Identifier: Apache-2.0 */
/* opening.h - a client that says nothing yet: who speaks first?
 *
 * For session.c; SESSION_SNIFF until the destination is dialled, then
 * SESSION_OPENING.
 */
#pragma once

#include <stdbool.h>

struct session;

/* How long a silent client is waited for, in turn. */
enum opening_patience {
	OPENING_FIRST,	/* serverFirstMs; then policy is asked */
	OPENING_SECOND, /* denied as far as is known: its own words may help */
	OPENING_HALF,	/* serverFirstMs: it has begun, maybe a line of HTTP */
	OPENING_HALF_DENIED, /* the rest of that line may help */
	OPENING_LAST,	     /* headMs: only its own words can help */
};

/* SESSION_SNIFF begins. The session lives on. */
void opening_begin(struct session *s);
/* The deadline of SESSION_SNIFF or SESSION_OPENING has come. */
void opening_timeout(struct session *s);
/* The client's first bytes are in s->in. */
void opening_client_spoke(struct session *s);
/* The client will say nothing at all. False: nor may its destination. */
bool opening_client_ended(struct session *s);
/* SESSION_OPENING: what was dialled is connected. */
void opening_connected(struct session *s);
/* SESSION_OPENING: what was dialled cannot be reached. True: the client is
 * waited for, or heard, nevertheless; else the audit record is prepared. */
bool opening_unreachable(struct session *s);
/* SESSION_OPENING, facts changed: ends what may not be now. */
void opening_recheck(struct session *s);
