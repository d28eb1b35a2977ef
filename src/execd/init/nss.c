/* SPDX-License-Identifier: Apache-2.0 */
/* nss.c - the CA in the browser's certificate database of our user
 *
 * Steps, each one run of certutil: a database is made where there is none; what
 * bears our name is taken out; the CA is put in.
 */

#include "src/execd/init/nss.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/execd.h"
#include "src/execd/process/child.h"
#include "src/execd/process/env.h"
#include "src/io/loop.h"

#define NAME "opensandbox-mitmproxy"

enum step { STEP_MAKE, STEP_REMOVE, STEP_ADD, STEP_NUM };

struct nss {
	struct execd *execd;
	struct child child;
	struct timer timer;
	enum step step;
	const char *ca;
	char tool[PATH_MAX], folder[PATH_MAX], database[PATH_MAX + 8];
	void (*done)(void *ctx);
	void *ctx;
};

static bool tool_find(char dst[PATH_MAX])
{
	struct span all = span_str(getenv("PATH")), folder;
	int len;

	while (all.len) {
		folder = span_cut(&all, ':');
		len = snprintf(dst, PATH_MAX, "%.*s/certutil",
			       SPAN_FMT(folder));
		if (len > 0 && len < PATH_MAX && !access(dst, X_OK))
			return true;
	}
	return false;
}

/* $HOME/.pki/nssdb, made when it is missing. */
static bool folder_find(char dst[PATH_MAX])
{
	static const char *const levels[] = { "/.pki", "/nssdb" };
	const char *home = getenv("HOME");
	unsigned i;
	int len, at;

	len = home && *home == '/' ? snprintf(dst, PATH_MAX, "%s", home) : -1;
	if (len < 0 || len >= PATH_MAX || access(dst, W_OK))
		return false;
	for (i = 0; i < ARRAY_LEN(levels); i++) {
		at = snprintf(dst + len, (size_t)(PATH_MAX - len), "%s",
			      levels[i]);
		if (at < 0 || at >= PATH_MAX - len ||
		    (mkdir(dst, 0700) && errno != EEXIST))
			return false;
		len += at;
	}
	return true;
}

static void nss_end(struct nss *n)
{
	child_fini(&n->child);
	timer_stop(&n->timer);
	n->done(n->ctx);
	/* n may be gone */
}

static void on_timer(struct timer *t)
{
	struct nss *n = container_of(t, struct nss, timer);

	log_warn("certutil did not end in %d ms: browsers may not trust the "
		 "gateway",
		 NSS_MAX_MS);
	nss_end(n);
}

static int step_start(struct nss *n)
{
	const char *const words[STEP_NUM][12] = {
		[STEP_MAKE] = { n->tool, "-N", "-d", n->database,
				"--empty-password" },
		[STEP_REMOVE] = { n->tool, "-D", "-d", n->database, "-n",
				  NAME },
		[STEP_ADD] = { n->tool, "-A", "-d", n->database, "-n", NAME,
			       "-t", "C,,", "-i", n->ca },
	};
	struct child_spec spec = {
		.argv = words[n->step], .in = -1, .out = -1, .err = -1
	};
	struct env *env = env_new();
	struct diag d = { 0 };
	int r;

	spec.env = env_list(env);
	r = child_start(n->execd, &n->child, &spec, &d);
	(void)env_free(env);
	if (r)
		log_warn("browsers may not trust the gateway: %s", d.msg);
	return r;
}

/* Taking out may fail: there is nothing the first time. */
static void on_exit_told(struct child *c)
{
	struct nss *n = container_of(c, struct nss, child);

	if (c->status && n->step != STEP_REMOVE)
		log_warn("%s did not take the CA into %s: browsers may not "
			 "trust the gateway",
			 n->tool, n->folder);
	if ((c->status && n->step != STEP_REMOVE) || n->step + 1 == STEP_NUM) {
		nss_end(n);
		return;
	}
	n->step++;
	if (step_start(n))
		nss_end(n);
}

struct nss *nss_new(struct execd *e, const char *ca, void (*done)(void *ctx),
		    void *ctx)
{
	struct nss *n = must_alloc(sizeof(*n));
	char path[PATH_MAX + 16];

	if (!tool_find(n->tool) || !folder_find(n->folder)) {
		free(n);
		return NULL;
	}
	n->execd = e;
	n->ca = ca;
	n->done = done;
	n->ctx = ctx;
	n->child.on_exit = on_exit_told;
	timer_init(&n->timer, e->loop, on_timer);
	(void)snprintf(n->database, sizeof(n->database), "sql:%s", n->folder);
	(void)snprintf(path, sizeof(path), "%s/cert9.db", n->folder);
	n->step = access(path, F_OK) ? STEP_MAKE : STEP_REMOVE;
	if (step_start(n)) {
		free(n);
		return NULL;
	}
	timer_start(&n->timer, NSS_MAX_MS);
	return n;
}

struct nss *nss_free(struct nss *n)
{
	if (!n)
		return NULL;
	child_fini(&n->child);
	timer_stop(&n->timer);
	free(n);
	return NULL;
}
