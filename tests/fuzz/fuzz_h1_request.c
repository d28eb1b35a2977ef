/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_h1_request.c - one head, scanned whole and bytewise, then read */

#include <stdlib.h>

#include "src/wire/h1.h"

enum { LIMIT = 8192 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct h1_scan whole = { 0 }, bytewise = { 0 };
	static struct h1_request req;
	int r = h1_scan(&whole, span_of(data, size), LIMIT), s = 0;
	size_t len;

	for (len = 1; len <= size && !s; len++)
		s = h1_scan(&bytewise, span_of(data, len), LIMIT);
	if (size && r != s)
		abort();
	/* the input as a head must be refused, unless it is one */
	if (h1_parse_request(span_of(data, size), &req) == H1_OK &&
	    ((size <= LIMIT && r != (int)size) || !req.target.len ||
	     (req.minor == 1 && !req.authority.len)))
		abort();
	if (r > 0)
		(void)h1_parse_request(span_of(data, (size_t)r), &req);
	return 0;
}
