/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_jupyter_reply.c - replies of a Jupyter server are the same in any pieces
 *
 * The first byte chooses the method.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/execd/code/jupyter/reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Feeds it in pieces until it is over; then the connection ends. */
static enum reply_progress run(struct reply *r, const char *method,
			       struct span bytes, size_t step)
{
	enum reply_progress p = REPLY_MORE;
	size_t len;
	char *room;

	reply_init(r, method);
	while (p == REPLY_MORE && bytes.len) {
		len = MIN(bytes.len, MIN(step, (size_t)REPLY_READ));
		room = reply_room(r);
		if (!room)
			return REPLY_BAD;
		memcpy(room, bytes.ptr, len);
		bytes = span_from(bytes, len);
		p = reply_take(r, len);
	}
	if (p != REPLY_MORE)
		return p;
	room = reply_room(r);
	return room ? reply_take(r, 0) : REPLY_BAD;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "POST", "DELETE" };
	const size_t steps[] = { 1, 7, 4096 };
	struct span bytes = span_from(span_of(data, size), 1);
	const char *method = methods[size ? data[0] % ARRAY_LEN(methods) : 0];
	enum reply_progress whole, pieces;
	struct reply first, other;
	size_t i;

	whole = run(&first, method, bytes, SIZE_MAX);
	must(whole != REPLY_DONE ||
	     (first.status >= 100 && buf_len(&first.body) <= size));
	for (i = 0; i < ARRAY_LEN(steps); i++) {
		pieces = run(&other, method, bytes, steps[i]);
		must(pieces == whole);
		must(whole != REPLY_DONE ||
		     (other.status == first.status &&
		      span_eq(buf_peek(&other.body), buf_peek(&first.body))));
		reply_fini(&other);
	}
	reply_fini(&first);
	return 0;
}
