/* SPDX-License-Identifier: Apache-2.0 */
/* stream.c - emit a stream with its matches masked
 *
 * How it works: the automaton's state stands for the longest end of what was
 * read that may still become a pattern. All before it is settled: no match to
 * come can reach there, and it is emitted, the matches in it masked. A match
 * that ends while a longer pattern around it is still possible is pending; two
 * that overlap become one. When there are more pending than have a place, the
 * last two become one with what stands between them.
 *
 * A match of at least a label's length may be emitted up to the settled point,
 * before its end is known: a chain of overlapping matches holds nothing back.
 * A shorter one waits, at most nine bytes.
 *
 * Bytes of earlier pieces that leave now are those of the state this piece
 * began with; the automaton tells them.
 */

#include "gateway/redact/stream.h"

#include "gateway/redact/automaton.h"
#include "src/base/buf.h"
#include "src/base/err.h"

#define LABEL "[REDACTED]"
#define STARS "****************************************************************"

enum { LABEL_LEN = sizeof(LABEL) - 1, TEXT_STEP = 2048 };

static const char mask_label[] = LABEL STARS STARS STARS STARS;
static const char mask_stars[] = STARS STARS STARS STARS;

/* A piece under way. */
struct feed {
	struct redact_stream *s;
	const struct redact_sink *sink;
	struct span piece;
	uint32_t carried; /* the state before the piece */
};

static int feed_emit(struct feed *f, const char *ptr, size_t len)
{
	int r;

	r = f->sink->emit(f->sink->ctx, span_of(ptr, len));
	if (!r)
		f->s->emitted += len;
	return r;
}

/* Clean bytes of earlier pieces, up to `end`. */
static int feed_emit_carried(struct feed *f, uint64_t end)
{
	const struct automaton *a = f->s->automaton;
	uint64_t from = f->s->fed - automaton_depth(a, f->carried);
	char text[TEXT_STEP];
	size_t len;
	int r = 0;

	while (!r && f->s->emitted < end) {
		len = MIN(end - f->s->emitted, sizeof(text));
		must(f->s->emitted >= from);
		automaton_text(a, f->carried, f->s->emitted - from, len, text);
		r = feed_emit(f, text, len);
	}
	return r;
}

static int feed_emit_clean(struct feed *f, uint64_t end)
{
	struct redact_stream *s = f->s;
	int r = 0;

	if (s->emitted < MIN(end, s->fed))
		r = feed_emit_carried(f, MIN(end, s->fed));
	if (!r && s->emitted < end)
		r = feed_emit(f, f->piece.ptr + (s->emitted - s->fed),
			      end - s->emitted);
	return r;
}

/* The bytes of m up to `end`. */
static int feed_emit_mask(struct feed *f, const struct redact_match *m,
			  uint64_t end)
{
	bool labelled = m->end - m->from >= LABEL_LEN;
	size_t done, len;
	int r = 0;

	while (!r && f->s->emitted < end) {
		done = f->s->emitted - m->from;
		len = MIN(end - f->s->emitted, sizeof(mask_stars) - 1);
		r = labelled && done < LABEL_LEN
			    ? feed_emit(f, mask_label + done, len)
			    : feed_emit(f, mask_stars, len);
	}
	return r;
}

/* Emits what no match to come can reach. */
static int feed_settle(struct feed *f, uint64_t settled)
{
	struct redact_stream *s = f->s;
	const struct redact_match *m = s->pending;
	unsigned over = 0;
	int r = 0;

	for (; !r && over < s->pending_count && m->end <= settled; m++) {
		r = feed_emit_clean(f, m->from);
		if (!r)
			r = feed_emit_mask(f, m, m->end);
		s->hits++;
		over++;
	}
	s->pending_count -= over;
	memmove(s->pending, m, s->pending_count * sizeof(*m));
	if (r)
		return r;

	m = s->pending;
	if (!s->pending_count || m->from >= settled)
		return feed_emit_clean(f, settled);
	r = feed_emit_clean(f, m->from);
	if (!r && m->end - m->from >= LABEL_LEN)
		r = feed_emit_mask(f, m, settled);
	return r;
}

static void pending_add(struct redact_stream *s, uint64_t from, uint64_t end)
{
	struct redact_match *last;

	for (; s->pending_count; s->pending_count--) {
		last = &s->pending[s->pending_count - 1];
		if (last->end <= from && s->pending_count < REDACT_PENDING_MAX)
			break;
		from = MIN(from, last->from);
	}
	s->pending[s->pending_count++] = (struct redact_match){ from, end };
}

void redact_stream_init(struct redact_stream *s, const struct automaton *a)
{
	*s = (struct redact_stream){ .automaton = a };
}

int redact_stream_feed(struct redact_stream *s, struct span piece,
		       const struct redact_sink *sink)
{
	struct feed f = { s, sink, piece, s->state };
	struct cursor c = cursor_at(s->state);
	const struct automaton *a = s->automaton;
	uint64_t at;
	int r;

	while (automaton_find(a, &c, piece)) {
		at = s->fed + c.pos;
		r = feed_settle(&f, at - automaton_depth(a, c.state));
		if (r)
			return r;
		pending_add(s, at - automaton_match(a, c.state), at);
		c.state = automaton_open(a, c.state);
	}
	r = feed_settle(&f, s->fed + piece.len - automaton_depth(a, c.state));
	s->state = c.state;
	s->fed += piece.len;
	return r;
}

int redact_stream_flush(struct redact_stream *s, const struct redact_sink *sink)
{
	struct feed f = { s, sink, SPAN_NONE, s->state };
	uint64_t hits;
	int r;

	r = feed_settle(&f, s->fed);
	hits = s->hits;
	redact_stream_init(s, s->automaton);
	s->hits = hits;
	return r;
}

static int text_emit(void *ctx, struct span bytes)
{
	return buf_put(ctx, bytes);
}

int redact_text(const struct automaton *a, struct span text, struct buf *out,
		uint64_t *hits)
{
	const struct redact_sink sink = { text_emit, out };
	struct redact_stream s;
	int r;

	redact_stream_init(&s, a);
	r = redact_stream_feed(&s, text, &sink);
	if (!r)
		r = redact_stream_flush(&s, &sink);
	*hits += s.hits;
	return r;
}
