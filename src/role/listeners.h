/* SPDX-License-Identifier: Apache-2.0 */
/* listeners.h - the listening sockets that every gateway gets
 *
 * They are bound once, stay open in the supervisor and are sent to each new
 * gateway: connections that arrive while none runs wait in the backlog.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/role/msg.h"

struct config;

/* Never anybody's address: RFC 7600 (IPv4 dummy address) and RFC 6666
 * (discard-only prefix). Bindable because the sockets are transparent. */
#define LISTENERS_ADDR_V4 "192.0.0.8"
#define LISTENERS_ADDR_V6 "100::5350"

enum { LISTENERS_DNS_PORT = 53 };

/* The packet mark of whatever these sockets, and the connections accepted from
 * them, send to sandboxes: it has somebody else's address and may not leave by
 * any other interface (fence_script.c). */
#define LISTENERS_MARK 0x54000000u

struct listener_fd {
	struct msg_listener what;
	int fd;
};

struct listeners {
	struct listener_fd *items;
	unsigned count;
};

/* One TCP listener per event loop and family, one DNS socket over UDP and one
 * over TCP per family, on loop 0. Without ipv6 only IPv4. One listener of the
 * ingress per event loop where the configuration has it. 0; -EINVAL with diag
 * saying what to do. Needs CAP_NET_ADMIN and CAP_NET_BIND_SERVICE. */
WUNRES int listeners_open(const struct config *config, bool ipv6,
			  struct listeners *ret, struct diag *d);
void listeners_close(struct listeners *l);
