/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_hello.c - a hello reads the same whole and as its bytes arrive */

#include <stdlib.h>

#include "src/wire/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct buf joined = BUF_INIT(HELLO_MAX);
	struct hello whole = { 0 }, part = { 0 };
	size_t step = size / 9 + 1, len;
	int r, s = 0;

	r = hello_parse(span_of(data, size), &joined, &whole);
	for (len = step; len < size && !s; len += step)
		s = hello_parse(span_of(data, len), &joined, &part);
	if (!s)
		s = hello_parse(span_of(data, size), &joined, &part);
	if (r != s || r > (int)size)
		abort();
	if (r > 0 &&
	    (!span_eq(host_span(&whole.sni), host_span(&part.sni)) ||
	     whole.has_sni != !!whole.sni.len || whole.has_ech != part.has_ech))
		abort();
	return 0;
}
