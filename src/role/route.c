/* SPDX-License-Identifier: Apache-2.0 */
/* route.c - four rtnetlink requests
 *
 * How it works: TPROXY gives a packet a socket and a mark, but routing would
 * still send it on. The rule sends what carries the mark to a table of its
 * own, whose only route says that every address is local. Priority 90 stands
 * before the rules of VPNs and after the local table, whose addresses the
 * kernel's own answers need.
 *
 * Nothing depends on rp_filter as long as net.ipv4.conf.*.src_valid_mark is 0
 * (the default): the reverse check then looks up the source without the mark
 * and finds the sandbox's interface.
 */

#include "src/role/route.h"

#include <errno.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/role/netlink.h"

enum { RULE_PRIORITY = 90, REQUEST_BYTES = 256 };

/* One request under construction. The kinds of body have one thing in common:
 * attributes follow them. */
struct request {
	struct nlmsghdr head;
	char bytes[REQUEST_BYTES];
};

static void request_init(struct request *q, uint16_t type, uint16_t flags,
			 const void *body, size_t len)
{
	memset(q, 0, sizeof(*q));
	q->head.nlmsg_type = type;
	q->head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	q->head.nlmsg_len = (uint32_t)NLMSG_LENGTH(len);
	memcpy(NLMSG_DATA(&q->head), body, len);
}

static void request_put_u32(struct request *q, uint16_t type, uint32_t value)
{
	struct rtattr *attr = (struct rtattr *)((char *)&q->head +
						NLMSG_ALIGN(q->head.nlmsg_len));

	must(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_LENGTH(sizeof(value)) <=
	     sizeof(*q));
	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(sizeof(value));
	memcpy(RTA_DATA(attr), &value, sizeof(value));
	q->head.nlmsg_len =
		NLMSG_ALIGN(q->head.nlmsg_len) + RTA_LENGTH(sizeof(value));
}

static int request_run(const struct request *q)
{
	CLEANUP_FD int fd = netlink_open(NETLINK_ROUTE);

	return fd < 0 ? fd : netlink_do(fd, &q->head);
}

static int rule_change(uint16_t type, uint16_t flags, int family,
		       uint32_t fwmark, uint32_t table)
{
	const struct fib_rule_hdr body = {
		.family = (uint8_t)family,
		.action = FR_ACT_TO_TBL,
	};
	struct request q;

	request_init(&q, type, flags, &body, sizeof(body));
	request_put_u32(&q, FRA_PRIORITY, RULE_PRIORITY);
	request_put_u32(&q, FRA_FWMARK, fwmark);
	request_put_u32(&q, FRA_FWMASK, UINT32_MAX);
	request_put_u32(&q, FRA_TABLE, table);
	return request_run(&q);
}

static int route_change(uint16_t type, uint16_t flags, int family,
			uint32_t table)
{
	const struct rtmsg body = {
		.rtm_family = (uint8_t)family,
		.rtm_protocol = RTPROT_STATIC,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL,
	};
	struct request q;

	request_init(&q, type, flags, &body, sizeof(body));
	request_put_u32(&q, RTA_TABLE, table);
	request_put_u32(&q, RTA_OIF, if_nametoindex("lo"));
	return request_run(&q);
}

/* IPv6 that is switched off per interface answers EACCES or EINVAL. */
static int family_error(int family, int r)
{
	if (family == AF_INET6 &&
	    (r == -EACCES || r == -EOPNOTSUPP || r == -EINVAL))
		return -EAFNOSUPPORT;
	return r;
}

int route_install(int family, uint32_t fwmark, uint32_t table)
{
	int r;

	r = rule_change(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, family, fwmark,
			table);
	if (!r || r == -EEXIST)
		r = route_change(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL,
				 family, table);
	return r == -EEXIST ? 0 : family_error(family, r);
}

int route_remove(int family, uint32_t fwmark, uint32_t table)
{
	int rule = rule_change(RTM_DELRULE, 0, family, fwmark, table);
	int route = route_change(RTM_DELROUTE, 0, family, table);
	int r = rule ? rule : route;

	if (r == -ENOENT || r == -ESRCH || r == -EAFNOSUPPORT ||
	    r == -EOPNOTSUPP)
		return 0;
	return r;
}
