/* SPDX-License-Identifier: Apache-2.0 */
/* port.h - which port of a bridge leads to which process
 *
 * How it works: a veth's end on the bridge says in which network namespace its
 * other end is, by a number of our own namespace; the kernel tells the number
 * of the namespace a process is in. So the two are compared without entering
 * anything, and nothing that a sandbox could send (an ARP reply, a hardware
 * address) has a part in it.
 *
 * Source: rtnetlink(7), RTM_GETNSID (linux/net_namespace.h).
 */
#pragma once

#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/role/msg.h"

/* 0; -ESRCH: there is no such process; -ENODEV: no such bridge, or none of its
 * ports leads there; -EEXIST: more than one does; -errno. Asks the kernel,
 * which answers at once. */
WUNRES int port_find(pid_t pid, const char *bridge, char ret[MSG_IFACE_SIZE]);
