/* SPDX-License-Identifier: Apache-2.0 */
/* dns_code.c - the names of DNS numbers */

#include "src/wire/dns_code.h"

#include <stddef.h>

#include "src/base/attrib.h"

static const struct {
	uint16_t number;
	const char *name;
} type_names[] = {
#define DNS_TYPE_ROW(id, number) { number, #id },
	DNS_TYPES(DNS_TYPE_ROW)
#undef DNS_TYPE_ROW
};

static const char *const rcode_names[] = {
	[DNS_NOERROR] = "NOERROR",   [DNS_FORMERR] = "FORMERR",
	[DNS_SERVFAIL] = "SERVFAIL", [DNS_NXDOMAIN] = "NXDOMAIN",
	[DNS_NOTIMP] = "NOTIMP",     [DNS_REFUSED] = "REFUSED",
	[DNS_BADVERS] = "BADVERS",
};

const char *dns_type_name(uint16_t type)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(type_names); i++)
		if (type_names[i].number == type)
			return type_names[i].name;
	return "other";
}

const char *dns_rcode_name(uint16_t rcode)
{
	if (rcode < ARRAY_LEN(rcode_names) && rcode_names[rcode])
		return rcode_names[rcode];
	return "other";
}
