/* SPDX-License-Identifier: Apache-2.0 */
/* addr.c - parse, print, compare and classify addresses */

#include "src/base/addr.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

static const uint8_t mapped_prefix[12] = { [10] = 0xff, [11] = 0xff };

static const char *const kind_names[ADDR_KIND_NUM] = {
	[ADDR_UNSPECIFIED] = "unspecified", [ADDR_LOOPBACK] = "loopback",
	[ADDR_PRIVATE] = "private",	    [ADDR_CGNAT] = "carrier-grade NAT",
	[ADDR_LINK_LOCAL] = "link-local",   [ADDR_METADATA] = "cloud metadata",
	[ADDR_MULTICAST] = "multicast",	    [ADDR_RESERVED] = "reserved",
	[ADDR_GLOBAL] = "global",
};

/* One row: a prefix and the kind it means. First match wins. */
struct kind_row {
	uint8_t ip[16];
	uint8_t bits;
	enum addr_kind kind;
};

#define V4(a, b, c, d)                                               \
	{                                                            \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d \
	}

static const struct kind_row kind_rows_v4[] = {
	{ V4(169, 254, 169, 254), 128, ADDR_METADATA },
	{ V4(169, 254, 170, 2), 128, ADDR_METADATA },  /* ECS task roles */
	{ V4(169, 254, 170, 23), 128, ADDR_METADATA }, /* EKS pod identity */
	{ V4(169, 254, 169, 252), 128, ADDR_METADATA }, /* GKE */
	{ V4(169, 254, 0, 23), 128, ADDR_METADATA },	/* Tencent */
	{ V4(169, 254, 42, 42), 128, ADDR_METADATA },	/* Scaleway */
	{ V4(169, 254, 0, 0), 112, ADDR_LINK_LOCAL },
	{ V4(100, 100, 100, 200), 128, ADDR_METADATA }, /* Alibaba */
	{ V4(168, 63, 129, 16), 128, ADDR_METADATA },	/* Azure */
	{ V4(192, 0, 0, 192), 128, ADDR_METADATA },	/* Oracle */
	{ V4(0, 0, 0, 0), 104, ADDR_UNSPECIFIED },
	{ V4(10, 0, 0, 0), 104, ADDR_PRIVATE },
	{ V4(100, 64, 0, 0), 106, ADDR_CGNAT },
	{ V4(127, 0, 0, 0), 104, ADDR_LOOPBACK },
	{ V4(172, 16, 0, 0), 108, ADDR_PRIVATE },
	{ V4(192, 0, 0, 0), 120, ADDR_RESERVED },
	{ V4(192, 0, 2, 0), 120, ADDR_RESERVED },
	{ V4(192, 88, 99, 0), 120, ADDR_RESERVED },
	{ V4(192, 168, 0, 0), 112, ADDR_PRIVATE },
	{ V4(198, 18, 0, 0), 111, ADDR_RESERVED },
	{ V4(198, 51, 100, 0), 120, ADDR_RESERVED },
	{ V4(203, 0, 113, 0), 120, ADDR_RESERVED },
	{ V4(224, 0, 0, 0), 100, ADDR_MULTICAST },
	{ V4(240, 0, 0, 0), 100, ADDR_RESERVED },
};

static const struct kind_row kind_rows_v6[] = {
	{ { [15] = 0 }, 128, ADDR_UNSPECIFIED },
	{ { [15] = 1 }, 128, ADDR_LOOPBACK },
	{ { 0xfd, 0x00, 0x0e, 0xc2, [15] = 0 }, 32, ADDR_METADATA }, /* AWS */
	{ { 0xfd, 0x20, 0x00, 0xce, [15] = 0 }, 32, ADDR_METADATA }, /* GCP */
	/* Oracle, Scaleway, OpenStack */
	{ { 0xfd, 0x00, 0x00, 0xc1, [12] = 0xa9, 0xfe, 0xa9, 0xfe },
	  128,
	  ADDR_METADATA },
	{ { 0xfd, 0x00, 0x00, 0x42, [15] = 0x42 }, 128, ADDR_METADATA },
	{ { 0xfe, 0x80, [12] = 0xa9, 0xfe, 0xa9, 0xfe }, 128, ADDR_METADATA },
	{ { 0xfc }, 7, ADDR_PRIVATE },
	{ { 0xfe, 0x80 }, 10, ADDR_LINK_LOCAL },
	{ { 0xfe, 0xc0 }, 10, ADDR_PRIVATE },
	{ { 0xff }, 8, ADDR_MULTICAST },
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, ADDR_GLOBAL },   /* RFC 6052 NAT64 */
	{ { 0x01 }, 64, ADDR_RESERVED },		   /* discard */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32, ADDR_RESERVED }, /* documentation */
	{ { 0x3f, 0xff }, 20, ADDR_RESERVED },		   /* RFC 9637 */
	{ { 0x5f, 0x00 }, 16, ADDR_RESERVED },		   /* RFC 9602 */
	{ { 0x20, 0x01 }, 23, ADDR_RESERVED }, /* RFC 2928, Teredo in it */
	{ { 0x20, 0x02 }, 16, ADDR_RESERVED }, /* 6to4 */
	{ { 0x20 }, 3, ADDR_GLOBAL },			   /* 2000::/3 */
};

static bool prefix_eq(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned bytes = bits / 8, rest = bits % 8;
	uint8_t mask;

	if (memcmp(a, b, bytes) != 0)
		return false;
	if (!rest)
		return true;
	mask = (uint8_t)(0xff00u >> rest);
	return ((a[bytes] ^ b[bytes]) & mask) == 0;
}

static enum addr_kind kind_lookup(const uint8_t ip[16],
				  const struct kind_row *rows, size_t count,
				  enum addr_kind otherwise)
{
	size_t i;

	for (i = 0; i < count; i++)
		if (prefix_eq(ip, rows[i].ip, rows[i].bits))
			return rows[i].kind;
	return otherwise;
}

bool addr_is_v4(const struct addr *a)
{
	return memcmp(a->ip, mapped_prefix, 12) == 0;
}

static void ip_from_v4(uint8_t ip[16], const uint8_t v4[4])
{
	memcpy(ip, mapped_prefix, 12);
	memcpy(ip + 12, v4, 4);
}

/* Where an IPv6 address carries an IPv4 one: offset and whether inverted. */
struct embed_row {
	uint8_t ip[16];
	uint8_t bits, at;
	bool inverted;
};

static const struct embed_row embed_rows[] = {
	{ { 0x00, 0x64, 0xff, 0x9b }, 96, 12, false }, /* RFC 6052 */
	{ { 0x00, 0x64, 0xff, 0x9b, 0x00, 0x01 },
	  48,
	  12,
	  false },				       /* RFC 8215 */
	{ { 0x20, 0x02 }, 16, 2, false },	       /* 6to4 */
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, 12, true },  /* Teredo client */
	{ { 0x20, 0x01, 0x00, 0x00 }, 32, 4, false },  /* Teredo server */
	{ { [8] = 0xff, [9] = 0xff }, 96, 12, false }, /* RFC 2765 */
	{ { [15] = 0 }, 96, 12, false },	       /* compatible */
};

/* ISATAP (RFC 5214): the interface identifier is [02]00:5efe:a.b.c.d. */
static bool is_isatap(const uint8_t ip[16])
{
	return (ip[8] & 0xfd) == 0 && ip[9] == 0 && ip[10] == 0x5e &&
	       ip[11] == 0xfe;
}

static enum addr_kind kind_of_v4(const uint8_t ip[16])
{
	return kind_lookup(ip, kind_rows_v4, ARRAY_LEN(kind_rows_v4),
			   ADDR_GLOBAL);
}

static enum addr_kind kind_embedded(const uint8_t ip[16], unsigned at,
				    bool inverted)
{
	uint8_t v4[4], full[16];
	unsigned i;

	for (i = 0; i < 4; i++)
		v4[i] = inverted ? (uint8_t)~ip[at + i] : ip[at + i];
	ip_from_v4(full, v4);
	return kind_of_v4(full);
}

enum addr_kind addr_kind(const struct addr *a)
{
	const struct embed_row *row;
	enum addr_kind kind;
	size_t i;

	if (addr_is_v4(a))
		return kind_of_v4(a->ip);

	kind = kind_lookup(a->ip, kind_rows_v6, ARRAY_LEN(kind_rows_v6),
			   ADDR_RESERVED);
	if (kind == ADDR_UNSPECIFIED || kind == ADDR_LOOPBACK)
		return kind;
	for (i = 0; i < ARRAY_LEN(embed_rows); i++) {
		row = &embed_rows[i];
		if (prefix_eq(a->ip, row->ip, row->bits))
			kind = MIN(kind, kind_embedded(a->ip, row->at,
						       row->inverted));
	}
	if (is_isatap(a->ip))
		kind = MIN(kind, kind_embedded(a->ip, 12, false));
	return kind;
}

const char *addr_kind_name(enum addr_kind kind)
{
	return kind < ADDR_KIND_NUM ? kind_names[kind] : "unknown";
}

bool addr_eq_ip(const struct addr *a, const struct addr *b)
{
	return memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

bool addr_parse(struct span text, struct addr *ret)
{
	struct addr a = { 0 };
	char copy[INET6_ADDRSTRLEN];
	uint8_t v4[4];

	if (text.len > 2 && text.ptr[0] == '[' &&
	    text.ptr[text.len - 1] == ']') {
		text = span_of(text.ptr + 1, text.len - 2);
		if (span_find(text, ':') == text.len)
			return false;
	}
	if (!text.len || !span_copy(text, copy, sizeof(copy)))
		return false;
	if (inet_pton(AF_INET, copy, v4) == 1)
		ip_from_v4(a.ip, v4);
	else if (inet_pton(AF_INET6, copy, a.ip) != 1)
		return false;
	*ret = a;
	return true;
}

bool addr_parse_port(struct span text, uint16_t port, struct addr *ret)
{
	size_t colon = text.len;
	uint64_t number = port;
	struct addr a;

	if (addr_parse(text, &a)) {
		a.port = port;
		*ret = a;
		return true;
	}
	while (colon && text.ptr[colon - 1] != ':')
		colon--;
	if (!colon || !addr_parse(span_of(text.ptr, colon - 1), &a) ||
	    !span_parse_u64(span_from(text, colon), &number) || !number ||
	    number > UINT16_MAX)
		return false;
	/* "::1:53" is an address, never an address and a port; so with
	 * "::ffff:192.0.2.1:53" */
	if (text.ptr[0] != '[' && span_find(text, ':') != colon - 1)
		return false;
	a.port = (uint16_t)number;
	*ret = a;
	return true;
}

static void ip_mask(uint8_t ip[16], unsigned prefix)
{
	unsigned i;

	for (i = 0; i < 16; i++) {
		if (prefix >= (i + 1) * 8)
			continue;
		ip[i] &= prefix <= i * 8
				 ? 0
				 : (uint8_t)(0xff00u >> (prefix - i * 8));
	}
}

bool cidr_parse(struct span text, struct cidr *ret)
{
	struct span rest = text, ip = span_cut(&rest, '/');
	uint64_t prefix = 128;
	struct addr a;
	bool v4;

	if (!addr_parse(ip, &a))
		return false;
	v4 = addr_is_v4(&a) && span_find(ip, ':') == ip.len;
	if (ip.len != text.len) {
		if (!span_parse_u64(rest, &prefix) || prefix > (v4 ? 32 : 128))
			return false;
		prefix += v4 ? 96 : 0;
	}
	memcpy(ret->ip, a.ip, sizeof(ret->ip));
	ip_mask(ret->ip, (unsigned)prefix);
	ret->prefix = (uint8_t)prefix;
	return true;
}

bool cidr_has(const struct cidr *c, const struct addr *a)
{
	return prefix_eq(c->ip, a->ip, c->prefix);
}

bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret)
{
	const struct sockaddr_in *in = (const void *)sa;
	const struct sockaddr_in6 *in6 = (const void *)sa;
	struct addr a = { 0 };

	switch (sa->sa_family) {
	case AF_INET:
		ip_from_v4(a.ip, (const uint8_t *)&in->sin_addr);
		a.port = ntohs(in->sin_port);
		break;
	case AF_INET6:
		memcpy(a.ip, &in6->sin6_addr, sizeof(a.ip));
		a.port = ntohs(in6->sin6_port);
		a.scope_id = in6->sin6_scope_id;
		break;
	default:
		return false;
	}
	*ret = a;
	return true;
}

socklen_t addr_to_sockaddr(const struct addr *a, struct sockaddr_storage *ret)
{
	struct sockaddr_in *in = (void *)ret;
	struct sockaddr_in6 *in6 = (void *)ret;

	memset(ret, 0, sizeof(*ret));
	if (addr_is_v4(a)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(a->port);
		memcpy(&in->sin_addr, a->ip + 12, 4);
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(a->port);
	in6->sin6_scope_id = a->scope_id;
	memcpy(&in6->sin6_addr, a->ip, 16);
	return sizeof(*in6);
}

static char *put(char *at, struct span s)
{
	memcpy(at, s.ptr, s.len);
	return at + s.len;
}

static char *put_decimal(char *at, unsigned v)
{
	char digits[SPAN_DECIMAL_SIZE];

	return put(at, span_decimal(v, digits));
}

/* Not by printf: each audit record has three of them. Returns the end, where a
 * NUL is not. */
static char *put_ip(char *at, const uint8_t ip[16])
{
	char v6[INET6_ADDRSTRLEN];

	if (memcmp(ip, mapped_prefix, 12) != 0) {
		(void)inet_ntop(AF_INET6, ip, v6, sizeof(v6));
		return put(at, span_str(v6));
	}
	for (unsigned i = 12; i < 16; i++) {
		if (i > 12)
			*at++ = '.';
		at = put_decimal(at, ip[i]);
	}
	return at;
}

static char *put_addr(char *at, const struct addr *a)
{
	at = put_ip(at, a->ip);
	if (!a->scope_id)
		return at;
	*at++ = '%';
	return put_decimal(at, a->scope_id);
}

/* Cuts what does not fit, as snprintf() would. */
static const char *text_end(struct span text, char *dst, size_t size)
{
	size_t len = MIN(text.len, size - 1);

	memcpy(dst, text.ptr, len);
	dst[len] = '\0';
	return dst;
}

const char *addr_text(const struct addr *a, char *dst, size_t size)
{
	char text[ADDR_TEXT_SIZE], *end = put_addr(text, a);

	return text_end(span_of(text, (size_t)(end - text)), dst, size);
}

const char *addr_text_port(const struct addr *a, char *dst, size_t size)
{
	bool v4 = addr_is_v4(a);
	char text[ADDR_TEXT_SIZE], *at = text;

	if (!v4)
		*at++ = '[';
	at = put_addr(at, a);
	at = put(at, v4 ? SPAN(":") : SPAN("]:"));
	at = put_decimal(at, a->port);
	return text_end(span_of(text, (size_t)(at - text)), dst, size);
}

const char *cidr_text(const struct cidr *c, char *dst, size_t size)
{
	bool v4 = c->prefix >= 96 && memcmp(c->ip, mapped_prefix, 12) == 0;
	char text[ADDR_TEXT_SIZE], *at = put_ip(text, c->ip);

	*at++ = '/';
	at = put_decimal(at, v4 ? c->prefix - 96u : c->prefix);
	return text_end(span_of(text, (size_t)(at - text)), dst, size);
}

const char *mac_text(const uint8_t mac[6], char dst[MAC_TEXT_SIZE])
{
	(void)snprintf(dst, MAC_TEXT_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x",
		       mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	return dst;
}
