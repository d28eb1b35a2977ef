/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - a chain of decoders, asked for output from its end
 *
 * How it works: stage 0 undoes the coding that was applied last and reads the
 * body itself; each further stage reads what the one before it wrote into a
 * small buffer between them. Output is asked for at the last stage, and a stage
 * that lacks input asks the one before it. So nothing runs ahead of the reader,
 * however much a byte may grow on its way through several codings.
 *
 * Each stage counts its output against the bytes of the body that came in.
 */

#include "gateway/redact/codec.h"

#include <errno.h>

#include "gateway/redact/decoder.h"
#include "src/base/err.h"
#include "src/base/secret.h"

enum { BETWEEN_BYTES = 16 * 1024 };

struct stage {
	const struct decoder_kind *kind;
	void *decoder;
	uint64_t given;	      /* output in all */
	char *between;	      /* what the next stage reads; not of the last */
	size_t start, filled; /* [start, filled) of it is unread */
};

struct codec {
	uint64_t taken; /* of the body */
	int error;	/* sticks */
	unsigned count;
	struct stage stages[CODEC_STAGES_MAX];
};

static const struct {
	struct span name;
	const struct decoder_kind *kind; /* NULL: does nothing */
} codings[] = {
	{ SPAN_INIT("gzip"), &decoder_gzip },
	{ SPAN_INIT("x-gzip"), &decoder_gzip },
	{ SPAN_INIT("deflate"), &decoder_deflate },
	{ SPAN_INIT("br"), &decoder_brotli },
	{ SPAN_INIT("zstd"), &decoder_zstd },
	{ SPAN_INIT("identity"), NULL },
	{ SPAN_INIT(""), NULL }, /* empty elements are no elements */
};

static const char *const error_names[] = {
	[CODEC_OK] = "ok",
	[CODEC_E_UNKNOWN] = "unknown coding",
	[CODEC_E_BROKEN] = "broken coding",
	[CODEC_E_TRUNCATED] = "truncated coding",
	[CODEC_E_BOMB] = "grows too much",
};
_Static_assert(ARRAY_LEN(error_names) == CODEC_ERROR_NUM, "one name each");

const char *codec_error_name(enum codec_error e)
{
	return (unsigned)e < CODEC_ERROR_NUM ? error_names[e] : "?";
}

/* CODEC_E_UNKNOWN or 0 and *ret, which may be NULL. */
static int coding_find(struct span name, const struct decoder_kind **ret)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(codings); i++)
		if (span_eq_nocase(codings[i].name, name)) {
			*ret = codings[i].kind;
			return 0;
		}
	return CODEC_E_UNKNOWN;
}

/* In the order they were applied; the count or CODEC_E_UNKNOWN. */
static int codings_parse(struct span list, const struct decoder_kind **kinds,
			 unsigned *ret_count)
{
	const struct decoder_kind *kind = NULL;
	unsigned count = 0, names = 0;
	int r;

	while (list.len) {
		r = coding_find(span_trim(span_cut(&list, ',')), &kind);
		if (r || ++names > CODEC_NAMES_MAX)
			return CODEC_E_UNKNOWN;
		if (!kind)
			continue;
		if (count == CODEC_STAGES_MAX)
			return CODEC_E_UNKNOWN;
		kinds[count++] = kind;
	}
	*ret_count = count;
	return 0;
}

int codec_new(struct span encodings, struct codec **ret)
{
	const struct decoder_kind *kinds[CODEC_STAGES_MAX];
	struct codec *c;
	unsigned count, i;
	int r;

	r = codings_parse(encodings, kinds, &count);
	if (r)
		return r;
	*ret = NULL;
	if (!count)
		return 0;
	c = must_alloc(sizeof(*c));
	c->count = count;
	for (i = 0; i < count; i++) {
		c->stages[i].kind = kinds[count - 1 - i];
		c->stages[i].decoder = c->stages[i].kind->make();
		if (!c->stages[i].decoder) {
			(void)codec_free(c);
			return -ENOMEM;
		}
		if (i + 1 < count)
			c->stages[i].between = must_alloc(BETWEEN_BYTES);
	}
	*ret = c;
	return 0;
}

struct codec *codec_free(struct codec *c)
{
	unsigned i;

	if (!c)
		return NULL;
	for (i = 0; i < c->count; i++) {
		if (c->stages[i].decoder)
			c->stages[i].kind->free(c->stages[i].decoder);
		if (c->stages[i].between)
			secret_wipe(c->stages[i].between, BETWEEN_BYTES);
		free(c->stages[i].between);
	}
	free(c);
	return NULL;
}

static bool is_bomb(const struct codec *c, const struct stage *s)
{
	return s->given > CODEC_SLACK_BYTES + c->taken * CODEC_RATIO_MAX;
}

/* One step of stage i with what stands before it; 0 or CODEC_E_... */
static int stage_step(struct codec *c, unsigned i, struct span *in,
		      struct decoder_io *io)
{
	struct stage *s = &c->stages[i], *before = i ? s - 1 : NULL;
	size_t room = io->room, len;
	int r;

	io->in = before ? span_of(before->between + before->start,
				  before->filled - before->start)
			: *in;
	len = io->in.len;
	r = s->kind->step(s->decoder, io);
	if (before) {
		before->start += len - io->in.len;
	} else {
		*in = io->in;
		c->taken += len - io->in.len;
	}
	s->given += room - io->room;
	if (r)
		return r;
	if (io->in.len && io->room == room) /* it stands still */
		return CODEC_E_BROKEN;
	return is_bomb(c, s) ? CODEC_E_BOMB : 0;
}

/* Fills the buffer behind stage i, which is empty. */
static int stage_fill(struct codec *c, unsigned i, struct span *in)
{
	struct stage *s = &c->stages[i];
	struct decoder_io io = { .out = s->between, .room = BETWEEN_BYTES };
	int r;

	r = stage_step(c, i, in, &io);
	s->start = 0;
	s->filled = BETWEEN_BYTES - io.room;
	return r;
}

/* From the last stage towards the first until one gives something, then back.
 * A stage that gave nothing used up all that stood before it. */
static int codec_run(struct codec *c, struct span *in, struct decoder_io *io)
{
	unsigned last = c->count - 1, i = last;
	size_t room = io->room;
	int r;

	while (true) {
		r = i == last ? stage_step(c, i, in, io) : stage_fill(c, i, in);
		if (r || io->room < room)
			return r;
		if (i < last && c->stages[i].filled)
			i++;
		else if (i)
			i--;
		else
			return 0;
	}
}

int codec_read(struct codec *c, struct span *in, char *out, size_t size,
	       size_t *ret_len)
{
	struct decoder_io io = { .out = out, .room = size };

	must(size > 0);
	if (!c->error)
		c->error = codec_run(c, in, &io);
	*ret_len = c->error ? 0 : size - io.room;
	return c->error;
}

int codec_finish(const struct codec *c)
{
	unsigned i;

	for (i = 0; i < c->count; i++)
		if (!c->stages[i].kind->is_whole(c->stages[i].decoder) ||
		    c->stages[i].start < c->stages[i].filled)
			return CODEC_E_TRUNCATED;
	return 0;
}
