/* SPDX-License-Identifier: Apache-2.0 */
/* netlink.c - sockets, messages and attributes that every family has alike
 *
 * How it works: a datagram holds messages, each with a length at its head; a
 * message has a body of fixed size and then attributes, each with a length at
 * its head again, and some hold attributes themselves. All are padded to four
 * bytes. A length that does not fit into what it is in ends the walk.
 *
 * A question is asked on a socket that hears no group, so answers and news do
 * not mix; the kernel works on it inside send(), so receiving does not wait.
 *
 * A list that takes several datagrams is walked by position: where something
 * came or went between two of them, the kernel marks the rest
 * (NLM_F_DUMP_INTR). It is read to its end all the same, so that the next
 * question is answered.
 */

#include "src/role/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "src/base/err.h"
#include "src/base/fd.h"

enum {
	DATAGRAM_BYTES = 32 * 1024, /* the kernel's most in a dump */
	NEWS_BYTES = 1024 * 1024,
	ANSWER_S = 2, /* a kernel that does not answer must not hold a loop */
	LIST_TRIES = 8,
};

/* -- sockets -------------------------------------------------------------- */

int netlink_open(int protocol)
{
	const struct timeval patience = { .tv_sec = ANSWER_S };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return err_origin(-errno);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
			 sizeof(patience));
	return fd;
}

int netlink_news_open(int protocol, unsigned group)
{
	const struct sockaddr_nl to_news = {
		.nl_family = AF_NETLINK,
		.nl_groups = 1U << (group - 1),
	};
	const int size = NEWS_BYTES;
	CLEANUP_FD int fd = -1;
	int opened;

	must(group >= 1 && group <= 32);
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    protocol);
	if (fd < 0 ||
	    bind(fd, (const struct sockaddr *)&to_news, sizeof(to_news)) != 0)
		return err_origin(-errno);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
	opened = fd;
	fd = -1;
	return opened;
}

/* -- messages ------------------------------------------------------------- */

int netlink_news_read(int fd, netlink_fn *fn, void *ctx)
{
	_Alignas(struct nlmsghdr) char bytes[DATAGRAM_BYTES];
	struct nlmsghdr *m = (struct nlmsghdr *)(void *)bytes;
	ssize_t len = recv(fd, bytes, sizeof(bytes), 0);

	if (len < 0)
		return -errno;
	for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len))
		if (fn(ctx, m))
			break;
	return 0;
}

/* An error, an acknowledgement and the end of a dump begin alike. */
static int status_of(const struct nlmsghdr *m)
{
	int status;

	if (m->nlmsg_len < NLMSG_LENGTH(sizeof(status)))
		return err_origin(-EPROTO);
	memcpy(&status, NLMSG_DATA(m), sizeof(status));
	return status;
}

static bool not_expected(void *ctx, const struct nlmsghdr *m)
{
	(void)m;
	*(int *)ctx = -EPROTO;
	return true;
}

int netlink_do(int fd, const struct nlmsghdr *request)
{
	int unexpected = 0;
	int r = netlink_ask(fd, request, not_expected, &unexpected);

	return unexpected ? err_origin(unexpected) : r;
}

/* -EAGAIN: a list of more than one moment. */
static int ask_once(int fd, const struct nlmsghdr *question, netlink_fn *fn,
		    void *ctx)
{
	bool dump = (question->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
	_Alignas(struct nlmsghdr) char bytes[DATAGRAM_BYTES];
	bool interrupted = false;
	struct nlmsghdr *m;
	ssize_t len;
	int r;

	if (send(fd, question, question->nlmsg_len, 0) < 0)
		return err_origin(-errno);
	for (;;) {
		len = recv(fd, bytes, sizeof(bytes), 0);
		if (len < 0)
			return err_origin(errno == EAGAIN ? -ETIMEDOUT
							  : -errno);
		m = (struct nlmsghdr *)(void *)bytes;
		if (!NLMSG_OK(m, len))
			return err_origin(-EPROTO);
		for (; NLMSG_OK(m, len); m = NLMSG_NEXT(m, len)) {
			interrupted |= dump && m->nlmsg_flags & NLM_F_DUMP_INTR;
			if (m->nlmsg_type == NLMSG_DONE ||
			    m->nlmsg_type == NLMSG_ERROR) {
				r = status_of(m);
				return !r && interrupted ? -EAGAIN : r;
			}
			if (fn(ctx, m) || !dump)
				return 0;
		}
	}
}

int netlink_ask(int fd, const struct nlmsghdr *question, netlink_fn *fn,
		void *ctx)
{
	must((question->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP);
	return ask_once(fd, question, fn, ctx);
}

int netlink_list(int fd, const struct nlmsghdr *question, netlink_fn *fn,
		 void (*anew)(void *ctx), void *ctx)
{
	unsigned i;
	int r;

	must((question->nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP);
	for (i = 0; i < LIST_TRIES; i++) {
		r = ask_once(fd, question, fn, ctx);
		if (r != -EAGAIN)
			return r;
		if (anew)
			anew(ctx);
	}
	return err_origin(-EAGAIN);
}

/* -- attributes ----------------------------------------------------------- */

struct span netlink_attrs(const struct nlmsghdr *m, size_t size)
{
	size_t at = NLMSG_LENGTH(NLMSG_ALIGN(size));

	if (m->nlmsg_len < at)
		return SPAN_NONE;
	return span_of((const char *)m + at, m->nlmsg_len - at);
}

bool netlink_attr(struct span attrs, unsigned type, struct span *ret)
{
	struct nlattr head;

	while (attrs.len >= sizeof(head)) {
		memcpy(&head, attrs.ptr, sizeof(head));
		if (head.nla_len < sizeof(head) || head.nla_len > attrs.len)
			return false;
		if ((head.nla_type & NLA_TYPE_MASK) == type) {
			*ret = span_of(attrs.ptr + sizeof(head),
				       head.nla_len - sizeof(head));
			return true;
		}
		attrs = span_from(attrs, NLA_ALIGN(head.nla_len));
	}
	return false;
}

bool netlink_attr_str(struct span attrs, unsigned type, struct span *ret)
{
	struct span value;

	if (!netlink_attr(attrs, type, &value) || !value.len ||
	    span_find(value, '\0') != value.len - 1)
		return false;
	*ret = span_of(value.ptr, value.len - 1);
	return true;
}

bool netlink_attr_u32(struct span attrs, unsigned type, uint32_t *ret)
{
	struct span value;

	if (!netlink_attr(attrs, type, &value) || value.len != sizeof(*ret))
		return false;
	memcpy(ret, value.ptr, sizeof(*ret));
	return true;
}
