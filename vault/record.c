/* SPDX-License-Identifier: Apache-2.0 */
/* record.c - build and take apart keys and sealed rows
 *
 * How it works: a key is table, scope, NUL, kind, name. Scopes hold no control
 * bytes, so NUL ends one unambiguously, and the byte order of keys is: by
 * scope, then kind, then name. Everything in a head but the nonce is part of
 * the associated data, and so is the whole key: a row that is moved, renamed,
 * relabelled or given another revision does not open.
 */

#include "vault/record.h"

#include <assert.h>

#include "src/base/err.h"

static_assert(1 + RECORD_SCOPE_MAX + 2 + RECORD_NAME_MAX <= RECORD_KEY_MAX,
	      "the longest key fits into LMDB's limit");

static const struct span aad_label = SPAN_INIT("sallyport vault row 1");
static_assert(sizeof("sallyport vault row 1") - 1 + RECORD_BOUND_SIZE +
			      RECORD_KEY_MAX <=
		      RECORD_AAD_MAX,
	      "the longest associated data fits");

void record_put_u32(char *dst, uint32_t v)
{
	int i;

	for (i = 0; i < 4; i++)
		dst[i] = (char)(v >> (8 * i));
}

void record_put_u64(char *dst, uint64_t v)
{
	record_put_u32(dst, (uint32_t)v);
	record_put_u32(dst + 4, (uint32_t)(v >> 32));
}

uint32_t record_get_u32(const char *src)
{
	uint32_t v = 0;
	int i;

	for (i = 3; i >= 0; i--)
		v = v << 8 | (unsigned char)src[i];
	return v;
}

uint64_t record_get_u64(const char *src)
{
	return record_get_u32(src) | (uint64_t)record_get_u32(src + 4) << 32;
}

static bool text_is_valid(struct span s, size_t max)
{
	unsigned char c;
	size_t i;

	if (s.len > max)
		return false;
	for (i = 0; i < s.len; i++) {
		c = (unsigned char)s.ptr[i];
		if (c < 0x20 || c == 0x7f)
			return false;
	}
	return true;
}

bool record_scope_is_valid(struct span scope)
{
	return text_is_valid(scope, RECORD_SCOPE_MAX);
}

bool record_name_is_valid(struct span name)
{
	return name.len && text_is_valid(name, RECORD_NAME_MAX);
}

static void key_put(struct record_key *k, struct span bytes)
{
	if (bytes.len)
		memcpy(k->bytes + k->len, bytes.ptr, bytes.len);
	k->len += bytes.len;
}

static void key_put_byte(struct record_key *k, unsigned byte)
{
	k->bytes[k->len++] = (char)byte;
}

void record_key_value(struct record_key *k, struct span scope, uint8_t kind,
		      struct span name)
{
	must(record_scope_is_valid(scope));
	must(!name.len || record_name_is_valid(name));
	k->len = 0;
	key_put_byte(k, RECORD_TABLE_VALUE);
	key_put(k, scope);
	key_put_byte(k, '\0');
	key_put_byte(k, kind);
	key_put(k, name);
}

void record_key_scope_end(struct record_key *k, struct span scope)
{
	must(record_scope_is_valid(scope));
	k->len = 0;
	key_put_byte(k, RECORD_TABLE_VALUE);
	key_put(k, scope);
	key_put_byte(k, '\1'); /* no scope holds it */
}

void record_key_manifest(struct record_key *k, struct span scope)
{
	must(record_scope_is_valid(scope));
	k->len = 0;
	key_put_byte(k, RECORD_TABLE_MANIFEST);
	key_put(k, scope);
}

void record_key_single(struct record_key *k, enum record_table table)
{
	must(table == RECORD_TABLE_KEYRING || table == RECORD_TABLE_STATE);
	k->len = 0;
	key_put_byte(k, table);
}

/* What follows the table byte of a value's key. */
static bool place_parse(struct span rest, struct record_place *p)
{
	size_t end = span_find(rest, '\0');

	if (end + 2 >= rest.len) /* NUL, kind and at least one byte of name */
		return false;
	p->scope = span_of(rest.ptr, end);
	p->kind = (uint8_t)rest.ptr[end + 1];
	p->name = span_from(rest, end + 2);
	return p->kind && record_scope_is_valid(p->scope) &&
	       record_name_is_valid(p->name);
}

bool record_key_parse(struct span key, struct record_place *ret)
{
	struct record_place p = { 0 };
	struct span rest = span_from(key, 1);

	if (!key.len || key.len > RECORD_KEY_MAX)
		return false;
	switch (key.ptr[0]) {
	case RECORD_TABLE_KEYRING:
	case RECORD_TABLE_STATE:
		if (rest.len)
			return false;
		break;
	case RECORD_TABLE_MANIFEST:
		if (!record_scope_is_valid(rest))
			return false;
		p.scope = rest;
		break;
	case RECORD_TABLE_VALUE:
		if (!place_parse(rest, &p))
			return false;
		break;
	default:
		return false;
	}
	p.table = (enum record_table)key.ptr[0];
	*ret = p;
	return true;
}

void record_head_emit(const struct record_head *h, char dst[RECORD_HEAD_SIZE])
{
	dst[0] = RECORD_FORMAT;
	dst[1] = (char)h->table;
	dst[2] = dst[3] = 0;
	record_put_u32(dst + 4, h->dek);
	record_put_u64(dst + 8, h->revision);
	memcpy(dst + RECORD_BOUND_SIZE, h->nonce, RECORD_NONCE_SIZE);
}

bool record_parse(struct span row, struct record_head *ret,
		  struct span *ret_sealed)
{
	struct record_head h;

	if (row.len < RECORD_OVERHEAD ||
	    row.len > RECORD_OVERHEAD + RECORD_PLAIN_MAX)
		return false;
	if (row.ptr[0] != RECORD_FORMAT || row.ptr[2] || row.ptr[3])
		return false;
	h.table = (enum record_table)row.ptr[1];
	if (h.table != RECORD_TABLE_VALUE && h.table != RECORD_TABLE_MANIFEST &&
	    h.table != RECORD_TABLE_STATE)
		return false;
	h.dek = record_get_u32(row.ptr + 4);
	h.revision = record_get_u64(row.ptr + 8);
	memcpy(h.nonce, row.ptr + RECORD_BOUND_SIZE, RECORD_NONCE_SIZE);
	*ret = h;
	*ret_sealed = span_from(row, RECORD_HEAD_SIZE);
	return true;
}

size_t record_aad(const struct record_head *h, struct span key,
		  char dst[RECORD_AAD_MAX])
{
	char head[RECORD_HEAD_SIZE];
	size_t at = aad_label.len;

	must(key.len && key.len <= RECORD_KEY_MAX);
	record_head_emit(h, head);
	memcpy(dst, aad_label.ptr, aad_label.len);
	memcpy(dst + at, head, RECORD_BOUND_SIZE);
	at += RECORD_BOUND_SIZE;
	memcpy(dst + at, key.ptr, key.len);
	return at + key.len;
}
