/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - is something a resolver of others? */

#include "gateway/dns/foreign.h"

#include <pthread.h>

#include "src/base/err.h"
#include "src/wire/host.h"

static const struct span hosts[] = {
#define FOREIGN_HOST(name) SPAN_INIT(name),
#define FOREIGN_NET(prefix)
#include "gateway/dns/foreign.def"
#undef FOREIGN_HOST
#undef FOREIGN_NET
};

static const struct span net_texts[] = {
#define FOREIGN_HOST(name)
#define FOREIGN_NET(prefix) SPAN_INIT(prefix),
#include "gateway/dns/foreign.def"
#undef FOREIGN_HOST
#undef FOREIGN_NET
};

static struct cidr nets[ARRAY_LEN(net_texts)];
static pthread_once_t nets_once = PTHREAD_ONCE_INIT;

static void nets_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(nets); i++)
		must(cidr_parse(net_texts[i], &nets[i]));
}

bool foreign_is_host(struct span host)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(hosts); i++)
		if (span_eq(host, hosts[i]) || host_is_below(host, hosts[i]))
			return true;
	return false;
}

bool foreign_is_address(const struct addr *address)
{
	/* 64:ff9b::/96, where a NAT64 finds IPv4 (RFC 6052) */
	static const uint8_t nat64[12] = { 0, 0x64, 0xff, 0x9b };
	struct addr a = *address;
	size_t i;

	if (!memcmp(a.ip, nat64, sizeof(nat64))) {
		memset(a.ip, 0, 10);
		memset(a.ip + 10, 0xff, 2);
	}
	must(pthread_once(&nets_once, nets_init) == 0);
	for (i = 0; i < ARRAY_LEN(nets); i++)
		if (cidr_has(&nets[i], &a))
			return true;
	return false;
}

/* A media type in a list, without parameters (RFC 9110 12.5.1). */
static bool is_dns_message(struct span list)
{
	struct span item;

	while (list.len) {
		item = span_cut(&list, ',');
		item = span_trim(span_cut(&item, ';'));
		if (span_eq_nocase(item, SPAN("application/dns-message")) ||
		    span_eq_nocase(item, SPAN("application/dns-json")) ||
		    span_eq_nocase(item, SPAN("application/oblivious-dns-"
					      "message")))
			return true;
	}
	return false;
}

bool foreign_is_request(struct span path, struct span content_type,
			struct span accept)
{
	return span_eq(path, SPAN("/dns-query")) ||
	       span_starts(path, SPAN("/dns-query/")) ||
	       is_dns_message(content_type) || is_dns_message(accept);
}
