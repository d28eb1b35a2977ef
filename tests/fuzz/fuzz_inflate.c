/* fuzz: gateway */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_inflate.c - a coded body decodes the same whole and in any pieces
 *
 * Input: which codings, piece length, the body.
 */

#include <stdlib.h>

#include "gateway/redact/codec.h"
#include "src/base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 18, FULL = -1 };

static const char *const lists[] = {
	"gzip", "deflate", "br", "zstd", "gzip, br", "zstd, deflate, gzip",
};

/* The error, or of the end; decoding stops where out is full. */
static int decode(const char *list, struct span body, size_t step,
		  struct buf *out)
{
	struct codec *c = NULL;
	char text[997];
	struct span piece;
	size_t len;
	int r = 0;

	if (codec_new(span_str(list), &c))
		abort();
	while (!r && body.len) {
		piece = span_of(body.ptr, step < body.len ? step : body.len);
		body = span_from(body, piece.len);
		do {
			r = codec_read(c, &piece, text, sizeof(text), &len);
			if (buf_put(out, span_of(text, len)))
				r = FULL;
		} while (!r && len);
		if (!r && piece.len)
			abort();
	}
	if (!r)
		r = codec_finish(c);
	(void)codec_free(c);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(OUT_MAX), pieces = BUF_INIT(OUT_MAX);
	const char *list;
	struct span body;
	int r, other;

	if (size < 2)
		return 0;
	list = lists[data[0] % (sizeof(lists) / sizeof(*lists))];
	body = span_of(data + 2, size - 2);
	r = decode(list, body, size, &whole);
	other = decode(list, body, 1 + data[1], &pieces);
	/* an error just beyond where out is full is met or not; and zstd finds
	 * another fault first when it has a whole frame at once */
	if (r != FULL && other != FULL &&
	    (!r != !other ||
	     (!r && !span_eq(buf_peek(&whole), buf_peek(&pieces)))))
		abort();
	buf_fini(&whole);
	buf_fini(&pieces);
	return 0;
}
