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

#include "src/role/netlink.h"

enum { TABLE_NAME_ATTR = 1 }; /* in every message: NFTA_*_TABLE */

int nfnl_news_open(void)
{
	return netlink_news_open(NETLINK_NETFILTER, NFNLGRP_NFTABLES);
}

/* Does it name one of the tables? When in doubt, yes. */
static bool names_table(const struct nlmsghdr *m,
			const struct nfnl_interest *in)
{
	struct span attrs = netlink_attrs(m, sizeof(struct nfgenmsg)), name;
	size_t i;

	if (m->nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWGEN))
		return false; /* ends every transaction, ours or not */
	if (!netlink_attr_str(attrs, TABLE_NAME_ATTR, &name))
		return true;
	for (i = 0; i < ARRAY_LEN(in->tables) && in->tables[i]; i++)
		if (span_eq(name, span_str(in->tables[i])))
			return true;
	return false;
}

struct hearing {
	const struct nfnl_interest *in;
	bool ours;
};

static bool on_message(void *ctx, const struct nlmsghdr *m)
{
	struct hearing *h = ctx;
	uint32_t own = h->in->port;

	if (own && (!m->nlmsg_pid || m->nlmsg_pid == own))
		return false;
	h->ours = names_table(m, h->in);
	return h->ours;
}

enum nfnl_news nfnl_news_read(int fd, const struct nfnl_interest *in)
{
	struct hearing h = { .in = in };
	int r = netlink_news_read(fd, on_message, &h);

	if (r)
		return r == -EAGAIN ? NFNL_NEWS_END : NFNL_NEWS_OURS;
	return h.ours ? NFNL_NEWS_OURS : NFNL_NEWS_OTHER;
}
