/* SPDX-License-Identifier: Apache-2.0 */
/* chan_wire.h - one message to or from a SEQPACKET socket
 *
 * The part of channels that knows no loop. Nobody outside src/io/ includes
 * this.
 */
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include "src/io/chan.h"

enum { CHAN_PARTS = 3 }; /* head, body, tail */

/* Fills head and iov (which borrow everything). 0, -EMSGSIZE, or -EINVAL for
 * too many fds. */
WUNRES int chan_wire_frame(struct iovec iov[CHAN_PARTS], struct msg_head *head,
			   uint16_t type, uint32_t serial, const void *body,
			   size_t body_len, struct span tail,
			   unsigned fd_count);

/* Without waiting. 0 or -errno. */
WUNRES int chan_wire_send(int fd, struct iovec *iov, unsigned iov_count,
			  const int *fds, unsigned fd_count);

/* Bytes received (> 0: *m is a whole, well framed message in buffer), 0 end,
 * -EPROTO bad framing, or -errno. */
WUNRES ssize_t chan_wire_recv(int fd, char *buffer, size_t size, int flags,
			      struct chan_msg *m);
void chan_wire_close_fds(struct chan_msg *m);
