/* SPDX-License-Identifier: Apache-2.0 */
/* links.c - RTM_NEWLINK and RTM_DELLINK, heard and asked for
 *
 * How it works: one socket listens to the kernel's announcements; questions
 * are asked on a socket of their own, so that answers and news do not mix.
 * When announcements were lost (ENOBUFS) all interfaces are told of again;
 * those that went meanwhile are not, and nothing may depend on hearing it.
 */

#include "src/role/links.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/loop.h"

enum { REPLY_BYTES = 32 * 1024, NEWS_BYTES = 1024 * 1024 };

struct links {
	struct watch watch;
	link_fn *fn;
	void *ctx;
	int fd;
};

static const struct rtattr *attr_find(const struct rtattr *at, size_t len,
				      unsigned type)
{
	for (; RTA_OK(at, len); at = RTA_NEXT(at, len))
		if ((at->rta_type & NLA_TYPE_MASK) == type)
			return at;
	return NULL;
}

static bool attr_is(const struct rtattr *at, const char *text)
{
	return at && RTA_PAYLOAD(at) >= strlen(text) &&
	       !strncmp(RTA_DATA(at), text, RTA_PAYLOAD(at));
}

/* False: a message of another kind, or of another address family (the bridge
 * announces its ports a second time, in other words). */
static bool link_read(const struct nlmsghdr *m, struct link *ret)
{
	const struct ifinfomsg *body = NLMSG_DATA(m);
	const struct rtattr *first, *name, *master, *info;
	uint32_t index;
	size_t len;

	if ((m->nlmsg_type != RTM_NEWLINK && m->nlmsg_type != RTM_DELLINK) ||
	    m->nlmsg_len < NLMSG_LENGTH(sizeof(*body)) ||
	    body->ifi_family != AF_UNSPEC)
		return false;
	first = IFLA_RTA(body);
	len = IFLA_PAYLOAD(m);
	name = attr_find(first, len, IFLA_IFNAME);
	if (!name || RTA_PAYLOAD(name) > IFNAMSIZ)
		return false;
	*ret = (struct link){ .index = (uint32_t)body->ifi_index,
			      .gone = m->nlmsg_type == RTM_DELLINK };
	memcpy(ret->name, RTA_DATA(name), RTA_PAYLOAD(name));
	ret->name[IFNAMSIZ - 1] = '\0';
	master = attr_find(first, len, IFLA_MASTER);
	if (master && RTA_PAYLOAD(master) == sizeof(index)) {
		memcpy(&index, RTA_DATA(master), sizeof(index));
		if (!if_indextoname(index, ret->master))
			ret->master[0] = '\0';
	}
	info = attr_find(first, len, IFLA_LINKINFO);
	ret->is_bridge =
		info && attr_is(attr_find(RTA_DATA(info), RTA_PAYLOAD(info),
					  IFLA_INFO_KIND),
				"bridge");
	return true;
}

/* -- questions ------------------------------------------------------------ */

struct question {
	struct nlmsghdr head;
	struct ifinfomsg body;
	struct rtattr attr;
	char name[IFNAMSIZ];
};

/* Every answer goes to fn. 0 or -errno; -ENODEV when there is none. */
static int ask(const struct question *q, link_fn *fn, void *ctx)
{
	_Alignas(struct nlmsghdr) char bytes[REPLY_BYTES];
	const struct nlmsgerr *error;
	CLEANUP_FD int fd = -1;
	struct nlmsghdr *m;
	struct link link;
	ssize_t len;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0 || send(fd, q, q->head.nlmsg_len, 0) < 0)
		return err_origin(-errno);
	for (;;) {
		len = recv(fd, bytes, sizeof(bytes), 0);
		if (len < 0)
			return err_origin(-errno);
		m = (struct nlmsghdr *)(void *)bytes;
		for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
			if (m->nlmsg_type == NLMSG_DONE)
				return 0;
			if (m->nlmsg_type == NLMSG_ERROR) {
				error = NLMSG_DATA(m);
				return error->error;
			}
			if (link_read(m, &link))
				fn(ctx, &link);
			if (!(q->head.nlmsg_flags & NLM_F_DUMP))
				return 0;
		}
	}
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

static int tell_all(const struct links *l)
{
	const struct question q = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(q.body)),
			  .nlmsg_type = RTM_GETLINK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
	};

	return ask(&q, l->fn, l->ctx);
}

/* -- news ----------------------------------------------------------------- */

static void on_news(struct watch *w, unsigned ready)
{
	struct links *l = container_of(w, struct links, watch);
	_Alignas(struct nlmsghdr) char bytes[REPLY_BYTES];
	struct nlmsghdr *m;
	struct link link;
	ssize_t len = recv(l->fd, bytes, sizeof(bytes), 0);
	int r;

	if (len < 0 && errno == EAGAIN) {
		watch_spent(w, ready);
		return;
	}
	if (len < 0) {
		r = tell_all(l);
		if (r)
			log_error("could not list the interfaces: %s",
				  err_text(r));
		return;
	}
	m = (struct nlmsghdr *)(void *)bytes;
	for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len))
		if (link_read(m, &link))
			l->fn(l->ctx, &link);
}

static int news_open(void)
{
	const struct sockaddr_nl to_news = {
		.nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK,
	};
	const int size = NEWS_BYTES;
	CLEANUP_FD int fd = -1;
	int opened;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    NETLINK_ROUTE);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&to_news, sizeof(to_news)) != 0)
		return err_origin(-errno);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	opened = fd;
	fd = -1;
	return opened;
}

int links_new(struct loop *loop, link_fn *fn, void *ctx, struct links **ret)
{
	struct links *l = must_alloc(sizeof(*l));
	int r;

	l->fn = fn;
	l->ctx = ctx;
	l->fd = news_open();
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
