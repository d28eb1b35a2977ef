/* SPDX-License-Identifier: Apache-2.0 */
/* chan_wire.c - framing, fd passing, sealed memory: channels without a loop */

#include "src/io/chan_wire.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "src/base/err.h"
#include "src/base/fd.h"

enum {
	CHAN_SOCKET_BYTES = 1024 * 1024,
	MEMFD_SEALS = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
};

static_assert(sizeof(struct msg_head) == 16, "no padding on the wire, and "
					     "the payload is aligned to 8");

/* Room for the fds of one message, aligned as the kernel wants it. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * CHAN_FDS_MAX)];
};

int chan_wire_frame(struct iovec iov[CHAN_PARTS], struct msg_head *head,
		    uint16_t type, uint32_t serial, const void *body,
		    size_t body_len, struct span tail, unsigned fd_count)
{
	const size_t max = CHAN_MESSAGE_MAX - sizeof(*head);

	if (fd_count > CHAN_FDS_MAX)
		return -EINVAL;
	if (body_len > max || tail.len > max - body_len)
		return -EMSGSIZE;
	*head = (struct msg_head){
		.magic = MSG_MAGIC,
		.type = type,
		.serial = serial,
		.len = (uint32_t)(body_len + tail.len),
	};
	iov[0] = (struct iovec){ head, sizeof(*head) };
	iov[1] = (struct iovec){ (void *)body, body_len };
	iov[2] = (struct iovec){ (void *)tail.ptr, tail.len };
	return 0;
}

static int wire_send(int fd, struct iovec *iov, unsigned iov_count,
		     const int *fds, unsigned fd_count, int flags)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = iov_count };
	union control control = { 0 };
	struct cmsghdr *cmsg;

	if (fd_count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
	}
	for (;;) {
		if (sendmsg(fd, &msg, MSG_NOSIGNAL | flags) >= 0)
			return 0;
		if (errno != EINTR)
			return -errno;
	}
}

int chan_wire_send(int fd, struct iovec *iov, unsigned iov_count,
		   const int *fds, unsigned fd_count)
{
	return wire_send(fd, iov, iov_count, fds, fd_count, MSG_DONTWAIT);
}

/* Takes every fd out of msg, also those beyond what a message may have. */
static void wire_take_fds(struct msghdr *msg, struct chan_msg *m)
{
	struct cmsghdr *cmsg;
	int fd;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(fd) <= cmsg->cmsg_len;
		     at += sizeof(fd)) {
			memcpy(&fd, (char *)cmsg + at, sizeof(fd));
			if (m->fd_count < CHAN_FDS_MAX)
				m->fds[m->fd_count++] = fd;
			else
				fd_close(fd);
		}
	}
}

void chan_wire_close_fds(struct chan_msg *m)
{
	for (unsigned i = 0; i < m->fd_count; i++)
		m->fds[i] = fd_close(m->fds[i]);
	m->fd_count = 0;
}

static bool wire_check(const struct msghdr *msg, const char *buffer, size_t n,
		       struct chan_msg *m)
{
	struct msg_head head;

	if (msg->msg_flags & (MSG_TRUNC | MSG_CTRUNC) || n < sizeof(head))
		return false;
	memcpy(&head, buffer, sizeof(head));
	if (head.magic != MSG_MAGIC || head.zero ||
	    head.len != n - sizeof(head))
		return false;
	m->type = head.type;
	m->serial = head.serial;
	m->payload = span_of(buffer + sizeof(head), head.len);
	return true;
}

ssize_t chan_wire_recv(int fd, char *buffer, size_t size, int flags,
		       struct chan_msg *m)
{
	struct iovec iov = { buffer, size };
	union control control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	ssize_t n;

	*m = (struct chan_msg){ 0 };
	do
		n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;

	wire_take_fds(&msg, m);
	if (n > 0 && wire_check(&msg, buffer, (size_t)n, m))
		return n;
	/* An empty packet reads like the end, but it may have carried fds. */
	chan_wire_close_fds(m);
	explicit_bzero(buffer, (size_t)n);
	return n ? -EPROTO : 0;
}

static int socket_enlarge(int fd)
{
	const int size = CHAN_SOCKET_BYTES;
	static const struct {
		int force, plain;
	} options[] = { { SO_SNDBUFFORCE, SO_SNDBUF },
			{ SO_RCVBUFFORCE, SO_RCVBUF } };

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		if (setsockopt(fd, SOL_SOCKET, options[i].force, &size,
			       sizeof(size)) &&
		    setsockopt(fd, SOL_SOCKET, options[i].plain, &size,
			       sizeof(size)))
			return -errno;
	return 0;
}

int chan_pair(int fds[2])
{
	int pair[2];
	int r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, pair))
		return err_origin(-errno);
	r = socket_enlarge(pair[0]);
	if (!r)
		r = socket_enlarge(pair[1]);
	if (r) {
		fd_close(pair[0]);
		fd_close(pair[1]);
		return err_origin(r);
	}
	fds[0] = pair[0];
	fds[1] = pair[1];
	return 0;
}

static int wire_wait(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (poll(&p, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

int chan_send_now(int fd, uint16_t type, uint32_t serial, const void *body,
		  size_t body_len, struct span tail, const int *fds,
		  unsigned fd_count)
{
	struct iovec iov[CHAN_PARTS];
	struct msg_head head;
	int r;

	r = chan_wire_frame(iov, &head, type, serial, body, body_len, tail,
			    fd_count);
	if (r)
		return err_origin(r);
	for (;;) {
		r = wire_send(fd, iov, CHAN_PARTS, fds, fd_count, 0);
		if (r != -EAGAIN)
			return r == -ECONNRESET ? -EPIPE : err_trace(r);
		r = wire_wait(fd, POLLOUT);
		if (r)
			return err_origin(r);
	}
}

int chan_recv_now(int fd, void *buffer, size_t size, struct chan_msg *m)
{
	ssize_t n;
	int r;

	for (;;) {
		n = chan_wire_recv(fd, buffer, size, 0, m);
		if (n > 0)
			return 0;
		if (n != -EAGAIN)
			return n && n != -ECONNRESET ? err_trace((int)n)
						     : -EPIPE;
		r = wire_wait(fd, POLLIN);
		if (r)
			return err_origin(r);
	}
}

int chan_memfd(struct span bytes)
{
	CLEANUP_FD int fd = -1;
	size_t done = 0;
	ssize_t n;
	int sealed;

	fd = memfd_create("sallyport", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return err_origin(-errno);
	while (done < bytes.len) {
		n = write(fd, bytes.ptr + done, bytes.len - done);
		if (n < 0 && errno != EINTR)
			return err_origin(-errno);
		if (n > 0)
			done += (size_t)n;
	}
	if (fcntl(fd, F_ADD_SEALS, MEMFD_SEALS))
		return err_origin(-errno);
	sealed = fd;
	fd = -1;
	return sealed;
}

int chan_map(int fd, size_t size, const void **ret)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *p;

	if (seals < 0 || (seals & MEMFD_SEALS) != MEMFD_SEALS)
		return err_origin(-EPERM);
	if (fstat(fd, &st))
		return err_origin(-errno);
	if (!size || st.st_size < 0 || (uint64_t)st.st_size != size)
		return err_origin(-EPROTO);
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return err_origin(-errno);
	*ret = p;
	return 0;
}
