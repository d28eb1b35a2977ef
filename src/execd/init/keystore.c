/* SPDX-License-Identifier: Apache-2.0 */
/* keystore.c - trust stores of Java, read and written; pure
 *
 * JKS: magic, version 2, count; entries; 20 bytes of SHA-1 over the password
 * in UTF-16, a fixed phrase, and everything before. Numbers are big-endian,
 * texts are a length of two bytes and modified UTF-8. An entry is
 *	1, alias, time, length, key, count, chain of certificates
 *	2, alias, time, certificate
 * and a certificate is its type "X.509", a length, and DER. Entries that are
 * kept are copied as bytes, keys too.
 */

#include "src/execd/init/keystore.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/sha1.h"
#include "src/execd/init/certificate.h"
#include "src/execd/init/der.h"

enum {
	MAGIC = 0xfeedfeed,
	VERSION = 2,
	HEAD = 12,
	ENTRY_KEY = 1,
	ENTRY_CERTIFICATE = 2,
	CHAIN_MAX = 64,
	ALIAS_SIZE = 64,
};

#define PHRASE "Mighty Aphrodite"
#define X509   SPAN("X.509")

/* -- numbers -------------------------------------------------------------- */

static bool take_number(struct span *in, unsigned width, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned i;

	if (in->len < width)
		return false;
	for (i = 0; i < width; i++)
		v = v << 8 | (uint8_t)in->ptr[i];
	*in = span_from(*in, width);
	*ret = v;
	return true;
}

static bool take_bytes(struct span *in, unsigned width, struct span *ret)
{
	uint64_t len;

	if (!take_number(in, width, &len) || len > in->len)
		return false;
	*ret = span_of(in->ptr, (size_t)len);
	*in = span_from(*in, (size_t)len);
	return true;
}

static void number_write(char *at, unsigned width, uint64_t v)
{
	while (width--) {
		at[width] = (char)(v & 0xff);
		v >>= 8;
	}
}

static int put_number(struct buf *to, unsigned width, uint64_t v)
{
	char bytes[8];

	number_write(bytes, width, v);
	return buf_put(to, span_of(bytes, width));
}

static int put_bytes(struct buf *to, unsigned width, struct span bytes)
{
	int r = put_number(to, width, bytes.len);

	return r ? r : buf_put(to, bytes);
}

/* -- writing -------------------------------------------------------------- */

struct writer {
	struct buf *out; /* empty at first */
	uint32_t count;
	int error; /* sticky */
};

static void writer_start(struct writer *w, struct buf *out)
{
	*w = (struct writer){ .out = out };
	w->error = put_number(out, 4, MAGIC);
	if (!w->error)
		w->error = put_number(out, 4, VERSION);
	if (!w->error)
		w->error = put_number(out, 4, 0);
}

static void writer_copy(struct writer *w, struct span entry)
{
	if (!w->error)
		w->error = buf_put(w->out, entry);
	w->count++;
}

static void writer_certificate(struct writer *w, const char *alias,
			       uint64_t when_ms, struct span der)
{
	int r = put_number(w->out, 4, ENTRY_CERTIFICATE);

	if (!r)
		r = put_bytes(w->out, 2, span_str(alias));
	if (!r)
		r = put_number(w->out, 8, when_ms);
	if (!r)
		r = put_bytes(w->out, 2, X509);
	if (!r)
		r = put_bytes(w->out, 4, der);
	if (!w->error)
		w->error = r;
	w->count++;
}

static void writer_add(struct writer *w, const struct keystore_add *add)
{
	char alias[ALIAS_SIZE];
	unsigned i;

	for (i = 0; i < add->count; i++) {
		if (i)
			snprintf(alias, sizeof(alias), "%.40s-%u", add->alias,
				 i + 1);
		else
			snprintf(alias, sizeof(alias), "%.40s", add->alias);
		writer_certificate(w, alias, add->when_ms,
				   add->certificates[i]);
	}
}

/* The keyed digest over a store without its own. */
static int digest_of(struct span store, uint8_t ret[SHA1_SIZE])
{
	struct buf all CLEANUP(buf_fini) = BUF_INIT(store.len + 256);
	const char *c;
	int r = 0;

	for (c = KEYSTORE_PASSWORD; !r && *c; c++)
		r = put_number(&all, 2, (uint8_t)*c);
	if (!r)
		r = buf_put_str(&all, PHRASE);
	if (!r)
		r = buf_put(&all, store);
	if (!r)
		sha1(buf_peek(&all), ret);
	return r;
}

static int writer_end(struct writer *w)
{
	uint8_t digest[SHA1_SIZE];
	int r = w->error;

	if (r)
		return r;
	number_write(w->out->data + w->out->start + 8, 4, w->count);
	r = digest_of(buf_peek(w->out), digest);
	return r ? r : buf_put(w->out, span_of(digest, sizeof(digest)));
}

/* -- JKS ------------------------------------------------------------------ */

struct entry {
	struct span whole, alias, certificate; /* the last: of a certificate */
};

static bool take_certificate(struct span *in, struct span *der)
{
	struct span type;

	return take_bytes(in, 2, &type) && take_bytes(in, 4, der);
}

static bool take_entry(struct span *in, struct entry *ret)
{
	struct entry e = { .whole = *in };
	struct span rest = *in, key, der;
	uint64_t kind, when, chain;

	if (!take_number(&rest, 4, &kind) || !take_bytes(&rest, 2, &e.alias) ||
	    !take_number(&rest, 8, &when))
		return false;
	if (kind == ENTRY_CERTIFICATE) {
		if (!take_certificate(&rest, &e.certificate))
			return false;
	} else if (kind == ENTRY_KEY) {
		if (!take_bytes(&rest, 4, &key) ||
		    !take_number(&rest, 4, &chain) || chain > CHAIN_MAX)
			return false;
		while (chain--)
			if (!take_certificate(&rest, &der))
				return false;
	} else {
		return false;
	}
	e.whole.len = (size_t)(rest.ptr - in->ptr);
	*in = rest;
	*ret = e;
	return true;
}

static bool is_ours(const struct entry *e, const struct keystore_add *add)
{
	return span_starts(e->alias, span_str(add->alias));
}

static bool is_added(const struct entry *e, const struct keystore_add *add)
{
	unsigned i;

	for (i = 0; i < add->count; i++)
		if (span_eq(e->certificate, add->certificates[i]))
			return true;
	return false;
}

/* Copies what is not ours. *same: ours are there, all, and no others. */
static int copy_entries(struct writer *w, struct span entries, uint64_t count,
			const struct keystore_add *add, bool *same)
{
	unsigned right = 0, wrong = 0;
	struct entry e;

	while (count--) {
		if (!take_entry(&entries, &e))
			return KEYSTORE_E_FOREIGN;
		if (!is_ours(&e, add))
			writer_copy(w, e.whole);
		else if (is_added(&e, add))
			right++;
		else
			wrong++;
	}
	*same = right == add->count && !wrong;
	return entries.len ? KEYSTORE_E_FOREIGN : 0;
}

static int extend_jks(struct span store, const struct keystore_add *add,
		      struct buf *out)
{
	uint8_t digest[SHA1_SIZE];
	struct span body = store;
	uint64_t magic = 0, version = 0, count = 0;
	struct writer w;
	bool same;
	int r;

	if (store.len < HEAD + SHA1_SIZE)
		return KEYSTORE_E_FOREIGN;
	body.len -= SHA1_SIZE;
	r = digest_of(body, digest);
	if (r)
		return r;
	if (memcmp(digest, body.ptr + body.len, SHA1_SIZE) != 0)
		return KEYSTORE_E_LOCKED;
	(void)take_number(&body, 4, &magic);
	(void)take_number(&body, 4, &version);
	(void)take_number(&body, 4, &count);
	if (version != VERSION)
		return KEYSTORE_E_FOREIGN;
	writer_start(&w, out);
	r = copy_entries(&w, body, count, add, &same);
	if (r)
		return r;
	if (same && !w.error)
		return KEYSTORE_E_SAME;
	writer_add(&w, add);
	return writer_end(&w);
}

/* -- PKCS #12 ------------------------------------------------------------- */

#define OID_DATA SPAN("\x2a\x86\x48\x86\xf7\x0d\x01\x07\x01")
#define OID_BAG	 SPAN("\x2a\x86\x48\x86\xf7\x0d\x01\x0c\x0a\x01\x03")
#define OID_X509 SPAN("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x16\x01")

/* ContentInfo: sequence of (type, [0] octets). Of another type than data it is
 * encrypted. */
static int take_content(struct span *in, struct span *content)
{
	struct span info, type, held;

	if (!der_take(in, DER_SEQUENCE, &info) ||
	    !der_take(&info, DER_OID, &type))
		return KEYSTORE_E_FOREIGN;
	if (!span_eq(type, OID_DATA))
		return KEYSTORE_E_LOCKED;
	return der_take(&info, DER_CONTEXT_0, &held) &&
			       der_take(&held, DER_OCTETS, content)
		       ? 0
		       : KEYSTORE_E_FOREIGN;
}

/* SafeBag: sequence of (kind, [0] value, attributes?). */
static int copy_bag(struct writer *w, struct span bag, uint64_t when_ms)
{
	struct span kind, held, certificate, type, der;
	char alias[ALIAS_SIZE];

	if (!der_take(&bag, DER_OID, &kind) ||
	    !der_take(&bag, DER_CONTEXT_0, &held))
		return KEYSTORE_E_FOREIGN;
	if (!span_eq(kind, OID_BAG))
		return KEYSTORE_E_LOCKED; /* a key: not ours to move */
	if (!der_take(&held, DER_SEQUENCE, &certificate) ||
	    !der_take(&certificate, DER_OID, &type) ||
	    !span_eq(type, OID_X509) ||
	    !der_take(&certificate, DER_CONTEXT_0, &held) ||
	    !der_take(&held, DER_OCTETS, &der))
		return KEYSTORE_E_FOREIGN;
	snprintf(alias, sizeof(alias), "root-%u", w->count + 1);
	writer_certificate(w, alias, when_ms, der);
	return 0;
}

static int copy_safe(struct writer *w, struct span content, uint64_t when_ms)
{
	struct span bags, bag;
	int r = 0;

	if (!der_take(&content, DER_SEQUENCE, &bags))
		return KEYSTORE_E_FOREIGN;
	while (!r && bags.len)
		r = der_take(&bags, DER_SEQUENCE, &bag)
			    ? copy_bag(w, bag, when_ms)
			    : KEYSTORE_E_FOREIGN;
	return r;
}

/* PFX: sequence of (version, ContentInfo of a sequence of ContentInfo, mac?).
 */
static int extend_pkcs12(struct span store, const struct keystore_add *add,
			 struct buf *out)
{
	struct span pfx, version, content, safes;
	struct writer w;
	int r;

	if (!der_take(&store, DER_SEQUENCE, &pfx) ||
	    !der_take(&pfx, DER_INTEGER, &version))
		return KEYSTORE_E_FOREIGN;
	r = take_content(&pfx, &content);
	if (r)
		return r;
	if (!der_take(&content, DER_SEQUENCE, &safes))
		return KEYSTORE_E_FOREIGN;
	writer_start(&w, out);
	while (!r && safes.len) {
		r = take_content(&safes, &content);
		if (!r)
			r = copy_safe(&w, content, add->when_ms);
	}
	if (r)
		return r;
	writer_add(&w, add);
	return writer_end(&w);
}

int keystore_extend(struct span store, const struct keystore_add *add,
		    struct buf *out)
{
	struct span rest = store;
	uint64_t magic;

	if (take_number(&rest, 4, &magic) && magic == MAGIC)
		return extend_jks(store, add, out);
	return extend_pkcs12(store, add, out);
}

int keystore_make(struct span pem, const struct keystore_add *add,
		  struct buf *out)
{
	struct buf der CLEANUP(buf_fini) = BUF_INIT(4 * CERTIFICATE_MAX);
	struct entry e = { 0 };
	char alias[ALIAS_SIZE];
	struct span base64;
	struct writer w;

	writer_start(&w, out);
	while (!w.error && certificate_next(&pem, &base64)) {
		buf_clear(&der);
		if (certificate_decode(base64, &der))
			continue;
		e.certificate = buf_peek(&der);
		if (is_added(&e, add))
			continue;
		snprintf(alias, sizeof(alias), "root-%u", w.count + 1);
		writer_certificate(&w, alias, add->when_ms, e.certificate);
	}
	writer_add(&w, add);
	return writer_end(&w);
}
