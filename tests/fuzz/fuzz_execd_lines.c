/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_execd_lines.c - output of any bytes, in any pieces, makes the same
 * frames, each of them one line of JSON */

#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/execd/event.h"
#include "src/execd/lines.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell(void *ctx, struct span text)
{
	const struct event ev = { .type = EVENT_STDOUT, .text = text };
	struct buf *out = ctx;
	size_t before = buf_len(out);
	struct span frame;
	struct json *j;

	must(text.len && text.len <= LINES_MAX);
	must(!event_put(out, &ev));
	frame = span_from(buf_peek(out), before);
	must(span_ends(frame, SPAN("\n\n")));
	frame.len -= 2;
	must(span_find(frame, '\n') == frame.len);
	must(!json_parse(frame, &j, NULL));
	json_free(j);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(1 << 26), split = BUF_INIT(1 << 26);
	struct span bytes = span_of(data, size);
	size_t step = size ? 1 + data[0] % 7 : 1;
	struct lines l;

	lines_init(&l);
	lines_feed(&l, bytes, tell, &whole);
	lines_end(&l, tell, &whole);
	for (; bytes.len; bytes = span_from(bytes, step))
		lines_feed(&l, span_of(bytes.ptr, MIN(step, bytes.len)), tell,
			   &split);
	lines_end(&l, tell, &split);
	lines_fini(&l);
	must(span_eq(buf_peek(&whole), buf_peek(&split)));
	buf_fini(&whole);
	buf_fini(&split);
	return 0;
}
