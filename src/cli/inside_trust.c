/* SPDX-License-Identifier: Apache-2.0 */
/* inside_trust.c - make every common client in the sandbox trust our CA
 *
 * How it works: two files on the sandbox's private /run. bundle.crt holds the
 * system's roots, whatever the caller's own variables pointed to, and our CA;
 * extra.crt the same without the system's roots, for clients that add to
 * their built-in list. The bundle takes the place of the system's file, so
 * that clients that read no variable trust us too, and every variable of the
 * table below points to one of the two. A Java run time gets a copy of its
 * own trust store with our CA in it. SSL_CERT_DIR is left alone: OpenSSL reads
 * it besides the file.
 */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/cli/inside.h"
#include "src/cli/proc.h"

#define BUNDLE	   INSIDE_FOLDER "/bundle.crt"
#define EXTRA	   INSIDE_FOLDER "/extra.crt"
#define CA_FILE	   INSIDE_FOLDER "/ca.crt"
#define JAVA_STORE INSIDE_FOLDER "/cacerts"

enum { BUNDLE_MAX = 16 * 1024 * 1024, STORE_MAX = 16 * 1024 * 1024 };

/* Where distributions keep the roots; the first is read, all are replaced. */
static const char *const system_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/ssl/cert.pem",
};

static const struct {
	const char *name;
	const char *file;
} variables[] = {
	{ "SSL_CERT_FILE", BUNDLE },	  /* OpenSSL, Go, Python, Ruby, Rust */
	{ "CURL_CA_BUNDLE", BUNDLE },	  /* curl, Python requests */
	{ "REQUESTS_CA_BUNDLE", BUNDLE }, /* Python requests */
	{ "HTTPLIB2_CA_CERTS", BUNDLE },  /* Python httplib2 */
	{ "PIP_CERT", BUNDLE },
	{ "GIT_SSL_CAINFO", BUNDLE },
	{ "CARGO_HTTP_CAINFO", BUNDLE },
	{ "AWS_CA_BUNDLE", BUNDLE },
	{ "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", BUNDLE },
	{ "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", BUNDLE },
	{ "NIX_SSL_CERT_FILE", BUNDLE },
	{ "BUNDLE_SSL_CA_CERT", BUNDLE }, /* Ruby bundler */
	{ "HEX_CACERTS_PATH", BUNDLE },	  /* Elixir */
	{ "PERL_LWP_SSL_CA_FILE", BUNDLE },
	{ "CODEX_CA_CERTIFICATE", BUNDLE },
	{ "NODE_EXTRA_CA_CERTS", EXTRA }, /* Node, Bun, Electron, npm */
	{ "DENO_CERT", EXTRA },
};

/* Switches to "use the file, not your own list"; the caller's word counts. */
static const char *const switches[] = { "UV_NATIVE_TLS", "UV_SYSTEM_CERTS" };

static int complain(const char *what, int r)
{
	fprintf(stderr, "sallyport: %s could not be prepared: %s\n", what,
		err_text(r));
	return r;
}

/* Appends a PEM file, ending in a line break. */
static int pem_append(struct buf *to, const char *path)
{
	int r = file_read(path, to);
	struct span all = buf_peek(to);

	if (!r && all.len && all.ptr[all.len - 1] != '\n')
		r = buf_put_str(to, "\n");
	return r;
}

static bool is_system_bundle(const char *path)
{
	unsigned i;

	for (i = 0; i < ARRAY_LEN(system_bundles); i++)
		if (!strcmp(path, system_bundles[i]))
			return true;
	return false;
}

/* Did an earlier variable of the table point to the same file? */
static bool is_seen(unsigned at, const char *path)
{
	const char *other;
	unsigned i;

	for (i = 0; i < at; i++) {
		other = getenv(variables[i].name);
		if (other && !strcmp(other, path))
			return true;
	}
	return false;
}

/* What the caller trusts besides the system. */
static int caller_gather(struct buf *extra)
{
	const char *path;
	unsigned i;
	int r;

	for (i = 0; i < ARRAY_LEN(variables); i++) {
		path = getenv(variables[i].name);
		if (!path || !*path || is_system_bundle(path) ||
		    is_seen(i, path))
			continue;
		r = pem_append(extra, path);
		if (r == -ENOBUFS || r == -EFBIG)
			return complain(path, r);
		fprintf(stderr,
			r ? "sallyport: %s names %s, which cannot be read "
			    "in the sandbox\n"
			  : "sallyport: %s named %s: the sandbox trusts it "
			    "too, in its own bundle\n",
			variables[i].name, path);
	}
	return 0;
}

static int system_gather(struct buf *bundle)
{
	unsigned i;
	int r;

	for (i = 0; i < ARRAY_LEN(system_bundles); i++) {
		r = pem_append(bundle, system_bundles[i]);
		if (r != -ENOENT)
			return r ? complain(system_bundles[i], r) : 0;
	}
	return 0;
}

static int bundles_write(struct span ca)
{
	struct buf bundle CLEANUP(buf_fini) = BUF_INIT(BUNDLE_MAX);
	struct buf extra CLEANUP(buf_fini) = BUF_INIT(BUNDLE_MAX);
	int r;

	r = system_gather(&bundle);
	if (!r)
		r = caller_gather(&extra);
	if (r)
		return r;
	r = buf_put(&extra, ca);
	if (!r)
		r = buf_put(&bundle, buf_peek(&extra));
	if (!r)
		r = file_write(BUNDLE, 0644, buf_peek(&bundle));
	if (!r)
		r = file_write(EXTRA, 0644, buf_peek(&extra));
	if (!r)
		r = file_write(CA_FILE, 0644, ca);
	return r ? complain(BUNDLE, r) : 0;
}

/* -- Java ----------------------------------------------------------------- */

/* The store to start from: what the caller's options name, else the run
 * time's own. False when there is no run time. */
static bool java_store_find(const char *options, char path[PATH_MAX])
{
	static const char word[] = "-Djavax.net.ssl.trustStore=";
	const char *named = options ? strstr(options, word) : NULL;
	char java[PATH_MAX], real[PATH_MAX], *slash;
	int i, len;

	if (named) {
		named += sizeof(word) - 1;
		return span_copy(span_of(named, strcspn(named, " \t")), path,
				 PATH_MAX);
	}
	if (!proc_find("java", java, sizeof(java)) || !realpath(java, real))
		return false;
	for (i = 0; i < 2; i++) { /* .../bin/java */
		slash = strrchr(real, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
	len = snprintf(path, PATH_MAX, "%s/lib/security/cacerts", real);
	return len > 0 && len < PATH_MAX && !access(path, R_OK);
}

static int java_store_make(const char *from)
{
	static const char *const argv[] = {
		"keytool",
		"-importcert",
		"-noprompt",
		"-trustcacerts",
		"-alias",
		"sallyport",
		"-file",
		CA_FILE,
		"-keystore",
		JAVA_STORE,
		"-storepass",
		"changeit",
		"-J-XX:TieredStopAtLevel=1",
		NULL,
	};
	struct buf store CLEANUP(buf_fini) = BUF_INIT(STORE_MAX);
	int r;

	r = file_read(from, &store);
	if (!r)
		r = file_write(JAVA_STORE, 0644, buf_peek(&store));
	return r ? r : proc_run(argv, SPAN_NONE);
}

/* Java is no reason to refuse a sandbox: a failure is a warning. */
static void java_trust(void)
{
	static const char set[] =
		"-Djavax.net.ssl.trustStore=" JAVA_STORE
		" -Djavax.net.ssl.trustStorePassword=changeit";
	const char *options = getenv("JAVA_TOOL_OPTIONS");
	char path[PATH_MAX], all[4096];
	int len;

	if (!proc_find("keytool", path, sizeof(path)) ||
	    !java_store_find(options, path))
		return;
	if (java_store_make(path)) {
		fprintf(stderr,
			"sallyport: no copy of %s could be made, Java "
			"will not trust the gateway\n",
			path);
		return;
	}
	len = snprintf(all, sizeof(all), "%s%s%s", options ? options : "",
		       options ? " " : "", set);
	if (len > 0 && (size_t)len < sizeof(all))
		(void)setenv("JAVA_TOOL_OPTIONS", all, 1);
}

int inside_trust(struct span ca)
{
	unsigned i;
	int r;

	r = bundles_write(ca);
	for (i = 0; !r && i < ARRAY_LEN(system_bundles); i++)
		r = inside_replace(BUNDLE, system_bundles[i]);
	for (i = 0; !r && i < ARRAY_LEN(variables); i++)
		if (setenv(variables[i].name, variables[i].file, 1))
			r = complain(variables[i].name, -errno);
	for (i = 0; !r && i < ARRAY_LEN(switches); i++)
		if (setenv(switches[i], "true", 0))
			r = complain(switches[i], -errno);
	if (!r)
		java_trust();
	return r;
}
