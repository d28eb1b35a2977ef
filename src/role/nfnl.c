/* SPDX-License-Identifier: Apache-2.0 */
/* nfnl.c - nf_tables messages by hand
 *
 * How it works: a transaction is BATCH_BEGIN, messages, BATCH_END in one
 * datagram. The kernel works on it inside send() and answers each message that
 * failed, and the one that asked for it (the last) when all is done; so a
 * commit is one send and one receive and never waits. Attributes nest: a nest
 * is begun with length 0 and patched at its end.
 */

#include "src/role/nfnl.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/role/netlink.h"

enum {
	PACKET_MAX = 65536,
	BYTES_MAX = 256 * 1024 * 1024, /* every element of 65536 sandboxes */
	NAMES_BYTES_MAX = 4 * 1024 * 1024,
	REPLY_BYTES = 32 * 1024,
	/* before anything else in a device's ingress */
	INGRESS_PRIORITY = -500,
};

void nfnl_init(struct nfnl *n)
{
	*n = (struct nfnl){ 0 };
	buf_init(&n->bytes, BYTES_MAX);
}

void nfnl_fini(struct nfnl *n)
{
	buf_fini(&n->bytes);
}

/* -- attributes ----------------------------------------------------------- */

static void put(struct nfnl *n, const void *bytes, size_t len)
{
	static const char zeros[NLA_ALIGNTO];
	size_t pad = NLA_ALIGN(len) - len;

	if (buf_put(&n->bytes, span_of(bytes, len)) ||
	    buf_put(&n->bytes, span_of(zeros, pad)))
		n->full = true;
}

static void put_attr(struct nfnl *n, uint16_t type, const void *bytes,
		     size_t len)
{
	const struct nlattr head = {
		.nla_type = type,
		.nla_len = (uint16_t)(sizeof(head) + len),
	};

	put(n, &head, sizeof(head));
	put(n, bytes, len);
}

static void put_str(struct nfnl *n, uint16_t type, const char *s)
{
	put_attr(n, type, s, strlen(s) + 1);
}

static void put_be32(struct nfnl *n, uint16_t type, int value)
{
	uint32_t be = htonl((uint32_t)value);

	put_attr(n, type, &be, sizeof(be));
}

static void put_be64(struct nfnl *n, uint16_t type, uint64_t value)
{
	uint64_t be = htobe64(value);

	put_attr(n, type, &be, sizeof(be));
}

static size_t nest(struct nfnl *n, uint16_t type)
{
	size_t at = buf_len(&n->bytes);

	put_attr(n, type | NLA_F_NESTED, NULL, 0);
	return at;
}

static void nest_end(struct nfnl *n, size_t at)
{
	uint16_t len = (uint16_t)(buf_len(&n->bytes) - at);

	if (!n->full)
		memcpy(n->bytes.data + n->bytes.start + at, &len, sizeof(len));
}

/* -- messages ------------------------------------------------------------- */

static size_t message(struct nfnl *n, uint16_t type, uint16_t flags,
		      uint8_t family, uint16_t res_id)
{
	const struct nlmsghdr head = {
		.nlmsg_type = type,
		.nlmsg_flags = NLM_F_REQUEST | flags,
		.nlmsg_seq = n->count,
	};
	const struct nfgenmsg body = {
		.nfgen_family = family,
		.version = NFNETLINK_V0,
		.res_id = htons(res_id),
	};
	size_t at = buf_len(&n->bytes);

	put(n, &head, sizeof(head));
	put(n, &body, sizeof(body));
	return at;
}

static void message_patch(struct nfnl *n, size_t at, uint32_t len,
			  uint16_t more_flags)
{
	struct nlmsghdr head;
	char *where;

	if (n->full)
		return;
	where = n->bytes.data + n->bytes.start + at;
	memcpy(&head, where, sizeof(head));
	head.nlmsg_len = len ? len : head.nlmsg_len;
	head.nlmsg_flags |= more_flags;
	memcpy(where, &head, sizeof(head));
}

static void message_end(struct nfnl *n, size_t at)
{
	message_patch(n, at, (uint32_t)(buf_len(&n->bytes) - at), 0);
}

/* The first message of a transaction brings its head along. */
static size_t change(struct nfnl *n, const struct nfnl_table *t, uint16_t verb,
		     uint16_t flags)
{
	size_t at;

	if (!n->count++)
		message_end(n, message(n, NFNL_MSG_BATCH_BEGIN, 0, AF_UNSPEC,
				       NFNL_SUBSYS_NFTABLES));
	at = message(n, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | verb), flags,
		     t->family, 0);
	put_str(n, 1, t->name); /* NFTA_*_TABLE */
	return at;
}

/* limit rate over bytes_per_s bytes/second, a packet of any size among them */
static void put_limit(struct nfnl *n, uint64_t bytes_per_s)
{
	size_t expr = nest(n, NFTA_SET_ELEM_EXPR), body;
	uint64_t burst =
		bytes_per_s < PACKET_MAX ? PACKET_MAX - bytes_per_s : 0;

	put_str(n, NFTA_EXPR_NAME, "limit");
	body = nest(n, NFTA_EXPR_DATA);
	put_be64(n, NFTA_LIMIT_RATE, bytes_per_s);
	put_be64(n, NFTA_LIMIT_UNIT, 1);
	put_be32(n, NFTA_LIMIT_BURST, (int)burst);
	put_be32(n, NFTA_LIMIT_TYPE, NFT_LIMIT_PKT_BYTES);
	put_be32(n, NFTA_LIMIT_FLAGS, NFT_LIMIT_F_INV);
	nest_end(n, body);
	nest_end(n, expr);
}

static void put_element(struct nfnl *n, const struct nfnl_table *t,
			const char *set, struct span key, bool add,
			uint64_t bytes_per_s)
{
	size_t at = change(n, t, add ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM,
			   add ? NLM_F_CREATE : 0);
	size_t list, element, data;

	put_str(n, NFTA_SET_ELEM_LIST_SET, set);
	list = nest(n, NFTA_SET_ELEM_LIST_ELEMENTS);
	element = nest(n, NFTA_LIST_ELEM);
	data = nest(n, NFTA_SET_ELEM_KEY);
	put_attr(n, NFTA_DATA_VALUE, key.ptr, key.len);
	nest_end(n, data);
	if (bytes_per_s)
		put_limit(n, bytes_per_s);
	nest_end(n, element);
	nest_end(n, list);
	message_end(n, at);
}

void nfnl_element(struct nfnl *n, const struct nfnl_table *t, const char *set,
		  struct span key, bool add)
{
	put_element(n, t, set, key, add, 0);
}

void nfnl_element_limit(struct nfnl *n, const struct nfnl_table *t,
			const char *set, struct span key, uint64_t bytes_per_s)
{
	put_element(n, t, set, key, bytes_per_s != 0, bytes_per_s);
}

void nfnl_flush_set(struct nfnl *n, const struct nfnl_table *t, const char *set)
{
	size_t at = change(n, t, NFT_MSG_DELSETELEM, 0);

	put_str(n, NFTA_SET_ELEM_LIST_SET, set);
	message_end(n, at);
}

static void put_goto(struct nfnl *n, const char *target)
{
	size_t list = nest(n, NFTA_RULE_EXPRESSIONS), expr, body, data, verdict;

	expr = nest(n, NFTA_LIST_ELEM);
	put_str(n, NFTA_EXPR_NAME, "immediate");
	body = nest(n, NFTA_EXPR_DATA);
	put_be32(n, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = nest(n, NFTA_IMMEDIATE_DATA);
	verdict = nest(n, NFTA_DATA_VERDICT);
	put_be32(n, NFTA_VERDICT_CODE, NFT_GOTO);
	put_str(n, NFTA_VERDICT_CHAIN, target);
	nest_end(n, verdict);
	nest_end(n, data);
	nest_end(n, body);
	nest_end(n, expr);
	nest_end(n, list);
}

void nfnl_ingress(struct nfnl *n, const struct nfnl_table *t, const char *chain,
		  const char *device, const char *target)
{
	size_t at = change(n, t, NFT_MSG_NEWCHAIN, NLM_F_CREATE), hook;

	put_str(n, NFTA_CHAIN_NAME, chain);
	hook = nest(n, NFTA_CHAIN_HOOK);
	put_be32(n, NFTA_HOOK_HOOKNUM, NF_NETDEV_INGRESS);
	put_be32(n, NFTA_HOOK_PRIORITY, INGRESS_PRIORITY);
	put_str(n, NFTA_HOOK_DEV, device);
	nest_end(n, hook);
	put_be32(n, NFTA_CHAIN_POLICY, NF_DROP);
	put_str(n, NFTA_CHAIN_TYPE, "filter");
	message_end(n, at);

	at = change(n, t, NFT_MSG_DELRULE, 0); /* all of the chain */
	put_str(n, NFTA_RULE_CHAIN, chain);
	message_end(n, at);

	at = change(n, t, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	put_str(n, NFTA_RULE_CHAIN, chain);
	put_goto(n, target);
	message_end(n, at);
}

void nfnl_remove_chain(struct nfnl *n, const struct nfnl_table *t,
		       const char *chain)
{
	size_t at = change(n, t, NFT_MSG_DELCHAIN, 0);

	put_str(n, NFTA_CHAIN_NAME, chain);
	message_end(n, at);
}

void nfnl_remove_empty(struct nfnl *n, const struct nfnl_table *t,
		       const char *chain)
{
	size_t at = change(n, t, NFT_MSG_DELCHAIN, NLM_F_NONREC);

	put_str(n, NFTA_CHAIN_NAME, chain);
	message_end(n, at);
	message_end(n, change(n, t, NFT_MSG_DELTABLE, NLM_F_NONREC));
}

/* -- the socket ----------------------------------------------------------- */

int nfnl_open(uint32_t *ret_port)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	socklen_t len = sizeof(self);
	CLEANUP_FD int fd = -1;
	int opened;

	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&self, sizeof(self)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&self, &len) != 0)
		return err_origin(-errno);
	*ret_port = self.nl_pid;
	opened = fd;
	fd = -1;
	return opened;
}

/* The first complaint, or 0 when the last message was answered by "done". What
 * is left in the socket belongs to the same transaction and is read away. */
static int answers_read(int fd)
{
	_Alignas(struct nlmsghdr) char bytes[REPLY_BYTES];
	const struct nlmsgerr *error;
	struct nlmsghdr *m;
	bool answered = false;
	ssize_t len;
	int r = 0;

	while ((len = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		m = (struct nlmsghdr *)(void *)bytes;
		for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
			if (m->nlmsg_type != NLMSG_ERROR ||
			    m->nlmsg_len < NLMSG_LENGTH(sizeof(*error)))
				continue;
			error = NLMSG_DATA(m);
			answered = true;
			r = r ? r : error->error;
		}
	}
	return answered ? r : err_origin(-EPROTO);
}

/* The last message asks for an answer. */
static void ask_answer(struct nfnl *n)
{
	size_t at = 0, len = buf_len(&n->bytes);
	struct nlmsghdr head;

	for (;;) {
		memcpy(&head, n->bytes.data + n->bytes.start + at,
		       sizeof(head));
		if (at + NLMSG_ALIGN(head.nlmsg_len) >= len)
			break;
		at += NLMSG_ALIGN(head.nlmsg_len);
	}
	message_patch(n, at, 0, NLM_F_ACK);
}

static int commit(struct nfnl *n, int fd)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct span bytes;
	int size;

	if (!n->full)
		ask_answer(n);
	message_end(n, message(n, NFNL_MSG_BATCH_END, 0, AF_UNSPEC,
			       NFNL_SUBSYS_NFTABLES));
	if (n->full)
		return err_origin(-ENOBUFS);
	bytes = buf_peek(&n->bytes);
	size = (int)(2 * bytes.len); /* the kernel counts its own heads, too */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
	if (sendto(fd, bytes.ptr, bytes.len, 0, (void *)&kernel,
		   sizeof(kernel)) < 0)
		return err_origin(-errno);
	return answers_read(fd);
}

int nfnl_commit(struct nfnl *n, int fd)
{
	int r = n->count ? commit(n, fd) : 0;

	buf_clear(&n->bytes);
	n->count = 0;
	n->full = false;
	return r;
}

/* -- reading -------------------------------------------------------------- */

/* Names are told when all are there: of a list that is asked for again each
 * once. */
struct search {
	const char *table;
	struct buf names; /* each with its NUL */
	bool full;
};

static bool on_chain(void *ctx, const struct nlmsghdr *m)
{
	struct span attrs = netlink_attrs(m, sizeof(struct nfgenmsg));
	struct search *s = ctx;
	struct span table, chain;

	if (netlink_attr_str(attrs, NFTA_CHAIN_TABLE, &table) &&
	    netlink_attr_str(attrs, NFTA_CHAIN_NAME, &chain) &&
	    span_eq(table, span_str(s->table)))
		s->full |= buf_put(&s->names,
				   span_of(chain.ptr, chain.len + 1)) != 0;
	return false;
}

static void on_anew(void *ctx)
{
	struct search *s = ctx;

	buf_clear(&s->names);
}

int nfnl_each_chain(int fd, const struct nfnl_table *t,
		    void (*fn)(void *ctx, const char *chain), void *ctx)
{
	const struct {
		struct nlmsghdr head;
		struct nfgenmsg body;
	} ask = {
		.head = { .nlmsg_len = sizeof(ask),
			  .nlmsg_type =
				  NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.body = { .nfgen_family = t->family },
	};
	struct search s = { t->name, BUF_INIT(NAMES_BYTES_MAX), false };
	int r = netlink_list(fd, &ask.head, on_chain, on_anew, &s);
	struct span names = buf_peek(&s.names);

	if (!r && s.full)
		r = err_origin(-ENOBUFS);
	for (; !r && names.len; names = span_from(names, strlen(names.ptr) + 1))
		fn(ctx, names.ptr);
	buf_fini(&s.names);
	return r;
}
