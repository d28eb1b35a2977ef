/* SPDX-License-Identifier: Apache-2.0 */
/* hello.h - a TLS ClientHello, whole, before anything is decided
 *
 * Works over the raw bytes of the connection so far: records of type handshake
 * are joined (RFC 8446 5.1), however fragmented, up to HELLO_MAX bytes.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/span.h"
#include "src/wire/host.h"

enum { HELLO_MAX = 64 * 1024 };

struct hello {
	bool has_sni;		   /* a name; an address is none */
	struct host sni;	   /* canonical */
	bool sni_is_address;	   /* RFC 6066 forbids it; some send it */
	bool has_ech;		   /* encrypted_client_hello, also GREASE */
	bool offers_h2, offers_h1; /* ALPN */
	bool has_alpn;
	uint16_t max_version; /* 0x0303, 0x0304; 0: none that we know */
	bool is_resumption;   /* a ticket or PSK is offered */
};

/* bytes is the connection's input from its first byte, and grows from call to
 * call. > 0: complete, that many bytes of the input belong to it. 0: need more.
 * < 0 (*ret untouched): -EPROTO not a ClientHello (or broken), -E2BIG over
 * HELLO_MAX, record heads included, or in over 2048 records. `joined` is
 * scratch, cleared on entry. */
int hello_parse(struct span bytes, struct buf *joined, struct hello *ret);
