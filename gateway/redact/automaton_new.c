/* SPDX-License-Identifier: Apache-2.0 */
/* automaton_new.c - build an automaton from patterns
 *
 * How it works: the texts are sorted, so that a node is a range of texts that
 * share a begin. The ranges of one level are cut by their next byte into those
 * of the level below, which gives the nodes in their final order at once; all
 * that a node needs of others stands on levels above, and is there already.
 */

#include "gateway/redact/automaton_inside.h"

#include "gateway/redact/forms.h"
#include "gateway/redact/patterns.h"
#include "src/base/err.h"
#include "src/base/secret.h"

/* texts[from..end) have the first bytes in common that lead to a node. */
struct range {
	uint32_t from, end;
};

struct build {
	struct automaton *a;
	struct span *texts; /* sorted */
	unsigned count;
	struct range *level, *below; /* of the nodes of two levels */
	uint32_t width;		     /* of the level below */
};

static int text_compare(const void *one, const void *other)
{
	const struct span *a = one, *b = other;
	int r = memcmp(a->ptr, b->ptr, MIN(a->len, b->len));

	return r ? r : (a->len > b->len) - (a->len < b->len);
}

/* How many nodes there will be: a text adds what it does not share with the
 * one before it. */
static size_t nodes_count(const struct build *b)
{
	size_t count = 1, shared;
	unsigned i;

	for (i = 0; i < b->count; i++) {
		shared = 0;
		while (i && shared < b->texts[i - 1].len &&
		       shared < b->texts[i].len &&
		       b->texts[i - 1].ptr[shared] == b->texts[i].ptr[shared])
			shared++;
		count += b->texts[i].len - shared;
	}
	return count;
}

/* Memory for all nodes, and one that ends the last one's children. */
static int nodes_alloc(struct build *b)
{
	size_t left = nodes_count(b) + 1, some;
	struct automaton *a = b->a;
	unsigned i;
	int r;

	if (left > AUTOMATON_NODES_MAX)
		return AUTOMATON_E_FULL;
	for (i = 0; left; i++) {
		some = MIN(left, (size_t)BLOCK_NODES);
		r = secret_new(some * sizeof(struct node), &a->blocks[i]);
		if (r)
			return r;
		a->nodes[i] = (struct node *)(void *)secret_fill(a->blocks[i]);
		left -= some;
	}
	return 0;
}

/* Like a search without rows: down from the first of the ends of s that has a
 * child for c. Never meets a node whose children are still to come. */
static uint32_t fall_find(const struct automaton *a, uint32_t s,
			  unsigned char c)
{
	uint32_t child = child_find(a, s, c);

	while (!child && s) {
		s = node_at(a, s)->fall >> 8;
		child = child_find(a, s, c);
	}
	return child;
}

static void node_add(struct build *b, uint32_t parent, size_t depth,
		     struct range texts)
{
	struct automaton *a = b->a;
	unsigned char c = (unsigned char)b->texts[texts.from].ptr[depth];
	struct node *n = node_at(a, a->count), *up = node_at(a, parent);
	uint32_t fall = 0, flags = 0;

	if (depth)
		fall = fall_find(a, up->fall >> 8, c);
	if (b->texts[texts.from].len == depth + 1)
		flags = NODE_WHOLE | NODE_MATCH;
	flags |= node_at(a, fall)->up & NODE_MATCH;
	n->fall = fall << 8 | c;
	n->up = parent << 8 | flags;
	up->up |= up->up & NODE_CHILD ? NODE_FORK : NODE_CHILD;
	if (!(up->up & NODE_FORK))
		up->down |= c;
	a->count++;
	b->below[b->width++] = texts;
}

static void node_grow(struct build *b, uint32_t parent, size_t depth,
		      struct range texts)
{
	struct range child;
	char c;

	node_at(b->a, parent)->down = b->a->count << 8;
	while (texts.from < texts.end && b->texts[texts.from].len == depth)
		texts.from++;
	while (texts.from < texts.end) {
		child = (struct range){ texts.from, texts.from };
		c = b->texts[texts.from].ptr[depth];
		while (child.end < texts.end &&
		       b->texts[child.end].ptr[depth] == c)
			child.end++;
		node_add(b, parent, depth, child);
		texts.from = child.end;
	}
}

/* Level by level, until one has no children. */
static void nodes_build(struct build *b)
{
	struct automaton *a = b->a;
	struct range *swap;
	uint32_t width = 1, i;
	size_t depth;

	a->count = 1;
	b->level[0] = (struct range){ 0, b->count };
	for (depth = 0; width; depth++) {
		a->levels[depth] = a->count - width;
		b->width = 0;
		for (i = 0; i < width; i++)
			node_grow(b, a->levels[depth] + i, depth, b->level[i]);
		width = b->width;
		swap = b->level;
		b->level = b->below;
		b->below = swap;
	}
	a->levels[depth] = a->count;
	node_at(a, a->count)->down = a->count << 8;
}

/* -- rows ---------------------------------------------------------------- */

static void classes_build(struct build *b)
{
	struct automaton *a = b->a;
	uint16_t *class;
	uint32_t i;

	a->classes = 1; /* class 0: bytes of no pattern */
	for (i = 1; i < a->count; i++) {
		class = &a->class_of[(uint8_t)node_at(a, i)->fall];
		if (!*class)
			*class = (uint16_t)a->classes++;
	}
}

static int rows_build(struct build *b)
{
	struct automaton *a = b->a;
	uint32_t *rows, s, c;
	size_t row_bytes;
	int r;

	classes_build(b);
	row_bytes = a->classes * sizeof(*rows);
	a->rowed = MIN(a->levels[MIN(a->longest, 1) + 1],
		       (uint32_t)(SECRET_MAX_BYTES / row_bytes));
	r = secret_new(a->rowed * row_bytes, &a->rows_memory);
	if (r)
		return r;
	rows = (uint32_t *)(void *)secret_fill(a->rows_memory);
	for (s = 0; s < a->rowed; s++)
		for (c = 0; c < 256; c++)
			if (a->class_of[c])
				rows[s * a->classes + a->class_of[c]] =
					fall_find(a, s, (unsigned char)c);
	a->rows = rows;
	return 0;
}

/* -- filter -------------------------------------------------------------- */

static void filter_set(uint8_t *filter, uint32_t bit)
{
	filter[bit / 8] |= (uint8_t)(1 << bit % 8);
}

static int filter_build(struct build *b)
{
	struct automaton *a = b->a;
	uint32_t window;
	uint8_t *filter;
	size_t i, at;
	int r;

	a->filter_bits = FILTER_BITS_MIN;
	while (a->filter_bits < FILTER_BITS_MAX &&
	       (size_t)1 << a->filter_bits < (size_t)b->count * a->stride * 64)
		a->filter_bits++;
	r = secret_new(((size_t)1 << a->filter_bits) / 8, &a->filter_memory);
	if (r)
		return r;
	filter = (uint8_t *)secret_fill(a->filter_memory);
	for (i = 0; i < b->count; i++)
		for (at = 0; at < a->stride; at++) {
			window = window_load(b->texts[i].ptr + at);
			filter_set(filter,
				   window_first(window, a->filter_bits));
			filter_set(filter,
				   window_second(window, a->filter_bits));
		}
	a->filter = filter;
	return 0;
}

/* ------------------------------------------------------------------------ */

/* The texts in order, and what their lengths decide. */
static void texts_collect(struct build *b, const struct patterns *p)
{
	size_t shortest = SIZE_MAX;
	unsigned i;

	b->count = patterns_count(p);
	b->texts = must_alloc((b->count + 1) * sizeof(*b->texts));
	b->level = must_alloc((b->count + 1) * sizeof(*b->level));
	b->below = must_alloc((b->count + 1) * sizeof(*b->below));
	for (i = 0; i < b->count; i++) {
		b->texts[i] = patterns_text(p, i);
		must(b->texts[i].len >= FORM_MIN_BYTES);
		shortest = MIN(shortest, b->texts[i].len);
		b->a->longest = MAX(b->a->longest, b->texts[i].len);
	}
	if (b->count) {
		b->a->shortest = shortest;
		b->a->stride =
			MIN(shortest - (WINDOW_BYTES - 1), (size_t)STRIDE_MAX);
	}
	qsort(b->texts, b->count, sizeof(*b->texts), text_compare);
}

static int automaton_fill(struct build *b)
{
	struct automaton *a = b->a;
	int r;

	a->levels = must_alloc((a->longest + 2) * sizeof(*a->levels));
	r = nodes_alloc(b);
	if (r)
		return r;
	nodes_build(b);
	a->shallow = a->levels[MIN(a->longest, SHALLOW_DEPTH) + 1];
	r = rows_build(b);
	return r ? r : filter_build(b);
}

int automaton_new(const struct patterns *p, struct automaton **ret)
{
	struct build b = { .a = must_alloc(sizeof(struct automaton)) };
	int r;

	atomic_init(&b.a->refs, 1);
	texts_collect(&b, p);
	r = automaton_fill(&b);
	free(b.texts);
	free(b.level);
	free(b.below);
	if (r)
		b.a = automaton_unref(b.a);
	else
		*ret = b.a;
	return r;
}
