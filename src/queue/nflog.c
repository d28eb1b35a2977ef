/* SPDX-License-Identifier: Apache-2.0 */
/* nflog.c - one netlink socket that packets are told on
 *
 * How it works: the kernel would collect messages for a second; it is told to
 * send each at once, because records are read by people who wait. What does
 * not fit into the socket's buffer is lost, and only counted.
 */

#include "src/queue/nflog.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/role/drop.h"

enum {
	MESSAGE_BYTES = 256,
	RECEIVE_BYTES = 64 * 1024,
	SOCKET_BYTES = 1024 * 1024,
	BATCH = 32, /* reads before others get their turn */
};

struct nflog {
	struct mnl_socket *socket;
	struct watch watch;
	nflog_fn *fn;
	void *ctx;
	uint16_t group;
	bool started;
	_Alignas(struct nlmsghdr) char bytes[RECEIVE_BYTES];
};

static struct nlmsghdr *request_put(const struct nflog *n, char *bytes)
{
	struct nlmsghdr *m = mnl_nlmsg_put_header(bytes);
	struct nfgenmsg *body;

	m->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	m->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	body = mnl_nlmsg_put_extra_header(m, sizeof(*body));
	body->nfgen_family = AF_UNSPEC;
	body->version = NFNETLINK_V0;
	body->res_id = htons(n->group);
	return m;
}

/* The kernel acknowledges it; the socket still blocks. */
static int request_run(struct nflog *n, const struct nlmsghdr *m)
{
	ssize_t len;

	if (mnl_socket_sendto(n->socket, m, m->nlmsg_len) < 0)
		return -errno;
	len = mnl_socket_recvfrom(n->socket, n->bytes, sizeof(n->bytes));
	if (len < 0)
		return -errno;
	return mnl_cb_run(n->bytes, (size_t)len, 0, 0, NULL, NULL) < 0 ? -errno
								       : 0;
}

static int group_take(struct nflog *n)
{
	const struct nfulnl_msg_config_cmd bind = {
		.command = NFULNL_CFG_CMD_BIND,
	};
	const struct nfulnl_msg_config_mode mode = {
		.copy_range = htonl(DROP_TELL_BYTES),
		.copy_mode = NFULNL_COPY_PACKET,
	};
	_Alignas(struct nlmsghdr) char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = request_put(n, bytes);
	int r;

	mnl_attr_put(m, NFULA_CFG_CMD, sizeof(bind), &bind);
	r = request_run(n, m);
	if (r == -EINVAL || r == -ENOENT)
		return -EOPNOTSUPP; /* no such part of netlink */
	if (r)
		return r;
	m = request_put(n, bytes);
	mnl_attr_put(m, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(m, NFULA_CFG_QTHRESH, htonl(1));
	return request_run(n, m);
}

int nflog_open(uint16_t group, struct nflog **ret)
{
	const int bytes = SOCKET_BYTES;
	struct nflog *n = must_alloc(sizeof(*n));
	int r = 0;

	n->group = group;
	n->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!n->socket)
		r = errno == EPROTONOSUPPORT ? -EOPNOTSUPP : -errno;
	if (!r && mnl_socket_bind(n->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (!r)
		r = group_take(n);
	if (r) {
		nflog_free(n);
		return r;
	}
	(void)setsockopt(mnl_socket_get_fd(n->socket), SOL_SOCKET,
			 SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	*ret = n;
	return 0;
}

static uint32_t index_of(const struct nlattr *a)
{
	return a && mnl_attr_get_payload_len(a) >= sizeof(uint32_t)
		       ? ntohl(mnl_attr_get_u32(a))
		       : 0;
}

static int on_message(const struct nlmsghdr *m, void *ctx)
{
	const struct nlattr *attrs[NFULA_MAX + 1] = { 0 }, *a;
	const struct nfulnl_msg_packet_hdr *head;
	struct nflog_packet p = { 0 };
	struct nflog *n = ctx;

	if (m->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET) ||
	    m->nlmsg_len < NLMSG_LENGTH(sizeof(struct nfgenmsg)))
		return MNL_CB_OK;
	mnl_attr_for_each(a, m, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(a) <= NFULA_MAX)
			attrs[mnl_attr_get_type(a)] = a;
	}
	a = attrs[NFULA_PACKET_HDR];
	if (!a || mnl_attr_get_payload_len(a) < sizeof(*head) ||
	    !attrs[NFULA_PREFIX])
		return MNL_CB_OK;
	head = mnl_attr_get_payload(a);
	p.ethertype = ntohs(head->hw_protocol);
	p.prefix = span_of(mnl_attr_get_payload(attrs[NFULA_PREFIX]),
			   mnl_attr_get_payload_len(attrs[NFULA_PREFIX]));
	p.prefix.len = span_find(p.prefix, '\0');
	p.ifindex = index_of(attrs[NFULA_IFINDEX_PHYSINDEV]);
	if (!p.ifindex)
		p.ifindex = index_of(attrs[NFULA_IFINDEX_INDEV]);
	if (attrs[NFULA_PAYLOAD])
		p.bytes =
			span_of(mnl_attr_get_payload(attrs[NFULA_PAYLOAD]),
				mnl_attr_get_payload_len(attrs[NFULA_PAYLOAD]));
	n->fn(n->ctx, &p);
	return MNL_CB_OK;
}

static void on_ready(struct watch *w, unsigned ready)
{
	struct nflog *n = container_of(w, struct nflog, watch);
	ssize_t len;
	unsigned i;

	(void)ready;
	for (i = 0; i < BATCH; i++) {
		len = recv(w->fd, n->bytes, sizeof(n->bytes), MSG_DONTWAIT);
		if (len < 0 && errno == EAGAIN) {
			watch_spent(w, WATCH_READ);
			return;
		}
		if (len > 0)
			(void)mnl_cb_run(n->bytes, (size_t)len, 0, 0,
					 on_message, n);
	}
}

int nflog_start(struct nflog *n, struct loop *loop, nflog_fn *fn, void *ctx)
{
	int r = watch_init(&n->watch, loop, mnl_socket_get_fd(n->socket),
			   on_ready);

	if (r)
		return err_trace(r);
	n->started = true;
	n->fn = fn;
	n->ctx = ctx;
	watch_want(&n->watch, WATCH_READ);
	return 0;
}

struct nflog *nflog_free(struct nflog *n)
{
	if (!n)
		return NULL;
	if (n->started)
		watch_fini(&n->watch);
	if (n->socket)
		(void)mnl_socket_close(n->socket);
	free(n);
	return NULL;
}
