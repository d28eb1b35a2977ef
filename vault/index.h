/* SPDX-License-Identifier: Apache-2.0 */
/* index.h - what the store must hold: every record's head, every scope
 *
 * Built and checked when the vault is opened, changed only after a commit. A
 * row that is read must be the one the index knows; a row that is not there is
 * missed. It also is what iterations walk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/map.h"
#include "src/base/span.h"
#include "vault/record.h"
#include "vault/refs.h"
#include "vault/set.h"

struct index_entry {
	struct record_head head;
	struct ref_list refs; /* of a binding that opens, else empty */
	bool unreadable;      /* its head could not be parsed */
	size_t key_len;
	char key[];
};

enum scope_state {
	SCOPE_OK,
	SCOPE_CORRUPT,	   /* its manifest does not open */
	SCOPE_ROLLED_BACK, /* its records are not those of the manifest */
};

/* What a manifest says. All zero: nothing was ever committed. */
struct index_facts {
	struct record_head head; /* of the manifest; .revision counts */
	uint64_t count;		 /* of records */
	struct set_sum sum;	 /* over them */
};

struct index_scope {
	enum scope_state state;
	struct index_facts facts;
	struct index_facts next; /* scratch of maintain.c */
	size_t name_len;
	char name[];
};

struct index {
	struct index_entry **entries; /* sorted by key */
	size_t count, size;
	struct map scopes;
};

void index_init(struct index *ix);
void index_fini(struct index *ix);

static inline struct span index_key(const struct index_entry *e)
{
	return span_of(e->key, e->key_len);
}

static inline struct span index_scope_name(const struct index_scope *s)
{
	return span_of(s->name, s->name_len);
}

struct index_entry *index_find(const struct index *ix, struct span key);
/* The first entry whose key is greater, or NULL. */
struct index_entry *index_after(const struct index *ix, struct span key);
/* The entry of key, made when missing. */
struct index_entry *index_at(struct index *ix, struct span key);
/* Frees the entry; a key that is not there is fine. */
void index_drop(struct index *ix, struct span key);

struct index_scope *index_scope_find(const struct index *ix, struct span scope);
struct index_scope *index_scope_at(struct index *ix, struct span scope);
void index_scope_drop(struct index *ix, struct span scope);
/* Walk in no order; *cursor starts at 0. */
struct index_scope *index_scope_next(const struct index *ix, size_t *cursor);
