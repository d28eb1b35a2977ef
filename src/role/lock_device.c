/* SPDX-License-Identifier: Apache-2.0 */
/* lock_device.c - attaches the lock to devices as they come and go
 *
 * How it works: each locked device has a base chain at its ingress, named after
 * it, that drops what the common chain does not accept (nfnl_ingress()). The
 * kernel takes the chain away together with the device, or (from 6.16 on) keeps
 * it for the next of the same name; attaching once more is fine either way. A
 * port counts only while it belongs to the bridge of its registration, so that
 * control cannot have any interface of the node locked.
 */

#include "src/role/lock_device.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/role/links.h"
#include "src/role/lock_script.h"
#include "src/role/lock_set.h"

#define CHAIN_PREFIX "at_"

enum { CHAIN_SIZE = MSG_IFACE_SIZE + sizeof(CHAIN_PREFIX) };

struct device {
	char bridge[MSG_IFACE_SIZE]; /* that it must be a port of, or "" */
	unsigned owners;
	uint32_t attached; /* index of the interface that has the chain, or 0 */
};

static const char *chain_of(const char *device, char dst[CHAIN_SIZE])
{
	(void)snprintf(dst, CHAIN_SIZE, CHAIN_PREFIX "%s", device);
	return dst;
}

const char *lock_device_name(const struct msg_lock *m)
{
	return m->port[0] ? m->port : m->iface;
}

/* Is this the interface that the device stands for? */
static bool device_is(const struct device *d, const struct link *link)
{
	return !d->bridge[0] || !strcmp(d->bridge, link->master);
}

/* The device that must get its chain now that the link is there, or NULL. */
static struct device *device_due(const struct lock_devices *all,
				 const struct link *link)
{
	struct device *d = map_find(&all->by_name, span_str(link->name));

	if (!d || link->gone || d->attached == link->index || !all->live ||
	    !device_is(d, link))
		return NULL;
	return d;
}

static void put_chain(struct lock_devices *all, const struct link *link)
{
	char chain[CHAIN_SIZE];

	nfnl_ingress(&all->change, &lock_netdev, chain_of(link->name, chain),
		     link->name, LOCK_CHAIN);
}

void lock_device_link(struct lock_devices *all, const struct link *link)
{
	struct device *d = map_find(&all->by_name, span_str(link->name));
	int r;

	if (d && link->gone)
		d->attached = 0;
	d = device_due(all, link);
	if (!d)
		return;
	put_chain(all, link);
	r = nfnl_commit(&all->change, all->fd);
	if (!r)
		d->attached = link->index;
	else if (r != -ENOENT && r != -ENODEV) /* it went again */
		log_error("could not lock %s: %s", link->name, err_text(r));
}

void lock_device_wait(struct lock_devices *all, const struct link *link)
{
	if (all->waiting_count == all->waiting_room) {
		all->waiting_room = MAX(2 * all->waiting_room, (size_t)16);
		all->waiting =
			must_realloc(all->waiting,
				     all->waiting_room * sizeof(*all->waiting));
	}
	all->waiting[all->waiting_count++] = *link;
}

/* One of them that went meanwhile fails all: then each for itself. */
void lock_devices_settle(struct lock_devices *all)
{
	struct device *d;
	size_t i;
	bool done;

	for (i = 0; i < all->waiting_count; i++)
		if (device_due(all, &all->waiting[i]))
			put_chain(all, &all->waiting[i]);
	done = !nfnl_commit(&all->change, all->fd);
	for (i = 0; i < all->waiting_count; i++) {
		d = done ? device_due(all, &all->waiting[i]) : NULL;
		if (d)
			d->attached = all->waiting[i].index;
		else if (!done)
			lock_device_link(all, &all->waiting[i]);
	}
	free(all->waiting);
	all->waiting = NULL;
	all->waiting_count = all->waiting_room = 0;
}

static void device_detach(struct lock_devices *all, const char *name)
{
	char chain[CHAIN_SIZE];
	int r;

	nfnl_remove_chain(&all->change, &lock_netdev, chain_of(name, chain));
	r = nfnl_commit(&all->change, all->fd);
	if (r && r != -ENOENT)
		log_error("could not unlock %s: %s", name, err_text(r));
}

void lock_device_own(struct lock_devices *all, const struct msg_lock *m)
{
	struct span name = span_str(lock_device_name(m));
	struct device *d = map_find(&all->by_name, name);

	if (m->awaits_port)
		return;
	if (!d) {
		d = must_alloc(sizeof(*d));
		(void)map_set(&all->by_name, name, d);
	}
	(void)snprintf(d->bridge, sizeof(d->bridge), "%s",
		       m->port[0] ? m->iface : "");
	d->owners++;
}

void lock_device_disown(struct lock_devices *all, const struct msg_lock *m)
{
	struct span name = span_str(lock_device_name(m));
	struct device *d = map_find(&all->by_name, name);

	if (m->awaits_port || --d->owners)
		return;
	if (all->live)
		device_detach(all, lock_device_name(m));
	(void)map_take(&all->by_name, name);
	free(d);
}

struct refill {
	const struct lock_devices *all;
	struct nfnl *n;
};

static void on_chain(void *ctx, const char *chain)
{
	const struct refill *f = ctx;
	const size_t prefix = strlen(CHAIN_PREFIX);

	if (!strncmp(chain, CHAIN_PREFIX, prefix) &&
	    !map_find(&f->all->by_name, span_str(chain + prefix)))
		nfnl_remove_chain(f->n, &lock_netdev, chain);
}

int lock_devices_refill(struct lock_devices *all, struct nfnl *n)
{
	char chain[CHAIN_SIZE], name[MSG_IFACE_SIZE];
	struct refill f = { all, n };
	struct device *d;
	size_t cursor = 0;
	struct link link;
	struct span key;

	while ((d = map_next(&all->by_name, &cursor, &key))) {
		d->attached = 0;
		must(span_copy(key, name, sizeof(name)));
		if (link_find(name, &link) || !device_is(d, &link))
			continue;
		d->attached = link.index;
		nfnl_ingress(n, &lock_netdev, chain_of(name, chain), name,
			     LOCK_CHAIN);
	}
	return nfnl_each_chain(all->fd, &lock_netdev, on_chain, &f);
}

size_t lock_devices_attached(const struct lock_devices *all)
{
	size_t cursor = 0, count = 0;
	const struct device *d;
	struct span key;

	while ((d = map_next(&all->by_name, &cursor, &key)))
		count += d->attached != 0;
	return count;
}

void lock_devices_init(struct lock_devices *all, int fd)
{
	*all = (struct lock_devices){ .fd = fd };
	map_init(&all->by_name);
	nfnl_init(&all->change);
}

void lock_devices_fini(struct lock_devices *all)
{
	size_t cursor = 0;
	struct span key;
	void *d;

	while ((d = map_next(&all->by_name, &cursor, &key)))
		free(d);
	map_fini(&all->by_name);
	nfnl_fini(&all->change);
	free(all->waiting);
}
