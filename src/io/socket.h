/* SPDX-License-Identifier: Apache-2.0 */
/* socket.h - the two system calls that every byte of a stream passes
 *
 * In glibc recv(3) and send(3) are points where a thread may be cancelled, and
 * in a program with threads each of them takes an atomic operation before and
 * after to say so: a hundredth of a small exchange. Nobody cancels ours.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As recv(2) and send(2), without waiting and without SIGPIPE. ends: the FIN
 * follows, and goes in the last packet of these bytes. */
static inline ssize_t socket_recv(int fd, void *dst, size_t len)
{
	return syscall(SYS_recvfrom, fd, dst, len, MSG_DONTWAIT, NULL, NULL);
}

static inline ssize_t socket_send(int fd, const void *src, size_t len,
				  bool ends)
{
	return syscall(SYS_sendto, fd, src, len,
		       MSG_NOSIGNAL | MSG_DONTWAIT | (ends ? MSG_MORE : 0),
		       NULL, 0);
}
