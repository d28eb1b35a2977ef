/* SPDX-License-Identifier: Apache-2.0 */
/* h1.h - HTTP/1.1 messages: bytes in, structs out (RFC 9112, strictly)
 *
 * A head is scanned as its bytes arrive (h1_scan) and parsed once, when it is
 * whole, over contiguous bytes. The result is the same for any splitting of
 * the input. Refused, each with its own H1_E_: bare CR, bare LF, NUL, obs-fold,
 * white space before the colon or in the start line beyond single spaces,
 * control bytes, names that are no token, more than one Host, Content-Length
 * with Transfer-Encoding, repeated or list-valued Content-Length even if equal,
 * Transfer-Encoding other than exactly one "chunked", HTTP versions other than
 * 1.0 and 1.1, a Host that differs from an absolute target, a Connection field
 * that names a credential or the framing, heads over the limit. One empty line
 * before a request is skipped (RFC 9112 2.2).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/wire/header.h"

/* Reasons to refuse a message; h1_error_text() is for people. */
enum h1_error {
	H1_OK,
#define H1_ERROR(id, text) H1_E_##id,
#include "src/wire/h1_error.def"
#undef H1_ERROR
	H1_ERROR_NUM,
};

const char *h1_error_text(enum h1_error error);

/* Where a message's body ends. */
enum h1_body {
	H1_BODY_NONE,
	H1_BODY_LENGTH, /* .length bytes */
	H1_BODY_CHUNKED,
	H1_BODY_CLOSE,	/* a response until the connection ends */
	H1_BODY_TUNNEL, /* 101 or CONNECT 2xx: opaque from here on */
};

/* Start from a zeroed struct, again for the next head. */
struct h1_scan {
	size_t seen;  /* bytes already looked at */
	size_t lines; /* complete lines so far */
};

/* Could these first bytes of a connection begin an HTTP/1 request? 1 = yes, 0 =
 * more are needed, -1 = no: the first line names no HTTP version, as that of
 * SSH does not, or holds what no line of text does. */
int h1_sniff(struct span bytes);

/* Looks for the end of a head in the bytes received so far (the whole head so
 * far, from its first byte). Returns its length including the empty line, 0 =
 * need more, or -(enum h1_error): over limit_bytes, or something that can never
 * become a head (bare CR/LF, NUL). */
int h1_scan(struct h1_scan *scan, struct span bytes, size_t limit_bytes);

struct h1_request {
	struct span method;    /* token, as sent */
	struct span target;    /* as sent: origin-form, absolute-form, authority
				  (CONNECT) or "*" */
	struct span authority; /* from Host, or from an absolute-form target
				  (which wins, RFC 9112 3.2.2); may be empty in
				  HTTP/1.0 */
	struct span path;      /* target without scheme and authority, "/"
				  (OPTIONS: "*") when empty; with query;
				  none for CONNECT */
	bool absolute;	       /* absolute-form */
	bool absolute_https;
	uint8_t minor;	 /* HTTP/1.minor */
	bool keep_alive; /* what version and Connection say */
	bool expect_continue;
	enum h1_body body;
	uint64_t length; /* with H1_BODY_LENGTH; may be 0 */
	bool upgrade;	 /* Connection: upgrade and an Upgrade field */
	struct headers headers;
};

struct h1_response {
	uint16_t status;
	struct span reason;
	uint8_t minor;
	bool keep_alive;
	enum h1_body body;
	uint64_t length;
	struct headers headers;
};

/* head is exactly what h1_scan() delimited; views in *ret point into it. When
 * it is refused *ret holds nothing to rely on. */
enum h1_error h1_parse_request(struct span head, struct h1_request *ret);
/* The body's framing needs the request's method (HEAD, CONNECT). */
enum h1_error h1_parse_response(struct span head, struct span method,
				struct h1_response *ret);

/* Chunked decoding (RFC 9112 7.1), in place, strictly: 1*16 HEXDIG, no leading
 * sign or space, CRLF only, extensions and trailers bounded. */
struct h1_chunked {
	uint8_t state;
	uint8_t error;	     /* enum h1_error, once refused: for ever */
	bool done;	     /* the final CRLF was consumed */
	uint32_t line_bytes; /* of the current size line or trailer section */
	uint64_t left;	     /* data bytes left in this chunk */
	uint16_t name_len;   /* of the current trailer field's name ... */
	char name[HEADER_KNOWN_MAX]; /* ... and its first bytes */
};

enum {
	H1_CHUNK_LINE_MAX = 256,    /* size and extensions, without CR LF */
	H1_TRAILER_MAX = 16 * 1024, /* the whole trailer section */
};

/* Consumes from *in (advancing it) until a piece of data was found, input ran
 * out, or the body ended. *ret_data: the piece, a view into the input, empty
 * when none. Trailer fields are appended, as raw lines with CRLF, to
 * `trailers` when that is not NULL (a struct buf). A trailer that names a
 * field with any flag (header.def) is refused. Returns H1_OK or why the body
 * is refused; nothing is consumed after done. Start from a zeroed struct. */
struct buf;
enum h1_error h1_chunked_next(struct h1_chunked *c, struct span *in,
			      struct span *ret_data, struct buf *trailers);

/* "1a2b\r\n" into dst (at least H1_CHUNK_HEAD_SIZE); returns its length. */
enum { H1_CHUNK_HEAD_SIZE = 20 };
size_t h1_chunk_head(uint64_t len, char *dst);
