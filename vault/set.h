/* SPDX-License-Identifier: Apache-2.0 */
/* set.h - one number for a set of rows, updated as rows come and go
 *
 * The sum modulo 2^256 of HMAC(key of the row, revision, nonce) over all rows.
 * A nonce is drawn at every write, so an older version of a row counts
 * differently. Sums are kept sealed: who cannot see them cannot aim at them.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct envelope_mac;
struct record_head;

enum { SET_SUM_SIZE = 32 };

struct set_sum {
	uint64_t words[4]; /* least significant first */
};

/* 0 or -errno. */
WUNRES int set_add(struct set_sum *s, struct envelope_mac *mac, struct span key,
		   const struct record_head *head);
WUNRES int set_remove(struct set_sum *s, struct envelope_mac *mac,
		      struct span key, const struct record_head *head);
bool set_eq(const struct set_sum *a, const struct set_sum *b);

void set_emit(const struct set_sum *s, char dst[SET_SUM_SIZE]);
void set_parse(struct set_sum *ret, const char src[SET_SUM_SIZE]);
