/* SPDX-License-Identifier: Apache-2.0 */
/* decoder_zstd.c - zstd (RFC 8878): frames after each other, small windows
 *
 * The library may also know the formats that came before the RFC; no client
 * sends for them and nobody looks after their decoders, so the first four bytes
 * of each frame are looked at here.
 */

#include "gateway/redact/decoder.h"

#include <zstd.h>
#include <zstd_errors.h>

#include "src/base/err.h"

struct zstd {
	ZSTD_DCtx *ctx;
	bool inside; /* a frame is not over, or output of it is due */
	bool due;    /* there was no room for more */
	bool is_skippable;
	unsigned head; /* bytes of the frame's magic number that were right */
};

static void zstd_free(void *decoder)
{
	struct zstd *d = decoder;

	if (d)
		(void)ZSTD_freeDCtx(d->ctx); /* NULL is fine */
	free(d);
}

static void *zstd_make(void)
{
	struct zstd *d = must_alloc(sizeof(*d));

	d->ctx = ZSTD_createDCtx();
	if (!d->ctx ||
	    ZSTD_isError(ZSTD_DCtx_setParameter(d->ctx, ZSTD_d_windowLogMax,
						CODEC_ZSTD_WINDOW_BITS))) {
		zstd_free(d);
		return NULL;
	}
	return d;
}

static int zstd_error(size_t result)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_frameParameter_windowTooLarge:
	case ZSTD_error_memory_allocation:
		return CODEC_E_BOMB;
	default: /* all others: the bytes are wrong */
		return CODEC_E_BROKEN;
	}
}

/* False: neither a frame nor one to be skipped begins so. */
static bool zstd_is_frame(struct zstd *d, struct span in)
{
	static const unsigned char frame[] = { 0x28, 0xb5, 0x2f, 0xfd };
	static const unsigned char skippable[] = { 0x50, 0x2a, 0x4d, 0x18 };
	unsigned char c;

	for (; d->head < sizeof(frame) && in.len; in = span_from(in, 1)) {
		c = (unsigned char)in.ptr[0];
		if (!d->head) {
			d->is_skippable = (c & 0xf0) == skippable[0];
			c = d->is_skippable ? c & 0xf0 : c;
		}
		if (c != (d->is_skippable ? skippable : frame)[d->head])
			return false;
		d->head++;
	}
	return true;
}

static int zstd_step(void *decoder, struct decoder_io *io)
{
	struct zstd *d = decoder;
	ZSTD_outBuffer out = { io->out, io->room, 0 };
	ZSTD_inBuffer in = { io->in.ptr, io->in.len, 0 };
	size_t result;

	/* calls that can do nothing are counted, and end in an error */
	while (out.pos < out.size && (in.pos < in.size || d->due)) {
		if (!zstd_is_frame(d, span_from(io->in, in.pos)))
			return CODEC_E_BROKEN;
		result = ZSTD_decompressStream(d->ctx, &out, &in);
		if (ZSTD_isError(result))
			return zstd_error(result);
		d->inside = result != 0;
		if (!d->inside)
			d->head = 0;
		d->due = d->inside && out.pos == out.size;
	}
	io->in = span_from(io->in, in.pos);
	io->out += out.pos;
	io->room -= out.pos;
	return 0;
}

static bool zstd_is_whole(const void *decoder)
{
	const struct zstd *d = decoder;

	return !d->inside;
}

const struct decoder_kind decoder_zstd = {
	zstd_make,
	zstd_step,
	zstd_is_whole,
	zstd_free,
};
