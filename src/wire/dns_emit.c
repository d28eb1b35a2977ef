/* SPDX-License-Identifier: Apache-2.0 */
/* dns_emit.c - write DNS queries, replies and relayed answers
 *
 * How it works: bytes go through struct out, which stops at its size and
 * remembers. A reply reserves its OPT first, because the reason of a denial
 * matters more than records: if the records do not fit beside it, there are
 * none and TC says so. The header's counts and flags are written last.
 */

#include "src/wire/dns_emit.h"

#include <assert.h>

#include "src/base/err.h"

enum {
	OPT_SIZE = 11,	   /* an OPT without options */
	EDE_HEAD_SIZE = 6, /* option code, length, info code */
	OPTION_EDE = 15,
	NAME_POINTER = 0xc000 | DNS_HEAD_SIZE, /* to the question's name */
};

/* Head, question, OPT and a full EDE fit what every client takes. */
static_assert(DNS_HEAD_SIZE + DNS_NAME_MAX + 4 + OPT_SIZE + EDE_HEAD_SIZE +
			      DNS_EDE_TEXT_MAX <=
		      DNS_UDP_MIN,
	      "a denial always fits");

struct out {
	uint8_t *data;
	size_t size, len;
	bool overflow;
};

static void out_bytes(struct out *o, const void *bytes, size_t len)
{
	if (len > o->size - o->len) {
		o->overflow = true;
		return;
	}
	memcpy(o->data + o->len, bytes, len);
	o->len += len;
}

static void out_8(struct out *o, unsigned value)
{
	uint8_t byte = (uint8_t)value;

	out_bytes(o, &byte, 1);
}

static void out_16(struct out *o, unsigned value)
{
	out_8(o, value >> 8);
	out_8(o, value);
}

static void out_32(struct out *o, uint32_t value)
{
	out_16(o, value >> 16);
	out_16(o, value & 0xffff);
}

/* Overwrites what was written already. */
static void out_16_at(struct out *o, size_t at, unsigned value)
{
	o->data[at] = (uint8_t)(value >> 8);
	o->data[at + 1] = (uint8_t)value;
}

static void out_head(struct out *o, uint16_t id, unsigned flags)
{
	out_16(o, id);
	out_16(o, flags);
	out_16(o, 1); /* questions */
	out_16(o, 0);
	out_16(o, 0);
	out_16(o, 0);
}

static void out_question(struct out *o, const struct dns_name *name,
			 uint16_t type, uint16_t qclass)
{
	out_bytes(o, name->wire, name->len);
	out_16(o, type);
	out_16(o, qclass);
}

static void out_opt(struct out *o, uint16_t udp_size, unsigned rcode,
		    unsigned data_len)
{
	out_8(o, 0); /* the root */
	out_16(o, DNS_TYPE_OPT);
	out_16(o, udp_size);
	out_32(o, (uint32_t)(rcode >> 4) << 24); /* version 0, no DO */
	out_16(o, data_len);
}

size_t dns_emit_query(uint16_t id, const struct dns_name *name, uint16_t type,
		      uint16_t udp_size, uint8_t *dst, size_t size)
{
	struct out o = { .data = dst, .size = size };

	out_head(&o, id, DNS_FLAG_RD);
	out_question(&o, name, type, DNS_CLASS_IN);
	if (udp_size) {
		out_opt(&o, udp_size, 0, 0);
		if (!o.overflow)
			out_16_at(&o, 10, 1); /* additional records */
	}
	return o.overflow ? 0 : o.len;
}

/* What goes into the reply's OPT, and how long that will be. */
struct opt_plan {
	bool wanted;
	enum dns_ede ede;
	uint16_t rcode;
	size_t text_len;
	struct span text;
};

static struct opt_plan opt_plan(const struct dns_message *query, uint16_t rcode,
				enum dns_ede ede, struct span text)
{
	return (struct opt_plan){
		.wanted = query->edns,
		.ede = ede,
		.rcode = rcode,
		.text = text,
		.text_len = MIN(text.len, (size_t)DNS_EDE_TEXT_MAX),
	};
}

static size_t opt_plan_size(const struct opt_plan *p)
{
	if (!p->wanted)
		return 0;
	if (p->ede == DNS_EDE_NONE)
		return OPT_SIZE;
	return OPT_SIZE + EDE_HEAD_SIZE + p->text_len;
}

/* The extra text is UTF-8 by RFC 8914; ours is its ASCII part, so that a cut
 * never splits a character and a terminal never sees a control byte. */
static void out_ede_text(struct out *o, const struct opt_plan *p)
{
	size_t i, dots = p->text_len < p->text.len ? p->text_len - 3 : SIZE_MAX;
	char c;

	for (i = 0; i < p->text_len; i++) {
		c = p->text.ptr[i];
		if (c < ' ' || c > '~')
			c = '?';
		out_8(o, (uint8_t)(i >= dots ? '.' : c));
	}
}

static void out_opt_plan(struct out *o, const struct opt_plan *p)
{
	if (!p->wanted)
		return;
	out_opt(o, DNS_UDP_MAX, p->rcode,
		(unsigned)(opt_plan_size(p) - OPT_SIZE));
	if (p->ede != DNS_EDE_NONE) {
		out_16(o, OPTION_EDE);
		out_16(o, (unsigned)(2 + p->text_len));
		out_16(o, (unsigned)p->ede);
		out_ede_text(o, p);
	}
}

static unsigned reply_flags(const struct dns_message *query, uint16_t rcode)
{
	return DNS_FLAG_QR | DNS_FLAG_RA |
	       (query->flags & (DNS_FLAG_RD | DNS_FLAG_CD)) | (rcode & 0xf);
}

/* Appends the OPT and settles the header. answers < 0: they did not fit. */
static size_t reply_finish(struct out *o, const struct dns_message *query,
			   const struct opt_plan *opt, int answers)
{
	unsigned flags = reply_flags(query, opt->rcode);

	if (answers < 0) {
		o->len = DNS_HEAD_SIZE + (size_t)query->name.len + 4;
		flags |= DNS_FLAG_TC;
		answers = 0;
	}
	o->overflow = false;
	out_opt_plan(o, opt);
	if (o->overflow)
		return 0;
	out_16_at(o, 2, flags);
	out_16_at(o, 6, (unsigned)answers);
	out_16_at(o, 8, 0);
	out_16_at(o, 10, opt->wanted);
	return o->len;
}

static bool addr_answers(const struct addr *a, uint16_t type)
{
	return type == (addr_is_v4(a) ? DNS_TYPE_A : DNS_TYPE_AAAA);
}

/* An address record of the question's name. */
static void out_addr(struct out *o, const struct addr *a, uint32_t ttl_s)
{
	bool v4 = addr_is_v4(a);

	out_16(o, NAME_POINTER);
	out_16(o, v4 ? DNS_TYPE_A : DNS_TYPE_AAAA);
	out_16(o, DNS_CLASS_IN);
	out_32(o, ttl_s);
	out_16(o, v4 ? 4 : 16);
	out_bytes(o, v4 ? a->ip + 12 : a->ip, v4 ? 4 : 16);
}

size_t dns_emit_reply(const struct dns_message *query,
		      const struct dns_reply *reply, uint8_t *dst, size_t size)
{
	struct opt_plan opt =
		opt_plan(query, reply->rcode, reply->ede, reply->ede_text);
	struct out o = { .data = dst };
	int answers = 0;
	unsigned i;

	if (size < DNS_UDP_MIN)
		return 0;
	o.size = size - opt_plan_size(&opt);
	out_head(&o, query->id, 0);
	out_question(&o, &query->name, query->type, query->qclass);
	for (i = 0; i < reply->addr_count; i++) {
		if (!addr_answers(&reply->addrs[i], query->type))
			continue;
		out_addr(&o, &reply->addrs[i], reply->ttl_s);
		answers++;
	}
	if (o.overflow)
		answers = -1;
	o.size = size;
	return reply_finish(&o, query, &opt, answers);
}

/* May this record stand in an answer to that question? */
static bool relay_may(const struct dns_message *upstream,
		      const struct dns_record *record, uint16_t type)
{
	return record->rclass == DNS_CLASS_IN &&
	       (record->type == type || record->type == DNS_TYPE_CNAME ||
		record->type == DNS_TYPE_DNAME) &&
	       dns_record_is_sound(upstream, record);
}

/* Where the answer section ends; 0 when something else stands in it. */
static size_t relay_end(const struct dns_message *upstream)
{
	struct dns_walk w = DNS_WALK(upstream);
	size_t end = upstream->records_at;
	struct dns_record record;

	while (dns_walk_next(&w, upstream, &record)) {
		if (record.section != DNS_ANSWER)
			break;
		if (!relay_may(upstream, &record, upstream->type))
			return 0;
		end = record.data_at + record.data_len;
	}
	return end;
}

static void relay_clamp_ttls(struct out *o, const struct dns_message *upstream,
			     uint32_t min_ttl_s, uint32_t max_ttl_s)
{
	struct dns_walk w = DNS_WALK(upstream);
	struct dns_record record;
	uint32_t ttl_s;

	while (dns_walk_next(&w, upstream, &record) &&
	       record.section == DNS_ANSWER) {
		ttl_s = MIN(MAX(record.ttl_s, min_ttl_s), max_ttl_s);
		out_16_at(o, record.ttl_at, ttl_s >> 16);
		out_16_at(o, record.ttl_at + 2, ttl_s & 0xffff);
	}
}

/* Is what we are about to pass on still a message? A pointer may read another
 * record's TTL as part of a name, and TTLs were just changed. */
static bool relay_is_sound(const uint8_t *bytes, size_t len)
{
	struct dns_message m;

	return dns_parse_reply(span_of(bytes, len), &m) == DNS_OK &&
	       relay_end(&m) > 0;
}

size_t dns_emit_relay(const struct dns_message *query,
		      const struct dns_message *upstream, uint32_t min_ttl_s,
		      uint32_t max_ttl_s, uint8_t *dst, size_t size)
{
	struct opt_plan opt =
		opt_plan(query, upstream->rcode, DNS_EDE_NONE, SPAN_NONE);
	struct out o = { .data = dst, .size = size };
	size_t end = relay_end(upstream), len;
	int answers = -1;

	if (size < DNS_UDP_MIN || !end || upstream->type != query->type ||
	    !dns_name_eq(&upstream->name, &query->name))
		return 0;

	/* The same question has the same length, so every pointer in the
	 * answer still points at what it meant. */
	out_head(&o, query->id, 0);
	out_question(&o, &query->name, query->type, query->qclass);
	must(o.len == upstream->records_at);
	if (end + opt_plan_size(&opt) <= size) {
		out_bytes(&o, upstream->bytes.ptr + o.len, end - o.len);
		relay_clamp_ttls(&o, upstream, min_ttl_s, max_ttl_s);
		answers = upstream->counts[DNS_ANSWER];
	}
	len = reply_finish(&o, query, &opt, answers);
	return len && relay_is_sound(dst, len) ? len : 0;
}
