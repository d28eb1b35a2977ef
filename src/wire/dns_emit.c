/* SPDX-License-Identifier: Apache-2.0 */
/* dns_emit.c - write DNS queries and replies of our own */

#include "src/wire/dns_emit.h"

#include <assert.h>

#include "src/base/err.h"
#include "src/wire/dns_out.h"

enum {
	OPT_SIZE = 11,	   /* an OPT without options */
	EDE_HEAD_SIZE = 6, /* option code, length, info code */
	OPTION_EDE = 15,
};

/* Head, question, OPT and a full EDE fit what every client takes. */
static_assert(DNS_HEAD_SIZE + DNS_NAME_MAX + 4 + OPT_SIZE + EDE_HEAD_SIZE +
			      DNS_EDE_TEXT_MAX <=
		      DNS_UDP_MIN,
	      "a denial always fits");

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

void dns_begin(struct out *o, const struct dns_message *query)
{
	out_head(o, query->id, 0);
	out_question(o, &query->name, query->type, query->qclass);
}

struct dns_opt_plan dns_opt_plan(const struct dns_message *query,
				 uint16_t rcode, enum dns_ede ede,
				 struct span text)
{
	return (struct dns_opt_plan){
		.wanted = query->edns,
		.ede = ede,
		.rcode = rcode,
		.text = text,
		.text_len = MIN(text.len, (size_t)DNS_EDE_TEXT_MAX),
	};
}

size_t dns_opt_plan_size(const struct dns_opt_plan *p)
{
	if (!p->wanted)
		return 0;
	if (p->ede == DNS_EDE_NONE)
		return OPT_SIZE;
	return OPT_SIZE + EDE_HEAD_SIZE + p->text_len;
}

/* The extra text is UTF-8 by RFC 8914; ours is its ASCII part, so that a cut
 * never splits a character and a terminal never sees a control byte. */
static void out_ede_text(struct out *o, const struct dns_opt_plan *p)
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

static void out_opt_plan(struct out *o, const struct dns_opt_plan *p)
{
	if (!p->wanted)
		return;
	out_opt(o, DNS_UDP_MAX, p->rcode,
		(unsigned)(dns_opt_plan_size(p) - OPT_SIZE));
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
size_t dns_finish(struct out *o, const struct dns_message *query,
		  const struct dns_opt_plan *opt, int answers)
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

	out_16(o, DNS_OUT_QUESTION);
	out_16(o, v4 ? DNS_TYPE_A : DNS_TYPE_AAAA);
	out_16(o, DNS_CLASS_IN);
	out_32(o, ttl_s);
	out_16(o, v4 ? 4 : 16);
	out_bytes(o, v4 ? a->ip + 12 : a->ip, v4 ? 4 : 16);
}

size_t dns_emit_reply(const struct dns_message *query,
		      const struct dns_reply *reply, uint8_t *dst, size_t size)
{
	struct dns_opt_plan opt =
		dns_opt_plan(query, reply->rcode, reply->ede, reply->ede_text);
	struct out o = { .data = dst };
	int answers = 0;
	unsigned i;

	if (size < DNS_UDP_MIN)
		return 0;
	o.size = size - dns_opt_plan_size(&opt);
	dns_begin(&o, query);
	for (i = 0; i < reply->addr_count; i++) {
		if (!addr_answers(&reply->addrs[i], query->type))
			continue;
		out_addr(&o, &reply->addrs[i], reply->ttl_s);
		answers++;
	}
	if (o.overflow)
		answers = -1;
	o.size = size;
	return dns_finish(&o, query, &opt, answers);
}
