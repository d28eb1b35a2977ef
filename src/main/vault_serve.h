/* SPDX-License-Identifier: Apache-2.0 */
/* vault_serve.h - what the vault role answers to whom
 *
 * One message in, at most one reply out; no descriptors, no channels, so that
 * all of it runs in a test. A message that its sender may not send, or that is
 * malformed, is SERVE_ACCUSE and changes nothing.
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/role/msg.h"

struct ca;
struct serve;
struct vault;

enum serve_verdict {
	SERVE_ACCUSE, /* zero: the sender broke the protocol */
	SERVE_SILENT, /* fine, nothing to answer */
	SERVE_REPLY,
};

struct serve_reply {
	uint16_t type;
	union {
		struct msg_result result;
		struct msg_record record;
	} body;
	size_t body_len;
	struct span tail; /* until serve_done() */
};

/* All are borrowed and must outlive it. proxy_credential: of the node's, this
 * one is leased without a binding that names it; empty = none. */
struct serve *serve_new(struct vault *v, struct ca *ca,
			struct span proxy_credential);
/* Drops open transactions. NULL is fine; returns NULL. */
struct serve *serve_free(struct serve *s);

WUNRES enum serve_verdict serve_message(struct serve *s, enum role from,
					uint16_t type, struct span payload,
					struct serve_reply *reply);
/* The reply was sent: wipes what its tail pointed to. */
void serve_done(struct serve *s);
/* The peer's channel is gone: its transaction too. */
void serve_peer_gone(struct serve *s, enum role from);
