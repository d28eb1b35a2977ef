/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c - a provider of one algorithm, built in
 *
 * How it works: libssl makes a context for each derivation, gives it all it
 * needs as parameters of derive(), and frees it. So derive() reads these into a
 * struct of its own on the stack; a context is nothing but what was set before,
 * which libssl never does, and is refused.
 */

#include "src/io/tls/provider.h"

#include <openssl/core_dispatch.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/io/tls/inside.h"
#include "src/io/tls/hkdf.h"

static _Thread_local struct tls_handover *listener;

void tls_provider_tell(struct tls_handover *h)
{
	listener = h;
}

/* -- a derivation ---------------------------------------------------------- */

struct derivation {
	const struct tls_hash *hash;
	int mode; /* -1: not said */
	struct span key, salt, prefix, label, data;
};

static struct span octets(const OSSL_PARAM *p)
{
	return span_of(p->data, p->data_size);
}

/* False: a parameter that is none of this algorithm's, or makes no sense. */
static bool derivation_read(const OSSL_PARAM *p, struct derivation *d)
{
	const struct {
		const char *name;
		struct span *to;
	} spans[] = {
		{ OSSL_KDF_PARAM_KEY, &d->key },
		{ OSSL_KDF_PARAM_SALT, &d->salt },
		{ OSSL_KDF_PARAM_PREFIX, &d->prefix },
		{ OSSL_KDF_PARAM_LABEL, &d->label },
		{ OSSL_KDF_PARAM_DATA, &d->data },
	};
	size_t i;

	for (; p && p->key; p++) {
		for (i = 0; i < ARRAY_LEN(spans); i++)
			if (!strcmp(p->key, spans[i].name))
				break;
		if (i < ARRAY_LEN(spans))
			*spans[i].to = octets(p);
		else if (!strcmp(p->key, OSSL_KDF_PARAM_DIGEST))
			d->hash =
				tls_hash_find(span_str((const char *)p->data));
		else if (strcmp(p->key, OSSL_KDF_PARAM_MODE) != 0 ||
			 !OSSL_PARAM_get_int(p, &d->mode))
			return false;
	}
	return d->hash != NULL;
}

static bool label_of(const struct derivation *d, char dst[64], struct span *ret)
{
	size_t len = d->prefix.len + d->label.len;

	if (len > 64)
		return false;
	if (d->prefix.len)
		memcpy(dst, d->prefix.ptr, d->prefix.len);
	if (d->label.len)
		memcpy(dst + d->prefix.len, d->label.ptr, d->label.len);
	*ret = span_of(dst, len);
	return true;
}

/* RFC 8446 7.1: the next secret of the row is extracted from what the one
 * before derives, and from what is new; either may be nothing. */
static bool next_secret(const struct derivation *d, struct span label,
			uint8_t *dst, size_t len)
{
	static const uint8_t zero[TLS_HASH_MAX];
	uint8_t derived[TLS_HASH_MAX], empty[TLS_HASH_MAX];
	const struct tls_hash *h = d->hash;
	struct span salt = span_of(zero, 0);
	struct span input = d->key.ptr ? d->key : span_of(zero, h->size);

	if (len != h->size)
		return false;
	if (d->salt.ptr) {
		tls_hash_nothing(h, empty);
		if (!tls_expand(h, d->salt, label, span_of(empty, h->size),
				derived, h->size))
			return false;
		salt = span_of(derived, h->size);
	}
	tls_extract(h, salt, input, dst);
	secret_wipe(derived, sizeof(derived));
	return true;
}

static int kdf_derive(void *ctx, unsigned char *dst, size_t len,
		      const OSSL_PARAM params[])
{
	struct derivation d = { .mode = -1 };
	char text[64];
	struct span label;

	(void)ctx;
	if (!derivation_read(params, &d) || !label_of(&d, text, &label))
		return 0;
	if (d.mode == EVP_KDF_HKDF_MODE_EXTRACT_ONLY)
		return next_secret(&d, label, dst, len);
	if (d.mode != EVP_KDF_HKDF_MODE_EXPAND_ONLY ||
	    !tls_expand(d.hash, d.key, label, d.data, dst, len))
		return 0;
	if (listener && span_ends(label, SPAN(" ap traffic")))
		tls_handover_hear(listener, d.label.ptr[0] == 'c',
				  span_of(dst, len));
	return 1;
}

/* -- as OpenSSL wants to see it -------------------------------------------- */

static void *kdf_new(void *provider)
{
	return provider; /* there is nothing to keep */
}

static void kdf_free(void *ctx)
{
	(void)ctx;
}

static int kdf_set(void *ctx, const OSSL_PARAM params[])
{
	(void)ctx;
	return !params || !params->key;
}

static const OSSL_DISPATCH kdf_functions[] = {
	{ OSSL_FUNC_KDF_NEWCTX, (void (*)(void))kdf_new },
	{ OSSL_FUNC_KDF_FREECTX, (void (*)(void))kdf_free },
	{ OSSL_FUNC_KDF_DERIVE, (void (*)(void))kdf_derive },
	{ OSSL_FUNC_KDF_SET_CTX_PARAMS, (void (*)(void))kdf_set },
	{ 0, NULL },
};

static const OSSL_ALGORITHM kdfs[] = {
	{ OSSL_KDF_NAME_TLS1_3_KDF, "provider=sallyport", kdf_functions, NULL },
	{ NULL, NULL, NULL, NULL },
};

static const OSSL_ALGORITHM *provider_query(void *provider, int operation,
					    int *no_cache)
{
	(void)provider;
	*no_cache = 0;
	return operation == OSSL_OP_KDF ? kdfs : NULL;
}

static const OSSL_DISPATCH provider_functions[] = {
	{ OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))provider_query },
	{ 0, NULL },
};

static int provider_begin(const OSSL_CORE_HANDLE *handle,
			  const OSSL_DISPATCH *in, const OSSL_DISPATCH **out,
			  void **provider)
{
	static char self; /* only its address matters */

	(void)handle;
	(void)in;
	*out = provider_functions;
	*provider = &self;
	return 1;
}

static OSSL_PROVIDER *loaded;

static void provider_unload(void)
{
	(void)OSSL_PROVIDER_unload(loaded);
}

static void provider_load(void)
{
	/* OpenSSL's own comes first: who asks for nothing in particular finds
	 * that. It is loaded when something of it is asked for. */
	EVP_KDF_free(EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL));
	must(OSSL_PROVIDER_add_builtin(NULL, "sallyport", provider_begin));
	loaded = OSSL_PROVIDER_try_load(NULL, "sallyport", 1);
	must(loaded && OPENSSL_atexit(provider_unload));
}

void tls_provider_init(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, provider_load);
}
