/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - undo the content codings of a body, piece by piece
 *
 * Any list of gzip, deflate (zlib and bare), br and zstd, at most
 * CODEC_STAGES_MAX of them, is decoded in a stream; memory is bounded per
 * coding and output by what came in, so a body made to grow ends in an error.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct codec;

enum {
	CODEC_STAGES_MAX = 3,
	CODEC_NAMES_MAX = 8, /* in a list, with those that do nothing */

	/* Output of a stage, not its source, may be this much ... */
	CODEC_SLACK_BYTES = 32 << 20,
	/* ... and this many times the bytes of the body on top. */
	CODEC_RATIO_MAX = 256,

	/* The windows that RFC 9659 and RFC 7932 let a sender use. */
	CODEC_ZSTD_WINDOW_BITS = 23,
	CODEC_BROTLI_BYTES_MAX = 18 << 20, /* 16 MiB and the tables */
};

/* The caller shows the body to nobody (fail closed), whatever it is. */
enum codec_error {
	CODEC_OK,
	CODEC_E_UNKNOWN,   /* a coding that we cannot undo, or too many */
	CODEC_E_BROKEN,	   /* not what the coding says */
	CODEC_E_TRUNCATED, /* the body ended within it */
	CODEC_E_BOMB,	   /* it grew too much, or wanted too much memory */
	CODEC_ERROR_NUM,
};

const char *codec_error_name(enum codec_error e);

/* For the value of Content-Encoding, several fields joined by ", ". *ret is
 * NULL when nothing is encoded. 0; CODEC_E_UNKNOWN; -ENOMEM. */
WUNRES int codec_new(struct span encodings, struct codec **ret);
/* NULL is fine; returns NULL. */
struct codec *codec_free(struct codec *c);

/* Decodes from *in, which is cut at the front by what was taken, into out:
 * *ret_len bytes, none only when in is used up and all was given that can be
 * told by now. 0; CODEC_E_... (every call thereafter too); -ENOMEM. */
WUNRES int codec_read(struct codec *c, struct span *in, char *out, size_t size,
		      size_t *ret_len);
/* After the last byte: 0, or CODEC_E_TRUNCATED. No byte at all is a body. */
WUNRES int codec_finish(const struct codec *c);
