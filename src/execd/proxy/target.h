/* SPDX-License-Identifier: Apache-2.0 */
/* target.h - where a request to /proxy/{port}/... goes. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct target {
	uint16_t port;
	/* With query, byte for byte as it was sent; target_put_path() writes it
	 * with the "/" that it may lack. */
	struct span rest;
};

/* request: the path of a request line, with query. False: the port is none. */
WUNRES bool target_parse(struct span request, struct target *ret);

struct buf;
/* 0 or -ENOBUFS. */
WUNRES int target_put_path(struct buf *out, const struct target *t);
