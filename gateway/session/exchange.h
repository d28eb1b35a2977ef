/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one HTTP/1.1 request and its response
 *
 * How it works: the head is parsed and sent down the pipeline; with its grant
 * an origin connection is opened or reused, the head is written with the
 * credential last, and then both bodies flow at once, each only as fast as its
 * reader. Only exchange_move() writes the state.
 */
#pragma once

#include <stdbool.h>

#include "gateway/audit/audit.h"
#include "gateway/pipeline/request.h"
#include "gateway/session/body.h"
#include "src/base/arena.h"
#include "src/wire/h1.h"

struct origin;
struct session;

enum exchange_state {
	EXCHANGE_NONE,
	/* The head is parsed; a plain HTTP connection is being admitted. */
	EXCHANGE_ADMIT,
	/* Granted; waiting for an origin connection. */
	EXCHANGE_ORIGIN,
	/* The head was sent; bodies flow. */
	EXCHANGE_FLOW,
	/* The origin switched protocols: opaque bytes both ways. */
	EXCHANGE_TUNNEL,
	EXCHANGE_STATE_NUM,
};

struct exchange {
	struct session *session;
	enum exchange_state state;
	struct arena arena;
	struct audit audit;
	struct request request;
	struct body upload, download;
	struct origin *origin;
	struct h1_scan scan; /* of the response head */
	bool client_keep;    /* the client's connection may go on */
	bool origin_keep;    /* the origin's may */
	bool answered;	     /* a final response head was sent */
	bool upload_broken;  /* the origin takes no more of the request */
	bool client_ended;   /* half-closed: no more requests */
	bool retried;
	/* Views into the arena. Last, for its fields are not cleared. */
	struct h1_request head;
};

/* Parses head (copied) and begins. The exchange is s->exchange until it ends
 * itself through http1_next() or session_free(). */
void exchange_begin(struct session *s, struct span head);
/* Refuses before there was a parsed request (malformed, too large). */
void exchange_refuse(struct session *s, enum audit_reason reason,
		     uint16_t status, const char *detail);
void exchange_on_client(struct exchange *x, unsigned events);
void exchange_timeout(struct exchange *x);
void exchange_cut(struct exchange *x);
/* Frees it, origin included, without a word. */
void exchange_free(struct exchange *x);

/* -- between exchange.c and flow.c --------------------------------------- */

void exchange_move(struct exchange *x, enum exchange_state to);
/* Ends it with a refusal: an answer if none was begun, else by breaking off. */
void exchange_fail(struct exchange *x, enum audit_reason reason,
		   uint16_t status, const char *detail);
/* Both bodies are done. */
void exchange_finish(struct exchange *x);
/* The kept connection was stale: once more on a new one. False: not allowed. */
bool exchange_retry(struct exchange *x);

/* The head was written: moves what can be moved, then waits. */
void flow_start(struct exchange *x);
void flow_run(struct exchange *x);
