/* SPDX-License-Identifier: Apache-2.0 */
/* nfqueue.c - one netlink socket: packets in, verdicts out
 *
 * How it works: the kernel sends a message for each packet and keeps the packet
 * itself, up to QUEUE_LENGTH of them; what comes beyond is dropped there. It
 * copies the headers only. A verdict is a message of ours that is not
 * acknowledged; one that cannot be sent leaves its packet in the kernel's
 * hands, which drops it when we end. Nothing here can let a packet pass by
 * omission: fail-open is never asked for.
 */

#include "src/queue/nfqueue.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnetfilter_queue/libnetfilter_queue.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/wire/packet.h"

enum {
	QUEUE_LENGTH = 4096,
	MESSAGE_BYTES = 1024,
	RECEIVE_BYTES = 16 * 1024,
	SOCKET_BYTES = 8 * 1024 * 1024,
	BATCH = 64, /* packets before others get their turn */
};

struct nfqueue {
	struct mnl_socket *socket;
	struct watch watch;
	const struct nfqueue_ops *ops;
	void *ctx;
	uint16_t number;
	bool started;
	_Alignas(struct nlmsghdr) char bytes[RECEIVE_BYTES];
};

/* A request that the kernel acknowledges; the socket still blocks. */
static int request_run(struct nfqueue *q, struct nlmsghdr *m)
{
	ssize_t len;

	m->nlmsg_flags |= NLM_F_ACK;
	m->nlmsg_seq = (uint32_t)time(NULL);
	if (mnl_socket_sendto(q->socket, m, m->nlmsg_len) < 0)
		return -errno;
	len = mnl_socket_recvfrom(q->socket, q->bytes, sizeof(q->bytes));
	if (len < 0)
		return -errno;
	return mnl_cb_run(q->bytes, (size_t)len, m->nlmsg_seq,
			  mnl_socket_get_portid(q->socket), NULL, NULL) < 0
		       ? -errno
		       : 0;
}

static int command(struct nfqueue *q, int family, uint8_t what)
{
	char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = nfq_nlmsg_put(bytes, NFQNL_MSG_CONFIG, q->number);

	nfq_nlmsg_cfg_put_cmd(m, (uint16_t)family, what);
	return request_run(q, m);
}

static int set_parameters(struct nfqueue *q)
{
	char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = nfq_nlmsg_put(bytes, NFQNL_MSG_CONFIG, q->number);

	nfq_nlmsg_cfg_put_params(m, NFQNL_COPY_PACKET, PACKET_HEADERS_MAX);
	nfq_nlmsg_cfg_put_qmaxlen(m, QUEUE_LENGTH);
	/* whole packets, however large: only headers are looked at */
	mnl_attr_put_u32(m, NFQA_CFG_FLAGS, htonl(NFQA_CFG_F_GSO));
	mnl_attr_put_u32(m, NFQA_CFG_MASK,
			 htonl(NFQA_CFG_F_GSO | NFQA_CFG_F_FAIL_OPEN));
	return request_run(q, m);
}

static int queue_take(struct nfqueue *q)
{
	int r = command(q, AF_UNSPEC, NFQNL_CFG_CMD_BIND);

	if (r == -EINVAL || r == -ENOENT)
		return -EOPNOTSUPP; /* no such part of netlink */
	return r ? r : set_parameters(q);
}

int nfqueue_open(uint16_t number, struct nfqueue **ret)
{
	const int bytes = SOCKET_BYTES;
	struct nfqueue *q = must_alloc(sizeof(*q));
	int r = 0;

	q->number = number;
	q->socket = mnl_socket_open2(NETLINK_NETFILTER, SOCK_CLOEXEC);
	if (!q->socket)
		r = errno == EPROTONOSUPPORT ? -EOPNOTSUPP : -errno;
	if (!r && mnl_socket_bind(q->socket, 0, MNL_SOCKET_AUTOPID) < 0)
		r = -errno;
	if (!r)
		r = queue_take(q);
	if (r) {
		nfqueue_free(q);
		return err_trace(r);
	}
	(void)setsockopt(mnl_socket_get_fd(q->socket), SOL_SOCKET,
			 SO_RCVBUFFORCE, &bytes, sizeof(bytes));
	*ret = q;
	return 0;
}

static int on_message(const struct nlmsghdr *m, void *ctx)
{
	struct nlattr *attr[NFQA_MAX + 1] = { 0 };
	const struct nfqnl_msg_packet_hdr *head;
	struct nfqueue_packet p = { 0 };
	struct nfqueue *q = ctx;

	if (nfq_nlmsg_parse(m, attr) < 0 || !attr[NFQA_PACKET_HDR])
		return MNL_CB_OK;
	head = mnl_attr_get_payload(attr[NFQA_PACKET_HDR]);
	p.id = ntohl(head->packet_id);
	if (attr[NFQA_IFINDEX_INDEV])
		p.ifindex = ntohl(mnl_attr_get_u32(attr[NFQA_IFINDEX_INDEV]));
	if (attr[NFQA_PAYLOAD])
		p.bytes = span_of(mnl_attr_get_payload(attr[NFQA_PAYLOAD]),
				  mnl_attr_get_payload_len(attr[NFQA_PAYLOAD]));
	q->ops->packet(q->ctx, &p);
	return MNL_CB_OK;
}

static void on_ready(struct watch *w, unsigned ready)
{
	struct nfqueue *q = container_of(w, struct nfqueue, watch);
	ssize_t len;
	unsigned i;

	(void)ready;
	for (i = 0; i < BATCH; i++) {
		len = recv(w->fd, q->bytes, sizeof(q->bytes), MSG_DONTWAIT);
		if (len < 0 && errno == ENOBUFS) {
			q->ops->lost(q->ctx);
			continue;
		}
		if (len < 0) {
			if (errno == EAGAIN)
				watch_spent(w, WATCH_READ);
			return;
		}
		(void)mnl_cb_run(q->bytes, (size_t)len, 0, 0, on_message, q);
	}
}

int nfqueue_start(struct nfqueue *q, struct loop *loop,
		  const struct nfqueue_ops *ops, void *ctx)
{
	int r = watch_init(&q->watch, loop, mnl_socket_get_fd(q->socket),
			   on_ready);

	if (r)
		return err_trace(r);
	q->started = true;
	q->ops = ops;
	q->ctx = ctx;
	watch_want(&q->watch, WATCH_READ);
	return 0;
}

struct nfqueue *nfqueue_free(struct nfqueue *q)
{
	if (!q)
		return NULL;
	if (q->started)
		watch_fini(&q->watch);
	if (q->socket)
		(void)mnl_socket_close(q->socket);
	free(q);
	return NULL;
}

static void verdict_send(struct nfqueue *q, uint32_t id, int verdict,
			 uint32_t mark)
{
	char bytes[MESSAGE_BYTES];
	struct nlmsghdr *m = nfq_nlmsg_put(bytes, NFQNL_MSG_VERDICT, q->number);

	nfq_nlmsg_verdict_put(m, (int)id, verdict);
	if (mark)
		nfq_nlmsg_verdict_put_mark(m, mark);
	(void)mnl_socket_sendto(q->socket, m, m->nlmsg_len);
}

void nfqueue_accept(struct nfqueue *q, uint32_t id, uint32_t mark)
{
	verdict_send(q, id, NF_ACCEPT, mark);
}

void nfqueue_drop(struct nfqueue *q, uint32_t id)
{
	verdict_send(q, id, NF_DROP, 0);
}
