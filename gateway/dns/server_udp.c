/* SPDX-License-Identifier: Apache-2.0 */
/* server_udp.c - DNS over UDP on a transparent socket
 *
 * How it works: TPROXY delivers packets unchanged to a socket that is bound to
 * another address. IP_PKTINFO tells where each was sent and where it came in.
 * The reply names that address as its source, which the kernel permits on an
 * IP_TRANSPARENT socket, and leaves by the interface of the question, so that
 * two sandboxes with the same address on two interfaces cannot get each
 * other's answers.
 */

#include "gateway/dns/server.h"

#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "gateway/dns/question.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"

enum {
	UDP_BATCH = 16,
	UDP_QUERY_SIZE = 1280, /* a query that is longer is none */
	UDP_CONTROL_SIZE = 128,
};

/* Where a packet of the batch was received into. */
struct udp_slot {
	struct sockaddr_storage source;
	uint8_t bytes[UDP_QUERY_SIZE];
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_SIZE];
	struct iovec iov;
};

struct udp {
	struct dns_path path;
	struct list link; /* in server->sockets */
	struct watch watch;
	int fd;
	sa_family_t family;
	uint16_t port; /* what the socket is bound to */
	struct udp_slot slots[UDP_BATCH];
};

static struct udp *udp_of(struct dns_path *path)
{
	return container_of(path, struct udp, path);
}

/* The control message that makes `from` the source of a reply. */
static void control_fill(struct msghdr *msg, const struct udp *u,
			 const struct dns_client *client)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	struct in6_pktinfo info6 = { .ipi6_ifindex = client->ifindex };
	struct in_pktinfo info4 = { .ipi_ifindex = (int)client->ifindex };

	if (u->family == AF_INET6) {
		memcpy(&info6.ipi6_addr, client->destination.ip, 16);
		c->cmsg_level = IPPROTO_IPV6;
		c->cmsg_type = IPV6_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info6));
		memcpy(CMSG_DATA(c), &info6, sizeof(info6));
		msg->msg_controllen = CMSG_SPACE(sizeof(info6));
	} else {
		memcpy(&info4.ipi_spec_dst, client->destination.ip + 12, 4);
		c->cmsg_level = IPPROTO_IP;
		c->cmsg_type = IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(sizeof(info4));
		memcpy(CMSG_DATA(c), &info4, sizeof(info4));
		msg->msg_controllen = CMSG_SPACE(sizeof(info4));
	}
}

/* The client as this socket writes it: IPv4 is mapped on an IPv6 socket. */
static socklen_t client_sockaddr(const struct udp *u,
				 const struct dns_client *client,
				 struct sockaddr_storage *ret)
{
	struct sockaddr_in6 *sa6 = (struct sockaddr_in6 *)ret;

	if (u->family != AF_INET6)
		return addr_to_sockaddr(&client->source, ret);
	memset(ret, 0, sizeof(*ret));
	sa6->sin6_family = AF_INET6;
	sa6->sin6_port = htons(client->source.port);
	sa6->sin6_scope_id = client->source.scope_id;
	memcpy(&sa6->sin6_addr, client->source.ip, 16);
	return sizeof(*sa6);
}

static void udp_send(struct dns_path *path, const struct dns_client *client,
		     struct span message)
{
	_Alignas(struct cmsghdr) uint8_t control[UDP_CONTROL_SIZE] = { 0 };
	struct iovec iov = { (void *)message.ptr, message.len };
	struct sockaddr_storage sa;
	struct msghdr msg = {
		.msg_name = &sa,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct udp *u = udp_of(path);

	msg.msg_namelen = client_sockaddr(u, client, &sa);
	control_fill(&msg, u, client);
	if (sendmsg(u->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		path->server->counters->unsent++;
}

static const struct dns_path_ops udp_ops = { .send = udp_send };

/* Learns where the packet was sent and where it came in. */
static bool control_read(struct msghdr *msg, struct dns_client *client)
{
	struct in6_pktinfo info6;
	struct in_pktinfo info4;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			memcpy(&info4, CMSG_DATA(c), sizeof(info4));
			memset(client->destination.ip, 0, 10);
			memset(client->destination.ip + 10, 0xff, 2);
			memcpy(client->destination.ip + 12, &info4.ipi_addr, 4);
			client->ifindex = (uint32_t)info4.ipi_ifindex;
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_PKTINFO) {
			memcpy(&info6, CMSG_DATA(c), sizeof(info6));
			memcpy(client->destination.ip, &info6.ipi6_addr, 16);
			client->ifindex = info6.ipi6_ifindex;
			return true;
		}
	}
	return false;
}

static void udp_take(struct udp *u, struct msghdr *msg, size_t len)
{
	struct dns_client client = { .destination.port = u->port };

	if (msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC) ||
	    !addr_from_sockaddr(msg->msg_name, &client.source) ||
	    !control_read(msg, &client)) {
		u->path.server->counters->malformed++;
		return;
	}
	(void)question_run(&u->path, &client,
			   span_of(msg->msg_iov->iov_base, len));
}

static void udp_prepare(struct udp *u, struct mmsghdr msgs[UDP_BATCH])
{
	struct udp_slot *slot;
	unsigned i;

	memset(msgs, 0, UDP_BATCH * sizeof(*msgs));
	for (i = 0; i < UDP_BATCH; i++) {
		slot = &u->slots[i];
		slot->iov = (struct iovec){ slot->bytes, sizeof(slot->bytes) };
		msgs[i].msg_hdr = (struct msghdr){
			.msg_name = &slot->source,
			.msg_namelen = sizeof(slot->source),
			.msg_iov = &slot->iov,
			.msg_iovlen = 1,
			.msg_control = slot->control,
			.msg_controllen = sizeof(slot->control),
		};
	}
}

/* One batch per call: the loop calls again while the socket is ready, and
 * others get their turn in between. */
static void udp_on_ready(struct watch *w, unsigned ready)
{
	struct udp *u = container_of(w, struct udp, watch);
	struct mmsghdr msgs[UDP_BATCH];
	int i, n;

	(void)ready;
	udp_prepare(u, msgs);
	n = recvmmsg(u->fd, msgs, UDP_BATCH, MSG_DONTWAIT, NULL);
	if (n < UDP_BATCH && !(n < 0 && errno == EINTR))
		watch_spent(w, WATCH_READ);
	for (i = 0; i < n; i++)
		udp_take(u, &msgs[i].msg_hdr, msgs[i].msg_len);
}

static int udp_setup(struct udp *u)
{
	struct sockaddr_storage sa = { 0 };
	socklen_t sa_len = sizeof(sa);
	struct addr bound;
	int on = 1;

	if (getsockname(u->fd, (struct sockaddr *)&sa, &sa_len) < 0)
		return -errno;
	if (!addr_from_sockaddr((struct sockaddr *)&sa, &bound))
		return -EAFNOSUPPORT;
	u->family = sa.ss_family;
	u->port = bound.port;
	if (u->family == AF_INET6 &&
	    setsockopt(u->fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on)) <
		    0)
		return -errno;
	if (u->family == AF_INET &&
	    setsockopt(u->fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) < 0)
		return -errno;
	return watch_init(&u->watch, u->path.server->loop, u->fd, udp_on_ready);
}

int dns_server_add_udp(struct dns_server *s, int fd)
{
	struct udp *u = must_alloc(sizeof(*u));
	int r;

	path_init(&u->path, s, &udp_ops);
	u->fd = fd;
	r = udp_setup(u);
	if (r) {
		u->fd = fd_close(u->fd);
		free(u);
		return err_trace(r);
	}
	list_init(&u->link);
	list_push(&s->sockets, &u->link);
	watch_want(&u->watch, WATCH_READ);
	return 0;
}

void dns_server_close_udp(struct dns_server *s)
{
	struct udp *u;

	list_for_each(it, &s->sockets)
	{
		u = container_of(it, struct udp, link);
		path_fini(&u->path);
		watch_fini(&u->watch);
		u->fd = fd_close(u->fd);
		list_remove(&u->link);
		free(u);
	}
}
