/* SPDX-License-Identifier: Apache-2.0 */
/* test_listeners.c - a sandbox's packets reach the listeners with everything
 * the gateway has to know (root only)
 *
 * How it works: the process moves into a network namespace and is the node;
 * a child moves into another one and is the sandbox, joined by a veth pair
 * named sp-test. The rules are the real ones. The sandbox dials addresses that
 * exist nowhere; the node accepts and asks the kernel who dialled what.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/fd.h"
#include "src/role/config.h"
#include "src/role/fence.h"
#include "src/role/listeners.h"
#include "src/role/tool.h"

enum { LOOPS = 2, WAIT_MS = 5000 };

static struct config *config;
static struct listeners listeners;
static int orders[2]; /* socket pair: what the sandbox shall do */

/* --- both sides --- */

static bool ip_run(const char *line)
{
	char words[256], *next = words, *word;
	const char *argv[16] = { "/usr/sbin/ip" };
	struct buf out = BUF_INIT(4096);
	unsigned count = 1;
	int r;

	(void)snprintf(words, sizeof(words), "%s", line);
	while ((word = strsep(&next, " ")))
		argv[count++] = word;
	argv[count] = NULL;
	r = tool_run(argv, SPAN_NONE, &out, 10000);
	if (r)
		print_message("ip %s: %.*s\n", line, SPAN_FMT(buf_peek(&out)));
	buf_fini(&out);
	return r == 0;
}

static bool lo_up(void)
{
	return ip_run("link set lo up");
}

static bool wait_for(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, WAIT_MS) == 1;
}

static struct sockaddr_storage sockaddr_at(const char *text, socklen_t *len)
{
	struct sockaddr_storage sa;
	struct addr addr = { 0 };

	if (!addr_parse_port(span_str(text), 0, &addr))
		_exit(9);
	*len = addr_to_sockaddr(&addr, &sa);
	return sa;
}

/* --- the sandbox --- */

/* "t ADDR": connect, read one byte. "u ADDR": send a datagram, take an answer
 * from the same address. Replies '+' or '-'. */
static char sandbox_obey(const char *order)
{
	struct timeval wait = { .tv_sec = 3 }; /* a SYN may be sent twice */
	struct sockaddr_storage sa, from;
	socklen_t len, from_len = sizeof(from);
	CLEANUP_FD int fd = -1;
	char byte;

	sa = sockaddr_at(order + 2, &len);
	fd = socket(sa.ss_family, order[0] == 'u' ? SOCK_DGRAM : SOCK_STREAM,
		    0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (order[0] == 't')
		return !connect(fd, (struct sockaddr *)&sa, len) &&
				       read(fd, &byte, 1) == 1
			       ? '+'
			       : '-';
	if (sendto(fd, "q", 1, 0, (struct sockaddr *)&sa, len) != 1 ||
	    recvfrom(fd, &byte, 1, 0, (struct sockaddr *)&from, &from_len) != 1)
		return '-';
	return from_len == len && !memcmp(&from, &sa, len) ? '+' : '-';
}

static void sandbox_run(void)
{
	char order[128], reply;
	ssize_t len;

	if (unshare(CLONE_NEWNET) != 0 || write(orders[1], "n", 1) != 1)
		_exit(2);
	if (read(orders[1], order, 1) != 1) /* sp-peer was moved here */
		_exit(3);
	if (!lo_up() || !ip_run("link set sp-peer up") ||
	    !ip_run("addr add 10.77.0.2/24 dev sp-peer") ||
	    !ip_run("addr add fd77::2/64 dev sp-peer nodad") ||
	    !ip_run("route add default via 10.77.0.1") ||
	    !ip_run("-6 route add default via fd77::1"))
		_exit(4);
	for (;;) {
		reply = 'n';
		if (write(orders[1], &reply, 1) != 1)
			_exit(0);
		len = read(orders[1], order, sizeof(order) - 1);
		if (len <= 0)
			_exit(0);
		order[len] = '\0';
		reply = sandbox_obey(order);
		if (write(orders[1], &reply, 1) != 1)
			_exit(0);
	}
}

/* --- the node --- */

static void order(const char *what)
{
	char byte;

	assert_true(wait_for(orders[0]));
	assert_int_equal(read(orders[0], &byte, 1), 1);
	assert_int_equal(byte, 'n');
	assert_int_equal(write(orders[0], what, strlen(what)),
			 (ssize_t)strlen(what));
}

static char answer(void)
{
	char byte = '?';

	assert_true(wait_for(orders[0]));
	assert_int_equal(read(orders[0], &byte, 1), 1);
	return byte;
}

static void text_is(const struct sockaddr_storage *sa, const char *text)
{
	char buf[ADDR_TEXT_SIZE];
	struct addr addr;

	assert_true(addr_from_sockaddr((const struct sockaddr *)sa, &addr));
	assert_string_equal(addr_text_port(&addr, buf, sizeof(buf)), text);
}

/* Waits for a connection or datagram on any listener of this kind. */
static int arrived_at(enum listener_kind kind, unsigned family)
{
	struct pollfd pollers[2 * (LOOPS + 2)];
	unsigned i, count = 0;

	for (i = 0; i < listeners.count; i++)
		if (listeners.items[i].what.kind == kind &&
		    listeners.items[i].what.family == family)
			pollers[count++] = (struct pollfd){
				.fd = listeners.items[i].fd,
				.events = POLLIN,
			};
	if (poll(pollers, count, WAIT_MS) < 1)
		return -1;
	for (i = 0; i < count; i++)
		if (pollers[i].revents)
			return pollers[i].fd;
	return -1;
}

static unsigned ingress_of(int fd, unsigned family)
{
	char bytes[512];
	struct msghdr m = { .msg_control = bytes };
	struct cmsghdr *c;
	socklen_t len = sizeof(bytes);
	int level = IPPROTO_IP, name = IP_PKTOPTIONS;

	if (family == AF_INET6) {
		level = IPPROTO_IPV6;
		name = IPV6_2292PKTOPTIONS;
	}
	assert_int_equal(getsockopt(fd, level, name, bytes, &len), 0);
	m.msg_controllen = len;
	for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO)
			return (unsigned)((struct in_pktinfo *)(void *)
						  CMSG_DATA(c))
				->ipi_ifindex;
		if (c->cmsg_level == IPPROTO_IPV6 &&
		    c->cmsg_type == IPV6_2292PKTINFO)
			return ((struct in6_pktinfo *)(void *)CMSG_DATA(c))
				->ipi6_ifindex;
	}
	return 0;
}

/* Nobody sets it where connections are accepted. */
static void does_not_delay(int fd)
{
	socklen_t len = sizeof(int);
	int on = 0;

	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &len),
			 0);
	assert_int_equal(on, 1);
}

static void accept_from(enum listener_kind kind, unsigned family,
			const char *dialled)
{
	int fd, listener = arrived_at(kind, family);
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char text[ADDR_TEXT_SIZE];
	struct addr addr;

	assert_true(listener >= 0);
	fd = accept4(listener, (struct sockaddr *)&sa, &len, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, &addr));
	assert_string_equal(addr_text(&addr, text, sizeof(text)),
			    family == AF_INET ? "10.77.0.2" : "fd77::2");
	len = sizeof(sa);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	text_is(&sa, dialled);
	assert_int_equal(ingress_of(fd, family), if_nametoindex("sp-test"));
	does_not_delay(fd);
	assert_int_equal(write(fd, "!", 1), 1);
	assert_int_equal(answer(), '+');
	(void)close(fd);
}

static void listeners__tcp_v4(void **state)
{
	(void)state;
	order("t 203.0.113.9:443");
	accept_from(LISTENER_TCP, AF_INET, "203.0.113.9:443");
}

static void listeners__tcp_v6(void **state)
{
	(void)state;
	order("t [2001:db8:9::9]:8443");
	accept_from(LISTENER_TCP, AF_INET6, "[2001:db8:9::9]:8443");
}

/* Not even the node's own address answers for itself. */
static void listeners__tcp_to_the_node(void **state)
{
	(void)state;
	order("t 10.77.0.1:22");
	accept_from(LISTENER_TCP, AF_INET, "10.77.0.1:22");
}

static void listeners__dns_over_tcp(void **state)
{
	(void)state;
	order("t 198.51.100.53:53");
	accept_from(LISTENER_DNS_TCP, AF_INET, "198.51.100.53:53");
	order("t [2001:db8::53]:53");
	accept_from(LISTENER_DNS_TCP, AF_INET6, "[2001:db8::53]:53");
}

/* What came with a datagram: where it was sent, and the interface. */
static unsigned arrival_of(struct msghdr *m, struct sockaddr_storage *original)
{
	unsigned ifindex = 0;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_type == IP_ORIGDSTADDR)
			memcpy(original, CMSG_DATA(c),
			       sizeof(struct sockaddr_in));
		else if (c->cmsg_type == IPV6_ORIGDSTADDR)
			memcpy(original, CMSG_DATA(c),
			       sizeof(struct sockaddr_in6));
		else if (c->cmsg_level == IPPROTO_IP)
			ifindex = (unsigned)((struct in_pktinfo *)(void *)
						     CMSG_DATA(c))
					  ->ipi_ifindex;
		else
			ifindex = ((struct in6_pktinfo *)(void *)CMSG_DATA(c))
					  ->ipi6_ifindex;
	}
	return ifindex;
}

/* Makes m an answer from the address that was asked. */
static void answer_as(struct msghdr *m, const struct sockaddr_storage *asked)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(m);
	struct in_pktinfo v4 = {
		.ipi_spec_dst = ((const struct sockaddr_in *)asked)->sin_addr,
	};
	struct in6_pktinfo v6 = {
		.ipi6_addr = ((const struct sockaddr_in6 *)asked)->sin6_addr,
	};

	if (asked->ss_family == AF_INET) {
		m->msg_controllen = CMSG_SPACE(sizeof(v4));
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(v4)), IPPROTO_IP,
				       IP_PKTINFO };
		memcpy(CMSG_DATA(c), &v4, sizeof(v4));
	} else {
		m->msg_controllen = CMSG_SPACE(sizeof(v6));
		*c = (struct cmsghdr){ CMSG_LEN(sizeof(v6)), IPPROTO_IPV6,
				       IPV6_PKTINFO };
		memcpy(CMSG_DATA(c), &v6, sizeof(v6));
	}
}

/* Takes a datagram with its destination, answers from there. */
static void dns_exchange(unsigned family, const char *asked)
{
	_Alignas(struct cmsghdr) char bytes[256];
	struct sockaddr_storage from, original = { 0 };
	struct iovec iov = { (char[1]){ 0 }, 1 };
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = bytes,
		.msg_controllen = sizeof(bytes),
	};
	int fd = arrived_at(LISTENER_DNS_UDP, family);

	assert_true(fd >= 0);
	assert_int_equal(recvmsg(fd, &m, 0), 1);
	assert_int_equal(arrival_of(&m, &original), if_nametoindex("sp-test"));
	text_is(&original, asked);
	answer_as(&m, &original);
	assert_int_equal(sendmsg(fd, &m, 0), 1);
	assert_int_equal(answer(), '+');
}

static void listeners__dns_over_udp(void **state)
{
	(void)state;
	order("u 198.51.100.53:53");
	dns_exchange(AF_INET, "198.51.100.53:53");
	order("u [2001:db8::53]:53");
	dns_exchange(AF_INET6, "[2001:db8::53]:53");
}

/* Datagrams to other ports go nowhere, not even to a willing node. */
static void listeners__other_udp_is_dropped(void **state)
{
	struct sockaddr_storage sa;
	socklen_t len;
	CLEANUP_FD int fd = -1;

	(void)state;
	sa = sockaddr_at("10.77.0.1:9999", &len);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	order("u 10.77.0.1:9999");
	assert_int_equal(answer(), '-');
	assert_int_equal(recv(fd, &sa, 1, 0), -1);
	assert_int_equal(errno, EAGAIN);
}

/* No gateway, no listeners: dropped, not forwarded, not answered. */
static void listeners__without_listeners_dropped(void **state)
{
	(void)state;
	listeners_close(&listeners);
	order("t 203.0.113.9:443");
	assert_int_equal(answer(), '-');
}

/* For those outside: an ordinary listener for each loop. */
static void listeners__ingress(void **state)
{
	struct config *other = NULL;
	struct listeners l;
	struct diag d = { 0 };
	struct sockaddr_storage sa;
	socklen_t len, size = sizeof(int);
	unsigned i, found = 0;
	int transparent;

	(void)state;
	assert_int_equal(
		config_parse(SPAN("{\"loops\": 2, \"ingress\": {\"listen\":"
				  " \"10.77.0.1:8081\"}}"),
			     &other, &d),
		0);
	assert_int_equal(listeners_open(other, false, &l, &d), 0);
	for (i = 0; i < l.count; i++) {
		if (l.items[i].what.kind != LISTENER_INGRESS)
			continue;
		assert_int_equal(l.items[i].what.loop, found++);
		assert_int_equal(getsockopt(l.items[i].fd, IPPROTO_IP,
					    IP_TRANSPARENT, &transparent,
					    &size),
				 0);
		assert_int_equal(transparent, 0);
		len = sizeof(sa);
		assert_int_equal(getsockname(l.items[i].fd,
					     (struct sockaddr *)&sa, &len),
				 0);
		text_is(&sa, "10.77.0.1:8081");
	}
	assert_int_equal(found, 2);
	listeners_close(&l);
	other->ingress_listen.ip[15]++;
	assert_int_equal(listeners_open(other, false, &l, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "no address of this node"));
	config_free(other);
}

static void listeners__taken_port_is_explained(void **state)
{
	struct sockaddr_storage sa;
	struct diag d = { 0 };
	CLEANUP_FD int fd = -1;
	socklen_t len;

	(void)state;
	sa = sockaddr_at("0.0.0.0:53", &len);
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listeners_open(config, false, &listeners, &d),
			 -EINVAL);
	assert_non_null(strstr(d.msg, "listens on port 53 of every address"));
}

/* --- the scene --- */

static bool scene_set(pid_t *ret_sandbox)
{
	char byte, line[128];
	pid_t pid;

	if (geteuid() != 0 || access("/usr/sbin/nft", X_OK) != 0 ||
	    unshare(CLONE_NEWNET) != 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET, 0, orders) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		(void)close(orders[0]);
		sandbox_run();
	}
	(void)close(orders[1]);
	*ret_sandbox = pid;
	(void)snprintf(line, sizeof(line), "link set sp-peer netns %d",
		       (int)pid);
	return read(orders[0], &byte, 1) == 1 && lo_up() &&
	       ip_run("link add sp-test type veth peer name sp-peer") &&
	       ip_run(line) && ip_run("link set sp-test up") &&
	       ip_run("addr add 10.77.0.1/24 dev sp-test") &&
	       ip_run("addr add fd77::1/64 dev sp-test nodad");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listeners__tcp_v4),
		cmocka_unit_test(listeners__tcp_v6),
		cmocka_unit_test(listeners__tcp_to_the_node),
		cmocka_unit_test(listeners__dns_over_tcp),
		cmocka_unit_test(listeners__dns_over_udp),
		cmocka_unit_test(listeners__other_udp_is_dropped),
		cmocka_unit_test(listeners__without_listeners_dropped),
		cmocka_unit_test(listeners__ingress),
		cmocka_unit_test(listeners__taken_port_is_explained),
	};
	struct diag d = { 0 };
	pid_t sandbox = -1;
	struct fence_rules rules;
	int r;

	if (!scene_set(&sandbox)) {
		if (sandbox > 0)
			(void)kill(sandbox, SIGKILL);
		return 77;
	}
	if (config_parse(SPAN("{\"loops\": 2}"), &config, &d) ||
	    fence_install(config, &rules) || !rules.ipv6 ||
	    listeners_open(config, rules.ipv6, &listeners, &d)) {
		print_message("%s\n", d.msg);
		return 1;
	}
	if (listeners.count != 2 * (LOOPS + 2) || write(orders[0], "g", 1) != 1)
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	(void)kill(sandbox, SIGKILL);
	(void)waitpid(sandbox, NULL, 0);
	config_free(config);
	return r;
}
