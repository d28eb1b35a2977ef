/* SPDX-License-Identifier: Apache-2.0 */
/* lock_loose.c - a sandbox that may be at any port that is nobody else's
 *
 * How it works: the lock is a chain at the device that a sandbox's frames come
 * in by. Where that is a port of a bridge and nobody said which, the bridge
 * itself is no place for it: what has passed the chain of another port arrives
 * there too, and without its mark, where prerouting has run before
 * (lock_bridge.c). So such a sandbox is locked at each port of its bridge that
 * no sandbox has for its own, as if it had been registered there. Ports come
 * and go, and get owners; every change of the pairs is told.
 *
 * Two of these ports can play each other's sandbox. Who says the port is safe
 * from that.
 */

#include "src/role/lock_loose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/err.h"

struct loose_port {
	char bridge[MSG_IFACE_SIZE]; /* or "" */
	unsigned owners;
};

struct loose_box {
	struct list link;
	struct msg_lock what;
};

static bool is_open(const struct loose_port *p)
{
	return p->bridge[0] && !p->owners;
}

static void tell(struct lock_loose *all, const struct loose_box *box,
		 struct span port, bool add)
{
	struct msg_lock at = box->what;

	at.awaits_port = 0;
	memset(at.port, 0, sizeof(at.port));
	must(span_copy(port, at.port, sizeof(at.port)));
	all->fn(all->ctx, &at, add);
}

/* Of the port all boxes of its bridge. */
static void tell_boxes(struct lock_loose *all, const struct loose_port *p,
		       struct span port, bool add)
{
	struct loose_box *box;

	list_for_each(it, &all->boxes)
	{
		box = container_of(it, struct loose_box, link);
		if (!strcmp(box->what.iface, p->bridge))
			tell(all, box, port, add);
	}
}

/* Of the box all open ports of its bridge. */
static void tell_ports(struct lock_loose *all, const struct loose_box *box,
		       bool add)
{
	const struct loose_port *p;
	size_t cursor = 0;
	struct span name;

	while ((p = map_next(&all->ports, &cursor, &name)))
		if (is_open(p) && !strcmp(box->what.iface, p->bridge))
			tell(all, box, name, add);
}

/* Changed by one of the two callers below, in between. */
static struct loose_port *port_begin(struct lock_loose *all, struct span name)
{
	struct loose_port *p = map_find(&all->ports, name);

	if (!p) {
		p = must_alloc(sizeof(*p));
		(void)map_set(&all->ports, name, p);
	}
	if (is_open(p))
		tell_boxes(all, p, name, false);
	return p;
}

static void port_end(struct lock_loose *all, struct span name,
		     struct loose_port *p)
{
	if (is_open(p))
		tell_boxes(all, p, name, true);
	if (p->bridge[0] || p->owners)
		return;
	(void)map_take(&all->ports, name);
	free(p);
}

void lock_loose_port(struct lock_loose *all, const char *port,
		     const char *bridge)
{
	struct span name = span_str(port);
	struct loose_port *p = map_find(&all->ports, name);

	if (!strcmp(p ? p->bridge : "", bridge))
		return;
	p = port_begin(all, name);
	(void)snprintf(p->bridge, sizeof(p->bridge), "%s", bridge);
	port_end(all, name, p);
}

void lock_loose_own(struct lock_loose *all, const char *port, bool add)
{
	struct span name = span_str(port);
	struct loose_port *p = port_begin(all, name);

	must(add || p->owners);
	p->owners = add ? p->owners + 1 : p->owners - 1;
	port_end(all, name, p);
}

struct loose_box *lock_loose_put(struct lock_loose *all,
				 const struct msg_lock *what)
{
	struct loose_box *box = must_alloc(sizeof(*box));

	box->what = *what;
	list_init(&box->link);
	list_push(&all->boxes, &box->link);
	tell_ports(all, box, true);
	return box;
}

struct loose_box *lock_loose_drop(struct lock_loose *all, struct loose_box *box)
{
	if (!box)
		return NULL;
	tell_ports(all, box, false);
	list_remove(&box->link);
	free(box);
	return NULL;
}

void lock_loose_init(struct lock_loose *all, lock_loose_fn *fn, void *ctx)
{
	*all = (struct lock_loose){ .fn = fn, .ctx = ctx };
	map_init(&all->ports);
	list_init(&all->boxes);
}

void lock_loose_fini(struct lock_loose *all)
{
	size_t cursor = 0;
	struct span name;
	void *p;

	list_for_each(it, &all->boxes)
		free(container_of(it, struct loose_box, link));
	list_init(&all->boxes);
	while ((p = map_next(&all->ports, &cursor, &name)))
		free(p);
	map_fini(&all->ports);
}
