/* SPDX-License-Identifier: Apache-2.0 */
/* automaton.c - search a stream, one piece after the other
 *
 * How it works: a cursor skips or walks. Skipping looks at windows that stand
 * a stride apart and proves with each that no pattern begins in the stride
 * before it. A window in the filter begins a walk from the first begin not yet
 * excluded. A walk ends where the state is shallow and stands for nothing that
 * begins at or before the window; what it stands for is then looked at again by
 * skipping. Being shallow bounds what is read twice, so a body made to hit the
 * filter everywhere costs a few times the walk and never more. Near the end of
 * a piece there is no window to look at, and the rest is walked: the state
 * left there is the same for any cut of a body into pieces.
 */

#include "gateway/redact/automaton_inside.h"

#include "src/base/err.h"
#include "src/base/secret.h"

struct automaton *automaton_ref(struct automaton *a)
{
	if (a)
		atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
	return a;
}

struct automaton *automaton_unref(struct automaton *a)
{
	size_t i;

	if (!a ||
	    atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
		return NULL;
	for (i = 0; i < ARRAY_LEN(a->blocks); i++)
		(void)secret_free(a->blocks[i]);
	(void)secret_free(a->filter_memory);
	(void)secret_free(a->rows_memory);
	free(a->levels);
	secret_wipe(a, sizeof(*a));
	free(a);
	return NULL;
}

size_t automaton_size(const struct automaton *a)
{
	return sizeof(*a) + (a->count + 1) * sizeof(struct node) +
	       (a->longest + 2) * sizeof(*a->levels) +
	       (size_t)a->rowed * a->classes * sizeof(*a->rows) +
	       ((size_t)1 << a->filter_bits) / 8;
}

size_t automaton_longest(const struct automaton *a)
{
	return a->longest;
}

size_t automaton_shortest(const struct automaton *a)
{
	return a->shortest;
}

size_t automaton_depth(const struct automaton *a, uint32_t state)
{
	size_t low = 0, high = a->longest + 1, middle;

	while (high - low > 1) { /* levels[low] <= state < levels[high] */
		middle = low + (high - low) / 2;
		if (a->levels[middle] <= state)
			low = middle;
		else
			high = middle;
	}
	return low;
}

size_t automaton_match(const struct automaton *a, uint32_t state)
{
	if (!(node_at(a, state)->up & NODE_MATCH))
		return 0;
	while (!(node_at(a, state)->up & NODE_WHOLE))
		state = node_at(a, state)->fall >> 8;
	return automaton_depth(a, state);
}

uint32_t automaton_open(const struct automaton *a, uint32_t state)
{
	while (state && !(node_at(a, state)->up & NODE_CHILD))
		state = node_at(a, state)->fall >> 8;
	return state;
}

void automaton_text(const struct automaton *a, uint32_t state, size_t from,
		    size_t len, char *out)
{
	size_t depth = automaton_depth(a, state);

	must(from + len <= depth);
	for (; depth > from + len; depth--)
		state = node_at(a, state)->up >> 8;
	for (; depth > from; depth--) {
		out[depth - from - 1] = (char)node_at(a, state)->fall;
		state = node_at(a, state)->up >> 8;
	}
}

static inline uint32_t state_next(const struct automaton *a, uint32_t s,
				  unsigned char c)
{
	uint32_t child;

	while (s >= a->rowed) {
		child = child_find(a, s, c);
		if (child)
			return child;
		s = node_at(a, s)->fall >> 8;
	}
	return a->rows[s * a->classes + a->class_of[c]];
}

/* Of a state below a->shallow. */
static size_t shallow_depth(const struct automaton *a, uint32_t state)
{
	size_t depth = 0;

	while (a->levels[depth + 1] <= state)
		depth++;
	return depth;
}

struct cursor cursor_at(uint32_t state)
{
	return (struct cursor){
		.state = state,
		.leave = SHALLOW_DEPTH,
		.walking = state != 0,
	};
}

static inline bool filter_bit(const uint8_t *filter, uint32_t bit)
{
	return filter[bit / 8] >> bit % 8 & 1;
}

/* From a begin that is not excluded to the next that may not be. */
static void cursor_skip(const struct automaton *a, struct cursor *c,
			struct span piece)
{
	const size_t stride = a->stride;
	const unsigned bits = a->filter_bits;
	const uint8_t *filter = a->filter;
	size_t at = c->pos + stride - 1;
	uint32_t window;

	for (; at + WINDOW_BYTES <= piece.len; at += stride) {
		window = window_load(piece.ptr + at);
		if (UNLIKELY(filter_bit(filter, window_first(window, bits))) &&
		    filter_bit(filter, window_second(window, bits)))
			break;
	}
	c->pos = at + 1 - stride;
	c->leave = at + WINDOW_BYTES <= piece.len ? at + 1 + SHALLOW_DEPTH
						  : SIZE_MAX;
	c->state = 0;
	c->walking = true;
}

/* True: a match ends at c->pos. False: the piece ends, or walking is over. */
static bool cursor_walk(const struct automaton *a, struct cursor *c,
			struct span piece)
{
	const uint32_t shallow = a->shallow;
	const size_t leave = c->leave;
	uint32_t s = c->state;
	size_t pos = c->pos;
	bool found = false;

	while (pos < piece.len && !found) {
		if (s < shallow && pos >= leave) {
			c->walking = false;
			pos -= shallow_depth(a, s);
			break;
		}
		s = state_next(a, s, (unsigned char)piece.ptr[pos++]);
		found = s >= shallow && node_at(a, s)->up & NODE_MATCH;
	}
	c->state = s;
	c->pos = pos;
	return found;
}

bool automaton_find(const struct automaton *a, struct cursor *c,
		    struct span piece)
{
	if (!a->stride)
		return false;
	while (c->pos < piece.len || !c->walking) {
		if (!c->walking)
			cursor_skip(a, c, piece);
		if (cursor_walk(a, c, piece))
			return true;
	}
	return false;
}
