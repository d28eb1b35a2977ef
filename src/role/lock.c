/* SPDX-License-Identifier: Apache-2.0 */
/* lock.c - which sandbox owns what at which device, and the rules that say so
 *
 * How it works: a lock is a handful of set elements (lock_set.c; lock_script.c
 * has the rules that ask the sets) and a chain at the ingress of its device.
 * Changes are transactions of netlink messages (nfnl.c), some hundred
 * microseconds each however much is in them: so what control wishes at once is
 * put into the kernel at once (lock_settle()).
 *
 * The elements come first and without them nothing passes; the chain follows
 * as soon as there is a device (links.c tells), and until then what it would
 * have marked is dropped behind it. A device that goes takes the chain along
 * and leaves the elements.
 *
 * A restarted daemon finds the rules of its earlier life. They stay in force
 * until control has put every sandbox again; then one transaction exchanges
 * all elements (lock_complete()). Somebody else's hand in our tables is heard
 * (nfnl_news.c) and answered by the script and that same exchange; deleted
 * tables are back within milliseconds.
 *
 * Addresses and names come from control, which parses what operators send, so
 * each message is checked again here: only interfaces that the configuration
 * gives to sandboxes can be locked, or ports of such a bridge.
 */

#include "src/role/lock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/base/map.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/links.h"
#include "src/role/lock_bridge.h"
#include "src/role/lock_device.h"
#include "src/role/lock_loose.h"
#include "src/role/lock_pace.h"
#include "src/role/lock_script.h"
#include "src/role/lock_set.h"
#include "src/role/nfnl.h"
#include "src/role/nfnl_news.h"
#include "src/role/nft.h"

enum {
	SCRIPT_BYTES_MAX = 64 * 1024,
	REPAIR_DELAY_MS = 5, /* the other changes of the same transaction */
	REPAIR_GAP_MS = 200,
	RETRY_MS = 2000,
	CHECK_MS = 30 * 1000,
	EXCHANGE_TRIES = 3, /* devices may go while it is put together */
};

/* One sandbox's lock: a message without what is empty in it. */
struct held {
	uint64_t round; /* in which life of control it was last put */
	uint64_t bytes_per_s;
	char iface[MSG_IFACE_SIZE], port[MSG_IFACE_SIZE];
	uint8_t mac[6];
	bool has_mac, awaits_port;
	struct loose_box *loose; /* at which ports, where none was said */
	uint8_t addr_count;
	uint8_t addrs[][16];
};

struct lock {
	const struct config *config;
	struct loop *loop;
	struct links *links;
	struct watch news;
	struct timer repair, check, bridged;
	struct lock_set sets;
	struct map held; /* sandbox id -> struct held */
	struct lock_devices devices;
	struct lock_loose loose;
	struct map ports; /* name -> itself: ports of sandbox bridges */
	struct nfnl change;
	uint64_t round; /* counts the lives of control */
	uint64_t repaired_ms;
	uint32_t newest_bridge; /* index of a sandbox bridge, or 0 */
	uint32_t port_id;	/* of nfnl_fd: whose changes are ours */
	int nfnl_fd, news_fd;
	bool tells;
	bool due; /* something changed that nobody asked for */
	bool complete; /* control has put everything once: changes come through
			*/
	bool is_ok;
};

/* -- names ---------------------------------------------------------------- */

/* As control checks it (and the kernel, but for '*' and what nft prints). */
static bool is_iface_name(const char *name)
{
	for (; *name; name++)
		if (*name <= 0x20 || *name >= 0x7f || strchr("/:*\"", *name))
			return false;
	return true;
}

/* -- everything at once --------------------------------------------------- */

static int script_run(const struct lock *l, bool fresh)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	const struct lock_script_how how = { .tells = l->tells,
					     .fresh = fresh };
	int r = lock_script(l->config, &how, &script);

	if (!r)
		r = nft_script(buf_peek(&script), !fresh);
	buf_fini(&script);
	return r;
}

/* The message again, without the id. As far as its bridge is concerned, one
 * that is at some port or other waits for it. */
static struct msg_lock held_what(const struct held *h)
{
	struct msg_lock m = { .addr_count = h->addr_count,
			      .has_mac = h->has_mac,
			      .awaits_port = h->awaits_port || h->loose,
			      .bytes_per_s = h->bytes_per_s };

	memcpy(m.iface, h->iface, sizeof(m.iface));
	memcpy(m.port, h->port, sizeof(m.port));
	memcpy(m.mac, h->mac, sizeof(m.mac));
	memcpy(m.addrs, h->addrs, h->addr_count * sizeof(m.addrs[0]));
	return m;
}

/* All elements, all chains, nothing else; one transaction. */
static int exchange_try(struct lock *l)
{
	int r = lock_devices_refill(&l->devices, &l->change);
	struct msg_lock what;
	size_t cursor = 0;
	struct held *h;

	lock_set_refill(&l->sets, &l->change);
	lock_pace_flush(&l->change);
	while ((h = map_next(&l->held, &cursor, NULL))) {
		what = held_what(h);
		lock_pace_set(&l->change, &what, true);
	}
	return r ? r : nfnl_commit(&l->change, l->nfnl_fd);
}

static int exchange(struct lock *l)
{
	int tries, r = 0;

	for (tries = 0; tries < EXCHANGE_TRIES; tries++) {
		r = exchange_try(l);
		if (!r)
			break;
	}
	return r;
}

static enum nfnl_news news_read(const struct lock *l)
{
	const struct nfnl_interest in = { .tables = { LOCK_TABLE },
					  .port = l->port_id };

	return nfnl_news_read(l->news_fd, &in);
}

/* Our own nft is somebody else to the notifications: they are read away. */
static void news_skip(const struct lock *l)
{
	while (news_read(l) != NFNL_NEWS_END)
		continue;
}

static int bridged_run(const struct lock *l, bool ipv6)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	int r = lock_bridge_script(l->config, ipv6, &script);

	if (!r)
		r = nft_script(buf_peek(&script), ipv6);
	buf_fini(&script);
	return r;
}

/* Not there, the packets of bridges are refused: no reason to give up. */
static void bridged_install(struct lock *l)
{
	int r;

	if (!l->newest_bridge)
		return;
	r = bridged_run(l, true);
	if (r == -EINVAL)
		r = bridged_run(l, false);
	if (r)
		log_error("sandboxes on bridges may have no connections: %s",
			  err_text(r));
}

/* The script keeps what stands, so that nothing opens for a moment; tables
 * that somebody made otherwise are replaced. */
static int install(struct lock *l)
{
	int r = script_run(l, false);

	if (r == -EINVAL)
		r = script_run(l, true);
	if (!r)
		bridged_install(l);
	if (!r && l->complete)
		r = exchange(l);
	news_skip(l);
	timer_stop(&l->repair);
	l->is_ok = !r;
	l->repaired_ms = loop_now_ms(l->loop);
	if (r) {
		log_error("could not install the tables " LOCK_TABLE ": %s",
			  err_text(r));
		timer_start(&l->repair, RETRY_MS);
	}
	return r;
}

static void on_repair(struct timer *t)
{
	struct lock *l = container_of(t, struct lock, repair);

	log_error("found the tables " LOCK_TABLE " changed: installing them "
		  "again");
	(void)!install(l);
}

static void repair_soon(struct lock *l)
{
	uint64_t now = loop_now_ms(l->loop),
		 next = l->repaired_ms + REPAIR_GAP_MS;

	l->is_ok = false;
	if (!l->repair.due_ms)
		timer_start(&l->repair,
			    next > now ? next - now : REPAIR_DELAY_MS);
}

/* Puts what was counted into force. What the kernel does not take as a change
 * it gets as a whole. */
static int commit(struct lock *l)
{
	if (!l->complete)
		return 0;
	if (!l->is_ok || nfnl_commit(&l->change, l->nfnl_fd))
		return install(l);
	return 0;
}

/* The transaction that changes are put into, or NULL: later, as a whole. */
static struct nfnl *pending(struct lock *l)
{
	return l->complete && l->is_ok ? &l->change : NULL;
}

/* -- what happens --------------------------------------------------------- */

static void on_news(struct watch *w, unsigned ready)
{
	struct lock *l = container_of(w, struct lock, news);

	switch (news_read(l)) {
	case NFNL_NEWS_END:
		watch_spent(w, ready);
		return;
	case NFNL_NEWS_OTHER:
		return;
	case NFNL_NEWS_OURS:
		repair_soon(l);
	}
}

static void on_counted(void *ctx, const char *chain)
{
	(void)chain;
	++*(size_t *)ctx;
}

/* News can be lost in the moment of a repair; so our chains are counted now
 * and then. */
static void on_check_timer(struct timer *t)
{
	struct lock *l = container_of(t, struct lock, check);
	size_t expected = LOCK_CHAINS + lock_devices_attached(&l->devices);
	size_t found = 0;

	if (nfnl_each_chain(l->nfnl_fd, &lock_netdev, on_counted, &found) ||
	    found < expected)
		repair_soon(l);
	timer_start(t, CHECK_MS);
}

/* A port of a sandbox bridge speaks to the bridge alone, registered or not. */
static void port_seen(struct lock *l, const struct link *link)
{
	bool is_port =
		!link->gone && config_has_interface(l->config, link->master);
	struct span name = span_str(link->name);
	bool was_port = map_find(&l->ports, name) != NULL;

	lock_loose_port(&l->loose, link->name, is_port ? link->master : "");
	if (is_port && !was_port)
		(void)map_set(&l->ports, name, l);
	else if (!is_port && was_port)
		(void)map_take(&l->ports, name);
	if (is_port == was_port)
		return;
	lock_set_port(&l->sets, pending(l), link->name, is_port);
	l->due = true;
}

static void on_loose(void *ctx, const struct msg_lock *at, bool add)
{
	struct lock *l = ctx;
	struct link link;

	l->due = true;
	if (add)
		lock_device_own(&l->devices, at);
	lock_set_own(&l->sets, pending(l), at, add);
	if (!add)
		lock_device_disown(&l->devices, at);
	else if (!link_find(at->port, &link))
		lock_device_wait(&l->devices, &link);
}

/* Locked at its interface, or, if that is a bridge, at ports of it. */
static void held_shape(struct lock *l, struct held *h, bool is_bridge)
{
	struct msg_lock before = held_what(h), after;

	if (h->awaits_port || h->port[0] || is_bridge == !!h->loose)
		return;
	if (is_bridge) {
		h->loose = lock_loose_put(&l->loose, &before);
		after = held_what(h);
	} else {
		h->loose = lock_loose_drop(&l->loose, h->loose);
		after = held_what(h);
		lock_device_own(&l->devices, &after);
	}
	lock_set_own(&l->sets, pending(l), &after, true);
	lock_set_own(&l->sets, pending(l), &before, false);
	lock_device_disown(&l->devices, &before);
	l->due = true;
}

/* What was registered before it was there. */
static void iface_seen(struct lock *l, const struct link *link)
{
	size_t cursor = 0;
	struct held *h;

	if (link->gone || !config_has_interface(l->config, link->name) ||
	    (!link->is_bridge && list_is_empty(&l->loose.boxes)))
		return;
	while ((h = map_next(&l->held, &cursor, NULL)))
		if (!strcmp(h->iface, link->name))
			held_shape(l, h, link->is_bridge);
}

static void on_bridged(struct timer *t)
{
	struct lock *l = container_of(t, struct lock, bridged);

	bridged_install(l);
	news_skip(l);
}

static void on_link(void *ctx, const struct link *link)
{
	struct lock *l = ctx;

	iface_seen(l, link);
	port_seen(l, link);
	if (link->is_bridge && link->index > l->newest_bridge &&
	    config_has_interface(l->config, link->name)) {
		l->newest_bridge = link->index;
		timer_start(&l->bridged, 0);
	}
	if (l->due)
		(void)!lock_settle(l);
	lock_device_link(&l->devices, link);
}

/* -- messages ------------------------------------------------------------- */

/* NULL or what is wrong with it. */
static const char *refused(const struct lock *l, const struct msg_lock *m)
{
	struct addr a = { 0 };
	uint32_t i;

	if (!m->id[0] || !is_iface_name(m->iface) || !is_iface_name(m->port) ||
	    m->addr_count > MSG_ADDRS_MAX || m->has_mac > 1 ||
	    m->awaits_port > 1 || (m->awaits_port && m->port[0]))
		return "the message is malformed";
	if (!config_has_interface(l->config, m->iface))
		return "the interface is none that sandboxInterfaces names";
	if (m->has_mac && m->mac[0] & 1)
		return "the hardware address is one of a group";
	for (i = 0; i < m->addr_count; i++) {
		memcpy(a.ip, m->addrs[i], sizeof(a.ip));
		if (addr_kind(&a) == ADDR_UNSPECIFIED ||
		    addr_kind(&a) == ADDR_MULTICAST)
			return "an address is none that a sandbox can have";
	}
	return NULL;
}

/* Strings are compared and hashed as a whole: nothing behind their ends. */
static struct held *held_new(const struct msg_lock *m, uint64_t round)
{
	struct held *h =
		must_alloc(sizeof(*h) + m->addr_count * sizeof(h->addrs[0]));

	h->round = round;
	h->bytes_per_s = m->bytes_per_s;
	(void)snprintf(h->iface, sizeof(h->iface), "%s", m->iface);
	(void)snprintf(h->port, sizeof(h->port), "%s", m->port);
	h->awaits_port = m->awaits_port;
	h->has_mac = m->has_mac;
	if (m->has_mac)
		memcpy(h->mac, m->mac, sizeof(h->mac));
	h->addr_count = (uint8_t)m->addr_count;
	memcpy(h->addrs, m->addrs, m->addr_count * sizeof(m->addrs[0]));
	return h;
}

static void held_free(struct lock *l, struct held *h)
{
	const struct msg_lock what = held_what(h);

	lock_set_own(&l->sets, pending(l), &what, false);
	if (pending(l))
		lock_pace_set(&l->change, &what, false);
	lock_device_disown(&l->devices, &what);
	if (h->port[0])
		lock_loose_own(&l->loose, h->port, false);
	h->loose = lock_loose_drop(&l->loose, h->loose);
	free(h);
}

void lock_fail(int r, struct msg_locked *reply)
{
	if (!r || reply->status)
		return;
	reply->status = EIO;
	(void)snprintf(reply->text, sizeof(reply->text),
		       "the lock could not be put into the kernel: %s",
		       err_text(r));
}

void lock_put(struct lock *l, const struct msg_lock *m,
	      struct msg_locked *reply)
{
	struct span id = span_str(m->id);
	const char *why = refused(l, m);
	struct link link = { 0 };
	struct msg_lock what;
	struct held *h, *old;
	const char *device;
	bool is_there;

	*reply = (struct msg_locked){ .status = why ? EINVAL : 0 };
	if (why) {
		(void)snprintf(reply->text, sizeof(reply->text), "%s", why);
		return;
	}
	h = held_new(m, l->round);
	what = held_what(h);
	device = lock_device_name(&what);
	is_there = !what.awaits_port && !link_find(device, &link);
	if (h->port[0])
		lock_loose_own(&l->loose, h->port, true);
	else if (link.is_bridge)
		h->loose = lock_loose_put(&l->loose, &what);
	what = held_what(h);
	lock_device_own(&l->devices, &what);
	lock_set_own(&l->sets, pending(l), &what, true);
	old = map_set(&l->held, id, h);
	if (old)
		held_free(l, old);
	if (pending(l))
		lock_pace_set(&l->change, &what, true);
	if (is_there && !what.awaits_port)
		lock_device_wait(&l->devices, &link);
	(void)snprintf(reply->device, sizeof(reply->device), "%s", device);
	reply->is_bridge = link.is_bridge;
}

void lock_drop(struct lock *l, const struct msg_lock *m,
	       struct msg_locked *reply)
{
	struct held *h = map_take(&l->held, span_str(m->id));

	*reply = (struct msg_locked){ 0 };
	if (h)
		held_free(l, h);
}

/* The elements first: without them the chains let nothing pass. */
int lock_settle(struct lock *l)
{
	int r = commit(l);

	l->due = false;
	lock_devices_settle(&l->devices);
	return r;
}

void lock_expect(struct lock *l)
{
	l->round++;
}

void lock_complete(struct lock *l, struct msg_locked *reply)
{
	bool first = !l->complete;
	size_t cursor = 0;
	struct span id;
	struct held *h;
	int r;

	while ((h = map_next(&l->held, &cursor, &id)))
		if (h->round != l->round) {
			(void)map_take(&l->held, id);
			held_free(l, h);
		}
	l->complete = l->devices.live = true;
	r = first ? install(l) : commit(l);
	*reply = (struct msg_locked){ 0 };
	lock_fail(r, reply);
}

bool lock_is_ok(const struct lock *l)
{
	return l->is_ok;
}

/* -- life ----------------------------------------------------------------- */

int lock_new(struct loop *loop, const struct config *config, bool tells,
	     struct lock **ret)
{
	struct lock *l = must_alloc(sizeof(*l));
	int r;

	l->config = config;
	l->loop = loop;
	l->tells = tells;
	l->nfnl_fd = -1;
	timer_init(&l->repair, loop, on_repair);
	timer_init(&l->check, loop, on_check_timer);
	timer_init(&l->bridged, loop, on_bridged);
	lock_set_init(&l->sets);
	map_init(&l->held);
	lock_devices_init(&l->devices, -1);
	lock_loose_init(&l->loose, on_loose, l);
	map_init(&l->ports);
	nfnl_init(&l->change);
	r = l->news_fd = nfnl_news_open();
	if (r >= 0)
		r = watch_init(&l->news, loop, l->news_fd, on_news);
	if (!r)
		r = l->nfnl_fd = nfnl_open(&l->port_id);
	l->devices.fd = l->nfnl_fd;
	if (r >= 0)
		r = install(l);
	if (!r)
		r = links_new(loop, on_link, l, &l->links);
	if (r) {
		lock_free(l);
		return err_trace(r);
	}
	watch_want(&l->news, WATCH_READ);
	timer_start(&l->check, CHECK_MS);
	*ret = l;
	return 0;
}

struct lock *lock_free(struct lock *l)
{
	size_t cursor = 0;
	struct span key;
	void *value;

	if (!l)
		return NULL;
	links_free(l->links);
	timer_stop(&l->repair);
	timer_stop(&l->check);
	timer_stop(&l->bridged);
	watch_fini(&l->news);
	(void)fd_close(l->news_fd);
	(void)fd_close(l->nfnl_fd);
	while ((value = map_next(&l->held, &cursor, &key)))
		free(value);
	map_fini(&l->held);
	lock_devices_fini(&l->devices);
	lock_loose_fini(&l->loose);
	map_fini(&l->ports);
	lock_set_fini(&l->sets);
	nfnl_fini(&l->change);
	free(l);
	return NULL;
}

int lock_remove(void)
{
	struct buf script = BUF_INIT(SCRIPT_BYTES_MAX);
	int r = lock_script_remove(&script);

	if (!r)
		r = nft_script(buf_peek(&script), false);
	buf_fini(&script);
	return r;
}
