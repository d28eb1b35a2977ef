/* SPDX-License-Identifier: Apache-2.0 */
/* nfnl_news.c - one notification after another: whose table, whose doing
 *
 * How it works: a notification has the table's name as an attribute and in its
 * header the port of the socket that made the change; 0 is the kernel itself,
 * which takes a chain away with its device.
 */

#include "src/role/nfnl_news.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"

enum {
	DATAGRAM_BYTES = 32 * 1024,
	QUEUE_BYTES = 1024 * 1024,
	TABLE_NAME_ATTR = 1, /* in every message: NFTA_*_TABLE */
};

int nfnl_news_open(void)
{
	const struct sockaddr_nl to_news = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1U << (NFNLGRP_NFTABLES - 1),
	};
	const int size = QUEUE_BYTES;
	CLEANUP_FD int fd = -1;
	int opened;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    NETLINK_NETFILTER);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&to_news, sizeof(to_news)) != 0)
		return err_origin(-errno);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	opened = fd;
	fd = -1;
	return opened;
}

/* Does it name the table? When in doubt, yes. */
static bool names_table(const struct nlmsghdr *m, const char *table)
{
	size_t at = NLMSG_LENGTH(NLMSG_ALIGN(sizeof(struct nfgenmsg)));
	size_t size = strlen(table) + 1;
	const char *bytes = (const char *)m;
	const struct nlattr *attr;

	if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN))
		return false; /* ends every transaction, ours or not */
	for (; at + sizeof(*attr) <= m->nlmsg_len;
	     at += NLA_ALIGN(attr->nla_len)) {
		attr = (const struct nlattr *)(const void *)(bytes + at);
		if (attr->nla_len < sizeof(*attr) ||
		    at + attr->nla_len > m->nlmsg_len)
			return true;
		if ((attr->nla_type & NLA_TYPE_MASK) == TABLE_NAME_ATTR)
			return attr->nla_len == sizeof(*attr) + size &&
			       !memcmp(attr + 1, table, size);
	}
	return true;
}

enum nfnl_news nfnl_news_read(int fd, const char *table, uint32_t port)
{
	_Alignas(struct nlmsghdr) char bytes[DATAGRAM_BYTES];
	struct nlmsghdr *m = (struct nlmsghdr *)(void *)bytes;
	ssize_t len = recv(fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return errno == EAGAIN ? NFNL_NEWS_END : NFNL_NEWS_OURS;
	for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len))
		if (m->nlmsg_pid && m->nlmsg_pid != port &&
		    names_table(m, table))
			return NFNL_NEWS_OURS;
	return NFNL_NEWS_OTHER;
}
