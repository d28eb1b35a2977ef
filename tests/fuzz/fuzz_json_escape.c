/* fuzz: text */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_json_escape.c - a literal of any bytes is JSON; of UTF-8, those bytes */

#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/text/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf once = BUF_INIT(1 << 24), twice = BUF_INIT(1 << 24);
	struct json *j;

	if (json_escape(&once, span_of(data, size)))
		return 0;
	must(!json_parse(buf_peek(&once), &j, NULL));
	/* what came out is UTF-8, so it goes through unchanged */
	must(!json_escape(&twice, json_text(j)));
	must(span_eq(buf_peek(&once), buf_peek(&twice)));
	json_free(j);
	buf_fini(&once);
	buf_fini(&twice);
	return 0;
}
