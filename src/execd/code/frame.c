/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c - what an interpreter says on its private channel, cut out of bytes
 */

#include "src/execd/code/frame.h"

#include <assert.h>
#include <errno.h>

#include "src/base/err.h"

static const char *const words[] = {
	[FRAME_READY] = "ready", [FRAME_BEGIN] = "begin",
	[FRAME_COUNT] = "count", [FRAME_RESULT] = "result",
	[FRAME_SHOW] = "show",	 [FRAME_ERROR] = "error",
	[FRAME_EXIT] = "exit",	 [FRAME_DONE] = "done",
};
static_assert(ARRAY_LEN(words) == FRAME_WORD_NUM, "a word for each");

static enum frame_word word_of(struct span text)
{
	unsigned i;

	for (i = FRAME_NONE + 1; i < FRAME_WORD_NUM; i++)
		if (span_eq(text, span_str(words[i])))
			return (enum frame_word)i;
	return FRAME_NONE;
}

ssize_t frame_parse(struct span bytes, struct frame *ret)
{
	size_t end = span_find(
		span_of(bytes.ptr, MIN(bytes.len, FRAME_HEAD_MAX + 1)), '\n');
	struct span head = span_of(bytes.ptr, end), word, run;
	struct frame f = { 0 };
	uint64_t length;

	if (end > FRAME_HEAD_MAX)
		return -EPROTO;
	if (end == bytes.len)
		return 0;
	word = span_cut(&head, ' ');
	run = span_cut(&head, ' ');
	f.word = word_of(word);
	if (f.word == FRAME_NONE || !span_parse_u64(run, &f.run) ||
	    !span_parse_u64(head, &length) || length > FRAME_PAYLOAD_MAX)
		return -EPROTO;
	if (bytes.len - end - 1 < length)
		return 0;
	f.payload = span_of(bytes.ptr + end + 1, (size_t)length);
	*ret = f;
	return (ssize_t)(end + 1 + length);
}
