/* SPDX-License-Identifier: Apache-2.0 */
/* dns.c - parse DNS messages: header, question, records, OPT
 *
 * How it works: dns_parse_query() and dns_parse_reply() read the message once
 * from front to back, every record included, and refuse it whole if anything
 * is wrong. Later walks over the records repeat the same reads and therefore
 * cannot fail. The work per message is bounded by DNS_RECORDS_MAX names of
 * DNS_NAME_MAX bytes.
 */

#include "src/wire/dns.h"

#include "src/base/err.h"

static const char *const error_texts[DNS_ERROR_NUM] = {
	[DNS_OK] = "fine",
#define DNS_ERROR_ROW(id, text) [DNS_E_##id] = (text),
	DNS_ERRORS(DNS_ERROR_ROW)
#undef DNS_ERROR_ROW
};

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

/* Reads the record at *at, all but its section. */
static enum dns_error record_read(struct span bytes, size_t *at,
				  struct dns_record *ret)
{
	size_t here = *at;

	if (!dns_name_read(bytes, &here, &ret->name))
		return DNS_E_NAME;
	if (bytes.len - here < 10)
		return DNS_E_RECORD;
	ret->type = get16(bytes, here);
	ret->rclass = get16(bytes, here + 2);
	ret->ttl_at = here + 4;
	ret->ttl_s = get32(bytes, here + 4);
	ret->data_at = here + 10;
	ret->data_len = get16(bytes, here + 8);
	if (ret->data_len > bytes.len - ret->data_at)
		return DNS_E_RECORD;

	*at = ret->data_at + ret->data_len;
	return DNS_OK;
}

/* Are the options of an OPT whole (RFC 6891 6.1.2)? */
static bool opt_is_whole(struct span data)
{
	size_t len;

	while (data.len) {
		if (data.len < 4)
			return false;
		len = get16(data, 2);
		if (len > data.len - 4)
			return false;
		data = span_from(data, 4 + len);
	}
	return true;
}

/* The fixed fields of OPT mean something else: RFC 6891 6.1.3. */
static enum dns_error opt_take(struct dns_message *m,
			       const struct dns_record *record)
{
	uint32_t bits = get32(m->bytes, record->ttl_at);
	struct span data =
		span_of(m->bytes.ptr + record->data_at, record->data_len);

	if (m->edns || record->section != DNS_ADDITIONAL ||
	    record->name.len != 1 || !opt_is_whole(data))
		return DNS_E_OPT;
	m->edns = true;
	m->edns_version = (uint8_t)(bits >> 16);
	m->udp_size = MAX(record->rclass, DNS_UDP_MIN);
	m->rcode = (uint16_t)((bits >> 24) << 4 | (m->rcode & 0xf));
	return DNS_OK;
}

static enum dns_error records_check(struct dns_message *m)
{
	size_t at = m->records_at;
	struct dns_record record;
	unsigned section, i;
	enum dns_error e;

	for (section = 0; section < DNS_SECTION_NUM; section++) {
		record.section = section;
		for (i = 0; i < m->counts[section]; i++) {
			e = record_read(m->bytes, &at, &record);
			if (!e && record.type == DNS_TYPE_OPT)
				e = opt_take(m, &record);
			if (e)
				return e;
		}
	}
	return at == m->bytes.len ? DNS_OK : DNS_E_TRAILING;
}

static enum dns_error question_read(struct dns_message *m)
{
	size_t at = DNS_HEAD_SIZE;

	/* a compressed name is shorter on the wire than written out */
	if (!dns_name_read(m->bytes, &at, &m->name) ||
	    at != DNS_HEAD_SIZE + (size_t)m->name.len)
		return DNS_E_NAME;
	if (m->bytes.len - at < 4)
		return DNS_E_SHORT;
	m->type = get16(m->bytes, at);
	m->qclass = get16(m->bytes, at + 2);
	m->records_at = at + 4;
	return DNS_OK;
}

static enum dns_error head_read(struct dns_message *m, bool is_reply)
{
	unsigned section, sum = 0;

	if (m->bytes.len < DNS_HEAD_SIZE)
		return DNS_E_SHORT;
	m->id = get16(m->bytes, 0);
	m->flags = get16(m->bytes, 2);
	m->rcode = m->flags & 0xf;
	m->udp_size = DNS_UDP_MIN;

	if (!!(m->flags & DNS_FLAG_QR) != is_reply)
		return DNS_E_DIRECTION;
	if (m->flags & 0x7800)
		return DNS_E_OPCODE;
	for (section = 0; section < DNS_SECTION_NUM; section++) {
		m->counts[section] = get16(m->bytes, 6 + 2 * section);
		sum += m->counts[section];
	}
	if (get16(m->bytes, 4) != 1 || sum > DNS_RECORDS_MAX)
		return DNS_E_COUNT;
	if (!is_reply && (m->counts[DNS_ANSWER] || m->counts[DNS_AUTHORITY]))
		return DNS_E_COUNT;
	return DNS_OK;
}

static enum dns_error message_parse(struct span bytes, bool is_reply,
				    struct dns_message *ret)
{
	struct dns_message m = { .bytes = bytes };
	enum dns_error e;

	e = head_read(&m, is_reply);
	if (!e)
		e = question_read(&m);
	if (!e && is_reply && (m.flags & DNS_FLAG_TC))
		memset(m.counts, 0, sizeof(m.counts));
	else if (!e)
		e = records_check(&m);
	if (!e)
		*ret = m;
	return e;
}

enum dns_error dns_parse_query(struct span bytes, struct dns_message *ret)
{
	return message_parse(bytes, false, ret);
}

enum dns_error dns_parse_reply(struct span bytes, struct dns_message *ret)
{
	return message_parse(bytes, true, ret);
}

bool dns_walk_next(struct dns_walk *w, const struct dns_message *m,
		   struct dns_record *ret)
{
	while (w->section < DNS_SECTION_NUM &&
	       w->index == m->counts[w->section]) {
		w->section++;
		w->index = 0;
	}
	if (w->section >= DNS_SECTION_NUM)
		return false;

	must(record_read(m->bytes, &w->at, ret) == DNS_OK);
	ret->section = w->section;
	if (ret->ttl_s & 0x80000000)
		ret->ttl_s = 0;
	w->index++;
	return true;
}

bool dns_record_addr(const struct dns_message *m,
		     const struct dns_record *record, struct addr *ret)
{
	const char *data = m->bytes.ptr + record->data_at;
	struct addr a = { .ip = { [10] = 0xff, [11] = 0xff } };

	if (record->rclass != DNS_CLASS_IN)
		return false;
	if (record->type == DNS_TYPE_A && record->data_len == 4)
		memcpy(a.ip + 12, data, 4);
	else if (record->type == DNS_TYPE_AAAA && record->data_len == 16)
		memcpy(a.ip, data, 16);
	else
		return false;
	*ret = a;
	return true;
}

/* The name that fills the record's data from `skip` on. */
static bool record_name(const struct dns_message *m,
			const struct dns_record *record, size_t skip,
			struct dns_name *ret)
{
	struct span bytes =
		span_of(m->bytes.ptr, record->data_at + record->data_len);
	size_t at = record->data_at + skip;

	return record->data_len > skip && dns_name_read(bytes, &at, ret) &&
	       at == bytes.len;
}

bool dns_record_target(const struct dns_message *m,
		       const struct dns_record *record, struct span *ret_before,
		       struct dns_name *ret)
{
	size_t skip = 0;

	switch (record->type) {
	case DNS_TYPE_CNAME:
	case DNS_TYPE_DNAME:
	case DNS_TYPE_NS:
	case DNS_TYPE_PTR:
		break;
	case DNS_TYPE_MX:
		skip = 2;
		break;
	case DNS_TYPE_SRV:
		skip = 6;
		break;
	default:
		return false; /* no compression in there (RFC 3597 4) */
	}
	*ret_before = span_of(m->bytes.ptr + record->data_at, skip);
	return record_name(m, record, skip, ret);
}

bool dns_record_negative_ttl(const struct dns_message *m,
			     const struct dns_record *record, uint32_t *ret_s)
{
	size_t at = record->data_at, end = at + record->data_len;
	struct span bytes = span_of(m->bytes.ptr, end);
	struct dns_name name;

	if (record->type != DNS_TYPE_SOA || !dns_name_read(bytes, &at, &name) ||
	    !dns_name_read(bytes, &at, &name) || end - at != 20)
		return false;
	*ret_s = MIN(record->ttl_s, get32(bytes, at + 16));
	return true;
}
