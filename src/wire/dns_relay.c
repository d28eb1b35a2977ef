/* SPDX-License-Identifier: Apache-2.0 */
/* dns_relay.c - pass an upstream answer on to the same question */

#include "src/wire/dns_relay.h"

#include "src/base/err.h"
#include "src/wire/dns_out.h"
#include "src/wire/dns_svcb.h"

/* A relay under way. */
struct pass {
	const struct dns_message *upstream;
	struct dns_relay *how;
	struct dns_name owner; /* where the aliases lead */
	uint32_t ttl_s;	       /* the smallest on the way there */
	struct out out;
	int answers;
};

static bool is_service(uint16_t type)
{
	return type == DNS_TYPE_SVCB || type == DNS_TYPE_HTTPS;
}

/* Do only aliases and records of the asked type stand in the answer? */
static bool answer_is_ours(const struct dns_message *m)
{
	struct dns_walk w = DNS_WALK(m);
	struct dns_record record;

	while (dns_walk_next(&w, m, &record) && record.section == DNS_ANSWER)
		if (record.rclass != DNS_CLASS_IN ||
		    (record.type != m->type && record.type != DNS_TYPE_CNAME &&
		     record.type != DNS_TYPE_DNAME))
			return false;
	return true;
}

/* One alias further. False: the name has none, or *ret_broken. */
static bool pass_follow(struct pass *p, bool *ret_broken)
{
	struct dns_walk w = DNS_WALK(p->upstream);
	struct dns_record record;
	struct dns_name target;
	struct span before;

	while (dns_walk_next(&w, p->upstream, &record) &&
	       record.section == DNS_ANSWER) {
		if (record.type != DNS_TYPE_CNAME ||
		    !dns_name_eq(&record.name, &p->owner))
			continue;
		*ret_broken = !dns_record_target(p->upstream, &record, &before,
						 &target);
		if (*ret_broken)
			return false;
		p->owner = target;
		p->ttl_s = MIN(p->ttl_s, record.ttl_s);
		return true;
	}
	return false;
}

/* To the end of the aliases. False: there is none. */
static bool pass_follow_all(struct pass *p)
{
	unsigned links = 0;
	bool broken = false;

	if (p->upstream->type == DNS_TYPE_CNAME)
		return true;
	while (pass_follow(p, &broken))
		if (++links > DNS_RELAY_LINKS_MAX)
			return false;
	return !broken;
}

static void pass_begin_record(struct pass *p, const struct dns_record *record)
{
	uint32_t ttl_s = MIN(record->ttl_s, p->ttl_s);

	out_16(&p->out, DNS_OUT_QUESTION);
	out_16(&p->out, record->type);
	out_16(&p->out, DNS_CLASS_IN);
	out_32(&p->out, MIN(MAX(ttl_s, p->how->min_ttl_s), p->how->max_ttl_s));
}

static enum dns_relay_end pass_service(struct pass *p,
				       const struct dns_record *record)
{
	struct span data = span_of(p->upstream->bytes.ptr + record->data_at,
				   record->data_len);
	size_t start = p->out.len, len;
	struct dns_svcb service;

	if (!dns_svcb_parse(data, &service))
		return DNS_RELAY_MALFORMED;
	pass_begin_record(p, record);
	out_16(&p->out, 0);
	/* what is left of it is not longer than it was */
	p->out.overflow |= data.len > p->out.size - p->out.len;
	if (p->out.overflow)
		return DNS_RELAY_DONE;
	len = dns_svcb_emit(&service, p->out.data + p->out.len, data.len);
	if (!len ||
	    !p->how->may_lead(p->how->ctx, &service.target, service.port)) {
		p->out.len = start;
		p->how->withheld++;
		return DNS_RELAY_DONE;
	}
	out_16_at(&p->out, p->out.len - 2, (unsigned)len);
	p->out.len += len;
	p->answers++;
	return DNS_RELAY_DONE;
}

/* Names in the data are written out; other data has none. */
static enum dns_relay_end pass_record(struct pass *p,
				      const struct dns_record *record)
{
	const char *data = p->upstream->bytes.ptr + record->data_at;
	struct span before = span_of(data, record->data_len);
	struct dns_name target = { 0 };

	if (is_service(record->type))
		return pass_service(p, record);
	if ((record->type == DNS_TYPE_CNAME || record->type == DNS_TYPE_MX ||
	     record->type == DNS_TYPE_SRV) &&
	    !dns_record_target(p->upstream, record, &before, &target))
		return DNS_RELAY_UNUSABLE;
	pass_begin_record(p, record);
	out_16(&p->out, (unsigned)(before.len + target.len));
	out_bytes(&p->out, before.ptr, before.len);
	out_bytes(&p->out, target.wire, target.len);
	p->answers++;
	return DNS_RELAY_DONE;
}

static enum dns_relay_end pass_records(struct pass *p)
{
	struct dns_walk w = DNS_WALK(p->upstream);
	enum dns_relay_end end = DNS_RELAY_DONE;
	struct dns_record record;

	while (end == DNS_RELAY_DONE &&
	       dns_walk_next(&w, p->upstream, &record) &&
	       record.section == DNS_ANSWER)
		if (record.type == p->upstream->type &&
		    dns_name_eq(&record.name, &p->owner))
			end = pass_record(p, &record);
	if (end == DNS_RELAY_DONE && p->how->withheld && !p->answers &&
	    !p->out.overflow)
		return DNS_RELAY_WITHHELD;
	return end;
}

enum dns_relay_end dns_emit_relay(const struct dns_message *query,
				  const struct dns_message *upstream,
				  struct dns_relay *how, uint8_t *dst,
				  size_t size)
{
	struct dns_opt_plan opt =
		dns_opt_plan(query, upstream->rcode, DNS_EDE_NONE, SPAN_NONE);
	struct pass p = {
		.upstream = upstream,
		.how = how,
		.owner = query->name,
		.ttl_s = UINT32_MAX,
		.out = { .data = dst, .size = size },
	};
	enum dns_relay_end end;

	how->len = how->withheld = 0;
	if (size < DNS_UDP_MIN || upstream->type != query->type ||
	    !dns_name_eq(&upstream->name, &query->name) ||
	    !answer_is_ours(upstream) || !pass_follow_all(&p))
		return DNS_RELAY_UNUSABLE;

	p.out.size = size - dns_opt_plan_size(&opt);
	dns_begin(&p.out, query);
	end = pass_records(&p);
	if (end != DNS_RELAY_DONE)
		return end;
	if (p.out.overflow)
		p.answers = -1;
	p.out.size = size;
	how->len = dns_finish(&p.out, query, &opt, p.answers);
	return how->len ? DNS_RELAY_DONE : DNS_RELAY_UNUSABLE;
}
