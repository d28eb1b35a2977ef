/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - output of a program cut into the texts of stdout events
 *
 * How it works: bytes up to the next end of line are either told from where
 * they lie (nothing is held: the usual case) or put behind what is held. More
 * than LINES_MAX bytes without an end are told in pieces; a piece is cut only
 * when the byte behind it is known, so the texts do not depend on how the bytes
 * were split on their way here.
 */

#include "src/execd/lines.h"

#include "src/base/attrib.h"
#include "src/base/err.h"

void lines_init(struct lines *l)
{
	*l = (struct lines){ .held = BUF_INIT(LINES_MAX) };
}

void lines_fini(struct lines *l)
{
	buf_fini(&l->held);
}

/* How many bytes the sequence that begins with this byte wants to have. */
static size_t sequence_len(unsigned char lead)
{
	return lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
}

size_t lines_whole(struct span s)
{
	size_t back;
	unsigned char c;

	for (back = 1; back <= 3 && back <= s.len; back++) {
		c = (unsigned char)s.ptr[s.len - back];
		if (c < 0x80)
			break;
		if (c >= 0xc0) /* begins one */
			return sequence_len(c) > back ? s.len - back : s.len;
	}
	return s.len;
}

/* Where the next end of line is, or bytes.len. */
static size_t end_find(struct span bytes)
{
	const char *nl = memchr(bytes.ptr, '\n', bytes.len);
	size_t len = nl ? (size_t)(nl - bytes.ptr) : bytes.len;
	const char *cr = memchr(bytes.ptr, '\r', len);

	return cr ? (size_t)(cr - bytes.ptr) : len;
}

/* More of an unfinished line: holds up to LINES_MAX of it. */
static void hold(struct lines *l, struct span more, lines_fn *fn, void *ctx)
{
	struct span held, part;
	size_t room, whole;

	while (more.len) {
		room = LINES_MAX - buf_len(&l->held);
		part = span_of(more.ptr, MIN(room, more.len));
		if (!buf_len(&l->held) && more.len > LINES_MAX) {
			/* from where it lies */
			whole = lines_whole(span_of(more.ptr, LINES_MAX));
			fn(ctx, span_of(more.ptr, whole));
			more = span_from(more, whole);
			continue;
		}
		must(!buf_put(&l->held, part));
		more = span_from(more, part.len);
		if (!more.len)
			return;
		held = buf_peek(&l->held);
		whole = lines_whole(held);
		fn(ctx, span_of(held.ptr, whole));
		buf_consume(&l->held, whole);
	}
}

/* Of a line that was told in pieces something is held: it is not an empty one.
 */
static void finish_line(struct lines *l, struct span rest, lines_fn *fn,
			void *ctx)
{
	if (!buf_len(&l->held) && rest.len <= LINES_MAX) {
		fn(ctx, rest.len ? rest : SPAN("\n"));
		return;
	}
	hold(l, rest, fn, ctx);
	fn(ctx, buf_peek(&l->held));
	/* most programs never leave a line unfinished again */
	buf_fini(&l->held);
}

void lines_feed(struct lines *l, struct span bytes, lines_fn *fn, void *ctx)
{
	size_t at;

	while (bytes.len) {
		if (l->after_cr) {
			l->after_cr = false;
			if (bytes.ptr[0] == '\n') {
				bytes = span_from(bytes, 1);
				continue;
			}
		}
		at = end_find(bytes);
		if (at == bytes.len) {
			hold(l, bytes, fn, ctx);
			return;
		}
		finish_line(l, span_of(bytes.ptr, at), fn, ctx);
		l->after_cr = bytes.ptr[at] == '\r';
		bytes = span_from(bytes, at + 1);
	}
}

void lines_end(struct lines *l, lines_fn *fn, void *ctx)
{
	if (buf_len(&l->held))
		fn(ctx, buf_peek(&l->held));
	buf_fini(&l->held);
	l->after_cr = false;
}
