/* SPDX-License-Identifier: Apache-2.0 */
/* conntrack.c - list entries by mark, delete one by its tuple and id
 *
 * How it works: two netlink sockets. On the first one a list runs: the kernel
 * writes it piece by piece as we read, so that however many entries there are,
 * little of them is in memory at any time. On the second one deletions are
 * made, each of which the kernel answers in the same call.
 *
 * A list that is begun anew while one runs is read to its end without looking,
 * because the kernel runs one at a time for a socket.
 */

#include "src/queue/conntrack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/role/flow_mark.h"

enum {
	RECEIVE_BYTES = 32 * 1024, /* the kernel fills what we offer */
	MESSAGE_BYTES = 512,
	BATCH = 8,
};

struct conntrack {
	struct mnl_socket *list, *change;
	struct watch watch;
	const struct conntrack_ops *ops;
	void *ctx;
	bool started, listing, paused;
	bool again;	 /* the list under way is worth nothing */
	bool incomplete; /* something of it was not understood */
	/* read and not yet handed on: while paused */
	size_t at, len;
	_Alignas(struct nlmsghdr) char bytes[RECEIVE_BYTES];
};

static struct nlmsghdr *request_put(char *bytes, uint8_t type, uint16_t flags,
				    uint8_t family)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(bytes);
	struct nfgenmsg *body;

	m->nlmsg_type = (uint16_t)(NFNL_SUBSYS_CTNETLINK << 8 | type);
	m->nlmsg_flags = NLM_F_REQUEST | flags;
	body = mnl_nlmsg_put_extra_header(m, sizeof(*body));
	body->nfgen_family = family;
	body->version = NFNETLINK_V0;
	return m;
}

/* --- from the kernel's attributes to a flow --- */

/* Those of one nest, up to max. */
static void nest_read(const struct nlattr *nest, const struct nlattr **attrs,
		      unsigned max)
{
	const struct nlattr *a;

	memset(attrs, 0, (max + 1) * sizeof(*attrs));
	mnl_attr_for_each_nested(a, nest) if (mnl_attr_get_type(a) <= max)
		attrs[mnl_attr_get_type(a)] = a;
}

static bool put_addr(const struct nlattr *v4, const struct nlattr *v6,
		     uint8_t ip[16])
{
	if (v4 && mnl_attr_get_payload_len(v4) == 4) {
		memset(ip, 0, 10);
		memset(ip + 10, 0xff, 2);
		memcpy(ip + 12, mnl_attr_get_payload(v4), 4);
		return true;
	}
	if (!v6 || mnl_attr_get_payload_len(v6) != 16)
		return false;
	memcpy(ip, mnl_attr_get_payload(v6), 16);
	return true;
}

static uint8_t u8_of(const struct nlattr *a)
{
	return a && mnl_attr_get_payload_len(a) ? mnl_attr_get_u8(a) : 0;
}

static uint16_t u16_of(const struct nlattr *a)
{
	return a && mnl_attr_get_payload_len(a) >= 2
		       ? ntohs(mnl_attr_get_u16(a))
		       : 0;
}

static bool tuple_read(const struct nlattr *tuple, struct msg_flow *flow)
{
	const struct nlattr *parts[CTA_TUPLE_MAX + 1];
	const struct nlattr *ip[CTA_IP_MAX + 1];
	const struct nlattr *proto[CTA_PROTO_MAX + 1];

	nest_read(tuple, parts, CTA_TUPLE_MAX);
	if (!parts[CTA_TUPLE_IP] || !parts[CTA_TUPLE_PROTO])
		return false;
	nest_read(parts[CTA_TUPLE_IP], ip, CTA_IP_MAX);
	nest_read(parts[CTA_TUPLE_PROTO], proto, CTA_PROTO_MAX);
	if (!put_addr(ip[CTA_IP_V4_SRC], ip[CTA_IP_V6_SRC], flow->client) ||
	    !put_addr(ip[CTA_IP_V4_DST], ip[CTA_IP_V6_DST], flow->destination))
		return false;
	flow->protocol = u8_of(proto[CTA_PROTO_NUM]);
	switch (flow->protocol) {
	case IPPROTO_UDP:
		flow->client_port = u16_of(proto[CTA_PROTO_SRC_PORT]);
		flow->port = u16_of(proto[CTA_PROTO_DST_PORT]);
		return true;
	case IPPROTO_ICMP:
		flow->icmp_type = u8_of(proto[CTA_PROTO_ICMP_TYPE]);
		flow->icmp_code = u8_of(proto[CTA_PROTO_ICMP_CODE]);
		return true;
	case IPPROTO_ICMPV6:
		flow->icmp_type = u8_of(proto[CTA_PROTO_ICMPV6_TYPE]);
		flow->icmp_code = u8_of(proto[CTA_PROTO_ICMPV6_CODE]);
		return true;
	default:
		return true; /* the gateway knows nothing of it and says no */
	}
}

/* The tuple, the zone and the id, as they came. */
static bool key_put(struct conntrack_key *k, const struct nlattr *a)
{
	size_t size = MNL_ALIGN(a->nla_len);

	if (size > sizeof(k->bytes) - k->len)
		return false;
	memcpy(k->bytes + k->len, a, a->nla_len);
	k->len = (uint16_t)(k->len + size);
	return true;
}

static bool entry_read(const struct nlmsghdr *m, struct conntrack_entry *e)
{
	const struct nfgenmsg *body = mnl_nlmsg_get_payload(m);
	const struct nlattr *a, *tuple = NULL;
	uint32_t mark = 0;
	bool fine = true;

	*e = (struct conntrack_entry){ .flow = { .again = 1 } };
	e->key.family = body->nfgen_family;
	mnl_attr_for_each(a, m, sizeof(*body))
	{
		switch (mnl_attr_get_type(a)) {
		case CTA_TUPLE_ORIG:
			tuple = a;
			fine &= key_put(&e->key, a);
			break;
		case CTA_ZONE:
		case CTA_ID:
			fine &= key_put(&e->key, a);
			break;
		case CTA_MARK:
			mark = ntohl(mnl_attr_get_u32(a));
			break;
		default:
			break;
		}
	}
	e->flow.ifindex = mark & FLOW_MARK_IFINDEX;
	return fine && tuple && tuple_read(tuple, &e->flow) &&
	       (mark & FLOW_MARK_MASK) == FLOW_MARK_TAG;
}

/* --- the list --- */

static int list_request(struct conntrack *c)
{
	char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m;

	m = request_put(bytes, IPCTNL_MSG_CT_GET, NLM_F_DUMP, AF_UNSPEC);
	mnl_attr_put_u32(m, CTA_MARK, htonl(FLOW_MARK_TAG));
	mnl_attr_put_u32(m, CTA_MARK_MASK, htonl(FLOW_MARK_MASK));
	c->again = c->paused = c->incomplete = false;
	c->listing = mnl_socket_sendto(c->list, m, m->nlmsg_len) >= 0;
	return c->listing ? 0 : err_origin(-errno);
}

static void list_end(struct conntrack *c)
{
	c->listing = false;
	if (!c->again) {
		c->ops->end(c->ctx, !c->incomplete);
		return;
	}
	if (list_request(c))
		c->ops->end(c->ctx, false);
}

static void message_take(struct conntrack *c, const struct nlmsghdr *m)
{
	struct conntrack_entry e;

	if (!c->listing)
		return;
	if (m->nlmsg_flags & NLM_F_DUMP_INTR || m->nlmsg_type == NLMSG_ERROR)
		c->incomplete = true;
	if (m->nlmsg_type == NLMSG_DONE || m->nlmsg_type == NLMSG_ERROR)
		list_end(c);
	else if (c->again)
		return;
	else if (m->nlmsg_type !=
			 (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW) ||
		 !entry_read(m, &e))
		c->incomplete = true;
	else
		c->paused = !c->ops->entry(c->ctx, &e);
}

/* What was read, as far as it goes. */
static void pieces_take(struct conntrack *c)
{
	const struct nlmsghdr *m;

	while (c->at < c->len && !c->paused) {
		m = (const void *)(c->bytes + c->at);
		if (!mnl_nlmsg_ok(m, (int)(c->len - c->at))) {
			c->incomplete = true;
			c->at = c->len;
			return;
		}
		c->at += MNL_ALIGN(m->nlmsg_len);
		message_take(c, m);
	}
}

static void on_ready(struct watch *w, unsigned ready)
{
	struct conntrack *c = container_of(w, struct conntrack, watch);
	ssize_t len;
	unsigned i;

	(void)ready;
	for (i = 0; i < BATCH; i++) {
		pieces_take(c);
		if (c->paused)
			break;
		len = recv(w->fd, c->bytes, sizeof(c->bytes), MSG_DONTWAIT);
		if (len < 0 && errno == EAGAIN) {
			watch_spent(w, WATCH_READ);
			return;
		}
		c->at = 0;
		c->len = len > 0 ? (size_t)len : 0;
		c->incomplete |= len < 0;
	}
	pieces_take(c);
	if (c->paused)
		watch_want(w, 0);
}

int conntrack_list(struct conntrack *c)
{
	int r = 0;

	if (c->listing) {
		c->again = true;
		conntrack_resume(c);
	} else {
		r = list_request(c);
	}
	watch_want(&c->watch, WATCH_READ | WATCH_KICK);
	return r;
}

void conntrack_resume(struct conntrack *c)
{
	if (!c->paused)
		return;
	c->paused = false;
	watch_want(&c->watch, WATCH_READ | WATCH_KICK);
	watch_kick(&c->watch);
}

/* --- deletion --- */

int conntrack_delete(struct conntrack *c, const struct conntrack_key *k)
{
	_Alignas(struct nlmsghdr) char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m;
	ssize_t len;

	m = request_put(bytes, IPCTNL_MSG_CT_DELETE, NLM_F_ACK, k->family);
	m->nlmsg_seq = 0;
	memcpy(mnl_nlmsg_get_payload_tail(m), k->bytes, k->len);
	m->nlmsg_len += k->len;
	if (mnl_socket_sendto(c->change, m, m->nlmsg_len) < 0)
		return err_origin(-errno);
	len = mnl_socket_recvfrom(c->change, bytes, sizeof(bytes));
	if (len < 0)
		return err_origin(-errno);
	if (mnl_cb_run(bytes, (size_t)len, 0, 0, NULL, NULL) >= 0 ||
	    errno == ENOENT)
		return 0;
	return errno == EINVAL ? -EOPNOTSUPP : err_origin(-errno);
}

/* --- life --- */

static int socket_open(struct mnl_socket **ret)
{
	const int on = 1;

	*ret = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!*ret)
		return errno == EPROTONOSUPPORT ? -EOPNOTSUPP : -errno;
	if (mnl_socket_bind(*ret, 0, MNL_SOCKET_AUTOPID) < 0)
		return -errno;
	/* errors come back without the request */
	(void)mnl_socket_setsockopt(*ret, NETLINK_CAP_ACK, (void *)&on,
				    sizeof(on));
	return 0;
}

/* Ends the flows of interface 0, of which there are none. */
static int is_there(struct conntrack *c)
{
	struct conntrack_key k = { .family = AF_UNSPEC };
	char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = mnl_nlmsg_put_header(bytes);

	mnl_attr_put_u32(m, CTA_MARK, htonl(FLOW_MARK_TAG));
	mnl_attr_put_u32(m, CTA_MARK_MASK, UINT32_MAX);
	k.len = (uint16_t)mnl_nlmsg_get_payload_len(m);
	memcpy(k.bytes, mnl_nlmsg_get_payload(m), k.len);
	return conntrack_delete(c, &k);
}

int conntrack_open(struct conntrack **ret)
{
	struct conntrack *c = must_alloc(sizeof(*c));
	int r = socket_open(&c->list);

	if (!r)
		r = socket_open(&c->change);
	if (!r)
		r = is_there(c);
	if (r) {
		conntrack_free(c);
		return r == -EOPNOTSUPP ? r : err_trace(r);
	}
	*ret = c;
	return 0;
}

int conntrack_start(struct conntrack *c, struct loop *loop,
		    const struct conntrack_ops *ops, void *ctx)
{
	int r = watch_init(&c->watch, loop, mnl_socket_get_fd(c->list),
			   on_ready);

	if (r)
		return err_trace(r);
	c->started = true;
	c->ops = ops;
	c->ctx = ctx;
	return 0;
}

struct conntrack *conntrack_free(struct conntrack *c)
{
	if (!c)
		return NULL;
	if (c->started)
		watch_fini(&c->watch);
	if (c->list)
		(void)mnl_socket_close(c->list);
	if (c->change)
		(void)mnl_socket_close(c->change);
	free(c);
	return NULL;
}
