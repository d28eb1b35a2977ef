/* fuzz: execd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_keystore.c - a store that was extended holds the addition the next time
 */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/execd/init/keystore.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct span one = SPAN_INIT("0\3der");
	const struct keystore_add add = { &one, 1, "ours", 1 };
	struct buf out = BUF_INIT(8 * 1024 * 1024), again = out;

	if (!keystore_extend(span_of(data, size), &add, &out) &&
	    keystore_extend(buf_peek(&out), &add, &again) != KEYSTORE_E_SAME)
		abort();
	buf_clear(&out);
	buf_clear(&again);
	if (keystore_make(span_of(data, size), &add, &out) ||
	    keystore_extend(buf_peek(&out), &add, &again) != KEYSTORE_E_SAME)
		abort();
	buf_fini(&out);
	buf_fini(&again);
	return 0;
}
