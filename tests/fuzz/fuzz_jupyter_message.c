/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_jupyter_message.c - what a Jupyter server sends: messages and kernels */

#include <stdlib.h>

#include "src/execd/code/jupyter/message.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_of(data, size), name;
	struct message m, other;
	struct json *specs = NULL;

	if (!message_parse(text, SPAN("r-1"), &m)) {
		if (!m.root || json_kind(m.content) != JSON_KIND_OBJECT ||
		    (m.failed && m.kind != MESSAGE_REPLY))
			abort();
		/* of no request: nothing but the end of a kernel */
		if (message_parse(text, SPAN_NONE, &other) ||
		    (other.kind != MESSAGE_OTHER &&
		     other.kind != MESSAGE_RESTART))
			abort();
		message_fini(&other);
		message_fini(&m);
	}
	if (json_parse(text, &specs, NULL))
		return 0;
	name = message_kernel(specs, SPAN("python"));
	if (name.len > size)
		abort();
	json_free(specs);
	return 0;
}
