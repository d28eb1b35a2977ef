/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - the port of a bridge that leads to a process, asked from the kernel
 */

#include "src/control/lifecycle/port.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/base/fd.h"
#include "src/role/netlink.h"

struct question {
	struct nlmsghdr head;
	union {
		struct ifinfomsg link;
		struct {
			struct rtgenmsg gen;
			char pad[3];
			struct rtattr attr;
			uint32_t pid;
		} nsid;
	} body;
};

struct search {
	uint32_t bridge;
	int32_t nsid;
	unsigned found;
	char name[IFNAMSIZ];
};

/* -- the namespace of a process ------------------------------------------- */

static bool on_nsid(void *ctx, const struct nlmsghdr *m)
{
	uint32_t id;

	if (netlink_attr_u32(netlink_attrs(m, sizeof(struct rtgenmsg)),
			     NETNSA_NSID, &id))
		*(int32_t *)ctx = (int32_t)id;
	return true;
}

/* *ret is -1 when it has no number: no device of ours leads there. */
static int nsid_find(pid_t pid, int32_t *ret)
{
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);
	struct question q = { 0 };

	if (fd < 0)
		return fd;
	q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.body.nsid));
	q.head.nlmsg_type = RTM_GETNSID;
	q.head.nlmsg_flags = NLM_F_REQUEST;
	q.body.nsid.attr.rta_type = NETNSA_PID;
	q.body.nsid.attr.rta_len = RTA_LENGTH(sizeof(uint32_t));
	q.body.nsid.pid = (uint32_t)pid;
	*ret = -1;
	return netlink_ask(fd, &q.head, on_nsid, ret);
}

/* -- the ports ------------------------------------------------------------ */

static bool on_link(void *ctx, const struct nlmsghdr *m)
{
	struct span attrs = netlink_attrs(m, sizeof(struct ifinfomsg)), name;
	struct search *s = ctx;
	uint32_t master, nsid;

	if (m->nlmsg_type == RTM_NEWLINK &&
	    netlink_attr_u32(attrs, IFLA_MASTER, &master) &&
	    netlink_attr_u32(attrs, IFLA_LINK_NETNSID, &nsid) &&
	    netlink_attr_str(attrs, IFLA_IFNAME, &name) &&
	    master == s->bridge && (int32_t)nsid == s->nsid &&
	    span_copy(name, s->name, sizeof(s->name)))
		s->found++;
	return false;
}

static void on_anew(void *ctx)
{
	struct search *s = ctx;

	s->found = 0;
}

static int links_search(struct search *s)
{
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);
	struct question q = { 0 };

	if (fd < 0)
		return fd;
	q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.body.link));
	q.head.nlmsg_type = RTM_GETLINK;
	q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	return netlink_list(fd, &q.head, on_link, on_anew, s);
}

int port_find(pid_t pid, const char *bridge, char ret[MSG_IFACE_SIZE])
{
	struct search s = { .bridge = if_nametoindex(bridge) };
	int32_t nsid;
	int r;

	if (!s.bridge)
		return -ENODEV;
	/* a namespace gets its number when a device that leads there is told
	 * of: as a rule when it came to be, else when all are asked for */
	s.nsid = INT32_MIN;
	r = nsid_find(pid, &nsid);
	if (!r && nsid < 0)
		r = links_search(&s);
	if (!r && nsid < 0)
		r = nsid_find(pid, &nsid);
	if (r)
		return r;
	if (nsid < 0)
		return -ENODEV;
	s.nsid = nsid;
	r = links_search(&s);
	if (r)
		return r;
	if (s.found != 1)
		return s.found ? -EEXIST : -ENODEV;
	(void)snprintf(ret, MSG_IFACE_SIZE, "%s", s.name);
	return 0;
}
