/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - accept what TPROXY brings, and ask the kernel who it is
 *
 * The socket was made, bound and marked transparent by the supervisor. The
 * local address of an accepted connection is the destination that the sandbox
 * dialled; the interface it came in by is asked from the kernel (IP_PKTOPTIONS,
 * IPV6_2292PKTOPTIONS). Nothing of this can be chosen by a payload.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

struct listener;
struct worker;

/* Takes fd; begins to accept at once. 0 or -errno. */
WUNRES int listener_new(struct worker *w, enum listener_kind kind, int fd);
/* Closes every listener of the worker; connections live on. */
void listeners_close(struct worker *w);
/* Were connections refused for want of descriptors, a moment ago? */
bool listeners_exhausted(const struct worker *w);

/* The name of an interface, by index; "" when it is gone. fd: any socket. */
void listener_iface_name(int fd, unsigned ifindex, char dst[MSG_IFACE_SIZE]);
