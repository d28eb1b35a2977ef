/* SPDX-License-Identifier: Apache-2.0 */
/* run_net.c - the one interface of a sandbox of `sallyport run`
 *
 * How it works: a veth pair, sp-<8 hex> here and eth0 inside, with a /30 out
 * of 10.209.0.0/16 and a /64 out of fd53:5059:2090::/48, both numbered by the
 * same draw, as is the hardware address inside, to which the daemon locks it.
 * The daemon's packet rules hold for every sp-* interface before
 * this one exists, so there is no moment in which a packet could pass by.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/cli/proc.h"
#include "src/cli/run.h"

enum { DRAWS = 256 };

static bool is_used(const struct run_net *net, const struct ifaddrs *all)
{
	char text[INET_ADDRSTRLEN];
	const struct sockaddr_in *sin;

	if (if_nametoindex(net->iface))
		return true;
	for (; all; all = all->ifa_next) {
		if (!all->ifa_addr || all->ifa_addr->sa_family != AF_INET)
			continue;
		sin = (const void *)all->ifa_addr;
		if (inet_ntop(AF_INET, &sin->sin_addr, text, sizeof(text)) &&
		    (!strcmp(text, net->outer) || !strcmp(text, net->inner)))
			return true;
	}
	return false;
}

static void net_set(struct run_net *net, uint32_t draw)
{
	uint32_t at = (draw & 0x3fff) * 4; /* of 65536 addresses */

	(void)snprintf(net->iface, sizeof(net->iface), "sp-%08x", draw);
	(void)snprintf(net->outer, sizeof(net->outer), "10.209.%u.%u", at >> 8,
		       (at & 255) + 1);
	(void)snprintf(net->inner, sizeof(net->inner), "10.209.%u.%u", at >> 8,
		       (at & 255) + 2);
	(void)snprintf(net->outer6, sizeof(net->outer6), "fd53:5059:2090:%x::1",
		       draw & 0x3fff);
	(void)snprintf(net->mac, sizeof(net->mac),
		       "02:50:%02x:%02x:%02x:%02x", draw >> 24,
		       draw >> 16 & 255, draw >> 8 & 255, draw & 255);
	(void)snprintf(net->inner6, sizeof(net->inner6), "fd53:5059:2090:%x::2",
		       draw & 0x3fff);
}

int run_net_choose(struct run_net *net)
{
	struct ifaddrs *all;
	uint32_t draw;
	int i, r = -EADDRINUSE;

	if (getifaddrs(&all))
		return -errno;
	for (i = 0; i < DRAWS && r; i++) {
		if (getrandom(&draw, sizeof(draw), 0) != sizeof(draw))
			break;
		net_set(net, draw);
		if (!is_used(net, all))
			r = 0;
	}
	freeifaddrs(all);
	if (r)
		fprintf(stderr, "sallyport: no free addresses in "
				"10.209.0.0/16\n");
	return r;
}

/* No address of its own on the link, no word from routers. Best effort: the
 * packet rules hold either way. */
static void sysctl_put(const struct run_net *net, const char *name)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/proc/sys/net/ipv6/conf/%s/%s",
		       net->iface, name);
	(void)!file_write(path, 0644, SPAN("0"));
}

int run_net_start(struct run_net *net, pid_t pid)
{
	static const char *const argv[] = { "ip", "-batch", "-", NULL };
	struct buf text CLEANUP(buf_fini) = BUF_INIT(4096);
	int r;

	r = buf_putf(&text,
		     "link add %s type veth peer name eth0 address %s "
		     "netns %d\n"
		     "link set %s addrgenmode none\n",
		     net->iface, net->mac, (int)pid, net->iface);
	net->up = true;
	if (!r)
		r = proc_run(argv, buf_peek(&text));
	if (!r) {
		sysctl_put(net, "accept_ra");
		sysctl_put(net, "autoconf");
		buf_clear(&text);
		r = buf_putf(&text,
			     "addr add %s/%d dev %s\n"
			     "addr add %s/%d dev %s nodad\n"
			     "link set %s up\n",
			     net->outer, RUN_NET_PREFIX, net->iface,
			     net->outer6, RUN_NET_PREFIX6, net->iface,
			     net->iface);
	}
	if (!r)
		r = proc_run(argv, buf_peek(&text));
	if (r)
		fprintf(stderr,
			"sallyport: the interface %s could not be "
			"made\n",
			net->iface);
	return r ? -EIO : 0;
}

void run_net_stop(struct run_net *net)
{
	const char *const argv[] = { "ip", "link", "del", net->iface, NULL };
	const struct timespec tick = { .tv_nsec = 10 * 1000 * 1000 };
	int i;

	if (!net->up)
		return;
	/* it goes by itself with the namespace of its other end, soon */
	for (i = 0; i < 100 && if_nametoindex(net->iface); i++)
		(void)nanosleep(&tick, NULL);
	if (if_nametoindex(net->iface))
		(void)!proc_run(argv, SPAN_NONE);
	net->up = false;
}
