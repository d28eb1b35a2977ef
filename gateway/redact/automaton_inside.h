/* SPDX-License-Identifier: Apache-2.0 */
/* automaton_inside.h - the automaton's memory, shared by building and search
 *
 * How it works
 *
 * Nodes are the nodes of the trie of all patterns, numbered level by level:
 * node 0 is the root, the children of one node follow each other, sorted by
 * byte, and the children of node s are [first(s), first(s + 1)). A node keeps
 * its parent, so that it is not only a state but the text that led to it: a
 * stream carries a number, and no held-back byte is ever copied.
 *
 * The root and as many of its children as fit in one secret have a row: the
 * next state for every class of bytes, with the falling back already done. The
 * others try their children and fall back to the longest proper end of theirs
 * that is a node too (Aho and Corasick).
 *
 * Most text never gets there. The shortest pattern has `stride` + 3 bytes, so
 * every occurrence covers one of the four-byte windows that stand `stride`
 * apart, at one of its own first `stride` offsets; the hashes of all those are
 * bits in the filter, two each, and clean text costs one lookup per stride.
 */
#pragma once

#include <stdatomic.h>

#include "gateway/redact/automaton.h"

struct secret;

enum {
	NODE_MATCH = 1, /* a pattern ends here, or in what it falls back to */
	NODE_WHOLE = 2, /* the text is a pattern */
	NODE_CHILD = 4, /* has one */
	NODE_FORK = 8,	/* has several */

	BLOCK_BITS = 13, /* nodes of a block: 96 KiB, one secret */
	BLOCK_NODES = 1 << BLOCK_BITS,
	BLOCKS_MAX = AUTOMATON_NODES_MAX / BLOCK_NODES + 1,

	WINDOW_BYTES = 4,
	STRIDE_MAX = 16,
	FILTER_BITS_MIN = 13,
	FILTER_BITS_MAX = 19,

	SHALLOW_DEPTH = 4,
};

/* Each: a number of a node << 8 | a byte. */
struct node {
	uint32_t down; /* first child (or where it would be), its byte */
	uint32_t fall; /* where to fall back to, the node's own byte */
	uint32_t up;   /* parent, NODE_ flags */
};
_Static_assert(sizeof(struct node) * BLOCK_NODES <= 96 * 1024, "one secret");

struct automaton {
	_Atomic unsigned refs;
	unsigned stride;      /* 0: there are no patterns */
	size_t shortest;      /* of the patterns */
	unsigned filter_bits; /* log2 of the filter's size */
	const uint8_t *filter;
	const uint32_t *rows; /* [rowed][classes] */
	uint32_t rowed, classes;
	uint32_t shallow;	/* nodes below: at most SHALLOW_DEPTH deep */
	uint16_t class_of[256]; /* 0: a byte of no pattern */
	struct node *nodes[BLOCKS_MAX];

	uint32_t count;
	size_t longest;
	uint32_t *levels; /* [longest + 2]: first node of each depth */
	struct secret *blocks[BLOCKS_MAX], *filter_memory, *rows_memory;
};

static inline struct node *node_at(const struct automaton *a, uint32_t s)
{
	return &a->nodes[s >> BLOCK_BITS][s & (BLOCK_NODES - 1)];
}

/* Where the two bits of a window are. The first alone lets one window in 32 of
 * foreign text pass, both one in a thousand. */
static inline uint32_t window_load(const char *p)
{
	uint32_t window;

	memcpy(&window, p, sizeof(window));
	return window;
}

static inline uint32_t window_first(uint32_t window, unsigned bits)
{
	return (window * 0x9e3779b1U) >> (32 - bits);
}

static inline uint32_t window_second(uint32_t window, unsigned bits)
{
	return ((window ^ window >> 15) * 0x85ebca6bU) >> (32 - bits);
}

/* Of several children the one for c, or 0. */
static inline uint32_t fork_find(const struct automaton *a, uint32_t s,
				 unsigned char c)
{
	uint32_t low = node_at(a, s)->down >> 8, end, high, middle;

	end = high = node_at(a, s + 1)->down >> 8;
	while (low < high) {
		middle = low + (high - low) / 2;
		if ((unsigned char)node_at(a, middle)->fall < c)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && (unsigned char)node_at(a, low)->fall == c ? low : 0;
}

/* The child for c, or 0. */
static inline uint32_t child_find(const struct automaton *a, uint32_t s,
				  unsigned char c)
{
	const struct node *n = node_at(a, s);

	if ((unsigned char)n->down == c && n->up & NODE_CHILD)
		return n->down >> 8;
	return n->up & NODE_FORK ? fork_find(a, s, c) : 0;
}
