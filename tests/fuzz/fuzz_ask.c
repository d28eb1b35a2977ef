/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_ask.c - messages of terminals' clients ask the same in any pieces
 *
 * The input is messages: a length (two bytes, big-endian; the top bit: text),
 * then so many bytes.
 */

#include <stdlib.h>

#include "src/execd/pty/ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void hear(void *ctx, const struct ask *ask)
{
	struct buf *out = ctx;

	if (ask->kind == ASK_STDIN) {
		if (buf_put(out, ask->data))
			abort();
	} else if (buf_putf(out, "<%d %d %u %u %.*s>", (int)ask->kind,
			    ask->signal, ask->cols, ask->rows, ASK_WHY_SIZE,
			    ask->why)) {
		abort();
	}
	if (ask->kind == ASK_RESIZE && (!ask->cols || !ask->rows))
		abort();
}

static void feed(struct asks *a, enum ws_opcode opcode, struct span message,
		 size_t step, struct buf *out)
{
	size_t n;

	do {
		n = message.len < step ? message.len : step;
		asks_feed(a, opcode, span_of(message.ptr, n), n == message.len,
			  hear, out);
		message = span_from(message, n);
	} while (message.len);
}

static void run(struct span in, size_t step, struct buf *out)
{
	enum ws_opcode opcode;
	struct asks a;
	size_t len;

	asks_init(&a);
	while (in.len >= 2) {
		opcode = in.ptr[0] & 0x80 ? WS_TEXT : WS_BINARY;
		len = (size_t)(in.ptr[0] & 0x7f) << 8 | (uint8_t)in.ptr[1];
		in = span_from(in, 2);
		len = len < in.len ? len : in.len;
		feed(&a, opcode, span_of(in.ptr, len), step, out);
		in = span_from(in, len);
	}
	asks_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = BUF_INIT(100 * size + 1024);
	struct buf pieces = BUF_INIT(100 * size + 1024);
	const struct span in = span_of(data, size);

	run(in, SIZE_MAX, &whole);
	for (size_t step = 1; step < 8; step += 3) {
		buf_clear(&pieces);
		run(in, step, &pieces);
		if (!span_eq(buf_peek(&whole), buf_peek(&pieces)))
			abort();
	}
	buf_fini(&whole);
	buf_fini(&pieces);
	return 0;
}
