/* SPDX-License-Identifier: Apache-2.0 */
/* dns.h - DNS messages: bytes in, structs out, and back (RFC 1035, 6891, 8914)
 *
 * A message is checked as a whole when it is parsed: header, exactly one
 * question, every record up to the last byte, at most one OPT. What parsed may
 * then be walked without further doubt. Refused, each with its own DNS_E_:
 * wrong direction, opcodes other than QUERY, counts that are not served,
 * compression in the question, pointers that do not point backwards, records
 * that leave the message, bytes after the last record.
 *
 * Names from the wire may hold any byte; what is compared with policy is the
 * canonical host name (wire/host.h), and names that have none say so.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/wire/host.h"

enum {
	DNS_HEAD_SIZE = 12,
	DNS_NAME_MAX = 255,	 /* on the wire, with the root label */
	DNS_RECORDS_MAX = 1024,	 /* in one message */
	DNS_UDP_MIN = 512,	 /* what every client takes (RFC 1035) */
	DNS_UDP_MAX = 1232,	 /* what no path fragments (DNS flag day) */
	DNS_MESSAGE_MAX = 65535, /* over TCP */
	DNS_EDE_TEXT_MAX = 200,	 /* of our own extra text */
	DNS_CLASS_IN = 1,
};

/* Types that some code knows about; dns_type_name() has them all. */
#define DNS_TYPES(X) \
	X(A, 1)      \
	X(NS, 2)     \
	X(CNAME, 5)  \
	X(SOA, 6)    \
	X(PTR, 12)   \
	X(MX, 15)    \
	X(TXT, 16)   \
	X(AAAA, 28)  \
	X(SRV, 33)   \
	X(DNAME, 39) \
	X(OPT, 41)   \
	X(SVCB, 64)  \
	X(HTTPS, 65) \
	X(IXFR, 251) \
	X(AXFR, 252) \
	X(ANY, 255)  \
	X(CAA, 257)

enum dns_type {
#define DNS_TYPE_ENUM(id, number) DNS_TYPE_##id = number,
	DNS_TYPES(DNS_TYPE_ENUM)
#undef DNS_TYPE_ENUM
};

/* "AAAA"; "other" for a number that is not in the list. */
const char *dns_type_name(uint16_t type);

enum dns_flag {
	DNS_FLAG_QR = 0x8000,
	DNS_FLAG_AA = 0x0400,
	DNS_FLAG_TC = 0x0200,
	DNS_FLAG_RD = 0x0100,
	DNS_FLAG_RA = 0x0080,
	DNS_FLAG_AD = 0x0020,
	DNS_FLAG_CD = 0x0010,
};

enum dns_rcode {
	DNS_NOERROR = 0,
	DNS_FORMERR = 1,
	DNS_SERVFAIL = 2,
	DNS_NXDOMAIN = 3,
	DNS_NOTIMP = 4,
	DNS_REFUSED = 5,
	DNS_BADVERS = 16, /* needs an OPT to be said */
};

/* "NXDOMAIN"; "other" for an unknown one. */
const char *dns_rcode_name(uint16_t rcode);

/* Extended DNS Errors (RFC 8914 5.2), the ones we say. */
enum dns_ede {
	DNS_EDE_NONE, /* says nothing; "Other" (0) is never said */
	DNS_EDE_BLOCKED = 15,
	DNS_EDE_FILTERED = 17,
	DNS_EDE_PROHIBITED = 18,
	DNS_EDE_NOT_SUPPORTED = 21,
	DNS_EDE_NO_REACHABLE = 22,
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

/* A name in wire form, uncompressed: length-prefixed labels and the root. */
struct dns_name {
	uint8_t len; /* 1..255 once filled */
	uint8_t wire[DNS_NAME_MAX];
};

/* False: host is not a canonical name that fits. */
WUNRES bool dns_name_from_host(struct span host, struct dns_name *ret);
/* False: not a host name (the root, spaces, "*", dots inside a label ...). */
WUNRES bool dns_name_to_host(const struct dns_name *name, struct host *ret);
/* ASCII case does not matter (RFC 4343). */
bool dns_name_eq(const struct dns_name *a, const struct dns_name *b);
/* For people: foreign bytes as \DDD, cut with "..." to fit. Returns dst. */
const char *dns_name_text(const struct dns_name *name, char *dst, size_t size);
/* Reads the name at *at and moves *at behind it. Pointers must go strictly
 * backwards, and not into the header. False: nothing changed. */
WUNRES bool dns_name_read(struct span message, size_t *at,
			  struct dns_name *ret);

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
/* The name that is all of the data (CNAME, DNAME, PTR, NS). */
WUNRES bool dns_record_target(const struct dns_message *m,
			      const struct dns_record *record,
			      struct dns_name *ret);
/* Are the names in the data whole (CNAME, DNAME, NS, PTR, MX, SRV)? Data of
 * other types is opaque and sound. */
bool dns_record_is_sound(const struct dns_message *m,
			 const struct dns_record *record);
/* How long a negative answer may be kept: min(TTL, MINIMUM) of its SOA. */
WUNRES bool dns_record_negative_ttl(const struct dns_message *m,
				    const struct dns_record *record,
				    uint32_t *ret_s);

/* The emitters write into dst[0..size) and return the length, or 0 when even
 * the smallest form does not fit (size < DNS_UDP_MIN is a programming error
 * of the caller for replies). */

/* A query with RD set; udp_size 0 = without OPT. */
size_t dns_emit_query(uint16_t id, const struct dns_name *name, uint16_t type,
		      uint16_t udp_size, uint8_t *dst, size_t size);

struct dns_reply {
	uint16_t rcode;
	enum dns_ede ede;
	struct span ede_text;	  /* cut at DNS_EDE_TEXT_MAX and to ASCII */
	const struct addr *addrs; /* those of the asked family are answered */
	unsigned addr_count;
	uint32_t ttl_s;
};

/* The reply to query, which must be what dns_parse_query() filled. OPT and EDE
 * only when the query had an OPT. TC and no records when they do not fit. AA
 * and AD are never set. */
size_t dns_emit_reply(const struct dns_message *query,
		      const struct dns_reply *reply, uint8_t *dst, size_t size);

/* Passes the answer section of an upstream reply to the same question on:
 * other sections are dropped, TTLs are clamped. 0 also when the answer holds
 * something else than records of the asked type and aliases. */
size_t dns_emit_relay(const struct dns_message *query,
		      const struct dns_message *upstream, uint32_t min_ttl_s,
		      uint32_t max_ttl_s, uint8_t *dst, size_t size);
