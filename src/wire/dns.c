/* SPDX-License-Identifier: Apache-2.0 */
/* dns.c - parse DNS messages: names, header, question, records, OPT
 *
 * How it works: dns_parse_query() and dns_parse_reply() read the message once
 * from front to back, every record included, and refuse it whole if anything
 * is wrong. Later walks over the records repeat the same reads and therefore
 * cannot fail. A name is followed through pointers that each lie strictly
 * before the run of labels they were met in, so it ends; work per message is
 * bounded by DNS_RECORDS_MAX names of DNS_NAME_MAX bytes.
 */

#include "src/wire/dns.h"

#include <stdio.h>

static const struct {
	uint16_t number;
	const char *name;
} type_names[] = {
#define DNS_TYPE_ROW(id, number) { number, #id },
	DNS_TYPES(DNS_TYPE_ROW)
#undef DNS_TYPE_ROW
};

static const char *const error_texts[DNS_ERROR_NUM] = {
	[DNS_OK] = "fine",
#define DNS_ERROR_ROW(id, text) [DNS_E_##id] = text,
	DNS_ERRORS(DNS_ERROR_ROW)
#undef DNS_ERROR_ROW
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
	static const char *const names[] = {
		[DNS_NOERROR] = "NOERROR",   [DNS_FORMERR] = "FORMERR",
		[DNS_SERVFAIL] = "SERVFAIL", [DNS_NXDOMAIN] = "NXDOMAIN",
		[DNS_NOTIMP] = "NOTIMP",     [DNS_REFUSED] = "REFUSED",
		[DNS_BADVERS] = "BADVERS",
	};

	if (rcode < ARRAY_LEN(names) && names[rcode])
		return names[rcode];
	return "other";
}

const char *dns_error_text(enum dns_error error)
{
	return (unsigned)error < DNS_ERROR_NUM ? error_texts[error] : "unknown";
}

/* Big-endian reads; the caller has checked the bounds. */
static uint16_t get16(struct span s, size_t at)
{
	const uint8_t *p = (const uint8_t *)s.ptr + at;

	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(struct span s, size_t at)
{
	return (uint32_t)get16(s, at) << 16 | get16(s, at + 2);
}

bool dns_name_from_host(struct span host, struct dns_name *ret)
{
	struct dns_name name = { 0 };
	struct span label;

	if (!host.len || host.len > HOST_MAX)
		return false;
	while (host.len) {
		label = span_of(host.ptr, span_find(host, '.'));
		if (!label.len || label.len > 63)
			return false;
		name.wire[name.len++] = (uint8_t)label.len;
		memcpy(name.wire + name.len, label.ptr, label.len);
		name.len += (uint8_t)label.len;
		if (label.len + 1 == host.len)
			return false; /* a trailing dot is not canonical */
		host = span_from(host, label.len + 1);
	}
	name.wire[name.len++] = 0;
	*ret = name;
	return true;
}

bool dns_name_to_host(const struct dns_name *name, struct host *ret)
{
	char text[DNS_NAME_MAX];
	size_t at = 0, len = 0;
	unsigned label;

	while ((label = name->wire[at++])) {
		/* a dot inside a label must not become a label boundary */
		if (memchr(name->wire + at, '.', label))
			return false;
		if (len)
			text[len++] = '.';
		memcpy(text + len, name->wire + at, label);
		len += label;
		at += label;
	}
	return host_canon(span_of(text, len), ret);
}

bool dns_name_eq(const struct dns_name *a, const struct dns_name *b)
{
	/* length bytes are below 'A', so folding case leaves them alone */
	return span_eq_nocase(span_of(a->wire, a->len),
			      span_of(b->wire, b->len));
}

const char *dns_name_text(const struct dns_name *name, char *dst, size_t size)
{
	size_t at = 0, out = 0, end;
	char piece[8];
	uint8_t c;
	int len;

	must_fit(size);
	dst[0] = '\0';
	return dst;
}
