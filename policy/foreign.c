/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.c - is something a resolver of others?
 *
 * Asked for every exchange, and nearly always answered no. So the lists are
 * gone through only when a filter of bits lets it pass: the hash of the end
 * that all names of a listed one share, or of the part that all its addresses
 * share.
 */

#include "policy/foreign.h"

#include <pthread.h>

#include "src/base/err.h"
#include "src/wire/host.h"

static const struct span hosts[] = {
#define FOREIGN_HOST(name) SPAN_INIT(name),
#define FOREIGN_NET(prefix)
#include "policy/foreign.def"
#undef FOREIGN_HOST
#undef FOREIGN_NET
};

static const struct span net_texts[] = {
#define FOREIGN_HOST(name)
#define FOREIGN_NET(prefix) SPAN_INIT(prefix),
#include "policy/foreign.def"
#undef FOREIGN_HOST
#undef FOREIGN_NET
};

enum {
	FILTER_BITS = 4096,
	/* No listed name is shorter, no listed prefix. */
	HOST_TAIL = 6,
	V4_HEAD = 3,
	V6_HEAD = 4,
};

static struct cidr nets[ARRAY_LEN(net_texts)];
static uint8_t filter[FILTER_BITS / 8];
static pthread_once_t lists_once = PTHREAD_ONCE_INIT;

/* FNV-1a. */
static uint32_t filter_bit(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	uint32_t hash = 2166136261u;

	while (len--)
		hash = (hash ^ *p++) * 16777619u;
	return (hash ^ hash >> 16) % FILTER_BITS;
}

static uint32_t host_bit(struct span host)
{
	return filter_bit(host.ptr + host.len - HOST_TAIL, HOST_TAIL);
}

static uint32_t address_bit(const uint8_t ip[16], bool v4)
{
	return v4 ? filter_bit(ip + 12, V4_HEAD) : filter_bit(ip, V6_HEAD);
}

static void filter_add(uint32_t bit)
{
	filter[bit / 8] |= (uint8_t)(1u << bit % 8);
}

static bool filter_has(uint32_t bit)
{
	return filter[bit / 8] >> bit % 8 & 1;
}

static void lists_init(void)
{
	struct addr a = { 0 };
	bool v4;
	size_t i;

	for (i = 0; i < ARRAY_LEN(hosts); i++) {
		must(hosts[i].len >= HOST_TAIL);
		filter_add(host_bit(hosts[i]));
	}
	for (i = 0; i < ARRAY_LEN(nets); i++) {
		must(cidr_parse(net_texts[i], &nets[i]));
		memcpy(a.ip, nets[i].ip, sizeof(a.ip));
		v4 = addr_is_v4(&a);
		must(nets[i].prefix >= (v4 ? 96 + 8 * V4_HEAD : 8 * V6_HEAD));
		filter_add(address_bit(a.ip, v4));
	}
}

bool foreign_is_host(struct span host)
{
	size_t i;

	must(pthread_once(&lists_once, lists_init) == 0);
	if (host.len < HOST_TAIL || !filter_has(host_bit(host)))
		return false;
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
	must(pthread_once(&lists_once, lists_init) == 0);
	if (!filter_has(address_bit(a.ip, addr_is_v4(&a))))
		return false;
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

bool foreign_is_asked(const struct policy_query *q)
{
	return (q->stage != POLICY_NAME && q->port == PORT_DNS_TLS) ||
	       (q->host.len && foreign_is_host(q->host)) ||
	       (q->address && foreign_is_address(q->address)) ||
	       foreign_is_request(q->path, SPAN_NONE, SPAN_NONE);
}

void foreign_refuse(struct verdict *v)
{
	if (v->kind != VERDICT_ALLOW || v->exact)
		return;
	*v = (struct verdict){
		.source = VERDICT_FOREIGN_RESOLVER,
		.generation = v->generation,
	};
}

void foreign_match(const struct snapshot *overlay,
		   const struct snapshot *policy, const struct policy_query *q,
		   bool foreign_allowed, struct verdict *ret)
{
	policy_match(overlay, policy, q, ret);
	if (ret->kind == VERDICT_ALLOW && !foreign_allowed &&
	    foreign_is_asked(q))
		foreign_refuse(ret);
}
