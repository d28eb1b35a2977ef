/* SPDX-License-Identifier: Apache-2.0 */
/* session.h - one connection of a sandbox, from its first byte to its last
 *
 * How it works: the session sniffs what the client speaks, learns the name,
 * has the connection admitted, and then either splices it through unopened, or
 * opens TLS with a leaf for exactly that name and serves HTTP on it. Only
 * session_move() writes the state.
 */
#pragma once

#include <stdbool.h>

#include "gateway/audit/audit.h"
#include "gateway/pipeline/admit.h"
#include "gateway/session/opening.h"
#include "gateway/upstream/destination.h"
#include "src/base/arena.h"
#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/io/loop.h"
#include "src/wire/h1.h"

struct http1;
struct http2;
struct leaf_wait;
struct origin;
struct sandbox;
struct splice;
struct stream;
struct worker;

enum session_state {
	SESSION_NONE,
	/* The explicit proxy was dialled; SOCKS5 is not through, or not even
	 * the first byte is here (gateway/proxy/). */
	SESSION_PROXY,
	/* Addresses and sandbox are known; the first bytes are awaited. Set
	 * destination.host: a proxy request named it, and it was admitted. */
	SESSION_SNIFF,
	/* The client is silent and what it dialled was dialled: whoever speaks
	 * first decides what this is (opening.c). */
	SESSION_OPENING,
	/* The name is known (or known to be absent); a lookup is under way. */
	SESSION_ADMIT,
	/* Admitted, to be opened; the vault signs a leaf. */
	SESSION_LEAF,
	/* TLS with the client is being shaken. */
	SESSION_HANDSHAKE,
	/* To be opened, HTTP/2 is offered, and what the origin speaks is not
	 * known: it is asked. */
	SESSION_PROBE,
	/* HTTP/1.1: exchanges follow one another. */
	SESSION_HTTP,
	/* HTTP/2: exchanges side by side. */
	SESSION_HTTP2,
	/* Admitted, not to be opened; the origin is being dialled. */
	SESSION_DIAL,
	/* Bytes pass through; the streams belong to the splice. */
	SESSION_SPLICE,
	SESSION_STATE_NUM,
};

struct session {
	struct worker *worker;
	struct list link; /* in worker->sessions */
	enum session_state state;
	struct timer timer; /* the one deadline of the state */
	/* accept */
	struct stream *client;
	struct sandbox *sandbox; /* referenced */
	struct addr client_addr, original;
	struct buf in;			/* received, not consumed yet */
	enum opening_patience patience; /* SNIFF, OPENING */
	bool client_ended;		/* without a word */
	/* admission */
	struct arena arena; /* lives as long as the session: the grant */
	struct destination destination;
	struct admission admission;
	const struct grant *grant; /* set: admitted */
	uint64_t facts_version;	   /* that the admission was made under */
	struct audit audit; /* facts of the connection; exchanges copy it */
	/* whichever the state needs */
	struct leaf_wait *leaf;
	struct origin
		*origin; /* DIAL, PROBE; OPENING and until it is decided */
	struct splice *splice;
	struct http1 *http1; /* HTTP */
	struct http2 *http2; /* HTTP2 */
	bool offers_h2;	     /* the ClientHello did */
	/* The explicit proxy is spoken to: the connection has no destination,
	 * requests name their own. Until one of them opens a tunnel. */
	bool proxied;
	bool socks_greeted; /* PROXY: a method was agreed on */
};

/* RFC 8446 5.1: what a connection of TLS begins with. */
enum { TLS_HANDSHAKE_BYTE = 0x16 };

/* Takes fd. iface: name of the interface it came in by. */
void session_new(struct worker *w, int fd, const struct addr *client,
		 const struct addr *original, const char *iface);
/* Ends it at once, whatever the state. */
void session_free(struct session *s);
/* Ends it with a last flush of what was written to the client. */
void session_finish(struct session *s);
/* Facts changed: a tunnel that would not be allowed now is cut. */
void session_recheck(struct session *s);
/* No more exchanges after the present one. */
void session_drain(struct session *s);

/* For the files of this folder and of gateway/proxy/. */
void session_move(struct session *s, enum session_state to);
void session_deadline(struct session *s, uint32_t delay_ms);
/* Granted: also for bytes that are neither TLS nor HTTP? */
bool session_may_pass_unseen(const struct session *s);
/* It is known what is spoken: may it be made? The session may be gone then. */
void session_admit(struct session *s, enum scheme scheme);
/* SESSION_SNIFF, with what is in s->in already. */
void session_open(struct session *s);
/* One record: it ended before anything was exchanged. */
void session_audit(struct session *s, enum audit_reason reason);
/* The same, and a reset. */
void session_refuse(struct session *s, enum audit_reason reason);

/* Before it is known what the client speaks: its bytes, into s->in. */
enum session_read {
	SESSION_READ_NONE, /* nothing for now */
	SESSION_READ_SOME,
	SESSION_READ_FULL, /* more than any beginning has */
	SESSION_READ_END,
	SESSION_READ_BROKEN,
};
enum session_read session_read(struct session *s);
/* The client is gone; a record if it had said something. s is gone, too. */
void session_abandoned(struct session *s);
