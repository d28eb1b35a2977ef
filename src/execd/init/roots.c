/* SPDX-License-Identifier: Apache-2.0 */
/* roots.c - the system's own stores of root certificates
 *
 * Distributions keep all roots in one file; which one is below. Our
 * certificates stand at its end between two comment lines, so that another
 * CA can take their place. Besides, OpenSSL looks into a folder for files
 * named by the hash of a subject, and the distribution's tool gathers local
 * certificates from a folder when it writes all of the former anew.
 *
 * A file that somebody mounted is left alone: its other end may belong to
 * someone else.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/init/certificate.h"
#include "src/execd/init/trust_inside.h"
#include "src/execd/whole.h"

#define BEGIN "# " TRUST_NAME ": begin\n"
#define END   "# " TRUST_NAME ": end\n"

static const char *const bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora, RHEL */
	"/etc/pki/tls/certs/ca-bundle.crt",		     /* older ones */
	"/var/lib/ca-certificates/ca-bundle.pem",	     /* SUSE */
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem", /* OpenSSL's own, Alpine */
};

/* Where tools gather local certificates; `sign`: what shows that the tool is
 * there, NULL: the folder itself. */
static const struct {
	const char *folder, *sign, *suffix;
} anchors[] = {
	{ "/usr/local/share/ca-certificates",
	  "/usr/sbin/update-ca-certificates", ".crt" },
	{ "/etc/pki/ca-trust/source/anchors", NULL, ".pem" },
	{ "/etc/pki/trust/anchors", NULL, ".pem" },
	{ "/etc/ca-certificates/trust-source/anchors", NULL, ".crt" },
};

#define HASHES "/etc/ssl/certs"
enum { HASH_LINKS_MAX = 16 };

/* -- files of all roots --------------------------------------------------- */

bool roots_is_system(const char *path)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(bundles); i++)
		if (!strcmp(path, bundles[i]))
			return true;
	return false;
}

static size_t find(struct span text, struct span what)
{
	const char *hit = memmem(text.ptr, text.len, what.ptr, what.len);

	return hit ? (size_t)(hit - text.ptr) : text.len;
}

/* Appends what stands outside of our lines, ending in a line end. */
static int put_without_ours(struct buf *to, struct span text)
{
	size_t from = find(text, SPAN(BEGIN)), end;
	struct span before = span_of(text.ptr, from), behind = SPAN("");
	int r;

	if (from < text.len) {
		behind = span_from(text, from);
		end = find(behind, SPAN(END));
		behind = span_from(behind, end + sizeof(END) - 1);
	}
	r = buf_put(to, before);
	if (!r)
		r = buf_put(to, behind);
	if (!r && buf_len(to) && to->data[to->end - 1] != '\n')
		r = buf_put_str(to, "\n");
	return r;
}

bool roots_read(struct buf *to)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	unsigned i;

	for (i = 0; i < ARRAY_LEN(bundles); i++) {
		if (whole_read(bundles[i], &text) || !buf_len(&text)) {
			buf_clear(&text);
			continue;
		}
		return !put_without_ours(to, buf_peek(&text));
	}
	return false;
}

static void tell(const char *path, int r)
{
	log_warn("%s does not have the CA: %s; programs that read no variable "
		 "will not trust the gateway there",
		 path, err_text(r));
}

static int bundle_write(const struct trust *t, const char *path,
			struct span old)
{
	struct buf all CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	struct stat is;
	int r;

	if (trust_is_volume(path))
		return -EXDEV;
	r = put_without_ours(&all, old);
	/* the distribution's tool may have put it there itself */
	if (!r && find(buf_peek(&all), buf_peek(&t->pem)) < buf_len(&all))
		return 0;
	if (!r)
		r = buf_put_str(&all, BEGIN);
	if (!r)
		r = buf_put(&all, buf_peek(&t->pem));
	if (!r)
		r = buf_put_str(&all, END);
	if (r || span_eq(buf_peek(&all), old))
		return r;
	if (stat(path, &is))
		return -errno;
	return whole_write(path, is.st_mode & 0777, buf_peek(&all));
}

/* A file that several names lead to is written once. */
static void bundles_install(const struct trust *t)
{
	char real[ARRAY_LEN(bundles)][PATH_MAX];
	unsigned i, k;
	int r;

	for (i = 0; i < ARRAY_LEN(bundles); i++) {
		struct buf old CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);

		if (!realpath(bundles[i], real[i])) {
			real[i][0] = '\0';
			continue;
		}
		for (k = 0; k < i && strcmp(real[i], real[k]) != 0; k++)
			;
		if (k < i)
			continue;
		r = whole_read(real[i], &old);
		if (!r)
			r = bundle_write(t, real[i], buf_peek(&old));
		if (r)
			tell(real[i], r);
	}
}

/* -- where the tools gather ----------------------------------------------- */

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

static int write_if_other(const char *path, struct span bytes)
{
	struct buf old CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);

	if (!whole_read(path, &old) && span_eq(buf_peek(&old), bytes))
		return 0;
	return whole_write(path, 0644, bytes);
}

/* "folder/name.suffix", and "name-2.suffix" for the second certificate: the
 * tools want one in a file. */
static bool name_of(const char *folder, unsigned at, const char *suffix,
		    char path[PATH_MAX])
{
	char number[16] = "";
	int len;

	if (at)
		snprintf(number, sizeof(number), "-%u", at + 1);
	len = snprintf(path, PATH_MAX, "%s/" TRUST_NAME "%s%s", folder, number,
		       suffix);
	return len > 0 && len < PATH_MAX;
}

static int put_file(const struct trust *t, unsigned at, const char *folder,
		    const char *suffix)
{
	struct buf pem CLEANUP(buf_fini) = BUF_INIT(4 * CERTIFICATE_MAX);
	char path[PATH_MAX];
	int r;

	if (!name_of(folder, at, suffix, path))
		return -ENAMETOOLONG;
	r = certificate_put(&pem, t->certificates[at]);
	return r ? r : write_if_other(path, buf_peek(&pem));
}

static void anchors_install(const struct trust *t)
{
	unsigned i, k;
	int r;

	for (i = 0; i < ARRAY_LEN(anchors); i++) {
		if (anchors[i].sign && is_there(anchors[i].sign))
			(void)mkdir(anchors[i].folder, 0755);
		if (!is_there(anchors[i].folder))
			continue;
		for (r = 0, k = 0; !r && k < t->count; k++)
			r = put_file(t, k, anchors[i].folder,
				     anchors[i].suffix);
		if (r)
			log_info("%s does not have the CA: %s; a tool that "
				 "writes the system's roots anew will leave it "
				 "out",
				 anchors[i].folder, err_text(r));
	}
}

/* -- by hash -------------------------------------------------------------- */

/* A link to the file that the tool gathers, as the tool itself makes it, else
 * a file. */
static int pem_link(const struct trust *t, unsigned at)
{
	char link[PATH_MAX], gathered[PATH_MAX];

	if (!name_of(HASHES, at, ".pem", link) ||
	    !name_of(anchors[0].folder, at, anchors[0].suffix, gathered))
		return -ENAMETOOLONG;
	if (!is_there(gathered))
		return put_file(t, at, HASHES, ".pem");
	if (is_there(link))
		return 0;
	(void)unlink(link); /* it may lead nowhere */
	return symlink(gathered, link) ? -errno : 0;
}

/* HASH.0, HASH.1, ...: the first that is free, or that leads to `name`. */
static int hash_link(uint32_t hash, const char *name)
{
	char path[64], target[PATH_MAX];
	unsigned i;
	ssize_t len;

	for (i = 0; i < HASH_LINKS_MAX; i++) {
		snprintf(path, sizeof(path), HASHES "/%08x.%u", hash, i);
		len = readlink(path, target, sizeof(target) - 1);
		if (len >= 0 &&
		    span_eq(span_of(target, (size_t)len), span_str(name)))
			return 0;
		if (len < 0 && errno == ENOENT)
			return symlink(name, path) ? -errno : 0;
	}
	return -EEXIST;
}

static void hashes_install(const struct trust *t)
{
	char path[PATH_MAX];
	uint32_t hash;
	unsigned i;
	int r = 0;

	if (!is_there(HASHES))
		return;
	for (i = 0; !r && i < t->count; i++) {
		r = pem_link(t, i);
		if (!r)
			r = certificate_subject_hash(t->certificates[i], &hash);
		if (!r && name_of(HASHES, i, ".pem", path))
			r = hash_link(hash, strrchr(path, '/') + 1);
	}
	if (r)
		tell(HASHES, r);
}

void roots_install(const struct trust *t)
{
	bundles_install(t);
	anchors_install(t);
	hashes_install(t);
}
