/* SPDX-License-Identifier: Apache-2.0 */
/* forms.c - write a value as encoders in the field write it
 *
 * How it works: each family of encoders is a table of habits (which characters
 * stay as they are), since no two libraries agree; for an ordinary token most
 * rows give the same text, and the taker drops what it has.
 *
 * Base64 is written thrice, as if zero, one or two unknown bytes stood before
 * the value. Of each, what counts is the run of characters that the value
 * alone decides. "Ended" is the run with the last character that the encoder
 * pads when nothing follows. Up to four bits of the first and the last byte
 * are shared with neighbours and stay visible. What is base64 is then escaped
 * once more, because '+' and '/' seldom travel bare.
 *
 * Mixtures (half a value escaped, hex with blanks, base64 broken into lines)
 * are no forms: this guards against echoes, not against an origin that wants
 * to tell a secret it was given; that one has a thousand ways.
 */

#include "gateway/redact/forms.h"

#include <errno.h>
#include <stdint.h>

#include "src/base/chars.h"
#include "src/base/err.h"
#include "src/base/secret.h"

/* Where a form is written. */
struct draft {
	char *ptr;
	size_t len, max;
};

struct forms {
	struct draft draft;   /* the form under way */
	struct draft encoded; /* base64 that is escaped into it */
	form_take take;
	void *ctx;
};

struct percent_style {
	const char *keep; /* besides letters and digits */
	bool everything;  /* not even letters and digits are kept */
	bool plus;	  /* a blank becomes '+' */
};

static const struct percent_style percent_styles[] = {
	{ "", .everything = true },
	{ "-._~" },		    /* RFC 3986 */
	{ "-._~/" },		    /* paths */
	{ "-._~!'()*" },	    /* a component, as scripts do */
	{ "-._~!'()*;,/?:@&=+$#" }, /* a whole URI, as scripts do */
	{ "-._*", .plus = true },   /* forms */
	{ "-._~", .plus = true },   /* forms, other school */
};

struct json_style {
	const char *extra; /* written \u00XX besides what must be */
	bool slash;	   /* '/' is written "\/" */
};

static const struct json_style json_styles[] = {
	{ "" },		 { "", true },	     { "<>&" },
	{ "<>&", true }, { "<>&'" },	     { "<>&'=" },
	{ "<>&'\"+`" },	 { "<>&'\"", true }, { "<>&'\"=+/`" },
};

/* How '"' and '\'' are written; the other three all agree on. */
static const struct html_style {
	const char *quote, *apostrophe;
} html_styles[] = {
	{ "&quot;", "&#39;" },
	{ "&quot;", "&#x27;" },
	{ "&#34;", "&#39;" },
	{ "&quot;", "'" },
};

static const char hex_upper[] = "0123456789ABCDEF";
static const char hex_lower[] = "0123456789abcdef";

static void put(struct draft *d, char c)
{
	must(d->len < d->max);
	d->ptr[d->len++] = c;
}

static void put_str(struct draft *d, const char *s)
{
	while (*s)
		put(d, *s++);
}

static void put_hex(struct draft *d, unsigned char c, const char *digits)
{
	put(d, digits[c >> 4]);
	put(d, digits[c & 15]);
}

static int form_done(struct forms *f)
{
	struct span text = span_of(f->draft.ptr, f->draft.len);

	f->draft.len = 0;
	return text.len < FORM_MIN_BYTES ? 0 : f->take(f->ctx, text);
}

static bool is_one_of(const char *set, char c)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* -- percent ------------------------------------------------------------- */

static int percent_form(struct forms *f, struct span text,
			const struct percent_style *style, const char *digits)
{
	size_t i;
	char c;

	for (i = 0; i < text.len; i++) {
		c = text.ptr[i];
		if (!style->everything &&
		    (char_is_alnum(c) || is_one_of(style->keep, c))) {
			put(&f->draft, c);
		} else if (style->plus && c == ' ') {
			put(&f->draft, '+');
		} else {
			put(&f->draft, '%');
			put_hex(&f->draft, (unsigned char)c, digits);
		}
	}
	return form_done(f);
}

/* From the row `first` of the table. */
static int percent_forms(struct forms *f, struct span text, size_t first)
{
	size_t i;
	int r = 0;

	for (i = first; !r && i < ARRAY_LEN(percent_styles); i++) {
		r = percent_form(f, text, &percent_styles[i], hex_upper);
		if (!r)
			r = percent_form(f, text, &percent_styles[i],
					 hex_lower);
	}
	return r;
}

/* -- JSON ---------------------------------------------------------------- */

static void put_unit(struct draft *d, unsigned unit, const char *digits)
{
	put_str(d, "\\u");
	put_hex(d, (unsigned char)(unit >> 8), digits);
	put_hex(d, (unsigned char)unit, digits);
}

/* The short escape of c, or '\0'. */
static char json_short(char c)
{
	static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : '\0';
}

static void put_json(struct draft *d, char c, const struct json_style *style,
		     const char *digits)
{
	if (is_one_of(style->extra, c) ||
	    ((unsigned char)c < ' ' && !json_short(c))) {
		put_unit(d, (unsigned char)c, digits);
	} else if (json_short(c) || (c == '/' && style->slash)) {
		put(d, '\\');
		put(d, c == '/' ? c : json_short(c));
	} else {
		put(d, c);
	}
}

/* The code point at text[0] and its length, or length 0: no UTF-8. Overlong
 * forms and surrogates need no care: what comes of them matches nothing. */
static size_t utf8_take(struct span text, unsigned *ret)
{
	unsigned char lead = (unsigned char)text.ptr[0];
	size_t len = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	unsigned code = lead & (0x7fU >> len);
	size_t i;

	if (!len || len > text.len || lead > 0xf4)
		return 0;
	for (i = 1; i < len; i++) {
		if (((unsigned char)text.ptr[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | ((unsigned char)text.ptr[i] & 0x3f);
	}
	*ret = code;
	return len;
}

/* A character beyond ASCII as \uXXXX; returns its length, 0: not UTF-8. */
static size_t put_wide(struct draft *d, struct span text, const char *digits)
{
	unsigned code = 0;
	size_t len = utf8_take(text, &code);

	if (len && code >= 0x10000) {
		code -= 0x10000;
		put_unit(d, 0xd800 | code >> 10, digits);
		put_unit(d, 0xdc00 | (code & 0x3ff), digits);
	} else if (len) {
		put_unit(d, code, digits);
	}
	return len;
}

static int json_form(struct forms *f, struct span text,
		     const struct json_style *style, const char *digits,
		     bool wide)
{
	size_t i, len;

	for (i = 0; i < text.len; i += len) {
		len = 0;
		if (wide && (unsigned char)text.ptr[i] >= 0x80)
			len = put_wide(&f->draft, span_from(text, i), digits);
		if (!len) {
			put_json(&f->draft, text.ptr[i], style, digits);
			len = 1;
		}
	}
	return form_done(f);
}

static int json_forms(struct forms *f, struct span text)
{
	size_t i;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(json_styles) * 4; i++)
		r = json_form(f, text, &json_styles[i / 4],
			      i & 1 ? hex_upper : hex_lower, i & 2);
	return r;
}

/* -- pages, hex, base64 -------------------------------------------------- */

static void put_html(struct draft *d, char c, const struct html_style *style)
{
	switch (c) {
	case '&':
		put_str(d, "&amp;");
		break;
	case '<':
		put_str(d, "&lt;");
		break;
	case '>':
		put_str(d, "&gt;");
		break;
	case '"':
		put_str(d, style->quote);
		break;
	case '\'':
		put_str(d, style->apostrophe);
		break;
	default:
		put(d, c);
	}
}

static int html_forms(struct forms *f, struct span text)
{
	size_t i, j;
	int r = 0;

	for (i = 0; !r && i < ARRAY_LEN(html_styles); i++) {
		for (j = 0; j < text.len; j++)
			put_html(&f->draft, text.ptr[j], &html_styles[i]);
		r = form_done(f);
	}
	return r;
}

static int hex_form(struct forms *f, struct span text, const char *digits)
{
	size_t i;

	for (i = 0; i < text.len; i++)
		put_hex(&f->draft, (unsigned char)text.ptr[i], digits);
	return form_done(f);
}

/* Bits [at, at + 6) of `phase` zero bytes, then text, then zeros. */
static unsigned sextet_at(struct span text, size_t phase, size_t at)
{
	unsigned bits = 0;
	size_t i, byte;

	for (i = 0; i < 6; i++) {
		byte = (at + i) / 8;
		bits <<= 1;
		if (byte >= phase && byte - phase < text.len)
			bits |= ((unsigned char)text.ptr[byte - phase] >>
				 (7 - (at + i) % 8)) &
				1;
	}
	return bits;
}

/* Writes what the value decides of its base64 into f->encoded; with ended, the
 * character that padding completes too. */
static struct span base64_run(struct forms *f, struct span text, size_t phase,
			      bool ended, const char *last_two)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t bits = (phase + text.len) * 8, i;
	unsigned sextet;

	f->encoded.len = 0;
	for (i = (phase * 8 + 5) / 6; ended ? i * 6 < bits : i * 6 + 6 <= bits;
	     i++) {
		sextet = sextet_at(text, phase, i * 6);
		put(&f->encoded,
		    sextet < 62 ? digits[sextet] : last_two[sextet - 62]);
	}
	return span_of(f->encoded.ptr, f->encoded.len);
}

static int base64_forms(struct forms *f, struct span value)
{
	struct span text;
	size_t i;
	int r = 0;

	for (i = 0; !r && i < 6; i++) { /* three phases, open and ended */
		text = base64_run(f, value, i / 2, i & 1, "-_");
		if (text.len >= FORM_MIN_BYTES)
			r = f->take(f->ctx, text);
		text = base64_run(f, value, i / 2, i & 1, "+/");
		if (!r && text.len >= FORM_MIN_BYTES)
			r = f->take(f->ctx, text);
		if (!r)
			r = json_forms(f, text);
		if (!r)
			r = percent_forms(f, text, 1);
	}
	return r;
}

/* ------------------------------------------------------------------------ */

static int forms_run(struct forms *f, struct span value)
{
	int r = value.len < FORM_MIN_BYTES ? 0 : f->take(f->ctx, value);

	if (!r)
		r = percent_forms(f, value, 0);
	if (!r)
		r = json_forms(f, value);
	if (!r)
		r = html_forms(f, value);
	if (!r)
		r = hex_form(f, value, hex_upper);
	if (!r)
		r = hex_form(f, value, hex_lower);
	return r ? r : base64_forms(f, value);
}

int forms_each(struct span value, form_take take, void *ctx)
{
	struct forms f = { .take = take, .ctx = ctx };
	struct secret *draft = NULL, *encoded = NULL;
	int r;

	if (value.len > FORM_VALUE_MAX)
		return -E2BIG;
	f.draft.max = value.len * 8 + 32; /* \u00XX of base64 */
	f.encoded.max = value.len * 4 / 3 + 8;
	r = secret_new(f.draft.max, &draft);
	if (!r)
		r = secret_new(f.encoded.max, &encoded);
	if (!r) {
		f.draft.ptr = secret_fill(draft);
		f.encoded.ptr = secret_fill(encoded);
		r = forms_run(&f, value);
	}
	(void)secret_free(draft);
	(void)secret_free(encoded);
	return r;
}
