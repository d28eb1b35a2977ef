/* SPDX-License-Identifier: Apache-2.0 */
/* vault_ca.c - keep the node CA in the vault */

#include "src/main/vault_ca.h"

#include <errno.h>

#include "certs/ca.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/vault.h"

static const struct span record_name = SPAN_INIT("node");

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

static void cleanup_ca(struct ca **ca)
{
	*ca = ca_free(*ca);
}

/* Both records in one transaction: never a key without its certificate. */
static int ca_store(struct vault *v, const struct ca *ca, struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *key = NULL;
	struct vault_txn *t;
	int r;

	r = ca_key_der(ca, &key);
	if (!r)
		r = vault_begin(v, VAULT_OWN_SCOPE, -1, &t, d);
	if (r)
		return r;
	r = vault_put(t, VAULT_CA_KEY, record_name, secret_open(key), d);
	if (!r)
		r = vault_put(t, VAULT_CA_CERT, record_name, ca_cert_der(ca),
			      d);
	if (!r)
		return vault_commit(t, NULL, d);
	vault_abort(t);
	return r;
}

int vault_ca_renew(struct vault *v, uint64_t now_ms, struct ca **ret,
		   struct diag *d)
{
	CLEANUP(cleanup_ca) struct ca *ca = NULL;
	int r;

	r = ca_new(now_ms, &ca);
	if (!r)
		r = ca_store(v, ca, d);
	if (r < 0)
		(void)diag_set(d, 0, 0, "the node CA could not be made: %s",
			       err_text(r));
	if (!r)
		*ret = take_ptr(ca);
	return r;
}

int vault_ca_at(struct vault *v, uint64_t now_ms, struct ca **ret,
		struct diag *d)
{
	CLEANUP(cleanup_secret) struct secret *cert = NULL;
	CLEANUP(cleanup_secret) struct secret *key = NULL;
	struct diag missing = { 0 };
	int r;

	r = vault_get(v, VAULT_OWN_SCOPE, VAULT_CA_KEY, record_name, &key, NULL,
		      &missing);
	if (r == VAULT_E_NOT_FOUND)
		return vault_ca_renew(v, now_ms, ret, d);
	if (!r)
		r = vault_get(v, VAULT_OWN_SCOPE, VAULT_CA_CERT, record_name,
			      &cert, NULL, &missing);
	if (r)
		return diag_set(d, 0, 0, "the node CA could not be read: %s",
				missing.msg);
	return ca_load(secret_open(key), secret_open(cert), now_ms, ret, d);
}
