/* SPDX-License-Identifier: Apache-2.0 */
/* route.h - the routing rule and route that bring marked packets to ourselves
 */
#pragma once

#include <stdint.h>

#include "src/base/attrib.h"

/* For AF_INET or AF_INET6: what `ip rule add fwmark MARK lookup TABLE` and
 * `ip route add local default dev lo table TABLE` do. Idempotent and cheap.
 * 0; -EAFNOSUPPORT when the kernel has no such family (or it is switched
 * off); -ENETDOWN when lo is down; -errno. Needs CAP_NET_ADMIN. */
WUNRES int route_install(int family, uint32_t fwmark, uint32_t table);

/* Takes both away again; what is not there is fine. 0 or -errno. */
WUNRES int route_remove(int family, uint32_t fwmark, uint32_t table);
