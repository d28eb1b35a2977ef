/* fuzz: role */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_msg.c - two bytes of type, then a payload as a peer might send it */

#include <stdint.h>
#include <string.h>

#include "src/base/err.h"
#include "src/role/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span tail = SPAN_NONE;
	const char *body;
	uint16_t type;
	char *aligned;

	if (size < sizeof(type))
		return 0;
	memcpy(&type, data, sizeof(type));
	size -= sizeof(type);
	aligned = must_alloc(size + 1);
	memcpy(aligned, data + sizeof(type), size);

	body = msg_body(type, span_of(aligned, size), &tail);
	if (body) {
		must(body == aligned);
		must(msg_body_size(type) + tail.len == size);
		must(tail.len <= MSG_TAIL_MAX);
	}
	free(aligned);
	return 0;
}
