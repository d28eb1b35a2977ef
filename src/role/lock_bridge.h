/* SPDX-License-Identifier: Apache-2.0 */
/* lock_bridge.h - bridged packets keep the socket that TPROXY found */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/buf.h"

struct config;

/* nft's script that puts the chain into our table (lock_script.h) or replaces
 * it there, so that it comes to stand first of all. 0, -ENOBUFS. */
WUNRES int lock_bridge_script(const struct config *config, bool ipv6,
			      struct buf *out);
