/* SPDX-License-Identifier: Apache-2.0 */
/* log_frames.c - frames of two streams, in the order in which they came */

#include "src/control/lifecycle/log_frames.h"

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"

enum { FRAME_HEAD = 8, STREAM_ERR = 2 };

static bool is_head(struct span in)
{
	return in.len >= FRAME_HEAD && (unsigned char)in.ptr[0] <= STREAM_ERR &&
	       !in.ptr[1] && !in.ptr[2] && !in.ptr[3];
}

static size_t length_of(struct span head)
{
	const unsigned char *at = (const unsigned char *)head.ptr + 4;

	return (size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 |
	       (size_t)at[3];
}

int log_frames_text(struct span body, struct buf *out)
{
	size_t len;
	int r = 0;

	if (!is_head(body))
		return buf_put(out, body);
	while (!r && is_head(body)) {
		len = length_of(body);
		body = span_from(body, FRAME_HEAD);
		if (len > body.len)
			len = body.len;
		r = buf_put(out, span_of(body.ptr, len));
		body = span_from(body, len);
	}
	return r;
}

struct span log_frames_tail(struct span text, size_t max)
{
	struct span tail;

	if (text.len <= max)
		return text;
	tail = span_from(text, text.len - max);
	return span_from(tail, span_find(tail, '\n') + 1);
}
