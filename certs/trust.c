/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - roots from PEM files into one X509_STORE
 *
 * How it works: the system's roots are the first of a few well-known bundles
 * that exists; OpenSSL's own default file is asked first. Certificates are
 * kept parsed, so the bundle for sandboxes is written from what we understood
 * and not copied from a file somebody else wrote.
 */

#include "certs/trust.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "certs/cert.h"
#include "certs/ossl.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"

static const char *const system_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
	"/etc/ssl/ca-bundle.pem",	      /* SUSE */
	"/etc/ssl/cert.pem",
};

struct trust {
	X509_STORE *store;
	X509 **certs; /* the system's first */
	unsigned count, system_count;
};

static void cleanup_trust(struct trust **t)
{
	*t = trust_free(*t);
}

/* Takes cert. */
static int trust_give(struct trust *t, X509 *cert)
{
	if (t->count == TRUST_CERTS_MAX ||
	    !X509_STORE_add_cert(t->store, cert)) {
		X509_free(cert);
		return cert_error(err_origin(-E2BIG));
	}
	t->certs = must_realloc(t->certs, (t->count + 1) * sizeof(X509 *));
	t->certs[t->count++] = cert;
	return 0;
}

static int file_diag(struct diag *d, const char *path)
{
	if (!d->file[0])
		(void)snprintf(d->file, sizeof(d->file), "%s", path);
	return -EINVAL;
}

static int pem_read(struct trust *t, BIO *bio, struct diag *d)
{
	unsigned found = 0;
	char text[128];
	X509 *cert;

	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		if (trust_give(t, cert))
			return diag_set(d, 0, 0,
					"certificate %u was not taken: more "
					"than %d roots",
					found + 1, TRUST_CERTS_MAX);
		found++;
	}
	/* the end of the file is an error too: "no start line" */
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return diag_set(d, 0, 0,
				"certificate %u is damaged (%s), expected a "
				"PEM certificate",
				found + 1, cert_error_text(text, sizeof(text)));
	ERR_clear_error();
	if (!found)
		return diag_set(d, 0, 0,
				"found no certificate, expected at least one "
				"\"-----BEGIN CERTIFICATE-----\"");
	return 0;
}

static int file_read(const char *path, struct buf *ret, struct diag *d)
{
	CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len;
	char *room;

	if (fd < 0)
		return diag_set(d, 0, 0, "could not be opened: %s",
				err_text(errno));
	do {
		if (buf_reserve(ret, 4096, &room))
			return diag_set(d, 0, 0, "is larger than %d bytes",
					TRUST_FILE_MAX);
		len = read(fd, room, 4096);
		if (len < 0)
			return diag_set(d, 0, 0, "could not be read: %s",
					err_text(errno));
		buf_commit(ret, (size_t)len);
	} while (len > 0);
	return 0;
}

static int trust_file(struct trust *t, const char *path, struct diag *d)
{
	CLEANUP(buf_fini) struct buf bytes = BUF_INIT(TRUST_FILE_MAX + 4096);
	CLEANUP(cleanup_bio) BIO *bio = NULL;

	if (file_read(path, &bytes, d))
		return file_diag(d, path);
	bio = BIO_new_mem_buf(buf_peek(&bytes).ptr, (int)buf_len(&bytes));
	if (!bio)
		return cert_error(err_origin(-ENOMEM));
	return pem_read(t, bio, d) ? file_diag(d, path) : 0;
}

static int trust_system(struct trust *t, struct diag *d)
{
	const char *path = X509_get_default_cert_file();
	size_t i;

	if (access(path, R_OK) == 0)
		return trust_file(t, path, d);
	for (i = 0; i < ARRAY_LEN(system_bundles); i++)
		if (access(system_bundles[i], R_OK) == 0)
			return trust_file(t, system_bundles[i], d);
	return diag_set(d, 0, 0,
			"found no system roots, expected %s (package "
			"ca-certificates) or \"trustSystem\": false",
			system_bundles[0]);
}

int trust_new(bool system, char *const *files, unsigned file_count,
	      struct trust **ret, struct diag *d)
{
	CLEANUP(cleanup_trust) struct trust *t = must_alloc(sizeof(*t));
	unsigned i;
	int r = 0;

	t->store = X509_STORE_new();
	if (!t->store)
		return cert_error(err_origin(-ENOMEM));
	if (system)
		r = trust_system(t, d);
	t->system_count = t->count;
	for (i = 0; i < file_count && !r; i++)
		r = trust_file(t, files[i], d);
	if (r)
		return r;
	*ret = take_ptr(t);
	return 0;
}

struct trust *trust_free(struct trust *t)
{
	unsigned i;

	if (!t)
		return NULL;
	for (i = 0; i < t->count; i++)
		X509_free(t->certs[i]);
	free(t->certs);
	X509_STORE_free(t->store);
	free(t);
	return NULL;
}

struct x509_store_st *trust_store(const struct trust *t)
{
	return t->store;
}

unsigned trust_count(const struct trust *t)
{
	return t->count;
}

/* From the first-th root on. */
static int bundle_put(const struct trust *t, unsigned first, struct span ca_der,
		      struct buf *dst)
{
	unsigned i;
	int r = 0;

	if (ca_der.len)
		r = cert_der_to_pem(ca_der, dst);
	for (i = first; i < t->count && !r; i++)
		r = cert_to_pem(t->certs[i], dst);
	return r;
}

int trust_bundle(const struct trust *t, struct span ca_der, struct buf *dst)
{
	return bundle_put(t, 0, ca_der, dst);
}

int trust_bundle_own(const struct trust *t, struct span ca_der, struct buf *dst)
{
	return bundle_put(t, t->system_count, ca_der, dst);
}
