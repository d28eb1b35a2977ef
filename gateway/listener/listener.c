/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - the accept loop, with a way out of "too many open files"
 *
 * A loop that meets EMFILE and only returns would be called again at once,
 * for ever. One descriptor is kept in reserve: it is given up to accept and
 * close the connection, and taken again; and accepting rests for a moment.
 */

#include "gateway/listener/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "gateway/dns/server.h"
#include "gateway/ingress/ingress.h"
#include "gateway/session/session.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

enum {
	REST_MS = 100,
	ACCEPTS_PER_CALL = 64,
	CONTROL_BYTES = 256,
	/* A status says so for this long. */
	EXHAUSTED_MS = 5000,
};

#ifndef IPV6_2292PKTOPTIONS
#define IPV6_2292PKTOPTIONS 6
#endif
#ifndef IP_PKTOPTIONS
#define IP_PKTOPTIONS 9
#endif

struct listener {
	struct worker *worker;
	struct list link;
	struct watch watch;
	struct timer rest;
	enum listener_kind kind;
	int fd;
	int reserve; /* given up when descriptors run out */
};

/* Who is at the other end of an accepted connection. */
struct arrival {
	int fd;
	struct addr client, original;
	unsigned ifindex;
};

static int reserve_open(void)
{
	return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void listener_iface_name(int fd, unsigned ifindex, char dst[MSG_IFACE_SIZE])
{
	struct ifreq request = { .ifr_ifindex = (int)ifindex };

	_Static_assert((int)MSG_IFACE_SIZE == IFNAMSIZ, "one size of names");
	dst[0] = '\0';
	if (ifindex && ioctl(fd, SIOCGIFNAME, &request) == 0)
		memcpy(dst, request.ifr_name, IFNAMSIZ);
	dst[MSG_IFACE_SIZE - 1] = '\0';
}

static unsigned ifindex_in(struct msghdr *control)
{
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(control); c; c = CMSG_NXTHDR(control, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return (unsigned)info.ipi_ifindex;
		}
		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_PKTINFO) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			return info.ipi6_ifindex;
		}
	}
	return 0;
}

/* 0: the kernel did not say, and the sandbox stays unknown where it was
 * registered with an interface. */
static unsigned arrival_ifindex(int fd, bool v4)
{
	char bytes[CONTROL_BYTES] __attribute__((aligned(8)));
	socklen_t len = sizeof(bytes);
	struct msghdr control;

	if (getsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6,
		       v4 ? IP_PKTOPTIONS : IPV6_2292PKTOPTIONS, bytes, &len))
		return 0;
	control =
		(struct msghdr){ .msg_control = bytes, .msg_controllen = len };
	return ifindex_in(&control);
}

static bool arrival_identify(struct arrival *a,
			     const struct sockaddr_storage *peer)
{
	struct sockaddr_storage local;
	socklen_t len = sizeof(local);

	if (!addr_from_sockaddr((const struct sockaddr *)peer, &a->client) ||
	    getsockname(a->fd, (struct sockaddr *)&local, &len) ||
	    !addr_from_sockaddr((const struct sockaddr *)&local, &a->original))
		return false;
	a->ifindex = arrival_ifindex(a->fd, addr_is_v4(&a->original));
	return true;
}

static void listener_give(struct listener *l, struct arrival *a)
{
	char iface[MSG_IFACE_SIZE];
	struct dns_client client;
	struct stream *stream;

	listener_iface_name(a->fd, a->ifindex, iface);
	if (l->kind == LISTENER_TCP) {
		session_new(l->worker, a->fd, &a->client, &a->original, iface);
		return;
	}
	client = (struct dns_client){ .source = a->client,
				      .destination = a->original,
				      .ifindex = a->ifindex };
	if (stream_new(l->worker->loop, a->fd, &stream) == 0)
		dns_server_give(l->worker->dns, stream, &client);
}

static void listener_rest(struct listener *l)
{
	worker_counted(l->worker, accept_errors);
	watch_want(&l->watch, 0);
	timer_start(&l->rest, REST_MS);
}

bool listeners_exhausted(const struct worker *w)
{
	return w->exhausted_ms &&
	       loop_now_ms(w->loop) - w->exhausted_ms < EXHAUSTED_MS;
}

/* Out of descriptors: the connection is refused rather than left hanging. */
static void listener_shed(struct listener *l)
{
	int fd;

	l->reserve = fd_close(l->reserve);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	(void)fd_close(fd);
	l->reserve = reserve_open();
	if (!listeners_exhausted(l->worker)) /* for the first time */
		log_warn("a connection was refused: too many open files");
	l->worker->exhausted_ms = loop_now_ms(l->worker->loop);
	listener_rest(l);
}

/* False: nothing more to accept now. */
static bool listener_accept(struct listener *l)
{
	struct sockaddr_storage peer;
	socklen_t len = sizeof(peer);
	struct arrival a = { 0 };

	a.fd = accept4(l->fd, (struct sockaddr *)&peer, &len,
		       SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (a.fd >= 0) {
		if (arrival_identify(&a, &peer))
			listener_give(l, &a);
		else
			(void)fd_close(a.fd);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		watch_spent(&l->watch, WATCH_READ);
		return false;
	case EMFILE:
	case ENFILE:
		listener_shed(l);
		return false;
	case ENOBUFS:
	case ENOMEM:
		listener_rest(l);
		return false;
	default: /* the peer gave up while it was queued (accept(2)) */
		worker_counted(l->worker, accept_errors);
		return true;
	}
}

static void on_readable(struct watch *w, unsigned ready)
{
	struct listener *l = container_of(w, struct listener, watch);
	unsigned i;

	(void)ready;
	for (i = 0; i < ACCEPTS_PER_CALL; i++)
		if (!listener_accept(l))
			return;
}

static void on_rested(struct timer *t)
{
	struct listener *l = container_of(t, struct listener, rest);

	watch_want(&l->watch, WATCH_READ);
}

static void listener_free(struct listener *l)
{
	timer_stop(&l->rest);
	watch_fini(&l->watch);
	l->fd = fd_close(l->fd);
	l->reserve = fd_close(l->reserve);
	list_remove(&l->link);
	free(l);
}

int listener_new(struct worker *w, enum listener_kind kind, int fd)
{
	struct listener *l = must_alloc(sizeof(*l));
	int r;

	if (kind == LISTENER_DNS_UDP || kind == LISTENER_INGRESS) {
		free(l);
		return kind == LISTENER_INGRESS
			       ? ingress_listen(w->ingress, fd)
			       : dns_server_add_udp(w->dns, fd);
	}
	l->worker = w;
	l->kind = kind;
	l->fd = fd;
	l->reserve = reserve_open();
	list_init(&l->link);
	timer_init(&l->rest, w->loop, on_rested);
	r = watch_init(&l->watch, w->loop, fd, on_readable);
	if (r) {
		(void)fd_close(fd);
		(void)fd_close(l->reserve);
		free(l);
		return err_trace(r);
	}
	list_push(&w->listeners, &l->link);
	watch_want(&l->watch, WATCH_READ);
	return 0;
}

void listeners_close(struct worker *w)
{
	struct listener *l;

	while ((l = list_first(&w->listeners, struct listener, link)))
		listener_free(l);
}
