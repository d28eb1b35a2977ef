/* SPDX-License-Identifier: Apache-2.0 */
/* decoder_zlib.c - gzip, and deflate in its two readings
 *
 * "deflate" means zlib's format (RFC 9110, 8.4.1.2), yet some servers send the
 * bare stream. The first two bytes tell: as a bare stream those of zlib would
 * be a stored block with set padding bits, which nobody writes.
 */

#include "gateway/redact/decoder.h"

#include <zlib.h>

#include "src/base/err.h"

enum { WINDOW_BITS = 15, GZIP_WRAPPER = 16 };

enum inflate_state {
	INFLATE_NONE,	/* nothing was read; z is not made */
	INFLATE_FIRST,	/* deflate: one byte was read, it is in `first` */
	INFLATE_INSIDE, /* a member is not over */
	INFLATE_OVER,	/* a member is over */
};

struct inflater {
	z_stream z;
	enum inflate_state state;
	bool is_gzip;
	unsigned char first;
};

static void *gzip_make(void)
{
	struct inflater *d = must_alloc(sizeof(*d));

	d->is_gzip = true;
	return d;
}

static void *deflate_make(void)
{
	return must_alloc(sizeof(struct inflater));
}

static void inflater_free(void *decoder)
{
	struct inflater *d = decoder;

	if (d && d->z.state)
		(void)inflateEnd(&d->z);
	free(d);
}

static bool is_zlib(unsigned char first, unsigned char second)
{
	return (first & 15) == Z_DEFLATED && first >> 4 <= WINDOW_BITS - 8 &&
	       (first << 8 | second) % 31 == 0;
}

/* inflate() until in or room is used up, or a member is over. */
static int inflater_run(struct inflater *d, struct decoder_io *io)
{
	int r;

	d->z.next_in = (unsigned char *)(uintptr_t)io->in.ptr;
	d->z.avail_in = (uInt)MIN(io->in.len, (size_t)UINT32_MAX);
	d->z.next_out = (unsigned char *)io->out;
	d->z.avail_out = (uInt)MIN(io->room, (size_t)UINT32_MAX);
	r = inflate(&d->z, Z_SYNC_FLUSH);
	io->in = span_from(io->in, (size_t)((char *)d->z.next_in - io->in.ptr));
	io->room -= (size_t)((char *)d->z.next_out - io->out);
	io->out = (char *)d->z.next_out;
	if (r == Z_STREAM_END)
		d->state = INFLATE_OVER;
	return r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR
		       ? 0
		       : CODEC_E_BROKEN;
}

/* A bare stream or zlib's, now that two bytes are known; in holds the second.
 */
static int deflate_begin(struct inflater *d, struct decoder_io *io)
{
	bool zlib = is_zlib(d->first, (unsigned char)io->in.ptr[0]);
	struct decoder_io first = { span_of(&d->first, 1), io->out, io->room };
	int r;

	if (inflateInit2(&d->z, zlib ? WINDOW_BITS : -WINDOW_BITS) != Z_OK)
		return CODEC_E_BOMB;
	d->state = INFLATE_INSIDE;
	r = inflater_run(d, &first); /* one byte gives none */
	return r ? r : first.in.len ? CODEC_E_BROKEN : 0;
}

static int inflater_begin(struct inflater *d, struct decoder_io *io)
{
	if (d->is_gzip) {
		if (inflateInit2(&d->z, WINDOW_BITS + GZIP_WRAPPER) != Z_OK)
			return CODEC_E_BOMB;
		d->state = INFLATE_INSIDE;
	} else {
		d->first = (unsigned char)io->in.ptr[0];
		d->state = INFLATE_FIRST;
		io->in = span_from(io->in, 1);
	}
	return 0;
}

/* A further member (RFC 1952, 2.2); deflate has but one. */
static int inflater_again(struct inflater *d)
{
	if (!d->is_gzip || inflateReset(&d->z) != Z_OK)
		return CODEC_E_BROKEN;
	d->state = INFLATE_INSIDE;
	return 0;
}

/* Output may be due without input; inflate() says when it is not. */
static int inflater_step(void *decoder, struct decoder_io *io)
{
	struct inflater *d = decoder;
	int r = 0;

	while (!r && io->in.len && io->room) {
		switch (d->state) {
		case INFLATE_NONE:
			r = inflater_begin(d, io);
			break;
		case INFLATE_FIRST:
			r = deflate_begin(d, io);
			break;
		case INFLATE_INSIDE:
			r = inflater_run(d, io);
			break;
		case INFLATE_OVER:
			r = inflater_again(d);
			break;
		}
	}
	if (!r && io->room && d->state == INFLATE_INSIDE)
		r = inflater_run(d, io);
	return r;
}

static bool inflater_is_whole(const void *decoder)
{
	const struct inflater *d = decoder;

	return d->state == INFLATE_NONE || d->state == INFLATE_OVER;
}

const struct decoder_kind decoder_gzip = {
	gzip_make,
	inflater_step,
	inflater_is_whole,
	inflater_free,
};

const struct decoder_kind decoder_deflate = {
	deflate_make,
	inflater_step,
	inflater_is_whole,
	inflater_free,
};
