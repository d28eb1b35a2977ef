/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_h1_response.c - a response head, for each method that frames it */

#include <stdlib.h>

#include "src/wire/h1.h"

enum { LIMIT = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span methods = SPAN("GET HEAD CONNECT"), method;
	struct h1_scan scan = { 0 };
	static struct h1_response resp;
	int r = h1_scan(&scan, span_of(data, size), LIMIT);

	while (methods.len) {
		method = span_cut(&methods, ' ');
		if (h1_parse_response(span_of(data, size), method, &resp))
			continue;
		if ((size <= LIMIT && r != (int)size) || resp.status < 100 ||
		    (resp.keep_alive && resp.body == H1_BODY_CLOSE) ||
		    (resp.length && resp.body != H1_BODY_LENGTH))
			abort();
	}
	if (r > 0)
		(void)h1_parse_response(span_of(data, (size_t)r), SPAN("GET"),
					&resp);
	return 0;
}
