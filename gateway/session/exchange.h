/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one request and its response, on two legs
 *
 * How it works: a front parses a request head into exchange->head and begins
 * the exchange. The head walks down the pipeline; with its grant an origin is
 * opened or shared, which gives the back leg; the head is written to it with
 * the credential last; then flow.c moves content both ways, each way only as
 * fast as its reader. Only exchange_move() writes the state.
 *
 * The version of HTTP is nobody's business here: see leg.h.
 */
#pragma once

#include <stdbool.h>

#include "gateway/audit/audit.h"
#include "gateway/pipeline/request.h"
#include "gateway/session/leg.h"
#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/io/loop.h"
#include "src/wire/h1.h"

struct origin;
struct redact_body;
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
	struct timer timer;
	uint64_t ends_ms; /* "timeouts.totalMs", as loop_now_ms(); 0: never */
	struct audit audit;
	struct request request;
	struct leg *front, *back;
	struct origin *origin; /* while it is being opened */
	bool answered;	       /* a final response head went to the client */
	bool upload_done;      /* the request was passed on to its end */
	bool upload_broken;    /* the origin takes no more of the request */
	bool download_done;
	bool reused;	/* the origin connection served before */
	uint8_t retries;
	uint64_t upload_bytes, download_bytes;
	/* where the binding asks for it: the body without the credential */
	struct redact_body *redact;
	struct buf redact_held; /* of an encoded body, for when there is room */
	struct buf redact_clean; /* masked, and the front had no room for it */
	bool redact_more;	/* it has more to give, without further input */
	bool redact_finished;	/* it was told of the body's end */
	uint64_t redact_hits;	/* of them, how many the audit has */
	/* The request, of whatever version: for HTTP/2 as its HTTP/1.1 form
	 * would be. Views into the arena; set by the front. Last, for its
	 * fields are not cleared. */
	struct h1_request head;
};

/* For a front: a fresh exchange whose head is to be filled, then begun. */
struct exchange *exchange_new(struct session *s, struct leg *front);
void exchange_begin(struct exchange *x);
/* Ends it with a refusal: an answer if none was begun, else by breaking off.
 * status 0: nobody is there to be answered. */
void exchange_fail(struct exchange *x, enum audit_reason reason,
		   uint16_t status, const char *detail);
/* The client went away: the front must not be called any more. */
void exchange_abandon(struct exchange *x, enum audit_reason reason);
/* For gateway/proxy: has the connection to this destination admitted, then goes
 * on; session->destination.port and .original are set. */
void exchange_admit(struct exchange *x, const struct authority *a);
/* Policy changed, and its connection may not go on; or it may, and each of its
 * exchanges is asked about. x may be gone afterwards. */
void exchange_cut(struct exchange *x);
void exchange_recheck(struct exchange *x);

/* -- between exchange.c and flow.c --------------------------------------- */

void exchange_move(struct exchange *x, enum exchange_state to);
/* Both bodies are done. */
void exchange_finish(struct exchange *x);
/* The kept connection was stale, or the origin did not touch the request: once
 * more on another one. False: not allowed. */
bool exchange_retry(struct exchange *x);

/* Moves what can be moved, then waits. For legs: something happened. x may be
 * gone afterwards. */
void flow_run(struct exchange *x);
void flow_deadline(struct exchange *x);
