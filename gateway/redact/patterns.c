/* SPDX-License-Identifier: Apache-2.0 */
/* patterns.c - collect the forms of all values that an exchange may carry */

#include "gateway/redact/patterns.h"

#include <errno.h>

#include "gateway/redact/forms.h"
#include "src/base/err.h"
#include "src/base/secret.h"

struct patterns {
	struct secret **texts;
	unsigned count, size;
	unsigned fresh; /* the first text of the value under way */
	size_t bytes;
};

struct patterns *patterns_new(void)
{
	return must_alloc(sizeof(struct patterns));
}

struct patterns *patterns_free(struct patterns *p)
{
	unsigned i;

	if (!p)
		return NULL;
	for (i = 0; i < p->count; i++)
		(void)secret_free(p->texts[i]);
	free(p->texts);
	free(p);
	return NULL;
}

unsigned patterns_count(const struct patterns *p)
{
	return p->count;
}

struct span patterns_text(const struct patterns *p, unsigned index)
{
	return secret_open(p->texts[index]);
}

/* Most habits write an ordinary token alike: one text of them is enough. */
static bool patterns_has(const struct patterns *p, struct span text)
{
	unsigned i;

	for (i = p->fresh; i < p->count; i++)
		if (span_eq(patterns_text(p, i), text))
			return true;
	return false;
}

static int patterns_take(void *ctx, struct span text)
{
	struct patterns *p = ctx;
	int r;

	if (patterns_has(p, text))
		return 0;
	if (p->count == PATTERNS_MAX ||
	    text.len > PATTERNS_BYTES_MAX - p->bytes)
		return PATTERNS_E_FULL;
	if (p->count == p->size) {
		p->size = MAX(64, p->size * 2);
		p->texts = must_realloc(p->texts, p->size * sizeof(*p->texts));
	}
	r = secret_dup(text, &p->texts[p->count]);
	if (r)
		return r;
	p->count++;
	p->bytes += text.len;
	return 0;
}

static int patterns_put(struct patterns *p, struct span text)
{
	int r;

	p->fresh = p->count;
	r = forms_each(text, patterns_take, p);
	return r == -E2BIG ? PATTERNS_E_FULL : r;
}

/* -- basic credentials --------------------------------------------------- */

static int base64_digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Writes at most 3/4 of text.len bytes; the count, or 0 when it is not base64
 * of one of the two alphabets. */
static size_t base64_decode(struct span text, char *out)
{
	unsigned held = 0, bits = 0;
	size_t len = 0, i;
	int digit;

	while (text.len && text.ptr[text.len - 1] == '=')
		text.len--;
	for (i = 0; i < text.len; i++) {
		digit = base64_digit(text.ptr[i]);
		if (digit < 0)
			return 0;
		held = (held << 6 | (unsigned)digit) & 0xfff;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[len++] = (char)(held >> bits);
		}
	}
	return len;
}

/* What stands on one side of the colon is a token, on the other side a word
 * that says so. */
static bool is_no_secret(struct span password)
{
	return password.len < FORM_MIN_BYTES ||
	       span_eq(password, SPAN("x-oauth-basic"));
}

static int patterns_put_pair(struct patterns *p, struct span pair)
{
	struct span password = pair, user = span_cut(&password, ':');
	struct span secret = is_no_secret(password) ? user : password;
	int r = patterns_put(p, pair);

	if (r || secret.len < FORM_MIN_BYTES)
		return r;
	return patterns_put(p, secret);
}

static int patterns_put_basic(struct patterns *p, struct span value)
{
	struct secret *pair;
	size_t len;
	int r;

	r = secret_new(value.len, &pair);
	if (r)
		return r;
	len = base64_decode(span_trim(value), secret_fill(pair));
	secret_truncate(pair, len);
	if (len >= FORM_MIN_BYTES)
		r = patterns_put_pair(p, secret_open(pair));
	(void)secret_free(pair);
	return r;
}

/* ------------------------------------------------------------------------ */

static int patterns_put_joined(struct patterns *p, struct span prefix,
			       struct span value)
{
	struct secret *joined;
	int r;

	r = secret_new(prefix.len + value.len, &joined);
	if (r)
		return r;
	if (prefix.len)
		memcpy(secret_fill(joined), prefix.ptr, prefix.len);
	memcpy(secret_fill(joined) + prefix.len, value.ptr, value.len);
	r = patterns_put(p, secret_open(joined));
	(void)secret_free(joined);
	return r;
}

int patterns_add(struct patterns *p, struct span prefix,
		 const struct secret *value)
{
	struct span text = secret_open(value);
	unsigned before = p->count;
	int r;

	if (text.len > FORM_VALUE_MAX || prefix.len > FORM_VALUE_MAX)
		return PATTERNS_E_FULL;
	if (text.len >= FORM_MIN_BYTES)
		r = patterns_put(p, text);
	else if (text.len && prefix.len + text.len >= FORM_MIN_BYTES)
		r = patterns_put_joined(p, prefix, text);
	else
		r = 0;
	if (!r && span_eq_nocase(span_trim(prefix), SPAN("basic")))
		r = patterns_put_basic(p, text);
	if (!r && p->count == before)
		return PATTERNS_E_SHORT;
	return r;
}
