/* SPDX-License-Identifier: Apache-2.0 */
/* dns.h - DNS messages: bytes in, structs out (RFC 1035, 6891)
 *
 * A message is checked as a whole when it is parsed: header, exactly one
 * question, every record up to the last byte, at most one OPT. What parsed may
 * then be walked without further doubt. Refused, each with its own DNS_E_:
 * wrong direction, opcodes other than QUERY, counts that are not served,
 * compression in the question, pointers that do not point backwards, records
 * that leave the message, bytes after the last record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/dns_code.h"
#include "src/wire/dns_name.h"

enum {
	DNS_RECORDS_MAX = 1024,	 /* in one message */
	DNS_UDP_MIN = 512,	 /* what every client takes (RFC 1035) */
	DNS_UDP_MAX = 1232,	 /* what no path fragments (DNS flag day) */
	DNS_MESSAGE_MAX = 65535, /* over TCP */
};

/* Why a message was refused. */
#define DNS_ERRORS(X)                                                        \
	X(SHORT, "the message ends too early")                               \
	X(DIRECTION, "a query was expected and a reply came, or vice versa") \
	X(OPCODE, "the opcode is not QUERY")                                 \
	X(COUNT, "a section has a count that is not served")                 \
	X(NAME, "a name is malformed or its compression goes forwards")      \
	X(RECORD, "a record leaves the message")                             \
	X(OPT, "the OPT record is malformed or there are two")               \
	X(TRAILING, "bytes follow the last record")

enum dns_error {
	DNS_OK,
#define DNS_ERROR_ENUM(id, text) DNS_E_##id,
	DNS_ERRORS(DNS_ERROR_ENUM)
#undef DNS_ERROR_ENUM
		DNS_ERROR_NUM,
};

const char *dns_error_text(enum dns_error error);

enum dns_section { DNS_ANSWER, DNS_AUTHORITY, DNS_ADDITIONAL, DNS_SECTION_NUM };

struct dns_message {
	struct span bytes; /* borrowed */
	uint16_t id;
	uint16_t flags; /* enum dns_flag and the lower rcode bits */
	uint16_t rcode; /* with the upper bits of the OPT */
	/* the question */
	struct dns_name name;
	uint16_t type;
	uint16_t qclass;
	/* the records */
	uint16_t counts[DNS_SECTION_NUM];
	size_t records_at; /* offset of the first one */
	/* the OPT */
	bool edns;
	uint8_t edns_version;
	uint16_t udp_size; /* DNS_UDP_MIN without OPT, never less */
};

/* A query: QR 0, no answer and authority records. */
enum dns_error dns_parse_query(struct span bytes, struct dns_message *ret);
/* A reply: QR 1. When TC is set, the records are not looked at and counted 0:
 * some servers cut them anywhere. */
enum dns_error dns_parse_reply(struct span bytes, struct dns_message *ret);

struct dns_record {
	enum dns_section section;
	struct dns_name name;
	uint16_t type;
	uint16_t rclass;
	uint32_t ttl_s; /* a set top bit reads as 0 (RFC 2181 8) */
	size_t ttl_at;	/* offset of the TTL field */
	size_t data_at; /* offset of the data */
	size_t data_len;
};

struct dns_walk {
	size_t at;
	unsigned section;
	unsigned index; /* in the section */
};

#define DNS_WALK(message)                   \
	{                                   \
		.at = (message)->records_at \
	}

/* Next record of a parsed message; false at the end. */
bool dns_walk_next(struct dns_walk *w, const struct dns_message *m,
		   struct dns_record *ret);
/* The address in an A or AAAA record of class IN (port 0). */
WUNRES bool dns_record_addr(const struct dns_message *m,
			    const struct dns_record *record, struct addr *ret);
/* The name that the data ends in, and what stands before it: nothing in CNAME,
 * DNAME, PTR and NS, the preference of MX, three numbers of SRV. False: it is
 * broken, or of another type. */
WUNRES bool dns_record_target(const struct dns_message *m,
			      const struct dns_record *record,
			      struct span *ret_before, struct dns_name *ret);
/* How long a negative answer may be kept: min(TTL, MINIMUM) of its SOA. */
WUNRES bool dns_record_negative_ttl(const struct dns_message *m,
				    const struct dns_record *record,
				    uint32_t *ret_s);
