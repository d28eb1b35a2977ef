/* SPDX-License-Identifier: Apache-2.0 */
/* destination.c - names of schemes, and the one comparison of authorities */

#include "gateway/upstream/destination.h"

#include "src/base/err.h"

static const struct {
	const char *name;
	uint16_t port;
} schemes[SCHEME_NUM] = {
	[SCHEME_NONE] = { "none", 0 },
	[SCHEME_HTTP] = { "http", 80 },
	[SCHEME_HTTPS] = { "https", 443 },
	[SCHEME_TCP] = { "tcp", 0 },
};

const char *scheme_name(enum scheme scheme)
{
	must(scheme < SCHEME_NUM);
	return schemes[scheme].name;
}

uint16_t scheme_port(enum scheme scheme)
{
	must(scheme < SCHEME_NUM);
	return schemes[scheme].port;
}

bool destination_is_authority(const struct destination *d,
			      const struct authority *a)
{
	/* No port in the authority: the port of the connection is meant, as
	 * clients drop only the default one but some drop any. */
	if (a->port_given && a->port != d->port)
		return false;
	if (a->is_address)
		return !d->host.len && addr_eq_ip(&a->address, &d->original);
	return span_eq(host_span(&a->host), host_span(&d->host));
}
