/* SPDX-License-Identifier: Apache-2.0 */
/* redact_kit.h - masking a whole body the slow way, and what tests share
 *
 * Used by the unit tests and the fuzz targets of gateway/redact.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>

#include "gateway/redact/automaton.h"
#include "gateway/redact/patterns.h"
#include "gateway/redact/stream.h"
#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/secret.h"

struct kit {
	struct patterns *patterns;
	struct automaton *automaton;
};

static inline void kit_add(struct kit *k, const char *prefix, struct span value)
{
	struct secret *secret;
	int r;

	if (!k->patterns)
		k->patterns = patterns_new();
	must(!secret_dup(value, &secret));
	r = patterns_add(k->patterns, span_str(prefix), secret);
	must(r == 0 || r == PATTERNS_E_SHORT);
	(void)secret_free(secret);
}

static inline void kit_build(struct kit *k)
{
	must(!automaton_new(k->patterns, &k->automaton));
}

static inline void kit_fini(struct kit *k)
{
	k->automaton = automaton_unref(k->automaton);
	k->patterns = patterns_free(k->patterns);
}

static inline int kit_emit(void *ctx, struct span bytes)
{
	return buf_put(ctx, bytes);
}

/* marks[i]: where the furthest match that begins at i ends, or 0. */
static inline void naive_find(const struct kit *k, struct span body,
			      size_t *marks)
{
	const char *at, *end = body.ptr + body.len;
	struct span text;
	unsigned i;
	size_t *mark;

	for (i = 0; i < patterns_count(k->patterns); i++) {
		text = patterns_text(k->patterns, i);
		for (at = body.ptr;
		     (at = memmem(at, (size_t)(end - at), text.ptr, text.len));
		     at++) {
			mark = &marks[at - body.ptr];
			*mark = MAX(*mark, (size_t)(at - body.ptr) + text.len);
		}
	}
}

static inline void naive_mask(char *at, size_t len)
{
	memset(at, '*', len);
	if (len >= 10)
		memcpy(at, "[REDACTED]", 10);
}

/* Masks a whole body in place; the number of hits. */
static inline uint64_t naive_redact(const struct kit *k, char *body, size_t len)
{
	size_t *marks = must_alloc((len + 1) * sizeof(*marks));
	size_t i = 0, from, end;
	uint64_t hits = 0;

	naive_find(k, span_of(body, len), marks);
	while (i < len) {
		if (!marks[i]) {
			i++;
			continue;
		}
		for (from = i, end = marks[i]; i < end; i++)
			end = MAX(end, marks[i]);
		naive_mask(body + from, end - from);
		hits++;
	}
	free(marks);
	return hits;
}

/* Feeds body in pieces of at most step bytes, each in memory of its own, so
 * that a sanitizer sees a byte too far. */
static inline uint64_t kit_redact(const struct kit *k, struct span body,
				  size_t step, struct buf *out)
{
	const struct redact_sink sink = { kit_emit, out };
	struct redact_stream s;
	size_t len;
	char *piece;

	redact_stream_init(&s, k->automaton);
	while (body.len) {
		len = MIN(step, body.len);
		piece = malloc(len);
		must(piece != NULL);
		memcpy(piece, body.ptr, len);
		must(!redact_stream_feed(&s, span_of(piece, len), &sink));
		free(piece);
		body = span_from(body, len);
	}
	must(!redact_stream_flush(&s, &sink));
	return s.hits;
}
