/* SPDX-License-Identifier: Apache-2.0 */
/* decoder_brotli.c - br (RFC 7932), with the memory it may take counted
 *
 * The sender chooses the window, up to 16 MiB, and the library grows its ring
 * buffer with what was really sent. Large windows (beyond the RFC) stay off.
 */

#include "gateway/redact/decoder.h"

#include <brotli/decode.h>
#include <stdalign.h>

#include "src/base/err.h"

struct brotli {
	BrotliDecoderState *state;
	size_t bytes; /* allocated by the library */
	bool refused; /* it wanted more than it may have */
	bool begun, over;
};

/* Before every block of the library, so that freeing can be counted. */
struct block {
	alignas(max_align_t) size_t size;
};

static void *brotli_alloc(void *opaque, size_t size)
{
	struct brotli *d = opaque;
	struct block *b;

	if (size > CODEC_BROTLI_BYTES_MAX - d->bytes) {
		d->refused = true;
		return NULL;
	}
	b = malloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	b->size = size;
	d->bytes += size;
	return b + 1;
}

static void brotli_release(void *opaque, void *p)
{
	struct brotli *d = opaque;
	struct block *b = p;

	if (!b)
		return;
	b--;
	d->bytes -= b->size;
	free(b);
}

static void brotli_free(void *decoder)
{
	struct brotli *d = decoder;

	if (d && d->state)
		BrotliDecoderDestroyInstance(d->state);
	free(d);
}

static void *brotli_make(void)
{
	struct brotli *d = must_alloc(sizeof(*d));

	d->state = BrotliDecoderCreateInstance(brotli_alloc, brotli_release, d);
	if (!d->state) {
		brotli_free(d);
		return NULL;
	}
	return d;
}

static int brotli_step(void *decoder, struct decoder_io *io)
{
	struct brotli *d = decoder;
	BrotliDecoderResult result;
	const uint8_t *in = (const uint8_t *)io->in.ptr;
	uint8_t *out = (uint8_t *)io->out;

	if (d->over)
		return io->in.len ? CODEC_E_BROKEN : 0;
	d->begun |= io->in.len > 0;
	result = BrotliDecoderDecompressStream(d->state, &io->in.len, &in,
					       &io->room, &out, NULL);
	io->in.ptr = (const char *)in;
	io->out = (char *)out;
	d->over = result == BROTLI_DECODER_RESULT_SUCCESS;
	if (result == BROTLI_DECODER_RESULT_ERROR)
		return d->refused ? CODEC_E_BOMB : CODEC_E_BROKEN;
	return d->over && io->in.len ? CODEC_E_BROKEN : 0;
}

static bool brotli_is_whole(const void *decoder)
{
	const struct brotli *d = decoder;

	return d->over || !d->begun;
}

const struct decoder_kind decoder_brotli = {
	brotli_make,
	brotli_step,
	brotli_is_whole,
	brotli_free,
};
