/* SPDX-License-Identifier: Apache-2.0 */
/* dns_code.h - the numbers of the DNS and their names */
#pragma once

#include <stdint.h>

enum { DNS_CLASS_IN = 1 };

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
	DNS_EDE_INVALID_DATA = 24,
};
