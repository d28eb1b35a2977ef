/* SPDX-License-Identifier: Apache-2.0 */
/* java.c - the trust stores of Java run times
 *
 * Java reads none of the files and variables that others read. Its store is
 * extended in place where that is possible; otherwise an extended copy in our
 * own folder is named by JAVA_TOOL_OPTIONS, which each Java reports on stderr
 * when it starts, so it is the second choice.
 */

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/init/keystore.h"
#include "src/execd/init/trust_inside.h"
#include "src/execd/whole.h"

#define ALIAS  "opensandbox-mitmproxy"
#define OPTION "-Djavax.net.ssl.trustStore="

enum {
	STORES_MAX = 32,
	FOLDER_MAX = 256, /* entries of a folder of run times that are seen */
};

/* Stores of the system, which run times link to. */
static const char *const shared[] = {
	"/etc/ssl/certs/java/cacerts",
	"/etc/pki/ca-trust/extracted/java/cacerts",
	"/etc/pki/java/cacerts",
};

/* Folders of run times, and how the names in them begin. */
static const struct {
	const char *folder, *begin;
} homes[] = {
	{ "/usr/lib/jvm", "" },	 { "/usr/java", "" },
	{ "/opt/java", "" },	 { "/opt", "jdk" },
	{ "/opt", "jre" },	 { "/usr/local", "openjdk" },
	{ "/usr/local", "jdk" },
};

/* Below a home; the first of each pair is read instead of the second. */
static const char *const below[] = {
	"lib/security/jssecacerts",
	"lib/security/cacerts",
	"jre/lib/security/jssecacerts",
	"jre/lib/security/cacerts",
};

struct stores {
	char *path[STORES_MAX]; /* resolved, each once */
	unsigned count;
};

static void stores_add(struct stores *s, const char *path)
{
	char real[PATH_MAX];
	unsigned i;

	if (s->count == STORES_MAX || !realpath(path, real))
		return;
	for (i = 0; i < s->count; i++)
		if (!strcmp(s->path[i], real))
			return;
	s->path[s->count++] = must_strdup(real);
}

static void home_add(struct stores *s, const char *folder, const char *name)
{
	char path[PATH_MAX];
	unsigned i;
	int len;

	for (i = 0; i < ARRAY_LEN(below); i++) {
		len = snprintf(path, sizeof(path), "%s/%s/%s", folder, name,
			       below[i]);
		if (len > 0 && (size_t)len < sizeof(path))
			stores_add(s, path);
	}
}

static void homes_add(struct stores *s, const char *folder, const char *begin)
{
	DIR *d = opendir(folder);
	const struct dirent *e;
	unsigned seen = 0;

	while (d && seen++ < FOLDER_MAX && (e = readdir(d)))
		if (e->d_name[0] != '.' &&
		    span_starts(span_str(e->d_name), span_str(begin)))
			home_add(s, folder, e->d_name);
	if (d)
		(void)closedir(d);
}

/* The run time that "java" leads to: HOME/bin/java. */
static void path_add(struct stores *s)
{
	struct span all = span_str(getenv("PATH")), folder;
	char java[PATH_MAX], real[PATH_MAX];
	char *slash;
	int len, i;

	while (all.len) {
		folder = span_cut(&all, ':');
		len = snprintf(java, sizeof(java), "%.*s/java",
			       SPAN_FMT(folder));
		if (len < 0 || (size_t)len >= sizeof(java) ||
		    access(java, X_OK) || !realpath(java, real))
			continue;
		for (i = 0; i < 2; i++) {
			slash = strrchr(real, '/');
			if (!slash)
				return;
			*slash = '\0';
		}
		home_add(s, real, ".");
		return;
	}
}

static void stores_find(struct stores *s)
{
	const char *home = getenv("JAVA_HOME");
	unsigned i;

	if (home && *home)
		home_add(s, home, ".");
	path_add(s);
	for (i = 0; i < ARRAY_LEN(homes); i++)
		homes_add(s, homes[i].folder, homes[i].begin);
	for (i = 0; i < ARRAY_LEN(shared); i++)
		stores_add(s, shared[i]);
}

/* -- one store ------------------------------------------------------------ */

static const char *said(int r)
{
	switch (r) {
	case KEYSTORE_E_LOCKED:
		return "it is encrypted, or has another password";
	case KEYSTORE_E_FOREIGN:
		return "it is neither JKS nor PKCS #12";
	default:
		return err_text(r);
	}
}

/* 0: the store has the CA now. Otherwise `extended` holds what was to be
 * written, or nothing. */
static int store_extend(const char *path, const struct keystore_add *add,
			struct buf *extended)
{
	struct buf old CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	struct stat is;
	int r;

	buf_clear(extended);
	r = whole_read(path, &old);
	if (!r)
		r = keystore_extend(buf_peek(&old), add, extended);
	if (r)
		buf_clear(extended);
	if (r == KEYSTORE_E_SAME)
		return 0;
	if (!r && trust_is_volume(path))
		r = -EXDEV;
	if (!r && stat(path, &is))
		r = -errno;
	return r ? r : whole_write(path, is.st_mode & 0777, buf_peek(extended));
}

/* -- the second choice ---------------------------------------------------- */

static void option_set(const char *store)
{
	const char *options = getenv("JAVA_TOOL_OPTIONS");
	char all[PATH_MAX + 4096];
	int len;

	if (options && strstr(options, OPTION)) {
		if (!strstr(options, store))
			log_warn("JAVA_TOOL_OPTIONS names a trust store of its "
				 "own, which does not have the CA");
		return;
	}
	len = snprintf(all, sizeof(all),
		       "%s%s" OPTION "%s -Djavax.net.ssl.trustStoreType=JKS "
		       "-Djavax.net.ssl.trustStorePassword=" KEYSTORE_PASSWORD,
		       options ? options : "", options ? " " : "", store);
	if (len > 0 && (size_t)len < sizeof(all))
		(void)setenv("JAVA_TOOL_OPTIONS", all, 1);
}

static void stand_in(const struct trust *t, const struct keystore_add *add,
		     struct buf *extended)
{
	char path[PATH_MAX];
	int len, r = 0;

	if (!t->folder[0])
		return;
	if (!buf_len(extended))
		r = keystore_make(buf_peek(&t->bundle), add, extended);
	len = snprintf(path, sizeof(path), "%s/cacerts.jks", t->folder);
	if (!r && (len < 0 || (size_t)len >= sizeof(path)))
		r = -ENAMETOOLONG;
	if (!r)
		r = whole_write(path, 0644, buf_peek(extended));
	if (r)
		log_warn("Java will not trust the gateway: %s could not be "
			 "written: %s",
			 path, err_text(r));
	else
		option_set(path);
}

void java_install(const struct trust *t)
{
	const struct keystore_add add = {
		.certificates = t->certificates,
		.count = t->count,
		.alias = ALIAS,
		.when_ms = clock_wall_ms(),
	};
	struct buf extended CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	struct buf kept CLEANUP(buf_fini) = BUF_INIT(TRUST_FILE_MAX);
	struct stores stores = { 0 };
	bool is_missing = false;
	unsigned i;
	int r;

	stores_find(&stores);
	for (i = 0; i < stores.count; i++) {
		r = store_extend(stores.path[i], &add, &extended);
		if (r) {
			log_info("Java's store %s does not have the CA: %s; "
				 "JAVA_TOOL_OPTIONS names another",
				 stores.path[i], said(r));
			is_missing = true;
			if (!buf_len(&kept))
				(void)!buf_put(&kept, buf_peek(&extended));
		}
		free(stores.path[i]);
	}
	if (is_missing)
		stand_in(t, &add, &kept);
}
