/* SPDX-License-Identifier: Apache-2.0 */
/* certificate.c - certificates in texts: found, decoded, named; pure */

#include "src/execd/init/certificate.h"

#include <errno.h>

#include "src/base/base64.h"
#include "src/base/buf.h"
#include "src/base/sha1.h"
#include "src/execd/init/der.h"

#define BEGIN "-----BEGIN CERTIFICATE-----"
#define END   "-----END CERTIFICATE-----"

enum {
	LINE = 64,
	NAME_MAX_BYTES = 8 * 1024, /* of a canonical subject */
	VALUES_MAX = 8,		   /* in one set of a subject */
};

static size_t find(struct span text, struct span what)
{
	const char *hit = memmem(text.ptr, text.len, what.ptr, what.len);

	return hit ? (size_t)(hit - text.ptr) : text.len;
}

bool certificate_next(struct span *text, struct span *base64)
{
	struct span rest = *text;
	size_t end;

	if (!rest.len)
		return false;
	rest = span_from(rest, find(rest, SPAN(BEGIN)));
	if (rest.len) {
		rest = span_from(rest, sizeof(BEGIN) - 1);
		end = find(rest, SPAN(END));
		if (end < rest.len) {
			*base64 = span_of(rest.ptr, end);
			*text = span_from(rest, end + sizeof(END) - 1);
			return true;
		}
	}
	*text = span_from(*text, text->len);
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Without blanks, into dst of text.len bytes. */
static struct span without_blanks(struct span text, char *dst)
{
	size_t i, at = 0;

	for (i = 0; i < text.len; i++)
		if (!is_blank(text.ptr[i]))
			dst[at++] = text.ptr[i];
	return span_of(dst, at);
}

static int decode_into(struct span base64, char *plain, struct buf *der)
{
	struct span text = without_blanks(base64, plain);
	size_t len;
	char *at;
	int r;

	r = buf_reserve(der, text.len, &at);
	if (r)
		return r;
	if (!base64_decode(text, (uint8_t *)at, text.len, &len) ||
	    !certificate_is(span_of(at, len)))
		return -EINVAL;
	buf_commit(der, len);
	return 0;
}

int certificate_decode(struct span base64, struct buf *der)
{
	char *plain CLEANUP_FREE = NULL;

	if (!base64.len || base64.len > 2 * CERTIFICATE_MAX)
		return -EINVAL;
	plain = malloc(base64.len);
	return plain ? decode_into(base64, plain, der) : -ENOBUFS;
}

int certificate_put(struct buf *to, struct span der)
{
	size_t len = BASE64_SIZE(der.len);
	struct span rest;
	char *text CLEANUP_FREE = malloc(len + 1);
	int r;

	if (!text)
		return -ENOBUFS;
	base64_encode(der, text);
	r = buf_put_str(to, BEGIN "\n");
	for (rest = span_of(text, len); !r && rest.len;) {
		r = buf_put(to, span_of(rest.ptr, MIN(rest.len, LINE)));
		if (!r)
			r = buf_put_str(to, "\n");
		rest = span_from(rest, LINE);
	}
	return r ? r : buf_put_str(to, END "\n");
}

/* -- the subject ---------------------------------------------------------- */

/* Certificate: sequence of (tbs, algorithm, signature); tbs: version?, serial,
 * algorithm, issuer, validity, subject, ... */
static bool find_subject(struct span der, struct span *subject)
{
	struct span outer, tbs, skipped;
	struct der d;

	if (!der_take(&der, DER_SEQUENCE, &outer) || der.len ||
	    !der_take(&outer, DER_SEQUENCE, &tbs) ||
	    !der_take(&outer, DER_SEQUENCE, &skipped) ||
	    !der_next(&outer, &d) || outer.len)
		return false;
	(void)der_take(&tbs, DER_CONTEXT_0, &skipped);
	return der_take(&tbs, DER_INTEGER, &skipped) &&
	       der_take(&tbs, DER_SEQUENCE, &skipped) &&
	       der_take(&tbs, DER_SEQUENCE, &skipped) &&
	       der_take(&tbs, DER_SEQUENCE, &skipped) &&
	       der_take(&tbs, DER_SEQUENCE, subject);
}

bool certificate_is(struct span der)
{
	struct span subject;

	return der.len <= CERTIFICATE_MAX && find_subject(der, &subject);
}

enum string_tag {
	STRING_UTF8 = 12,
	STRING_PRINTABLE = 19,
	STRING_T61 = 20,
	STRING_IA5 = 22,
	STRING_VISIBLE = 26,
	STRING_UNIVERSAL = 28,
	STRING_BMP = 30,
};

/* Bytes of one character, 0: not a string that is folded. */
static unsigned string_width(uint8_t tag)
{
	switch (tag) {
	case STRING_UTF8:
	case STRING_PRINTABLE:
	case STRING_T61:
	case STRING_IA5:
	case STRING_VISIBLE:
		return 1;
	case STRING_BMP:
		return 2;
	case STRING_UNIVERSAL:
		return 4;
	default:
		return 0;
	}
}

static int put_utf8(struct buf *to, uint32_t c)
{
	char b[4];
	size_t n;

	if (c < 0x80) {
		b[0] = (char)c;
		n = 1;
	} else if (c < 0x800) {
		b[0] = (char)(0xc0 | c >> 6);
		b[1] = (char)(0x80 | (c & 0x3f));
		n = 2;
	} else if (c < 0x10000) {
		b[0] = (char)(0xe0 | c >> 12);
		b[1] = (char)(0x80 | (c >> 6 & 0x3f));
		b[2] = (char)(0x80 | (c & 0x3f));
		n = 3;
	} else if (c < 0x110000) {
		b[0] = (char)(0xf0 | c >> 18);
		b[1] = (char)(0x80 | (c >> 12 & 0x3f));
		b[2] = (char)(0x80 | (c >> 6 & 0x3f));
		b[3] = (char)(0x80 | (c & 0x3f));
		n = 4;
	} else {
		return -EINVAL;
	}
	return buf_put(to, span_of(b, n));
}

static int put_as_utf8(struct buf *to, const struct der *d, unsigned width)
{
	const uint8_t *p = (const uint8_t *)d->value.ptr;
	size_t i, k;
	uint32_t c;
	int r = 0;

	if (width == 1 && d->tag != STRING_T61)
		return buf_put(to, d->value);
	if (d->value.len % width)
		return -EINVAL;
	for (i = 0; !r && i < d->value.len; i += width) {
		for (c = 0, k = 0; k < width; k++)
			c = c << 8 | p[i + k];
		r = put_utf8(to, c);
	}
	return r;
}

/* Blanks at the ends go, blanks inside become one space. */
static int put_folded(struct buf *to, struct span text)
{
	bool is_due = false;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < text.len; i++) {
		if (is_blank(text.ptr[i])) {
			is_due = true;
			continue;
		}
		if (is_due && to->end > to->start)
			r = buf_put_str(to, " ");
		is_due = false;
		if (!r) {
			char c = span_lower_char(text.ptr[i]);

			r = buf_put(to, span_of(&c, 1));
		}
	}
	return r;
}

/* One (type, value) of the subject, canonical. */
static int put_pair(struct buf *to, struct span pair)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	struct buf folded CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	struct buf inner CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	struct der type, value;
	unsigned width;
	int r;

	if (!der_next(&pair, &type) || type.tag != DER_OID ||
	    !der_next(&pair, &value) || pair.len)
		return -EINVAL;
	width = string_width(value.tag);
	r = buf_put(&inner, type.whole);
	if (!r && !width)
		r = buf_put(&inner, value.whole);
	if (!r && width) {
		r = put_as_utf8(&text, &value, width);
		if (!r)
			r = put_folded(&folded, buf_peek(&text));
		if (!r)
			r = der_put(&inner, STRING_UTF8, buf_peek(&folded));
	}
	return r ? r : der_put(to, DER_SEQUENCE, buf_peek(&inner));
}

static int span_order(struct span a, struct span b)
{
	int order = memcmp(a.ptr, b.ptr, MIN(a.len, b.len));

	return order ? order : (a.len > b.len) - (a.len < b.len);
}

/* The members of a set stand in the order of their bytes. */
static int put_sorted(struct buf *to, struct span members)
{
	struct span in_order[VALUES_MAX], swap;
	unsigned count = 0, i;
	struct der d;
	int r = 0;

	while (der_next(&members, &d)) {
		if (count == VALUES_MAX)
			return -EINVAL;
		in_order[count++] = d.whole;
		for (i = count - 1;
		     i && span_order(in_order[i], in_order[i - 1]) < 0; i--) {
			swap = in_order[i];
			in_order[i] = in_order[i - 1];
			in_order[i - 1] = swap;
		}
	}
	for (i = 0; !r && i < count; i++)
		r = buf_put(to, in_order[i]);
	return r;
}

static int put_set(struct buf *to, struct span set)
{
	struct buf pairs CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	struct buf sorted CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	struct span pair;
	int r = 0;

	while (!r && set.len)
		r = der_take(&set, DER_SEQUENCE, &pair) ? put_pair(&pairs, pair)
							: -EINVAL;
	if (!r)
		r = put_sorted(&sorted, buf_peek(&pairs));
	return r ? r : der_put(to, DER_SET, buf_peek(&sorted));
}

int certificate_subject_hash(struct span der, uint32_t *ret)
{
	struct buf name CLEANUP(buf_fini) = BUF_INIT(NAME_MAX_BYTES);
	uint8_t digest[SHA1_SIZE];
	struct span subject, set;
	int r = 0;

	if (!find_subject(der, &subject))
		return -EINVAL;
	while (!r && subject.len)
		r = der_take(&subject, DER_SET, &set) ? put_set(&name, set)
						      : -EINVAL;
	if (r)
		return r;
	sha1(buf_peek(&name), digest);
	*ret = (uint32_t)digest[0] | (uint32_t)digest[1] << 8 |
	       (uint32_t)digest[2] << 16 | (uint32_t)digest[3] << 24;
	return 0;
}
