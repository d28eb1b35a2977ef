/* SPDX-License-Identifier: Apache-2.0 */
/* decoder.h - one content coding, as a row of a table
 *
 * A decoder reads one body; what the libraries differ in stays in its file.
 */
#pragma once

#include <stdbool.h>

#include "gateway/redact/codec.h"

/* What decoder_step() works on: both are cut at the front as it goes. */
struct decoder_io {
	struct span in;
	char *out;
	size_t room;
};

struct decoder_kind {
	/* NULL: no memory. */
	void *(*make)(void);
	/* Goes on until in is used up or room is. 0 or CODEC_E_... */
	int (*step)(void *decoder, struct decoder_io *io);
	/* May the body end here? */
	bool (*is_whole)(const void *decoder);
	void (*free)(void *decoder);
};

extern const struct decoder_kind decoder_gzip, decoder_deflate, decoder_brotli,
	decoder_zstd;
