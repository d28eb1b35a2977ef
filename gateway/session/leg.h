/* SPDX-License-Identifier: Apache-2.0 */
/* leg.h - one side of an exchange, whatever version of HTTP it speaks
 *
 * How it works: an exchange stands on two legs. The front is the client's
 * side: a request comes out of it, a response goes into it. The back is the
 * origin's side, the other way round. flow.c moves content from one leg to the
 * other and knows nothing of framing; a leg reads content out of its own
 * framing and writes content into it.
 *
 * Content is read as views, valid until the next read of any leg of the
 * worker, so it is written on at once (in parts, where it is masked). flow.c
 * never reads more than the other leg has room for: that is all there is to
 * back-pressure.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/h1.h"
#include "src/wire/header.h"

struct exchange;
struct leg;
struct request;

/* What a read gave. */
enum leg_read {
	LEG_NOTHING, /* zero: nothing now */
	LEG_PIECE,   /* *ret has content (or a response head) */
	LEG_END,     /* the body is complete */
	LEG_BROKEN,  /* it broke off, or broke the protocol; leg->why */
};

enum leg_want { LEG_READ = 1, LEG_WRITE = 2 };

/* How the content of a message is bounded. */
enum content {
	CONTENT_NONE,
	CONTENT_LENGTH,	 /* .length bytes */
	CONTENT_UNKNOWN, /* until its end is said */
	CONTENT_TUNNEL,	 /* opaque bytes both ways */
};

struct response {
	uint16_t status;
	struct span reason; /* HTTP/1.1 only, may be empty */
	enum content content;
	uint64_t length;
	struct headers headers; /* end-to-end or not: as received */
};

struct leg_ops {
	/* At most max bytes of content. */
	enum leg_read (*read)(struct leg *l, size_t max, struct span *ret);
	/* Fields after the content, once read() said LEG_END; NULL: none. */
	const struct headers *(*trailers)(struct leg *l);
	/* How much content it takes now. */
	size_t (*room)(const struct leg *l);
	/* Takes all of content (at most room). 0 or -errno: the peer takes no
	 * more. */
	int (*write)(struct leg *l, struct span content);
	int (*end)(struct leg *l, const struct headers *trailers);
	/* Sends what was written; before the other leg is touched. */
	int (*flush)(struct leg *l);
	/* Calls flow_run() when it can be read or written (enum leg_want);
	 * replaces what was wanted. Also puts aside what borrowed memory. */
	void (*want)(struct leg *l, unsigned what);

	/* -- fronts ------------------------------------------------------ */

	/* The request is read to its end: notes what comes after it, and
	 * LEG_BROKEN when the client is gone. NULL: there is no such thing. */
	enum leg_read (*ahead)(struct leg *l);

	/* A response head; interim ones too. request: what was injected is
	 * redacted. 0 or -errno. */
	int (*respond)(struct leg *l, struct request *request,
		       const struct response *response);
	/* The exchange is over and freed right after: the next one may begin
	 * (keep), or the connection has to end. Never NULL. */
	void (*finished)(struct leg *l, bool keep);
	/* The same, but the response must be seen to have broken off, for
	 * l->code where that can be said. */
	void (*broke)(struct leg *l);

	/* -- backs ------------------------------------------------------- */

	/* The request head, with its injections. */
	int (*request)(struct leg *l, const struct request *request,
		       const struct h1_request *head);
	/* The next response head, interim or final: LEG_PIECE. */
	enum leg_read (*response)(struct leg *l, struct response *ret);
	/* Gives the origin back (keep) or ends it. The leg is gone. */
	void (*release)(struct leg *l, bool keep);
};

struct leg {
	const struct leg_ops *ops;
	struct exchange *exchange; /* NULL between exchanges */
	const char *why;	   /* after LEG_BROKEN, or NULL */
	bool malformed;		   /* it broke the protocol, rather than off */
	bool silent;	/* a back that broke without having said a byte */
	bool untouched; /* ... and that did nothing with the request */
	/* The code of HTTP/2 with which a back broke, and a front is to; 0 is
	 * none. */
	uint32_t code;
};
