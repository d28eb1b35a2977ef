/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dns_svcb.c - any bytes as a service binding; what is passed on is one
 * too, is not longer, and does not change any more */

#include "src/base/err.h"
#include "src/wire/dns_svcb.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[2][65536];
	struct dns_svcb s;
	size_t len;

	if (size > sizeof(out[0]) || !dns_svcb_parse(span_of(data, size), &s))
		return 0;
	len = dns_svcb_emit(&s, out[0], size);
	if (!len)
		return 0;
	must(dns_svcb_parse(span_of(out[0], len), &s));
	must(dns_svcb_emit(&s, out[1], len) == len);
	must(!memcmp(out[0], out[1], len));
	return 0;
}
