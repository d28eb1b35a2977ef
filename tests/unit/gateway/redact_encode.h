/* SPDX-License-Identifier: Apache-2.0 */
/* redact_encode.h - the senders' side of content codings, for tests
 *
 * Brotli is written as stored blocks, which needs no library; tests hold
 * compressed vectors besides.
 */
#pragma once

#include <zlib.h>
#include <zstd.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"
#include "src/base/err.h"

enum encode_kind {
	ENCODE_NONE,
	ENCODE_GZIP,
	ENCODE_ZLIB,
	ENCODE_RAW,
	ENCODE_BROTLI_STORED,
	ENCODE_ZSTD,
};

struct encode_stream {
	enum encode_kind kind;
	z_stream z;
	ZSTD_CStream *zstd;
	bool begun;
};

static inline void encode_begin(struct encode_stream *e, enum encode_kind kind)
{
	static const int bits[] = {
		[ENCODE_GZIP] = 31, [ENCODE_ZLIB] = 15, [ENCODE_RAW] = -15
	};

	*e = (struct encode_stream){ .kind = kind };
	if (kind == ENCODE_ZSTD) {
		e->zstd = ZSTD_createCStream();
		must(e->zstd != NULL);
	} else if (kind != ENCODE_BROTLI_STORED) {
		must(!deflateInit2(&e->z, 6, Z_DEFLATED, bits[kind], 8,
				   Z_DEFAULT_STRATEGY));
	}
}

static inline void encode_zlib(struct encode_stream *e, struct span text,
			       int flush, struct buf *out)
{
	char *room;

	e->z.next_in = (unsigned char *)(uintptr_t)text.ptr;
	e->z.avail_in = (uInt)text.len;
	do {
		must(!buf_reserve(out, 4096, &room));
		e->z.next_out = (unsigned char *)room;
		e->z.avail_out = 4096;
		(void)deflate(&e->z, flush);
		buf_commit(out, 4096 - e->z.avail_out);
	} while (!e->z.avail_out);
}

static inline void encode_zstd(struct encode_stream *e, struct span text,
			       ZSTD_EndDirective end, struct buf *out)
{
	ZSTD_inBuffer in = { text.ptr, text.len, 0 };
	ZSTD_outBuffer o = { NULL, 4096, 0 };
	char *room;
	size_t left;

	do {
		must(!buf_reserve(out, 4096, &room));
		o.dst = room;
		o.pos = 0;
		left = ZSTD_compressStream2(e->zstd, &o, &in, end);
		must(!ZSTD_isError(left));
		buf_commit(out, o.pos);
	} while (left);
}

/* RFC 7932, 9.2: MNIBBLES 0 (four), MLEN - 1, ISUNCOMPRESSED, to the byte. The
 * first block has WBITS (one bit: 16) before it. */
static inline void encode_brotli(struct encode_stream *e, struct span text,
				 struct buf *out)
{
	unsigned len, head, shift;
	char bytes[3];

	while (text.len) {
		len = (unsigned)MIN(text.len, (size_t)60000);
		shift = e->begun ? 0 : 1;
		head = ((len - 1) << 3 | 1U << 19) << shift;
		e->begun = true;
		bytes[0] = (char)head;
		bytes[1] = (char)(head >> 8);
		bytes[2] = (char)(head >> 16);
		must(!buf_put(out, span_of(bytes, 3)));
		must(!buf_put(out, span_of(text.ptr, len)));
		text = span_from(text, len);
	}
}

/* And flushes, so that all of text can be decoded. */
static inline void encode_put(struct encode_stream *e, struct span text,
			      struct buf *out)
{
	if (e->kind == ENCODE_ZSTD)
		encode_zstd(e, text, ZSTD_e_flush, out);
	else if (e->kind == ENCODE_BROTLI_STORED)
		encode_brotli(e, text, out);
	else
		encode_zlib(e, text, Z_SYNC_FLUSH, out);
}

static inline void encode_end(struct encode_stream *e, struct buf *out)
{
	if (e->kind == ENCODE_ZSTD) {
		encode_zstd(e, SPAN_NONE, ZSTD_e_end, out);
		(void)ZSTD_freeCStream(e->zstd);
	} else if (e->kind == ENCODE_BROTLI_STORED) {
		/* ISLAST, ISLASTEMPTY; alone it needs WBITS */
		must(!buf_put_str(out, e->begun ? "\x03" : "\x06"));
	} else {
		encode_zlib(e, SPAN_NONE, Z_FINISH, out);
		(void)deflateEnd(&e->z);
	}
}

static inline void encode(enum encode_kind kind, struct span text,
			  struct buf *out)
{
	struct encode_stream e;

	encode_begin(&e, kind);
	if (kind == ENCODE_ZSTD)
		encode_zstd(&e, text, ZSTD_e_continue, out);
	else if (kind == ENCODE_BROTLI_STORED)
		encode_brotli(&e, text, out);
	else
		encode_zlib(&e, text, Z_NO_FLUSH, out);
	encode_end(&e, out);
}
