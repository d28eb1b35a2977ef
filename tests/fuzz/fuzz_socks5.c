/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_socks5.c - every split gives the same, and nothing is read beyond it */

#include <stdlib.h>

#include "src/wire/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A prefix is not whole yet, or says what the whole says. */
static void check_prefixes(const uint8_t *data, size_t size, int whole)
{
	struct authority a;
	size_t i;
	char *copy;
	int r;

	for (i = 0; i < size; i++) {
		copy = malloc(i ? i : 1); /* a sanitizer sees its end */
		if (!copy)
			abort();
		memcpy(copy, data, i);
		r = socks5_parse_request(span_of(copy, i), &a);
		if (r && r != whole)
			abort();
		free(copy);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span bytes = span_of(data, size);
	enum socks5_method method;
	struct authority a;
	struct host again;
	int r;

	if (size > 2 * SOCKS5_MESSAGE_MAX)
		return 0;
	r = socks5_parse_greeting(bytes, &method);
	if (r > (int)size || r > SOCKS5_MESSAGE_MAX || r < -1 ||
	    (r > 0 && method != SOCKS5_NO_AUTH && method != SOCKS5_NO_METHOD))
		abort();
	r = socks5_parse_request(bytes, &a);
	if (r > (int)size || r > SOCKS5_MESSAGE_MAX || r < -SOCKS5_ADDRESS)
		abort();
	if (r > 0 &&
	    (!a.port || a.is_address == !!a.host.len ||
	     (!a.is_address && !host_canon(host_span(&a.host), &again))))
		abort();
	check_prefixes(data, size, r);
	return 0;
}
