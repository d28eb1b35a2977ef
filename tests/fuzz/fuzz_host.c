/* fuzz: wire */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_host.c - what is canonical stays so, and is never an address too */

#include <stdlib.h>

#include "src/wire/host.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span text = span_of(data, size);
	struct authority authority;
	struct host once, twice;
	struct addr address;

	if (host_canon(text, &once) &&
	    (!host_canon(host_span(&once), &twice) ||
	     !span_eq(host_span(&once), host_span(&twice)) ||
	     strlen(once.text) != once.len || addr_parse(text, &address)))
		abort();
	if (authority_parse(text, 443, &authority) &&
	    (!authority.port || authority.is_address == !!authority.host.len ||
	     (!authority.port_given && authority.port != 443)))
		abort();
	return 0;
}
