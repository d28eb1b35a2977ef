/* SPDX-License-Identifier: Apache-2.0 */
/* socks5.h - SOCKS version 5 (RFC 1928): bytes in, structs out
 *
 * The server's side of the two messages that a client sends: the greeting with
 * its methods, and the request. Both are parsed over the bytes received so far;
 * the result is the same for any splitting of the input.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/host.h"

enum {
	SOCKS5_VERSION = 5,
	/* More than either message ever has. */
	SOCKS5_MESSAGE_MAX = 264,
	SOCKS5_REPLY_SIZE = 10,
};

/* RFC 1928 section 3: METHOD. */
enum socks5_method {
	SOCKS5_NO_AUTH = 0x00,
	SOCKS5_NO_METHOD = 0xff,
};

/* RFC 1928 section 6: REP. */
enum socks5_reply {
	SOCKS5_SUCCEEDED = 0,
	SOCKS5_FAILURE = 1,
	SOCKS5_NOT_ALLOWED = 2,
	SOCKS5_HOST_UNREACHABLE = 4,
	SOCKS5_COMMAND = 7, /* not supported */
	SOCKS5_ADDRESS = 8, /* type not supported */
};

/* The greeting at the beginning of bytes: its length and in *ret the method to
 * answer with, SOCKS5_NO_METHOD when "no authentication" is not offered; 0 =
 * need more; -1 = this is not SOCKS5. */
WUNRES int socks5_parse_greeting(struct span bytes, enum socks5_method *ret);

/* A CONNECT request at the beginning of bytes: its length and whom it names in
 * *ret; 0 = need more; -(enum socks5_reply) = why it is refused, *ret is then
 * untouched. A name that is an IP literal is an address; any other that
 * host_canon() refuses (NUL and control bytes among them) and port 0 are
 * refused with SOCKS5_FAILURE. */
WUNRES int socks5_parse_request(struct span bytes, struct authority *ret);

/* The reply, with the address and port that stand for "none" (0.0.0.0:0). */
void socks5_emit_reply(enum socks5_reply reply, char dst[SOCKS5_REPLY_SIZE]);
