/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_h1_chunked.c - a body decodes the same whole and in any pieces */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/wire/h1.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum h1_error decode(struct span rest, size_t step, struct buf *out,
			    struct buf *trailers, size_t *ret_left)
{
	struct span piece, data = SPAN_NONE;
	struct h1_chunked c = { 0 };
	enum h1_error error = H1_OK;
	size_t given;

	while (rest.len && !error && !c.done) {
		given = step < rest.len ? step : rest.len;
		piece = span_of(rest.ptr, given);
		error = h1_chunked_next(&c, &piece, &data, trailers);
		if (buf_put(out, data))
			abort();
		rest = span_from(rest, given - piece.len);
	}
	*ret_left = rest.len;
	return error;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(size), trailers = BUF_INIT(size);
	struct buf out2 = BUF_INIT(size), trailers2 = BUF_INIT(size);
	size_t left, left2, step;
	enum h1_error error;

	error = decode(span_of(data, size), size, &out, &trailers, &left);
	for (step = 1; step < 8; step += 3) {
		buf_clear(&out2);
		buf_clear(&trailers2);
		if (decode(span_of(data, size), step, &out2, &trailers2,
			   &left2) != error ||
		    left != left2 ||
		    !span_eq(buf_peek(&out), buf_peek(&out2)) ||
		    !span_eq(buf_peek(&trailers), buf_peek(&trailers2)))
			abort();
	}
	buf_fini(&out);
	buf_fini(&trailers);
	buf_fini(&out2);
	buf_fini(&trailers2);
	return 0;
}
