/* SPDX-License-Identifier: Apache-2.0 */
/* dns_out.h - the writer that the emitters of DNS messages share
 *
 * Bytes go through struct out, which stops at its size and remembers. A reply
 * reserves its OPT first (dns_opt_plan), because the reason of a denial matters
 * more than records: if the records do not fit beside it, there are none and
 * TC says so. The header's counts and flags are written last (dns_finish).
 */
#pragma once

#include "src/base/span.h"
#include "src/wire/dns.h"

enum { DNS_OUT_QUESTION = 0xc000 | DNS_HEAD_SIZE /* pointer to its name */ };

struct out {
	uint8_t *data;
	size_t size, len;
	bool overflow;
};

static inline void out_bytes(struct out *o, const void *bytes, size_t len)
{
	if (len > o->size - o->len) {
		o->overflow = true;
		return;
	}
	memcpy(o->data + o->len, bytes, len);
	o->len += len;
}

static inline void out_8(struct out *o, unsigned value)
{
	uint8_t byte = (uint8_t)value;

	out_bytes(o, &byte, 1);
}

static inline void out_16(struct out *o, unsigned value)
{
	out_8(o, value >> 8);
	out_8(o, value);
}

static inline void out_32(struct out *o, uint32_t value)
{
	out_16(o, value >> 16);
	out_16(o, value & 0xffff);
}

/* Overwrites what was written already. */
static inline void out_16_at(struct out *o, size_t at, unsigned value)
{
	o->data[at] = (uint8_t)(value >> 8);
	o->data[at + 1] = (uint8_t)value;
}

/* What goes into the reply's OPT. */
struct dns_opt_plan {
	bool wanted;
	enum dns_ede ede;
	uint16_t rcode;
	size_t text_len;
	struct span text;
};

struct dns_opt_plan dns_opt_plan(const struct dns_message *query,
				 uint16_t rcode, enum dns_ede ede,
				 struct span text);
/* How long it will be. */
size_t dns_opt_plan_size(const struct dns_opt_plan *p);
/* The header, to be settled by dns_finish(), and the question. */
void dns_begin(struct out *o, const struct dns_message *query);
/* Appends the OPT and settles the header; returns the length, 0 when it does
 * not fit. answers < 0: they did not fit, and what was written of them goes. */
size_t dns_finish(struct out *o, const struct dns_message *query,
		  const struct dns_opt_plan *opt, int answers);
