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
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"

enum { ANSWER_MAX = 64 * 1024, SERIAL = 1, ANSWER_MS = 2000 };

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

static int kernel_open(void)
{
	const struct timeval patience = { .tv_usec = ANSWER_MS * 1000 % 1000000,
					  .tv_sec = ANSWER_MS / 1000 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return err_origin(-errno);
	/* a kernel that does not answer must not hold the loop for ever */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) != 0) {
		(void)close(fd);
		return err_origin(-errno);
	}
	return fd;
}

static int ask(int fd, const struct question *q)
{
	return send(fd, q, q->head.nlmsg_len, 0) < 0 ? err_origin(-errno) : 0;
}

/* Walks attributes; NULL when there is none of the kind, or too short. */
static const void *attribute(const struct rtattr *attrs, int len,
			     unsigned short kind, size_t size)
{
	const struct rtattr *a;

	for (a = attrs; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if ((a->rta_type & NLA_TYPE_MASK) == kind)
			return RTA_PAYLOAD(a) >= size ? RTA_DATA(a) : NULL;
	return NULL;
}

static int error_of(const struct nlmsghdr *h)
{
	const struct nlmsgerr *e = NLMSG_DATA(h);

	return h->nlmsg_len < NLMSG_LENGTH(sizeof(*e)) ? -EPROTO : e->error;
}

/* -- the namespace of a process ------------------------------------------- */

/* *ret stays -1 when it has no number: no device of ours leads there. */
static int nsid_find(int fd, pid_t pid, int32_t *ret)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct nlmsghdr *h = (struct nlmsghdr *)answer;
	struct question q = { 0 };
	const void *id;
	ssize_t n;
	int r;

	q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.body.nsid));
	q.head.nlmsg_type = RTM_GETNSID;
	q.head.nlmsg_flags = NLM_F_REQUEST;
	q.head.nlmsg_seq = SERIAL;
	q.body.nsid.attr.rta_type = NETNSA_PID;
	q.body.nsid.attr.rta_len = RTA_LENGTH(sizeof(uint32_t));
	q.body.nsid.pid = (uint32_t)pid;
	r = ask(fd, &q);
	if (r)
		return r;
	n = recv(fd, answer, sizeof(answer), 0);
	if (n < 0)
		return err_origin(-errno);
	if (!NLMSG_OK(h, (size_t)n))
		return err_origin(-EPROTO);
	if (h->nlmsg_type == NLMSG_ERROR)
		return error_of(h);
	id = attribute(
		(const struct rtattr *)((const char *)NLMSG_DATA(h) +
					NLMSG_ALIGN(sizeof(struct rtgenmsg))),
		(int)NLMSG_PAYLOAD(h, NLMSG_ALIGN(sizeof(struct rtgenmsg))),
		NETNSA_NSID, sizeof(*ret));
	if (!id)
		return err_origin(-EPROTO);
	memcpy(ret, id, sizeof(*ret));
	return 0;
}

/* -- the ports ------------------------------------------------------------ */

static void link_look(const struct nlmsghdr *h, struct search *s)
{
	const struct ifinfomsg *link = NLMSG_DATA(h);
	const struct rtattr *attrs = IFLA_RTA(link);
	int len = (int)IFLA_PAYLOAD(h);
	const void *master, *nsid;
	const char *name;
	uint32_t index;
	int32_t id;

	master = attribute(attrs, len, IFLA_MASTER, sizeof(index));
	nsid = attribute(attrs, len, IFLA_LINK_NETNSID, sizeof(id));
	name = attribute(attrs, len, IFLA_IFNAME, 1);
	if (!master || !nsid || !name)
		return;
	memcpy(&index, master, sizeof(index));
	memcpy(&id, nsid, sizeof(id));
	if (index != s->bridge || id != s->nsid)
		return;
	(void)snprintf(s->name, sizeof(s->name), "%s", name);
	s->found++;
}

/* 1: the last part was seen. */
static int links_take(const char *answer, size_t len, struct search *s)
{
	const struct nlmsghdr *h = (const struct nlmsghdr *)answer;

	for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
		if (h->nlmsg_type == NLMSG_DONE)
			return 1;
		if (h->nlmsg_type == NLMSG_ERROR)
			return error_of(h) ? error_of(h) : -EPROTO;
		if (h->nlmsg_type == RTM_NEWLINK &&
		    h->nlmsg_len >= NLMSG_LENGTH(sizeof(struct ifinfomsg)))
			link_look(h, s);
	}
	return 0;
}

static int links_search(int fd, struct search *s)
{
	char answer[ANSWER_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct question q = { 0 };
	ssize_t n;
	int r;

	q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.body.link));
	q.head.nlmsg_type = RTM_GETLINK;
	q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	q.head.nlmsg_seq = SERIAL;
	r = ask(fd, &q);
	while (!r) {
		n = recv(fd, answer, sizeof(answer), 0);
		if (n < 0)
			return err_origin(-errno);
		r = links_take(answer, (size_t)n, s);
	}
	return r > 0 ? 0 : r;
}

/* Each question has a socket of its own: nothing of one is read as the answer
 * to another. */
static int nsid_of(pid_t pid, int32_t *ret)
{
	CLEANUP_FD int fd = kernel_open();

	return fd < 0 ? fd : nsid_find(fd, pid, ret);
}

static int links_of(struct search *s)
{
	CLEANUP_FD int fd = kernel_open();

	return fd < 0 ? fd : links_search(fd, s);
}

int port_find(pid_t pid, const char *bridge, char ret[MSG_IFACE_SIZE])
{
	struct search s = { .bridge = if_nametoindex(bridge) };
	int32_t nsid = -1;
	int r;

	if (!s.bridge)
		return -ENODEV;
	/* a namespace gets its number when a device that leads there is told
	 * of, so all are asked for once before */
	s.nsid = INT32_MIN;
	r = links_of(&s);
	if (!r)
		r = nsid_of(pid, &nsid);
	if (r)
		return r;
	if (nsid < 0)
		return -ENODEV;
	s.nsid = nsid;
	r = links_of(&s);
	if (r)
		return r;
	if (s.found != 1)
		return s.found ? -EEXIST : -ENODEV;
	(void)snprintf(ret, MSG_IFACE_SIZE, "%s", s.name);
	return 0;
}
