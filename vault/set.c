/* SPDX-License-Identifier: Apache-2.0 */
/* set.c - add and subtract 256-bit row hashes */

#include "vault/set.h"

#include "vault/envelope.h"
#include "vault/record.h"

enum { WORDS = 4 };

static int row_hash(struct envelope_mac *mac, struct span key,
		    const struct record_head *head, struct set_sum *ret)
{
	uint8_t digest[ENVELOPE_MAC_SIZE];
	char bytes[RECORD_HEAD_SIZE];
	struct span parts[2];
	int r;

	/* the head has a fixed length: the pair is unambiguous */
	record_head_emit(head, bytes);
	parts[0] = span_of(bytes, sizeof(bytes));
	parts[1] = key;
	r = envelope_mac_run(mac, parts, 2, digest);
	if (!r)
		set_parse(ret, (const char *)digest);
	return r;
}

int set_add(struct set_sum *s, struct envelope_mac *mac, struct span key,
	    const struct record_head *head)
{
	unsigned long long carry = 0, sum;
	struct set_sum h;
	int i, r;

	r = row_hash(mac, key, head, &h);
	for (i = 0; i < WORDS && !r; i++) {
		sum = s->words[i] + h.words[i];
		s->words[i] = sum + carry;
		carry = (sum < h.words[i]) | (s->words[i] < sum);
	}
	return r;
}

int set_remove(struct set_sum *s, struct envelope_mac *mac, struct span key,
	       const struct record_head *head)
{
	unsigned long long borrow = 0, word;
	struct set_sum h;
	int i, r;

	r = row_hash(mac, key, head, &h);
	for (i = 0; i < WORDS && !r; i++) {
		word = s->words[i];
		s->words[i] = word - h.words[i] - borrow;
		borrow = word < h.words[i] || (borrow && word == h.words[i]);
	}
	return r;
}

bool set_eq(const struct set_sum *a, const struct set_sum *b)
{
	return !memcmp(a->words, b->words, sizeof(a->words));
}

void set_emit(const struct set_sum *s, char dst[SET_SUM_SIZE])
{
	int i;

	for (i = 0; i < WORDS; i++)
		record_put_u64(dst + 8 * i, s->words[i]);
}

void set_parse(struct set_sum *ret, const char src[SET_SUM_SIZE])
{
	int i;

	for (i = 0; i < WORDS; i++)
		ret->words[i] = record_get_u64(src + 8 * i);
}
