/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - RTM_NEWLINK and RTM_DELLINK, heard and asked for
 *
 * How it works: one socket hears the kernel's announcements; questions are
 * asked on sockets of their own. When announcements were lost (ENOBUFS) all
 * interfaces are told of again; those that went meanwhile are not, and nothing
 * may depend on hearing it.
 */

#include "src/role/links.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/role/netlink.h"

struct links {
	struct watch watch;
	link_fn *fn;
	void *ctx;
	int fd;
};

/* False: a message of another kind, or of another address family (the bridge
 * announces its ports a second time, in other words). */
static bool link_read(const struct nlmsghdr *m, struct link *ret)
{
	const struct ifinfomsg *body = NLMSG_DATA(m);
	struct span attrs, name, info, kind;
	uint32_t master;

	if ((m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK) ||
	    m->nlmsg_len < NLMSG_LENGTH(sizeof(*body)) ||
	    body->ifi_family != AF_UNSPEC)
		return false;
	attrs = netlink_attrs(m, sizeof(*body));
	*ret = (struct link){ .index = (uint32_t)body->ifi_index,
			      .gone = m->nlmsg_type == RTM_DELLINK };
	if (!netlink_attr_str(attrs, IFLA_IFNAME, &name) ||
	    !span_copy(name, ret->name, sizeof(ret->name)))
		return false;
	if (netlink_attr_u32(attrs, IFLA_MASTER, &master) &&
	    !if_indextoname(master, ret->master))
		ret->master[0] = '\0';
	if (netlink_attr(attrs, IFLA_LINKINFO, &info) &&
	    netlink_attr_str(info, IFLA_INFO_KIND, &kind)) {
		ret->is_bridge = span_eq(kind, SPAN("bridge"));
		ret->is_veth = span_eq(kind, SPAN("veth"));
	}
	ret->is_far = netlink_attr(attrs, IFLA_LINK_NETNSID, &info);
	return true;
}

/* -- questions ------------------------------------------------------------ */

struct question {
	struct nlmsghdr head;
	struct ifinfomsg body;
	struct rtattr attr;
	char name[IFNAMSIZ];
};

struct listener {
	link_fn *fn;
	void *ctx;
};

static bool on_message(void *ctx, const struct nlmsghdr *m)
{
	const struct listener *to = ctx;
	struct link link;

	if (link_read(m, &link))
		to->fn(to->ctx, &link);
	return false;
}

/* Every answer goes to fn. 0 or -errno; -ENODEV when there is none. */
static int ask(const struct question *q, link_fn *fn, void *ctx)
{
	struct listener to = { fn, ctx };
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);

	if (fd < 0)
		return fd;
	if (q->head.nlmsg_flags & NLM_F_DUMP) /* told twice is as well */
		return netlink_list(fd, &q->head, on_message, NULL, &to);
	return netlink_ask(fd, &q->head, on_message, &to);
}

static void on_found(void *ctx, const struct link *link)
{
	*(struct link *)ctx = *link;
}

int link_find(const char *name, struct link *ret)
{
	struct question q = {
		.head = { .nlmsg_len = sizeof(q),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST },
		.attr = { .rta_len = RTA_LENGTH(IFNAMSIZ),
			  .rta_type = IFLA_IFNAME },
	};

	*ret = (struct link){ 0 };
	must(strlen(name) < sizeof(q.name));
	memcpy(q.name, name, strlen(name));
	q.attr.rta_len = (uint16_t)RTA_LENGTH(strlen(name) + 1);
	return ask(&q, on_found, ret);
}

int links_each(link_fn *fn, void *ctx)
{
	const struct question q = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.body)),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};

	return ask(&q, fn, ctx);
}

static int tell_all(const struct links *l)
{
	return links_each(l->fn, l->ctx);
}

int link_remove(uint32_t index)
{
	const struct question q = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.body)),
			  .nlmsg_type = RTM_DELLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.body = { .ifi_index = (int)index },
	};
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);

	return fd < 0 ? fd : netlink_do(fd, &q.head);
}

/* -- news ----------------------------------------------------------------- */

static void on_news(struct watch *w, unsigned ready)
{
	struct links *l = container_of(w, struct links, watch);
	struct listener to = { l->fn, l->ctx };
	int r = netlink_news_read(l->fd, on_message, &to);

	if (r == -EAGAIN) {
		watch_spent(w, ready);
		return;
	}
	if (r)
		r = tell_all(l);
	if (r)
		log_error("could not list the interfaces: %s", err_text(r));
}

int links_new(struct loop *loop, link_fn *fn, void *ctx, struct links **ret)
{
	struct links *l = must_alloc(sizeof(*l));
	int r;

	l->fn = fn;
	l->ctx = ctx;
	l->fd = netlink_news_open(NETLINK_ROUTE, RTNLGRP_LINK);
	r = l->fd < 0 ? l->fd : watch_init(&l->watch, loop, l->fd, on_news);
	if (!r)
		r = tell_all(l);
	if (r) {
		links_free(l);
		return err_trace(r);
	}
	watch_want(&l->watch, WATCH_READ);
	*ret = l;
	return 0;
}

struct links *links_free(struct links *l)
{
	if (!l)
		return NULL;
	watch_fini(&l->watch);
	(void)fd_close(l->fd);
	free(l);
	return NULL;
}
