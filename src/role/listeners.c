/* SPDX-License-Identifier: Apache-2.0 */
/* listeners.c - socket, options, bind, listen
 *
 * How it works: TPROXY hands a packet to a socket bound to our dummy address,
 * but the accepted connection keeps the destination that the sandbox dialled
 * as its local address (getsockname). The options on the listener make its
 * children remember the interface they came in by: IP_PKTINFO shows in
 * getsockopt(IP_PKTOPTIONS), IPV6_2292PKTINFO in IPV6_2292PKTOPTIONS. The DNS
 * socket gets destination and interface with each datagram
 * (IP_RECVORIGDSTADDR, IP_PKTINFO), and answers from that address because its
 * own port is 53 too. The ingress is for those outside: an ordinary listener
 * at the address of the configuration, one per event loop that share the port.
 *
 * Options are a table per family: what is set, and for which kinds. Accepted
 * connections inherit them: a sandbox that vanished without a word is found by
 * keepalive probes, whatever the connection is used for, and what it is sent has
 * our mark until the kernel has given it up.
 */

#include "src/role/listeners.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "src/base/addr.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/role/config.h"

enum {
	BACKLOG = 4096,
	/* A dead peer is found after 120 + 4 * 30 seconds; as stream.c. */
	KEEPALIVE_IDLE_S = 120,
	KEEPALIVE_EVERY_S = 30,
	KEEPALIVE_PROBES = 4,
	DATAGRAM_BUFFER_BYTES = 4 * 1024 * 1024,
	STREAMS = 1 << LISTENER_TCP | 1 << LISTENER_DNS_TCP |
		  1 << LISTENER_INGRESS,
	DATAGRAMS = 1 << LISTENER_DNS_UDP,
	EVERY = STREAMS | DATAGRAMS,
	/* of sandboxes */
	CAUGHT = EVERY & ~(1 << LISTENER_INGRESS),
	CAUGHT_STREAMS = STREAMS & CAUGHT,
};

struct option {
	unsigned kinds;
	int level, name, value;
};

static const struct option options_v4[] = {
	{ STREAMS, SOL_SOCKET, SO_REUSEADDR, 1 },
	{ STREAMS, SOL_SOCKET, SO_REUSEPORT, 1 },
	{ STREAMS, IPPROTO_TCP, TCP_NODELAY, 1 },
	{ STREAMS, SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	{ DATAGRAMS, SOL_SOCKET, SO_RCVBUFFORCE, DATAGRAM_BUFFER_BYTES },
	{ CAUGHT, SOL_SOCKET, SO_MARK, LISTENERS_MARK },
	{ CAUGHT, IPPROTO_IP, IP_TRANSPARENT, 1 },
	{ CAUGHT, IPPROTO_IP, IP_PKTINFO, 1 },
	{ DATAGRAMS, IPPROTO_IP, IP_RECVORIGDSTADDR, 1 },
};

static const struct option options_v6[] = {
	{ STREAMS, SOL_SOCKET, SO_REUSEADDR, 1 },
	{ STREAMS, SOL_SOCKET, SO_REUSEPORT, 1 },
	{ STREAMS, IPPROTO_TCP, TCP_NODELAY, 1 },
	{ STREAMS, SOL_SOCKET, SO_KEEPALIVE, 1 },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S },
	{ STREAMS, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	{ DATAGRAMS, SOL_SOCKET, SO_RCVBUFFORCE, DATAGRAM_BUFFER_BYTES },
	{ EVERY, IPPROTO_IPV6, IPV6_V6ONLY, 1 },
	{ CAUGHT, SOL_SOCKET, SO_MARK, LISTENERS_MARK },
	{ CAUGHT, IPPROTO_IPV6, IPV6_TRANSPARENT, 1 },
	{ CAUGHT, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1 },
	{ CAUGHT_STREAMS, IPPROTO_IPV6, IPV6_2292PKTINFO, 1 },
	{ DATAGRAMS, IPPROTO_IPV6, IPV6_RECVORIGDSTADDR, 1 },
};

static const char *const kind_names[LISTENER_KIND_NUM] = {
	[LISTENER_NONE] = "none",
	[LISTENER_TCP] = "TCP",
	[LISTENER_DNS_UDP] = "DNS over UDP",
	[LISTENER_DNS_TCP] = "DNS over TCP",
	[LISTENER_INGRESS] = "the ingress",
};
static_assert(LISTENER_KIND_NUM == 5, "kind_names has one name per kind");

/* The way to a sandbox crosses no network: a veth has no bottleneck to find and
 * no rate to pace, so the plainest algorithm serves it, whatever the node uses
 * towards the world. The kernel has this one always, and accepted connections
 * have their listener's. */
static int congestion_set(int fd)
{
	static const char name[] = "reno";

	return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name,
			  sizeof(name) - 1)
		       ? err_origin(-errno)
		       : 0;
}

static int options_set(int fd, enum listener_kind kind, int family)
{
	const struct option *options = options_v4;
	size_t count = ARRAY_LEN(options_v4), i;

	if (family == AF_INET6) {
		options = options_v6;
		count = ARRAY_LEN(options_v6);
	}
	for (i = 0; i < count; i++)
		if (options[i].kinds & (1U << kind) &&
		    setsockopt(fd, options[i].level, options[i].name,
			       &options[i].value,
			       sizeof(options[i].value)) != 0)
			return err_origin(-errno);
	return CAUGHT_STREAMS & 1U << kind ? congestion_set(fd) : 0;
}

/* Where the listeners of a family stand that sandboxes are led to. */
static struct addr caught_at(int family, uint16_t port)
{
	struct addr at;

	must(addr_parse(family == AF_INET ? SPAN(LISTENERS_ADDR_V4)
					  : SPAN(LISTENERS_ADDR_V6),
			&at));
	at.port = port;
	return at;
}

static int listener_bind(int fd, const struct addr *at)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(at, &sa);

	return bind(fd, (struct sockaddr *)&sa, len) ? err_origin(-errno) : 0;
}

static int listener_open(const struct msg_listener *what, const struct addr *at,
			 int *ret)
{
	int type = what->kind == LISTENER_DNS_UDP ? SOCK_DGRAM : SOCK_STREAM;
	CLEANUP_FD int fd = -1;
	int r;

	fd = socket((int)what->family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_origin(-errno);
	r = options_set(fd, what->kind, (int)what->family);
	if (!r)
		r = listener_bind(fd, at);
	if (!r && type == SOCK_STREAM && listen(fd, BACKLOG) != 0)
		r = err_origin(-errno);
	if (r)
		return r;
	*ret = fd;
	fd = -1;
	return 0;
}

/* The sentence says what an operator can do about it. */
static int refuse(const struct msg_listener *what, const struct addr *at, int r,
		  struct diag *d)
{
	char text[ADDR_TEXT_SIZE];
	const char *hint = "";

	if (what->kind == LISTENER_INGRESS)
		hint = r == -EADDRINUSE
			       ? "; another program listens there: choose "
				 "another \"ingress.listen\""
		       : r == -EADDRNOTAVAIL
			       ? "; \"ingress.listen\" is no address of this "
				 "node"
			       : "";
	else if (r == -EADDRINUSE && at->port == LISTENERS_DNS_PORT)
		hint = "; something on this node listens on port 53 of every "
		       "address: bind it to the addresses it serves";
	else if (r == -EADDRINUSE)
		hint = "; another program has this port on every address: "
		       "choose another \"proxyPort\"";
	else if (r == -EPERM || r == -EACCES)
		hint = "; the supervisor needs CAP_NET_ADMIN and "
		       "CAP_NET_BIND_SERVICE";
	return diag_set(d, 0, 0, "could not listen for %s on %s port %u: %s%s",
			kind_names[what->kind],
			addr_text(at, text, sizeof(text)), at->port,
			err_text(r), hint);
}

static int listeners_add(struct listeners *l, struct msg_listener what,
			 const struct addr *at, struct diag *d)
{
	struct listener_fd *item = &l->items[l->count];
	int r = listener_open(&what, at, &item->fd);

	if (r)
		return refuse(&what, at, r, d);
	item->what = what;
	l->count++;
	return 0;
}

static int family_open(struct listeners *l, const struct config *config,
		       unsigned family, struct diag *d)
{
	const struct addr proxy = caught_at((int)family, config->proxy_port);
	const struct addr dns = caught_at((int)family, LISTENERS_DNS_PORT);
	unsigned loops = config_loops(config), i;
	int r = 0;

	for (i = 0; !r && i < loops; i++)
		r = listeners_add(
			l, (struct msg_listener){ LISTENER_TCP, family, i },
			&proxy, d);
	if (!r)
		r = listeners_add(
			l, (struct msg_listener){ LISTENER_DNS_UDP, family, 0 },
			&dns, d);
	if (!r)
		r = listeners_add(
			l, (struct msg_listener){ LISTENER_DNS_TCP, family, 0 },
			&dns, d);
	return r;
}

static int ingress_open(struct listeners *l, const struct config *config,
			struct diag *d)
{
	const struct addr *at = &config->ingress_listen;
	unsigned family = addr_is_v4(at) ? AF_INET : AF_INET6;
	unsigned loops = at->port ? config_loops(config) : 0, i;
	int r = 0;

	for (i = 0; !r && i < loops; i++)
		r = listeners_add(
			l, (struct msg_listener){ LISTENER_INGRESS, family, i },
			at, d);
	return r;
}

int listeners_open(const struct config *config, bool ipv6,
		   struct listeners *ret, struct diag *d)
{
	struct listeners l = { 0 };
	int r;

	l.items = must_alloc((3 * config_loops(config) + 4) * sizeof(*l.items));
	r = family_open(&l, config, AF_INET, d);
	if (!r && ipv6)
		r = family_open(&l, config, AF_INET6, d);
	if (!r)
		r = ingress_open(&l, config, d);
	if (r) {
		listeners_close(&l);
		return r;
	}
	*ret = l;
	return 0;
}

void listeners_close(struct listeners *l)
{
	unsigned i;

	for (i = 0; i < l->count; i++)
		(void)fd_close(l->items[i].fd);
	free(l->items);
	*l = (struct listeners){ 0 };
}
