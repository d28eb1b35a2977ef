/* fuzz: io */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_chan.c - any packet on a channel: delivered whole, or a violation */

#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "src/base/fd.h"
#include "src/io/chan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static _Alignas(8) char buffer[4096];
	struct chan_msg m;
	int fds[2];
	int r;

	if (chan_pair(fds))
		return 0;
	if (size && send(fds[0], data, size, MSG_NOSIGNAL) == (ssize_t)size) {
		r = chan_recv_now(fds[1], buffer, sizeof(buffer), &m);
		if (!r && m.payload.len != size - sizeof(struct msg_head))
			abort();
		if (!r && m.fd_count)
			abort();
	}
	fd_close(fds[0]);
	fd_close(fds[1]);
	return 0;
}
