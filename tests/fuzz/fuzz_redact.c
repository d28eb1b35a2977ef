/* fuzz: gateway */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_redact.c - a masked body is the same whole, in pieces and done slowly;
 * as messages of gRPC it is, whole and in pieces
 *
 * Input: lengths of two values, piece length, the values, the body.
 */

#include "gateway/redact/redact_body.h"
#include "tests/unit/gateway/redact_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BODY_MAX = 4096 };

static void compare(const struct kit *k, struct span body, size_t step)
{
	struct buf out = BUF_INIT(BODY_MAX);
	char *whole = must_alloc(body.len + 1);
	uint64_t hits, slow;

	if (body.len)
		memcpy(whole, body.ptr, body.len);
	slow = naive_redact(k, whole, body.len);
	hits = kit_redact(k, body, step, &out);
	if (hits != slow || !span_eq(buf_peek(&out), span_of(whole, body.len)))
		abort();
	buf_fini(&out);
	free(whole);
}

/* Masked as messages of gRPC; what feeding came to. */
static int mask_grpc(const struct kit *k, struct span body, size_t step,
		     struct buf *out)
{
	const struct redact_sink sink = { kit_emit, out };
	struct redact_body *b;
	struct span piece;
	int r = 0;

	must(!redact_body_new(k->automaton, SPAN(""), &b));
	redact_body_set_grpc(b);
	while (!r && body.len) {
		piece = span_of(body.ptr, MIN(step, body.len));
		body = span_from(body, piece.len);
		r = redact_body_feed(b, &piece, BODY_MAX, &sink);
	}
	if (!r)
		r = redact_body_finish(b, &sink);
	(void)redact_body_free(b);
	return r;
}

static void compare_grpc(const struct kit *k, struct span body, size_t step)
{
	struct buf whole = BUF_INIT(BODY_MAX), parts = BUF_INIT(BODY_MAX);
	int r = mask_grpc(k, body, BODY_MAX, &whole);

	if (mask_grpc(k, body, step, &parts) != r ||
	    !span_eq(buf_peek(&whole), buf_peek(&parts)) ||
	    (!r && buf_len(&whole) != body.len))
		abort();
	buf_fini(&whole);
	buf_fini(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = span_of(data, size), value;
	struct kit k = { 0 };
	size_t lens[2], step, i;

	if (size < 3)
		return 0;
	lens[0] = data[0] % 32;
	lens[1] = data[1] % 32;
	step = 1 + data[2] % 64;
	rest = span_from(rest, 3);
	for (i = 0; i < 2; i++) {
		value = span_of(rest.ptr, MIN(lens[i], rest.len));
		kit_add(&k, i ? "Basic " : "Bearer ", value);
		rest = span_from(rest, value.len);
	}
	rest.len = MIN(rest.len, (size_t)BODY_MAX);
	kit_build(&k);
	compare(&k, rest, step);
	compare(&k, rest, BODY_MAX);
	compare_grpc(&k, rest, step);
	kit_fini(&k);
	return 0;
}
