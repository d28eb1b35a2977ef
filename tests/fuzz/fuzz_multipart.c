/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_multipart.c - a form is told the same whole and in any pieces */

#include <stdlib.h>

#include "src/wire/multipart.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_put(struct buf *out, struct span bytes)
{
	if (buf_put(out, bytes))
		abort();
}

static int tell(struct span rest, size_t step, struct buf *out)
{
	struct multipart_event ev;
	struct multipart m;
	struct span piece;
	size_t len;
	int r = 0;

	if (multipart_init(&m, SPAN("multipart/form-data; boundary=B")))
		abort();
	while (rest.len && r >= 0) {
		len = step < rest.len ? step : rest.len;
		piece = span_of(rest.ptr, len);
		rest = span_from(rest, len);
		while ((r = multipart_next(&m, &piece, &ev)) > 0) {
			/* pieces differ in size: only their sum is compared */
			if (ev.kind != MULTIPART_BYTES)
				must_put(out, span_of(&"\1\2\3\4"[ev.kind], 1));
			must_put(out, ev.bytes);
			must_put(out, ev.name);
			must_put(out, ev.filename);
			must_put(out, ev.type);
		}
		if (!r && piece.len)
			abort();
	}
	if (r >= 0)
		r = -(int)multipart_end(&m);
	multipart_fini(&m);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(size * 4 + 64),
		   out2 = BUF_INIT(size * 4 + 64);
	struct span body = span_of(data, size);
	size_t step;
	int r;

	r = tell(body, size, &out);
	for (step = 1; step < 12; step += 3) {
		buf_clear(&out2);
		if (tell(body, step, &out2) != r ||
		    !span_eq(buf_peek(&out), buf_peek(&out2)))
			abort();
	}
	buf_fini(&out);
	buf_fini(&out2);
	return 0;
}
