/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_code_frame.c - a frame is the same however much of it has come, and its
 * payload, told as a result or an error, stays within its bounds
 */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/execd/code/bundle.h"
#include "src/execd/code/frame.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_payload(struct span payload)
{
	static struct failure f;
	struct buf out = BUF_INIT(BUNDLE_MAX + 64 * 1024);
	struct json *j = NULL, *again = NULL;
	size_t left_out;
	unsigned i;

	if (json_parse(payload, &j, NULL))
		return;
	if (bundle_put(&out, j, &left_out) < 0 ||
	    json_parse(buf_peek(&out), &again, NULL))
		abort();
	failure_read(j, &f);
	if (!f.ename.len || f.evalue.len > FAILURE_TEXT_MAX)
		abort();
	for (i = 0; i < f.line_count; i++)
		if (f.lines[i].len > FAILURE_LINE_MAX)
			abort();
	json_free(again);
	json_free(j);
	buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = span_of(data, size);
	struct frame f, cut;
	ssize_t n, m;
	size_t i;

	n = frame_parse(bytes, &f);
	for (i = 0; i < MIN(size, (size_t)256); i++) {
		m = frame_parse(span_of(data, i), &cut);
		/* once refused, for ever; a whole one needs nothing more */
		if ((m < 0 && n >= 0) || (m > 0 && m != n))
			abort();
	}
	if (n <= 0)
		return 0;
	if (n > FRAME_MAX || (size_t)n > size || f.word == FRAME_NONE ||
	    f.payload.ptr + f.payload.len != bytes.ptr + n)
		abort();
	check_payload(f.payload);
	return 0;
}
