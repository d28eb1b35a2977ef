/* fuzz: control */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_log_frames.c - what Docker says of a container: frames give no more text
 * than they hold, and any state becomes lines of printable text */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/diagnosis.h"
#include "src/control/lifecycle/log_frames.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void diagnose(struct span text)
{
	struct buf out CLEANUP(buf_fini) = BUF_INIT(64 * 1024);
	struct json *j CLEANUP_JSON = NULL;
	struct box *b = box_new();
	size_t i;

	if (json_parse(text, &j, NULL))
		j = NULL;
	diagnosis_put_state(&out, b, j);
	diagnosis_put_events(&out, b, j, 50);
	for (i = 0; i < buf_len(&out); i++)
		if (buf_peek(&out).ptr[i] != '\n' &&
		    (buf_peek(&out).ptr[i] < ' ' ||
		     buf_peek(&out).ptr[i] > '~'))
			abort();
	box_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out CLEANUP(buf_fini) = BUF_INIT(1024 * 1024);
	struct span in = span_of(data, size), tail;
	uint64_t seconds;

	if (!log_frames_text(in, &out) && buf_len(&out) > size)
		abort();
	tail = log_frames_tail(buf_peek(&out), 16);
	if (tail.len > 16 || tail.len > buf_len(&out))
		abort();
	if (diagnosis_duration(in, &seconds) && !size)
		abort();
	diagnose(in);
	return 0;
}
