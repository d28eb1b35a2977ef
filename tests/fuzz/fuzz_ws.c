/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ws.c - frames read the same whole and in any pieces, by both roles
 *
 * First byte: the role (bit 0), a limit of messages (bits 1..); then frames.
 */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/wire/ws.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Texts and binaries without the cuts between pieces, control frames with
 * their opcode. */
static int hear(uint8_t setup, struct span in, size_t step, struct buf *out)
{
	struct ws w = { .is_server = setup & 1, .message_max = setup >> 1 };
	size_t given, len;
	struct ws_event ev;
	char *copy, *p;
	int r = 0;

	while (in.len && r >= 0) {
		given = step < in.len ? step : in.len;
		copy = malloc(given);
		if (!copy)
			abort();
		memcpy(copy, in.ptr, given);
		p = copy;
		len = given;
		while ((r = ws_next(&w, &p, &len, &ev)) > 0) {
			if (buf_put(out, ev.bytes) ||
			    ((ev.opcode >= WS_CLOSE || ev.last) &&
			     buf_putf(out, "<%d>", (int)ev.opcode)))
				abort();
			if (ev.opcode == WS_CONTINUATION)
				abort();
		}
		if (!r && len)
			abort();
		free(copy);
		in = span_from(in, given);
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT(4 * size + 64),
		   out2 = BUF_INIT(4 * size + 64);
	struct span in;
	size_t step;
	int r;

	if (!size)
		return 0;
	in = span_of(data + 1, size - 1);
	r = hear(data[0], in, size, &out);
	for (step = 1; step < 8; step += 3) {
		buf_clear(&out2);
		if (hear(data[0], in, step, &out2) != r)
			abort();
		/* of a lost connection a piece more may have been told */
		if (r >= 0 && !span_eq(buf_peek(&out), buf_peek(&out2)))
			abort();
	}
	buf_fini(&out);
	buf_fini(&out2);
	return 0;
}
