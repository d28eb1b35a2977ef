/* SPDX-License-Identifier: Apache-2.0 */
/* execd.h - the execution daemon inside a sandbox: its parts and their context
 *
 * One process, one loop, one HTTP server. Each part keeps a table of its own
 * (commands, sessions, terminals, code contexts) and some rows of routes.def;
 * its handlers get the struct execd. Nothing here trusts what runs beside it:
 * the workload may be root, may kill anything, may replace any file between
 * two looks at it; what it cannot do is make one client wait for another.
 *
 * The wire contract is that of OpenSandbox's execd; docs/execd.md tells it as
 * we keep it, and what is better here.
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>

#include "src/base/addr.h"
#include "src/base/attrib.h"
#include "src/base/sha256.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"

struct commands;
struct contexts;
struct files;
struct isolation;
struct metrics;
struct proxy;
struct reaper;
struct sessions;
struct terminals;

/* From flags and the environment (config.c). Texts are borrowed from them. */
struct execd_config {
	struct addr listen;  /* [::]:44772, both families */
	const char *token;   /* NULL: nobody is asked for one */
	bool has_token_hash; /* what it is checked by, in its place */
	uint8_t token_hash[SHA256_SIZE];
	bool has_proxy_hash; /* of a token that opens /proxy alone */
	uint8_t proxy_hash[SHA256_SIZE];
	const char *jupyter_host; /* http://host:port; NULL: none */
	const char *jupyter_token;
	const char *entrypoint_shell; /* NULL: bash, else sh */
	unsigned jupyter_poll_ms;
	uint16_t runtime_port; /* code/runtime.h; 0: none */
	bool trust; /* programs are made to trust a CA (init/trust.h) */
	const char *ca_file, *ca_bundle;
	bool init;		       /* is the container's init (init.h) */
	const char *const *entrypoint; /* NULL, or NULL-terminated: to start */
	struct rlimit files; /* RLIMIT_NOFILE as we were started: ours is
				raised, programs get this one back */
};

enum {
	EXECD_BODY_MAX = 32 * 1024 * 1024, /* of a request read as a whole */
	EXECD_VALUES_MAX = 128 * 1024,	   /* in such a body: 20 MiB, 0.1 s */
	EXECD_CONNECTIONS_MAX = 8192,
	EXECD_STOP_MS = 2000,
	EXECD_TRIM_MS = 5000, /* from a request to giving back free memory */
};

struct execd {
	struct loop *loop;
	const struct execd_config *config;
	struct httpd *httpd;
	struct reaper *reaper;
	struct commands *commands;
	struct sessions *sessions;
	struct terminals *terminals;
	struct contexts *contexts;
	struct files *files;
	struct isolation *isolation;
	struct metrics *metrics;
	struct proxy *proxy;
	uint16_t runtime_port; /* listens there too; 0: does not */
	struct timer trim;     /* runs when there were requests */

	/* execd_stop() was called: */
	struct timer stop_timer;
	void (*stopped)(void *ctx);
	void *stopped_ctx;
};

#define ROUTE(method, path, body, handler) httpd_handler handler;
#include "src/execd/routes.def"
#undef ROUTE

/* Listens and makes the parts. 0; -errno with a sentence on the log. config is
 * borrowed until execd_free(). */
WUNRES int execd_new(struct loop *loop, const struct execd_config *config,
		     struct execd **ret);
/* Nobody new is served and event streams end; stopped is called from the loop
 * when the last request is answered, or after EXECD_STOP_MS. Once. */
void execd_stop(struct execd *e, void (*stopped)(void *ctx), void *ctx);
/* Kills what commands, sessions and terminals still run. NULL is fine. */
struct execd *execd_free(struct execd *e);

/* By which the node's gateway reaches ports that listen on loopback alone; the
 * token is no other one's, and opens nothing else. */
#define EXECD_PROXY_TOKEN "X-Sallyport-Proxy-Token"
WUNRES bool execd_is_gateway(const struct execd *e,
			     const struct httpd_request *r);
