/* SPDX-License-Identifier: Apache-2.0 */
/* vault_link.h - control's conversation with the vault role
 *
 * Requests are answered in order of their serials by callbacks from the loop.
 * When the channel is lost every open request ends with status EPIPE: for a
 * commit that means "nobody knows", and the caller reads the vault again once
 * a new channel is there. Values go in and never come back.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/role/msg.h"

struct loop;
struct vault_link;

/* Scope of control's own records (sandboxes, API policies, tokens), so that
 * they do not move the revision of anybody's credentials. No sandbox may have
 * such an id. */
#define VAULT_SCOPE_CONTROL "@control"

struct vault_link_ops {
	/* a new channel: everything must be read again */
	void (*up)(void *ctx);
	void (*down)(void *ctx);
	/* the vault broke the protocol */
	void (*accuse)(void *ctx);
};

WUNRES int vault_link_new(struct loop *loop, const struct vault_link_ops *ops,
			  void *ctx, struct vault_link **ret);
/* Open requests end with EPIPE first. */
struct vault_link *vault_link_free(struct vault_link *v);
/* Takes fd; replaces the channel that was. */
void vault_link_connect(struct vault_link *v, int fd);
bool vault_link_is_up(const struct vault_link *v);

/* status: 0, a positive errno of the vault, or EPIPE. */
typedef void vault_result_fn(void *ctx, int status, uint64_t revision,
			     const char *text);

/* One transaction: begin, put and remove, commit. What goes wrong underway
 * fails the commit. expected: a revision, or -1. */
void vault_link_begin(struct vault_link *v, const char *scope,
		      int64_t expected);
void vault_link_put(struct vault_link *v, enum record_kind kind,
		    struct span name, struct span value);
void vault_link_remove(struct vault_link *v, enum record_kind kind,
		       struct span name);
/* Bytes of values put so far. */
size_t vault_link_put_bytes(const struct vault_link *v);
void vault_link_commit(struct vault_link *v, vault_result_fn *fn, void *ctx);

/* Every record of a kind in a scope, in order of names; record is called for
 * each, then done. status as above. */
typedef void vault_record_fn(void *ctx, const struct msg_record *record,
			     struct span value);
typedef void vault_done_fn(void *ctx, int status);
void vault_link_read(struct vault_link *v, enum record_kind kind,
		     const char *scope, vault_record_fn *record,
		     vault_done_fn *done, void *ctx);

void vault_link_revision(struct vault_link *v, const char *scope,
			 vault_result_fn *fn, void *ctx);
void vault_link_maintain(struct vault_link *v, enum maintain_verb verb,
			 vault_result_fn *fn, void *ctx);
/* The CA certificate, DER; empty unless status is 0. */
typedef void vault_ca_fn(void *ctx, int status, struct span der);
void vault_link_ca(struct vault_link *v, vault_ca_fn *fn, void *ctx);
