/* SPDX-License-Identifier: Apache-2.0 */
/* feed.c - what control says, turned into parcels for the workers
 *
 * Messages are applied in the order they came. Only bindings may have to wait
 * for their leases; a SYNC behind them waits as well, so that its answer means
 * what it says.
 */

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "certs/leaf_cache.h"
#include "gateway/dns/names.h"
#include "gateway/inside.h"
#include "gateway/proxy/proxy.h"
#include "gateway/registry/bindings.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/role/config.h"
#include "src/text/json.h"
#include "src/wire/host.h"

enum {
	FEED_JSON_MAX = 64 * 1024 * 1024,
	STATUS_BYTES = 64 * 1024,
	OWN_MAX = 4096,
	DNS_PORT = 53,
};

/* A SYNC that waits for leases. */
struct waiting_sync {
	struct list link;
	uint32_t serial;
};

static void feed_barrier(struct gateway *g, uint32_t serial)
{
	struct parcel *p = parcel_new(g, PARCEL_BARRIER);

	if (g->renewed) /* what was not said again is not so any more */
		parcel_send(parcel_new(g, PARCEL_SWEEP));
	g->renewed = false;
	p->serial = serial;
	parcel_send(p);
}

static void feed_sync(struct gateway *g, uint32_t serial)
{
	struct waiting_sync *sync;

	if (list_is_empty(&g->lease_jobs)) {
		feed_barrier(g, serial);
		return;
	}
	sync = must_alloc(sizeof(*sync));
	list_init(&sync->link);
	sync->serial = serial;
	list_push(&g->syncs, &sync->link);
}

void feed_leases_ready(struct gateway *g)
{
	struct waiting_sync *sync;

	if (!list_is_empty(&g->lease_jobs))
		return;
	while ((sync = list_first(&g->syncs, struct waiting_sync, link))) {
		list_remove(&sync->link);
		feed_barrier(g, sync->serial);
		free(sync);
	}
}

/* -- sandboxes and policies --------------------------------------------------
 */

static void feed_sandbox(struct gateway *g, enum parcel_kind kind,
			 const struct msg_sandbox *body)
{
	struct parcel *p = parcel_new(g, kind);

	p->sandbox = *body;
	parcel_send(p);
}

static void feed_policy(struct gateway *g, const struct msg_policy *body,
			int fd)
{
	struct parcel *p;
	struct policy *policy;
	int r;

	r = policy_new(g->policies, body, fd, &policy);
	if (r) {
		log_error("policy %u was not usable: %s", body->policy,
			  err_text(r));
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	p = parcel_new(g, PARCEL_POLICY);
	p->policy = policy;
	parcel_send(p);
}

static void feed_policy_drop(struct gateway *g, const struct msg_policy *body)
{
	struct parcel *p = parcel_new(g, PARCEL_POLICY_DROP);

	p->policy_id = body->policy;
	parcel_send(p);
}

/* -- JSON from memfds
 * ---------------------------------------------------------- */

struct feed_text {
	struct span text;
	const void *map;
};

static void feed_text_fini(struct feed_text *t)
{
	if (t->map)
		(void)munmap((void *)t->map, t->text.len);
	t->map = NULL;
}

static int feed_text_open(int fd, uint64_t size, struct feed_text *ret)
{
	int r;

	if (fd < 0 || !size || size > FEED_JSON_MAX)
		return -EPROTO;
	r = chan_map(fd, size, &ret->map);
	if (!r)
		ret->text = span_of(ret->map, size);
	return r;
}

static void feed_bindings(struct gateway *g, const struct msg_scope *body,
			  int fd)
{
	CLEANUP(feed_text_fini) struct feed_text json = { 0 };
	struct diag d = { 0 };
	struct bindings *b;

	if (feed_text_open(fd, body->size, &json) ||
	    bindings_new(json.text, &b, &d)) {
		log_error("bindings were not usable: %s", d.msg);
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	lease_begin(g, body->scope, b);
}

/* -- what the node knows by itself
 * --------------------------------------------- */

static void node_names(const struct json *object, enum name_source source,
		       struct names *names)
{
	const struct json *list;
	void *cursor = NULL;
	struct addr address;
	struct span name;

	while ((list = json_next(object, &cursor, &name))) {
		json_for_each(item, list)
		{
			if (!addr_parse(json_text(item), &address) ||
			    names_add(names, source, name, &address))
				log_debug("a name was left out: %.*s",
					  SPAN_FMT(name));
		}
	}
}

/* The explicit proxy is found like a host of the hosts file: its name may be
 * asked for, and leads nowhere else. */
static void node_proxy(const struct config *c, struct names *names)
{
	struct addr addrs[PROXY_ADDRS];
	unsigned i;

	if (!c->explicit_proxy_port || !c->explicit_proxy_name[0])
		return;
	proxy_addresses(addrs);
	for (i = 0; i < PROXY_ADDRS; i++)
		if (names_add(names, NAME_HOSTS,
			      span_str(c->explicit_proxy_name), &addrs[i]))
			log_warn("the name of the explicit proxy is not "
				 "answered: too many names");
}

static struct own_addresses *node_own(const struct json *list)
{
	size_t count = MIN(json_count(list), (size_t)OWN_MAX);
	struct own_addresses *own =
		must_alloc(sizeof(*own) + count * sizeof(*own->items));

	atomic_init(&own->refs, 1);
	json_for_each(item, list)
	{
		if (own->count < count &&
		    cidr_parse(json_text(item), &own->items[own->count]))
			own->count++;
	}
	return own;
}

static void node_upstreams(const struct json *list, struct parcel_node *node)
{
	json_for_each(item, list)
	{
		struct addr *at = &node->upstreams[node->upstream_count];

		if (node->upstream_count < PARCEL_UPSTREAMS_MAX &&
		    addr_parse_port(json_text(item), DNS_PORT, at))
			node->upstream_count++;
	}
}

static void feed_node(struct gateway *g, const struct msg_scope *body, int fd)
{
	CLEANUP(feed_text_fini) struct feed_text text = { 0 };
	CLEANUP_JSON struct json *j = NULL;
	struct diag d = { 0 };
	struct parcel *p;

	if (feed_text_open(fd, body->size, &text) ||
	    json_parse(text.text, &j, &d)) {
		log_error("the node's names were not usable: %s", d.msg);
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	p = parcel_new(g, PARCEL_NODE);
	p->node.names = names_new();
	node_names(json_find(j, "pins"), NAME_PIN, p->node.names);
	node_names(json_find(j, "hosts"), NAME_HOSTS, p->node.names);
	node_proxy(g->config, p->node.names);
	p->node.own = node_own(json_find(j, "own"));
	node_upstreams(json_find(j, "upstreams"), &p->node);
	parcel_send(p);
}

/* -- status
 * ---------------------------------------------------------------------- */

static void feed_status(struct gateway *g, uint32_t serial)
{
	struct parcel *p = parcel_new(g, PARCEL_STATUS);

	p->serial = serial;
	parcel_send(p);
}

/* By what they are known, and how many of each reason. */
static void drops_put(struct json_out *o, const struct msg_drops *d)
{
	unsigned i;

	json_open_object(o, "drops");
	json_put_str(o, "from", d->told ? "log" : "counters");
	for (i = 0; i < DROP_NUM; i++)
		json_put_u64(o, drop_name((enum drop_reason)i), d->of[i]);
	json_close(o);
}

void feed_answer_status(struct gateway *g, const struct parcel *p)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(STATUS_BYTES);
	const struct msg_result body = { .status = 0 };
	struct json_out o;
	int i;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	json_put_u64(&o, "loops", g->worker_count);
	json_put_u64(&o, "sandboxes", p->sums.sandboxes);
	json_put_u64(&o, "leavesHeld", leaf_cache_count(g->leaf_cache));
	json_put_bool(&o, "outOfDescriptors", p->sums.exhausted);
	usage_put_limited(&o, g->quotas);
	json_open_object(&o, "counters");
	for (i = 0; i < COUNTER_NUM; i++)
		json_put_u64(&o, worker_counter_name((enum worker_counter)i),
			     p->sums.counters[i]);
	json_close(&o);
	json_open_object(&o, "dns");
#define DNS_COUNTER(name, help) json_put_u64(&o, #name, p->sums.dns.name);
#include "gateway/dns/counters.def"
#undef DNS_COUNTER
	json_close(&o);
	json_open_object(&o, "queue");
#define QUEUE_COUNTER(name, help) json_put_u64(&o, #name, p->sums.queue.name);
	QUEUE_COUNTERS(QUEUE_COUNTER)
#undef QUEUE_COUNTER
	json_close(&o);
	drops_put(&o, &p->sums.drops);
	json_close(&o);
	if (json_done(&o) == 0 && g->control)
		(void)chan_send(g->control, MSG_GATEWAY_STATUS, p->serial,
				&body, sizeof(body), buf_peek(&text), NULL, 0);
}

/* -- dispatch
 * -------------------------------------------------------------------- */

void feed_on_message(struct gateway *g, struct chan_msg *m)
{
	int fd = m->fd_count == 1 ? m->fds[0] : -1;
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);

	if (!body) {
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	switch (m->type) {
	case MSG_CONTROL_SANDBOX:
		feed_sandbox(g, PARCEL_SANDBOX, body);
		return;
	case MSG_CONTROL_SANDBOX_DROP:
		feed_sandbox(g, PARCEL_SANDBOX_DROP, body);
		return;
	case MSG_CONTROL_POLICY:
		feed_policy(g, body, fd);
		return;
	case MSG_CONTROL_POLICY_DROP:
		feed_policy_drop(g, body);
		return;
	case MSG_CONTROL_BINDINGS:
		feed_bindings(g, body, fd);
		return;
	case MSG_CONTROL_NODE:
		feed_node(g, body, fd);
		return;
	case MSG_CONTROL_INGRESS:
		ingress_feed_box(g, body);
		return;
	case MSG_CONTROL_INGRESS_DROP:
		ingress_feed_drop(g, body);
		return;
	case MSG_CONTROL_INGRESS_KEYS:
		ingress_feed_keys(g, body, fd);
		return;
	case MSG_CONTROL_INGRESS_CLIENT:
		if (fd >= 0)
			m->fds[0] = -1;
		ingress_feed_client(g, body, fd);
		return;
	case MSG_CONTROL_SYNC:
		feed_sync(g, m->serial);
		return;
	case MSG_CONTROL_USAGE:
		usage_answer(g, body, m->serial);
		return;
	case MSG_CONTROL_STATUS:
		feed_status(g, m->serial);
		return;
	default:
		gateway_accuse(g, ROLE_CONTROL);
	}
}
