/* SPDX-License-Identifier: Apache-2.0 */
/* trust.c - make programs in this container trust the gateway's CA: the CA is
 * read, the bundle written, the variables set
 */

#include "src/execd/init/trust.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/init/certificate.h"
#include "src/execd/init/trust_inside.h"
#include "src/execd/whole.h"

enum variable_kind {
	ALL_ROOTS, /* what it names takes the place of the program's roots */
	ADDITION,  /* what it names is added to them */
};

static const struct {
	const char *name;
	enum variable_kind kind;
} variables[] = {
	{ "SSL_CERT_FILE", ALL_ROOTS },	     /* OpenSSL, Go, Python, Ruby */
	{ "CURL_CA_BUNDLE", ALL_ROOTS },     /* curl, Python requests */
	{ "REQUESTS_CA_BUNDLE", ALL_ROOTS }, /* Python requests */
	{ "HTTPLIB2_CA_CERTS", ALL_ROOTS },
	{ "PIP_CERT", ALL_ROOTS },
	{ "GIT_SSL_CAINFO", ALL_ROOTS },
	{ "CARGO_HTTP_CAINFO", ALL_ROOTS },
	{ "AWS_CA_BUNDLE", ALL_ROOTS },
	{ "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", ALL_ROOTS },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", ALL_ROOTS },
	{ "NIX_SSL_CERT_FILE", ALL_ROOTS },
	{ "BUNDLE_SSL_CA_CERT", ALL_ROOTS }, /* Ruby bundler */
	{ "HEX_CACERTS_PATH", ALL_ROOTS },   /* Elixir */
	{ "PERL_LWP_SSL_CA_FILE", ALL_ROOTS },
	{ "CODEX_CA_CERTIFICATE", ALL_ROOTS },
	{ "NODE_EXTRA_CA_CERTS", ADDITION }, /* Node, Bun, Electron, npm */
	{ "DENO_CERT", ADDITION },
};

/* Switches to "use the file, not your own list"; the image's word counts. */
static const char *const switches[] = { "UV_NATIVE_TLS", "UV_SYSTEM_CERTS" };

/* -- the CA --------------------------------------------------------------- */

static int ca_parse(struct trust *t, struct span text, const char *path)
{
	struct span base64;
	size_t at[TRUST_CERTIFICATES_MAX + 1] = { 0 };
	unsigned i;
	int r;

	while (certificate_next(&text, &base64)) {
		if (t->count == TRUST_CERTIFICATES_MAX) {
			log_warn("%s holds more than %d certificates, the rest "
				 "is not trusted",
				 path, TRUST_CERTIFICATES_MAX);
			break;
		}
		r = certificate_decode(base64, &t->der);
		if (r) {
			log_error("certificate %u of %s is not one: expected "
				  "base64 of DER",
				  t->count + 1, path);
			return -EINVAL;
		}
		at[++t->count] = buf_len(&t->der);
	}
	for (i = 0; i < t->count; i++)
		t->certificates[i] = span_of(buf_peek(&t->der).ptr + at[i],
					     at[i + 1] - at[i]);
	return 0;
}

static int ca_read(struct trust *t, const char *path)
{
	struct buf text CLEANUP(buf_fini) =
		BUF_INIT(2 * TRUST_CERTIFICATES_MAX * CERTIFICATE_MAX);
	unsigned i;
	int r;

	r = whole_read(path, &text);
	if (!r && !buf_len(&text))
		r = -ENOENT; /* it is being written */
	if (r == -ENOENT)
		return r;
	if (r) {
		log_error("the CA %s could not be read: %s", path, err_text(r));
		return r;
	}
	r = ca_parse(t, buf_peek(&text), path);
	if (!r && !t->count) {
		log_error("%s holds no certificate, expected PEM", path);
		r = -EINVAL;
	}
	for (i = 0; !r && i < t->count; i++)
		r = certificate_put(&t->pem, t->certificates[i]);
	return r;
}

/* -- what is trusted besides ---------------------------------------------- */

static int file_append(struct buf *to, const char *path)
{
	int r = whole_read(path, to);

	if (!r && buf_len(to) && to->data[to->end - 1] != '\n')
		r = buf_put_str(to, "\n");
	return r;
}

/* Did an earlier variable of the kind name the same file? */
static bool is_seen(unsigned at, const char *path)
{
	const char *other;
	unsigned i;

	for (i = 0; i < at; i++) {
		other = getenv(variables[i].name);
		if (variables[i].kind == variables[at].kind && other &&
		    !strcmp(other, path))
			return true;
	}
	return false;
}

/* Appends what the image's own variables of the kind name. */
static void image_gather(struct buf *to, enum variable_kind kind,
			 const struct trust_config *config)
{
	const char *path;
	unsigned i;
	int r;

	for (i = 0; i < ARRAY_LEN(variables); i++) {
		path = getenv(variables[i].name);
		if (variables[i].kind != kind || !path || !*path ||
		    roots_is_system(path) || is_seen(i, path) ||
		    !strcmp(path, config->bundle) || !strcmp(path, config->ca))
			continue;
		r = file_append(to, path);
		if (r)
			log_warn("%s names %s, which could not be read: %s",
				 variables[i].name, path, err_text(r));
	}
}

/* Images without the system's roots may have those of a Python package. */
static bool certifi_read(struct buf *to)
{
	static const char *const libs[] = { "/usr/local/lib", "/usr/lib" };
	static const char *const in[] = {
		"site-packages/certifi",
		"dist-packages/certifi",
		"site-packages/pip/_vendor/certifi",
	};
	const struct dirent *e;
	char path[PATH_MAX];
	bool found = false;
	unsigned i, k;
	DIR *d;

	for (i = 0; !found && i < ARRAY_LEN(libs); i++) {
		d = opendir(libs[i]);
		while (d && !found && (e = readdir(d))) {
			if (!span_starts(span_str(e->d_name), SPAN("python3")))
				continue;
			for (k = 0; !found && k < ARRAY_LEN(in); k++) {
				snprintf(path, sizeof(path), "%s/%.64s/%s/%s",
					 libs[i], e->d_name, in[k],
					 "cacert.pem");
				found = !file_append(to, path);
			}
		}
		if (d)
			(void)closedir(d);
	}
	return found;
}

static int bundle_gather(struct trust *t, const struct trust_config *config)
{
	if (!roots_read(&t->bundle) && !certifi_read(&t->bundle))
		log_info("the image has no root certificates: programs will "
			 "trust the gateway's CA alone");
	image_gather(&t->bundle, ALL_ROOTS, config);
	return buf_put(&t->bundle, buf_peek(&t->pem));
}

bool trust_is_volume(const char *path)
{
	struct stat root, at;
	char folder[PATH_MAX];
	char *slash;

	if (!span_copy(span_str(path), folder, sizeof(folder)))
		return true;
	slash = strrchr(folder, '/');
	if (!slash)
		return true;
	slash[slash == folder] = '\0';
	return stat("/", &root) || stat(folder, &at) ||
	       root.st_dev != at.st_dev;
}

/* -- our own files -------------------------------------------------------- */

/* A folder in a place that others may write to: ours, and ours alone. */
static bool folder_make(const char *path)
{
	struct stat is;

	(void)mkdir(path, 0755);
	return !lstat(path, &is) && S_ISDIR(is.st_mode) &&
	       is.st_uid == geteuid() && !(is.st_mode & 022);
}

static int bundle_write(const struct trust *t, const char *path)
{
	struct buf old CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);

	if (!whole_read(path, &old) &&
	    span_eq(buf_peek(&old), buf_peek(&t->bundle)))
		return 0;
	return whole_write(path, 0644, buf_peek(&t->bundle));
}

/* The configured path, or one of the same name where we may write. */
static int bundle_place(struct trust *t, const struct trust_config *config,
			char path[PATH_MAX])
{
	const char *name = strrchr(config->bundle, '/');
	char folders[3][PATH_MAX];
	int r, len;
	unsigned i;

	if (!name ||
	    !span_copy(span_of(config->bundle, (size_t)(name - config->bundle)),
		       t->folder, sizeof(t->folder)))
		return -EINVAL;
	(void)mkdir(t->folder, 0755);
	if (!span_copy(span_str(config->bundle), path, PATH_MAX))
		return -ENAMETOOLONG;
	r = bundle_write(t, path);
	snprintf(folders[0], PATH_MAX, "/run/opensandbox");
	snprintf(folders[1], PATH_MAX, "/dev/shm/opensandbox-%u",
		 (unsigned)geteuid());
	snprintf(folders[2], PATH_MAX, "/tmp/opensandbox-%u",
		 (unsigned)geteuid());
	for (i = 0; r && i < ARRAY_LEN(folders); i++) {
		if (!folder_make(folders[i]))
			continue;
		len = snprintf(path, PATH_MAX, "%s%s", folders[i], name);
		if (len < 0 || len >= PATH_MAX)
			continue;
		r = bundle_write(t, path);
		if (!r) {
			log_info("%s could not be written; the bundle is %s",
				 config->bundle, path);
			memcpy(t->folder, folders[i], sizeof(t->folder));
		}
	}
	if (r)
		t->folder[0] = '\0';
	return r;
}

/* The CA's own file, unless the image adds certificates of its own. */
static void addition_place(const struct trust *t,
			   const struct trust_config *config,
			   char path[PATH_MAX])
{
	struct buf all CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	char own[PATH_MAX];
	int len;

	(void)span_copy(span_str(config->ca), path, PATH_MAX);
	image_gather(&all, ADDITION, config);
	if (!buf_len(&all) || !t->folder[0] || buf_put(&all, buf_peek(&t->pem)))
		return;
	len = snprintf(own, sizeof(own), "%s/additional-ca-certificates.pem",
		       t->folder);
	if (len > 0 && (size_t)len < sizeof(own) &&
	    !whole_write(own, 0644, buf_peek(&all)))
		memcpy(path, own, sizeof(own));
}

static void variables_set(const char *bundle, const char *addition)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(variables); i++)
		(void)setenv(variables[i].name,
			     variables[i].kind == ALL_ROOTS ? bundle : addition,
			     1);
	for (i = 0; i < ARRAY_LEN(switches); i++)
		(void)setenv(switches[i], "true", 0);
}

static int install(struct trust *t, const struct trust_config *config)
{
	char bundle[PATH_MAX], addition[PATH_MAX];
	uint64_t begin_us = clock_us();
	int r;

	r = ca_read(t, config->ca);
	if (!r)
		r = bundle_gather(t, config);
	if (r)
		return r;
	r = bundle_place(t, config, bundle);
	addition_place(t, config, addition);
	if (r)
		log_warn("no bundle could be written, at last in /tmp: %s; "
			 "variables name the CA alone",
			 err_text(r));
	variables_set(r ? config->ca : bundle, addition);
	roots_install(t);
	java_install(t);
	log_info("programs trust the CA %s (%u certificates, %llu us)",
		 config->ca, t->count,
		 (unsigned long long)(clock_us() - begin_us));
	return 0;
}

int trust_install(const struct trust_config *config)
{
	struct trust *t = must_alloc(sizeof(*t));
	int r;

	buf_init(&t->der, TRUST_CERTIFICATES_MAX * 3 * CERTIFICATE_MAX);
	buf_init(&t->pem, TRUST_CERTIFICATES_MAX * 2 * CERTIFICATE_MAX);
	buf_init(&t->bundle, TRUST_FILE_MAX);
	r = install(t, config);
	buf_fini(&t->der);
	buf_fini(&t->pem);
	buf_fini(&t->bundle);
	free(t);
	return r;
}
