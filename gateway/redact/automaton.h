/* SPDX-License-Identifier: Apache-2.0 */
/* automaton.h - many texts searched for at once, in a stream
 *
 * Immutable and shared between threads; built once for a revision of bindings
 * and kept by every stream that began under it. It holds the patterns and
 * nothing else of them remains: all of it that tells a byte of one stands in
 * secrets, locked, in no core, wiped with the last reference.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct automaton;
struct patterns;

enum {
	AUTOMATON_NODES_MAX = 1 << 20, /* twelve bytes each */
};

/* More nodes than AUTOMATON_NODES_MAX. Fail closed. */
enum { AUTOMATON_E_FULL = 1 };

/* Borrows p for the call. 0; AUTOMATON_E_FULL; -ENOMEM. */
WUNRES int automaton_new(const struct patterns *p, struct automaton **ret);
/* Any thread; NULL is fine. */
struct automaton *automaton_ref(struct automaton *a);
/* Any thread; NULL is fine; returns NULL. */
struct automaton *automaton_unref(struct automaton *a);

/* Bytes of memory, for the operator's figures and for tests. */
size_t automaton_size(const struct automaton *a);
/* Length of the longest pattern, and of the shortest; 0 without any. */
size_t automaton_longest(const struct automaton *a);
size_t automaton_shortest(const struct automaton *a);

/* Where a search stands. A state is the longest end of what was read that
 * begins a pattern; 0 is the empty one. */
struct cursor {
	uint32_t state;
	size_t pos; /* in the piece under search */
	/* While state is carried: where skipping may begin. Else 0. */
	size_t leave;
	bool walking; /* byte by byte; otherwise pos is where to look next */
};

/* A cursor at the begin of a new piece, in the state the last one left. */
struct cursor cursor_at(uint32_t state);

/* Reads piece from c->pos on. True: c->pos is behind the end of a match of
 * automaton_match(c->state) bytes; call again to go on. False: the piece is
 * read and c->state is to be carried into the next. */
WUNRES bool automaton_find(const struct automaton *a, struct cursor *c,
			   struct span piece);

/* The longest pattern that ends in state; 0: none. */
size_t automaton_match(const struct automaton *a, uint32_t state);
/* The same for all that may follow, shorter where state itself cannot go on. */
uint32_t automaton_open(const struct automaton *a, uint32_t state);
/* Bytes of the text that state stands for. */
size_t automaton_depth(const struct automaton *a, uint32_t state);
/* Writes bytes [from, from + len) of that text. */
void automaton_text(const struct automaton *a, uint32_t state, size_t from,
		    size_t len, char *out);
