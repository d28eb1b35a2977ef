/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - a plain stream that leads into one under TLS
 *
 * What runs inside a tunnel wants a stream of its own: TLS once more, or to be
 * spliced in the kernel. So a tunnel under TLS gets a pair of local sockets in
 * front of it: one end is given away, between the other and the tunnel bytes
 * are moved here.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/list.h"
#include "src/base/span.h"

struct stream;
struct worker;

/* Takes tunnel (also on failure); first: bytes that came out of it already.
 * *ret is the caller's. The relay lives, linked in `relays`, as long as both
 * ends have something to say. 0 or -errno. */
WUNRES int relay_new(struct worker *w, struct list *relays,
		     struct stream *tunnel, struct span first,
		     struct stream **ret);
/* Ends all of them. */
void relays_free(struct list *relays);
