/* SPDX-License-Identifier: Apache-2.0 */
/* question.c - one question of a sandbox, from its bytes to its answer
 *
 * Three walks:
 *
 *   allowed	question_run -> decide says yes -> the A row of the table ->
 *		resolver_find knows nothing -> question_keep, resolver_lookup ->
 *		question_on_lookup -> reply, audit
 *   denied	question_run -> decide says no -> NXDOMAIN with the owner's
 *		sentence as Extended DNS Error, audit; nothing went upstream
 *   odd	a name that is no host name, a class other than IN, a type
 *		that asks for many: REFUSED with a sentence, audit
 *
 * Every question that decide saw meets audit exactly once, in
 * question_settle().
 */

#include "gateway/dns/question.h"

#include "gateway/dns/ask.h"
#include "gateway/dns/resolver.h"
#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/wire/dns_emit.h"
#include "src/wire/dns_relay.h"

/* What is done with an allowed question of a type. */
enum type_way {
	WAY_WITHHOLD, /* zero: there is no data, and a word why */
	WAY_RESOLVE,  /* from the resolver */
	WAY_FORWARD,  /* upstream, as our own question */
};

struct type_row {
	uint16_t type;
	enum type_way way;
	const char *why; /* withheld */
};

static const struct type_row type_rows[] = {
	{ DNS_TYPE_A, WAY_RESOLVE, NULL },
	{ DNS_TYPE_AAAA, WAY_RESOLVE, NULL },
	{ DNS_TYPE_CNAME, WAY_FORWARD, NULL },
	{ DNS_TYPE_MX, WAY_FORWARD, NULL },
	{ DNS_TYPE_TXT, WAY_FORWARD, NULL },
	{ DNS_TYPE_SRV, WAY_FORWARD, NULL },
	{ DNS_TYPE_CAA, WAY_FORWARD, NULL },
	{ DNS_TYPE_SVCB, WAY_FORWARD, NULL }, /* cleaned, wire/dns_svcb.h */
	{ DNS_TYPE_HTTPS, WAY_FORWARD, NULL },
	{ 0, WAY_WITHHOLD, "questions of this type are not answered here" },
};

static const struct type_row *type_row(uint16_t type)
{
	const struct type_row *row = type_rows;

	while (row->type && row->type != type)
		row++;
	return row;
}

void path_init(struct dns_path *path, struct dns_server *s,
	       const struct dns_path_ops *ops)
{
	path->server = s;
	path->ops = ops;
	path->question_count = 0;
	list_init(&path->questions);
}

/* Keeps a copy of q until the resolver calls back; NULL: over a limit. */
static struct question *question_keep(const struct question *q)
{
	struct dns_server *s = q->path->server;
	struct client_load *load = load_at(s, &q->client);
	struct question *kept;

	if (s->questions >= s->config.queries_max ||
	    load->questions >= s->config.client_queries_max) {
		load_settle(load);
		return NULL;
	}
	kept = must_alloc(sizeof(*kept));
	*kept = *q;
	kept->load = load;
	list_init(&kept->link);
	list_push(&q->path->questions, &kept->link);
	q->path->question_count++;
	load->questions++;
	s->questions++;
	return kept;
}

/* Undoes question_keep(). */
static void question_free(struct question *q)
{
	(void)lookup_cancel(q->lookup);
	(void)ask_free(q->ask);
	list_remove(&q->link);
	q->path->question_count--;
	q->path->server->questions--;
	q->load->questions--;
	load_settle(q->load);
	free(q);
}

/* Tells the owner what was answered. */
static void question_settle(struct question *q, uint16_t rcode)
{
	struct dns_server *s = q->path->server;
	char text[DNS_NAME_MAX + 1];
	struct dns_event event = {
		.client = &q->client,
		.decision = &q->decision,
		.host = host_span(&q->host),
		.type = q->query.type,
		.rcode = rcode,
		.end = q->end,
		.tcp = q->path->ops->tcp,
		.source = q->source,
		.addrs = q->addrs,
		.addr_count = q->addr_count,
		.ttl_s = q->ttl_s,
		.took_ms = loop_now_ms(s->loop) - q->began_ms,
	};

	if (!q->host.len)
		event.host = span_str(
			dns_name_text(&q->query.name, text, sizeof(text)));
	s->ops->audit(s->ctx, &event);
}

void path_fini(struct dns_path *path)
{
	struct question *q;

	list_for_each(it, &path->questions)
	{
		q = container_of(it, struct question, link);
		q->end = DNS_END_FAILED;
		question_settle(q, DNS_SERVFAIL);
		question_free(q);
	}
}

/* Over UDP the client says what it takes; never more than any path carries. */
static size_t question_limit(const struct question *q)
{
	if (q->path->ops->tcp)
		return DNS_MESSAGE_MAX;
	return MIN(q->query.udp_size, DNS_UDP_MAX);
}

/* Sends the message of that length that stands in the server's buffer. */
static void question_send(struct question *q, size_t len, uint16_t rcode)
{
	struct dns_server *s = q->path->server;
	uint8_t *message = s->reply + 2;

	must(len >= DNS_HEAD_SIZE);
	if (message[2] & DNS_FLAG_TC >> 8)
		s->counters->truncated++;
	/* What follows from the answer first: who hears it may use it before
	 * this thread goes on, and be met by another. */
	question_settle(q, rcode);
	q->path->ops->send(q->path, &q->client, span_of(message, len));
}

static void question_reply(struct question *q, const struct dns_reply *reply)
{
	size_t len =
		dns_emit_reply(&q->query, reply, q->path->server->reply + 2,
			       question_limit(q));

	question_send(q, len, reply->rcode);
}

static void question_say(struct question *q, enum dns_rcode rcode,
			 enum dns_ede ede, const char *text)
{
	question_reply(q, &(struct dns_reply){
				  .rcode = (uint16_t)rcode,
				  .ede = ede,
				  .ede_text = span_str(text),
			  });
}

/* Answered without asking the owner, whose decision stays empty. */
static void question_refuse(struct question *q, enum dns_rcode rcode,
			    const char *text)
{
	q->path->server->counters->refused++;
	q->end = DNS_END_REFUSED;
	question_say(q, rcode, DNS_EDE_NOT_SUPPORTED, text);
}

static void question_overload(struct question *q)
{
	q->path->server->counters->overload++;
	question_say(q, DNS_SERVFAIL, DNS_EDE_PROHIBITED,
		     "too many questions are under way");
}

/* The owner said why. */
static void question_deny(struct question *q)
{
	struct dns_counters *counters = q->path->server->counters;
	bool limited = q->decision.allowed || q->decision.limited;

	q->end = q->decision.allowed ? DNS_END_LIMITED : DNS_END_DENIED;
	if (limited) {
		counters->limited++;
		question_say(q, DNS_REFUSED, DNS_EDE_PROHIBITED,
			     q->decision.text);
		return;
	}
	counters->denied++;
	question_say(q, DNS_NXDOMAIN, DNS_EDE_FILTERED, q->decision.text);
}

/* There are records, and none may be seen. The name exists: NXDOMAIN would
 * be a lie that is kept for other types too. */
static void question_withhold(struct question *q, enum dns_ede ede,
			      const char *text)
{
	q->path->server->counters->filtered++;
	q->end = DNS_END_FILTERED;
	question_say(q, DNS_NOERROR, ede, text);
}

static void question_fail(struct question *q)
{
	q->path->server->counters->failed++;
	question_say(q, DNS_SERVFAIL, DNS_EDE_NO_REACHABLE,
		     "no upstream server gave a usable answer");
}

/* Of the family that was asked for, those that may be seen. Returns how many
 * may not. */
static unsigned question_take_addrs(struct question *q,
				    const struct name_answer *answer)
{
	struct dns_server *s = q->path->server;
	bool v4 = q->query.type == DNS_TYPE_A;
	const struct addr *a;
	unsigned left_out = 0;

	q->addr_count = 0;
	for (a = answer->addrs; a < answer->addrs + answer->count; a++) {
		if (addr_is_v4(a) != v4)
			continue;
		if (s->ops->may_see(s->ctx, &q->decision, host_span(&q->host),
				    a, answer->source))
			q->addrs[q->addr_count++] = *a;
		else
			left_out++;
	}
	s->counters->addresses_left_out += left_out;
	return left_out;
}

static void question_answer(struct question *q,
			    const struct name_answer *answer)
{
	struct dns_reply reply = { .addrs = q->addrs };
	unsigned left_out;

	q->source = answer->source;
	if (answer->status == NAME_FAILED) {
		question_fail(q);
		return;
	}
	left_out = question_take_addrs(q, answer);
	if (left_out && !q->addr_count) {
		question_withhold(q, DNS_EDE_FILTERED,
				  "the name resolves only to addresses a "
				  "sandbox may not reach");
		return;
	}
	q->path->server->counters->answered++;
	q->end = DNS_END_ANSWERED;
	q->ttl_s = resolver_clamp_ttl(q->path->server->resolver, answer->ttl_s);
	reply.addr_count = q->addr_count;
	reply.ttl_s = q->ttl_s;
	if (answer->status == NAME_NXDOMAIN)
		reply.rcode = DNS_NXDOMAIN;
	if (answer->partial && !q->addr_count) {
		/* SERVFAIL would be truer, but some C libraries then throw the
		 * other family's answer away too. */
		reply.ede = DNS_EDE_NO_REACHABLE;
		reply.ede_text = SPAN("upstream did not answer for this "
				      "address family");
	}
	question_reply(q, &reply);
}

/* A kept question met its answer. */
static void question_done(struct question *q)
{
	struct dns_path *path = q->path;

	question_free(q);
	if (path->ops->answered)
		path->ops->answered(path);
	/* path may be gone */
}

static void question_on_lookup(void *ctx, const struct name_answer *answer)
{
	struct question *q = ctx;

	q->lookup = NULL;
	question_answer(q, answer);
	question_done(q);
}

/* What was allowed goes upstream now, if the owner still agrees. */
static bool question_may_ask(struct question *q)
{
	struct dns_server *s = q->path->server;

	if (s->ops->may_ask(s->ctx, &q->decision, host_span(&q->host)))
		return true;
	question_deny(q);
	return false;
}

static void question_resolve(struct question *q)
{
	struct dns_server *s = q->path->server;
	struct resolver *r = s->resolver;
	struct name_answer answer;
	struct question *kept;

	if ((s->ops->stand_in &&
	     s->ops->stand_in(s->ctx, host_span(&q->host), &answer)) ||
	    resolver_find(r, host_span(&q->host), &answer)) {
		question_answer(q, &answer);
		return;
	}
	if (!question_may_ask(q))
		return;
	kept = question_keep(q);
	if (kept)
		kept->lookup = resolver_lookup(r, host_span(&kept->host),
					       question_on_lookup, kept);
	else
		question_overload(q);
}

/* dns_relay.may_lead: a binding to the name itself, or to one that is asked
 * about like any other. */
static bool question_may_lead(void *ctx, const struct dns_name *target,
			      uint16_t port)
{
	struct question *q = ctx;
	struct dns_server *s = q->path->server;
	struct host host = { .len = 0 };

	if (target->len > 1 && !dns_name_eq(target, &q->query.name) &&
	    !dns_name_to_host(target, &host))
		return false;
	return s->ops->may_lead(s->ctx, &q->decision, host_span(&q->host),
				host_span(&host), port);
}

static void question_relay(struct question *q, const struct dns_message *m)
{
	struct dns_server *s = q->path->server;
	struct dns_relay how = {
		.min_ttl_s = resolver_clamp_ttl(s->resolver, 0),
		.max_ttl_s = resolver_clamp_ttl(s->resolver, UINT32_MAX),
		.may_lead = question_may_lead,
		.ctx = q,
	};

	q->source = NAME_DNS;
	switch (dns_emit_relay(&q->query, m, &how, s->reply + 2,
			       question_limit(q))) {
	case DNS_RELAY_DONE:
		s->counters->answered++;
		q->end = DNS_END_ANSWERED;
		question_send(q, how.len, m->rcode);
		return;
	case DNS_RELAY_WITHHELD:
		question_withhold(q, DNS_EDE_FILTERED,
				  "no service binding of the name leads where "
				  "policy lets a sandbox go");
		return;
	case DNS_RELAY_MALFORMED: /* RFC 9460 2.2: as if there were none */
		question_withhold(q, DNS_EDE_INVALID_DATA,
				  "a service binding of the name is malformed");
		return;
	case DNS_RELAY_UNUSABLE:
		question_fail(q);
		return;
	}
	must(!"an end");
}

static void question_on_ask(void *ctx, const struct dns_message *m)
{
	struct question *q = ctx;

	q->ask = NULL;
	if (m)
		question_relay(q, m);
	else
		question_fail(q);
	question_done(q);
}

static void question_forward(struct question *q)
{
	struct dns_server *s = q->path->server;
	struct question *kept;

	/* what the node itself names has addresses and nothing else */
	if (resolver_is_local(s->resolver, host_span(&q->host))) {
		s->counters->answered++;
		q->end = DNS_END_ANSWERED;
		question_say(q, DNS_NOERROR, DNS_EDE_NONE, "");
		return;
	}
	if (!question_may_ask(q))
		return;
	kept = question_keep(q);
	if (!kept) {
		question_overload(q);
		return;
	}
	kept->ask = resolver_ask(s->resolver, host_span(&kept->host),
				 kept->query.type, question_on_ask, kept);
	if (!kept->ask) {
		question_free(kept);
		question_overload(q);
	}
}

static void question_decide(struct question *q)
{
	const struct type_row *row = type_row(q->query.type);
	struct dns_server *s = q->path->server;

	s->ops->decide(s->ctx, &q->client, host_span(&q->host), &q->decision);
	if (!q->decision.allowed) {
		question_deny(q);
		return;
	}
	switch (row->way) {
	case WAY_RESOLVE:
		question_resolve(q);
		return;
	case WAY_FORWARD:
		question_forward(q);
		return;
	case WAY_WITHHOLD:
		s->counters->answered++;
		q->end = DNS_END_ANSWERED;
		question_say(q, DNS_NOERROR, DNS_EDE_NOT_SUPPORTED, row->why);
		return;
	}
	must(!"a way");
}

/* QTYPEs and meta types (RFC 6895 3.1): they ask for more than one set. */
static bool type_is_meta(uint16_t type)
{
	return type == 0 || type == DNS_TYPE_OPT ||
	       (type >= 128 && type <= DNS_TYPE_ANY);
}

/* Nothing can be answered, but the owner hears of it. */
static void garbage_audit(struct dns_server *s, const struct dns_client *client,
			  bool tcp)
{
	struct dns_decision nothing = { 0 };
	const struct dns_event event = {
		.client = client,
		.decision = &nothing,
		.end = DNS_END_REFUSED,
		.tcp = tcp,
	};

	(void)span_copy(SPAN("it is no DNS query"), nothing.text,
			sizeof(nothing.text));
	s->ops->audit(s->ctx, &event);
}

bool question_run(struct dns_path *path, const struct dns_client *client,
		  struct span bytes)
{
	struct dns_server *s = path->server;
	struct question q = {
		.path = path,
		.client = *client,
		.began_ms = loop_now_ms(s->loop),
	};

	if (dns_parse_query(bytes, &q.query) != DNS_OK) {
		s->counters->malformed++;
		garbage_audit(s, client, path->ops->tcp);
		return false;
	}
	q.query.bytes = SPAN_NONE;
	if (path->ops->tcp)
		s->counters->queries_tcp++;
	else
		s->counters->queries_udp++;

	if (q.query.edns_version)
		question_refuse(&q, DNS_BADVERS,
				"only EDNS version 0 is known");
	else if (!dns_name_to_host(&q.query.name, &q.host))
		question_refuse(&q, DNS_REFUSED, "this is no host name");
	else if (q.query.qclass != DNS_CLASS_IN || type_is_meta(q.query.type))
		question_refuse(&q, DNS_REFUSED,
				"questions of this kind are not answered here");
	else
		question_decide(&q);
	return true;
}
