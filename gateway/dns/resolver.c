/* SPDX-License-Identifier: Apache-2.0 */
/* resolver.c - from a host name to addresses, for one event loop
 *
 * How it works: a struct lookup is what a caller waits for, a struct flight is
 * a name being asked for upstream; all lookups of one name ride on one flight.
 * A flight runs two chases (A and AAAA) side by side and lands when both are
 * done, or FLIGHT_GRACE_MS after the first one that found addresses: a server
 * that never answers AAAA must not hold up everybody. The result goes to the
 * cache, then to the lookups.
 *
 * Callbacks are never made from inside resolver_lookup(): what can be answered
 * at once waits in .ready for a timer. Who is in a hurry asks resolver_find()
 * first.
 */

#include "gateway/dns/resolver.h"

#include "gateway/dns/cache.h"
#include "gateway/dns/chase.h"
#include "gateway/dns/nameserver.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/base/map.h"
#include "src/io/loop.h"
#include "src/wire/dns.h"
#include "src/wire/host.h"

enum {
	LOOKUPS_MAX = 16384,
	SOON_MS = 1,
	FLIGHT_TURNS = 3, /* server turns that a lookup may take in all */
	FLIGHT_GRACE_MS = 300,
	FAMILY_SHARE = NAME_ADDRS_MAX / 2,

	TIMEOUT_MS = 2000,
	CACHE_ENTRIES = 4096,
	TTL_FLOOR_S = 1,
	TTL_MAX_S = 3600,
	TTL_NEGATIVE_MAX_S = 60,
	TTL_FAILED_S = 2, /* RFC 9520 wants failures remembered, briefly */
	TTL_NAMES_S = 60, /* of pins and hosts entries */
};

struct resolver {
	struct loop *loop;
	struct dns_counters *counters;
	struct nameservers servers;
	struct names *names; /* NULL = none */
	struct cache cache;
	struct map flights; /* host -> flight */
	struct list ready;  /* lookups that .soon answers */
	struct timer soon;
	unsigned lookups;
	uint32_t min_ttl_s, max_ttl_s;
};

struct lookup {
	struct list link; /* in a flight's or the resolver's list */
	struct resolver *resolver;
	struct host host;
	lookup_fn *fn;
	void *ctx;
};

struct flight {
	struct resolver *resolver;
	struct host host;
	struct list lookups;
	struct timer grace;
	uint32_t generation; /* of the servers it asked */
	struct chase v4, v6;
};

/* Names that mean something else than the DNS: RFC 6761 6.3 and 6.4, 7686; and
 * where a resolver tells of others (RFC 9462 6.4): of ours there are none. */
static const struct span special_names[] = {
	SPAN_INIT("localhost"),
	SPAN_INIT("invalid"),
	SPAN_INIT("onion"),
	SPAN_INIT("resolver.arpa"),
};

static bool host_is_special(struct span host)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(special_names); i++)
		if (span_eq(host, special_names[i]) ||
		    host_is_below(host, special_names[i]))
			return true;
	return false;
}

uint32_t resolver_clamp_ttl(const struct resolver *r, uint32_t ttl_s)
{
	return MIN(MAX(ttl_s, r->min_ttl_s), r->max_ttl_s);
}

bool resolver_is_local(const struct resolver *r, struct span host)
{
	struct name_answer answer;

	return host_is_special(host) ||
	       (r->names && names_find(r->names, host, &answer));
}

/* What needs no upstream server and no cache. */
static bool find_local(struct resolver *r, struct span host,
		       struct name_answer *ret)
{
	if (r->names && names_find(r->names, host, ret)) {
		ret->ttl_s = resolver_clamp_ttl(r, TTL_NAMES_S);
		if (ret->source == NAME_PIN)
			r->counters->from_pins++;
		else
			r->counters->from_hosts++;
		return true;
	}
	if (!host_is_special(host))
		return false;
	*ret = (struct name_answer){
		.status = NAME_NXDOMAIN,
		.ttl_s = resolver_clamp_ttl(r, TTL_NAMES_S),
	};
	return true;
}

static bool find_known(struct resolver *r, struct span host,
		       struct name_answer *ret)
{
	if (find_local(r, host, ret))
		return true;
	if (!cache_find(&r->cache, host, loop_now_ms(r->loop), ret))
		return false;
	r->counters->from_cache++;
	return true;
}

bool resolver_find(struct resolver *r, struct span host,
		   struct name_answer *ret)
{
	if (!find_known(r, host, ret))
		return false;
	r->counters->lookups++;
	return true;
}

/* Takes the first lookup off a list, or NULL. Written out, because only so the
 * static analyser sees that the list does not begin with it any more. */
static struct lookup *lookup_pop(struct list *list)
{
	struct list *first = list->next;

	if (list_is_empty(list))
		return NULL;
	list->next = first->next;
	list->next->prev = list;
	list_init(first);
	return container_of(first, struct lookup, link);
}

/* Ends the lookup; it is freed before its owner is told. */
static void lookup_finish(struct lookup *l, const struct name_answer *answer)
{
	lookup_fn *fn = l->fn;
	void *ctx = l->ctx;

	(void)lookup_cancel(l);
	fn(ctx, answer);
}

struct lookup *lookup_cancel(struct lookup *l)
{
	if (!l)
		return NULL;
	list_remove(&l->link);
	l->resolver->lookups--;
	free(l);
	return NULL;
}

/* Frees the flight and what rides on it, without callbacks. */
static void flight_free(struct flight *f)
{
	timer_stop(&f->grace);
	chase_stop(&f->v4);
	chase_stop(&f->v6);
	list_for_each(it, &f->lookups)(void)
		lookup_cancel(container_of(it, struct lookup, link));
	free(f);
}

/* What both chases say together: addresses win, then "does not exist" (some
 * servers say it for one family only, others fail for AAAA), then "no data" if
 * both say so. */
static enum name_status flight_status(const struct flight *f)
{
	enum name_status v4 = f->v4.status, v6 = f->v6.status;

	if (f->v4.count || f->v6.count)
		return NAME_OK;
	if (v4 == NAME_NXDOMAIN || v6 == NAME_NXDOMAIN)
		return NAME_NXDOMAIN;
	if (v4 == NAME_NODATA && v6 == NAME_NODATA)
		return NAME_NODATA;
	return NAME_FAILED;
}

static uint32_t flight_ttl_s(const struct flight *f, enum name_status status,
			     bool partial)
{
	uint32_t v4 = f->v4.status == NAME_FAILED ? UINT32_MAX : f->v4.ttl_s;
	uint32_t v6 = f->v6.status == NAME_FAILED ? UINT32_MAX : f->v6.ttl_s;
	uint32_t ttl_s = MIN(v4, v6);

	switch (status) {
	case NAME_FAILED:
		return TTL_FAILED_S;
	case NAME_OK:
		/* the family without addresses says little about the other */
		if (!f->v4.count != !f->v6.count)
			ttl_s = f->v4.count ? v4 : v6;
		return resolver_clamp_ttl(f->resolver, partial ? 0 : ttl_s);
	case NAME_NXDOMAIN:
	case NAME_NODATA:
	case NAME_STATUS_NUM:
		break;
	}
	return resolver_clamp_ttl(f->resolver, MIN(ttl_s, TTL_NEGATIVE_MAX_S));
}

/* Both families into addrs; none pushes the other out. */
static unsigned flight_addrs(const struct flight *f,
			     struct addr addrs[NAME_ADDRS_MAX])
{
	unsigned v6 = MIN(f->v6.count,
			  NAME_ADDRS_MAX - MIN(f->v4.count, FAMILY_SHARE));
	unsigned v4 = MIN(f->v4.count, NAME_ADDRS_MAX - v6);

	memcpy(addrs, f->v4.addrs, v4 * sizeof(*addrs));
	memcpy(addrs + v4, f->v6.addrs, v6 * sizeof(*addrs));
	return v4 + v6;
}

/* Copies what a callback might pull away under the answer. */
static void answer_pin_down(struct name_answer *answer,
			    struct addr addrs[NAME_ADDRS_MAX])
{
	unsigned i;

	for (i = 0; i < answer->count; i++)
		addrs[i] = answer->addrs[i];
	answer->addrs = addrs;
}

/* Ends the flight: cache, then lookups. */
static void flight_land(struct flight *f)
{
	struct resolver *r = f->resolver;
	struct name_answer answer = { .source = NAME_DNS };
	struct addr addrs[NAME_ADDRS_MAX];
	struct lookup *l;

	chase_stop(&f->v4);
	chase_stop(&f->v6);
	timer_stop(&f->grace);
	(void)map_take(&r->flights, host_span(&f->host));

	answer.status = flight_status(f);
	answer.partial =
		answer.status == NAME_OK &&
		(f->v4.status == NAME_FAILED || f->v6.status == NAME_FAILED);
	answer.ttl_s = flight_ttl_s(f, answer.status, answer.partial);
	answer.count = flight_addrs(f, addrs);
	answer.addrs = addrs;
	if (f->generation == r->servers.generation)
		cache_put(&r->cache, host_span(&f->host), &answer,
			  loop_now_ms(r->loop));

	/* a pin that came meanwhile is in force already */
	if (find_local(r, host_span(&f->host), &answer))
		answer_pin_down(&answer, addrs);
	while ((l = lookup_pop(&f->lookups)))
		lookup_finish(l, &answer);
	flight_free(f);
}

static void flight_check(struct flight *f, const struct chase *ended)
{
	if (f->v4.done && f->v6.done)
		flight_land(f); /* f is gone */
	else if (ended->status == NAME_OK)
		timer_start(&f->grace, FLIGHT_GRACE_MS);
}

static void flight_on_v4(struct chase *c)
{
	flight_check(container_of(c, struct flight, v4), c);
}

static void flight_on_v6(struct chase *c)
{
	flight_check(container_of(c, struct flight, v6), c);
}

static void flight_on_grace(struct timer *t)
{
	flight_land(container_of(t, struct flight, grace));
}

static bool flight_start_chase(struct flight *f, struct chase *c, uint16_t type,
			       chase_fn *fn)
{
	struct resolver *r = f->resolver;

	c->ns = &r->servers;
	c->fn = fn;
	c->deadline_ms = loop_now_ms(r->loop) +
			 FLIGHT_TURNS * (uint64_t)r->servers.timeout_ms;
	c->type = type;
	return dns_name_from_host(host_span(&f->host), &c->name) &&
	       chase_start(c);
}

/* NULL: too much is under way. */
static struct flight *flight_new(struct resolver *r, const struct host *host)
{
	struct flight *f = must_alloc(sizeof(*f));

	f->resolver = r;
	f->host = *host;
	f->generation = r->servers.generation;
	list_init(&f->lookups);
	timer_init(&f->grace, r->loop, flight_on_grace);
	if (!flight_start_chase(f, &f->v4, DNS_TYPE_A, flight_on_v4) ||
	    !flight_start_chase(f, &f->v6, DNS_TYPE_AAAA, flight_on_v6)) {
		flight_free(f);
		return NULL;
	}
	(void)map_set(&r->flights, host_span(&f->host), f);
	return f;
}

/* Puts the lookup on the flight of its name. False: there can be none. */
static bool lookup_board(struct lookup *l)
{
	struct resolver *r = l->resolver;
	struct flight *f = map_find(&r->flights, host_span(&l->host));

	if (f)
		r->counters->shared++;
	else
		f = flight_new(r, &l->host);
	if (!f)
		return false;
	list_remove(&l->link);
	list_push(&f->lookups, &l->link);
	return true;
}

/* Answers a ready lookup with what is known now. */
static void lookup_serve(struct lookup *l)
{
	struct resolver *r = l->resolver;
	struct addr addrs[NAME_ADDRS_MAX];
	struct name_answer answer = { 0 };

	if (find_known(r, host_span(&l->host), &answer))
		answer_pin_down(&answer, addrs);
	else if (r->lookups <= LOOKUPS_MAX && lookup_board(l))
		return; /* it went stale while it waited */
	lookup_finish(l, &answer);
}

static void resolver_on_soon(struct timer *t)
{
	struct resolver *r = container_of(t, struct resolver, soon);
	struct list batch = LIST_INIT(batch);
	struct lookup *l;

	/* what callbacks add waits for the next time */
	while ((l = lookup_pop(&r->ready)))
		list_push(&batch, &l->link);
	while ((l = lookup_pop(&batch)))
		lookup_serve(l);
}

struct lookup *resolver_lookup(struct resolver *r, struct span host,
			       lookup_fn *fn, void *ctx)
{
	struct lookup *l = must_alloc(sizeof(*l));
	struct name_answer answer;

	must(host.len <= HOST_MAX);
	l->resolver = r;
	l->fn = fn;
	l->ctx = ctx;
	memcpy(l->host.text, host.ptr, host.len);
	l->host.len = (uint8_t)host.len;
	list_init(&l->link);
	r->lookups++;
	r->counters->lookups++;

	if (r->lookups <= LOOKUPS_MAX && !resolver_is_local(r, host) &&
	    !cache_find(&r->cache, host, loop_now_ms(r->loop), &answer) &&
	    lookup_board(l))
		return l;
	if (list_is_empty(&r->ready))
		timer_start(&r->soon, SOON_MS);
	list_push(&r->ready, &l->link);
	return l;
}

struct ask *resolver_ask(struct resolver *r, struct span host, uint16_t type,
			 ask_fn *fn, void *ctx)
{
	struct dns_name name;

	if (resolver_is_local(r, host) || !dns_name_from_host(host, &name))
		return NULL;
	return ask_new(&r->servers, &name, type,
		       loop_now_ms(r->loop) +
			       FLIGHT_TURNS * (uint64_t)r->servers.timeout_ms,
		       fn, ctx);
}

void resolver_set_names(struct resolver *r, struct names *names)
{
	struct names *old = r->names;

	r->names = names ? names_ref(names) : NULL;
	(void)names_unref(old);
}

void resolver_set_upstreams(struct resolver *r, const struct addr *upstreams,
			    unsigned count)
{
	if (nameservers_set(&r->servers, upstreams, count))
		cache_clear(&r->cache);
}

void resolver_flush(struct resolver *r)
{
	cache_clear(&r->cache);
}

int resolver_new(struct loop *loop, const struct resolver_config *config,
		 struct resolver **ret)
{
	struct resolver *r = must_alloc(sizeof(*r));

	must(config->counters != NULL);
	r->loop = loop;
	r->counters = config->counters;
	r->servers.loop = loop;
	r->servers.counters = config->counters;
	r->servers.timeout_ms =
		config->timeout_ms ? config->timeout_ms : TIMEOUT_MS;
	r->min_ttl_s = MAX(config->min_ttl_s, (uint32_t)TTL_FLOOR_S);
	r->max_ttl_s = config->max_ttl_s ? config->max_ttl_s : TTL_MAX_S;
	r->max_ttl_s = MAX(r->max_ttl_s, r->min_ttl_s);
	cache_init(&r->cache, config->cache_entries ? config->cache_entries
						    : CACHE_ENTRIES);
	map_init(&r->flights);
	list_init(&r->ready);
	timer_init(&r->soon, loop, resolver_on_soon);
	(void)nameservers_set(&r->servers, config->upstreams,
			      config->upstream_count);
	*ret = r;
	return 0;
}

struct resolver *resolver_free(struct resolver *r)
{
	struct flight *f;
	size_t cursor = 0;

	if (!r)
		return NULL;
	while ((f = map_next(&r->flights, &cursor, NULL)))
		flight_free(f);
	map_fini(&r->flights);
	list_for_each(it, &r->ready)(void)
		lookup_cancel(container_of(it, struct lookup, link));
	cache_clear(&r->cache);
	timer_stop(&r->soon);
	r->names = names_unref(r->names);
	free(r);
	return NULL;
}
