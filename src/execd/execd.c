/* SPDX-License-Identifier: Apache-2.0 */
/* execd.c - the daemon put together: its server, its token, its parts */

#include "src/execd/execd.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/heap.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "src/execd/body.h"
#include "src/execd/code/contexts.h"
#include "src/execd/code/runtime.h"
#include "src/execd/command/commands.h"
#include "src/execd/files/files.h"
#include "src/execd/isolated/isolation.h"
#include "src/execd/metrics/metrics.h"
#include "src/execd/process/reaper.h"
#include "src/execd/proxy/proxy.h"
#include "src/execd/pty/terminals.h"
#include "src/execd/session/sessions.h"

/* Each handler is called by way of body.h. */
#define ROUTE(method, path, body, handler)                            \
	static void via_##handler(void *ctx, struct httpd_request *r) \
	{                                                             \
		body_first(ctx, r, handler);                          \
	}
#include "src/execd/routes.def"
#undef ROUTE

static const struct httpd_route routes[] = {
#define ROUTE(method, path, body, handler) \
	{ method, path, HTTPD_AUTH_REQUIRED, via_##handler, HTTPD_BODY_##body },
#include "src/execd/routes.def"
#undef ROUTE
};

/* -- who may ask ---------------------------------------------------------- */

static bool token_hashes_to(struct span token, const uint8_t hash[SHA256_SIZE])
{
	uint8_t found[SHA256_SIZE];

	sha256(token, found);
	return secret_eq(span_of(found, sizeof(found)),
			 span_of(hash, SHA256_SIZE));
}

static unsigned token_check(void *ctx, const struct httpd_request *r)
{
	struct execd *e = ctx;
	struct span given = httpd_header(r, SPAN("X-EXECD-ACCESS-TOKEN"));

	if (!e->trim.due_ms)
		timer_start(&e->trim, EXECD_TRIM_MS);
	if (execd_is_gateway(e, r))
		return 0;
	if (e->config->has_token_hash)
		return token_hashes_to(given, e->config->token_hash) ? 0 : 401;
	if (!e->config->token || secret_eq(given, span_str(e->config->token)))
		return 0;
	return 401;
}

bool execd_is_gateway(const struct execd *e, const struct httpd_request *r)
{
	return e->config->has_proxy_hash &&
	       span_starts(httpd_path(r), SPAN("/proxy/")) &&
	       token_hashes_to(httpd_header(r, SPAN(EXECD_PROXY_TOKEN)),
			       e->config->proxy_hash);
}

static const char *token_refusal(void *ctx, unsigned status)
{
	(void)ctx;
	(void)status;
	return "{\"error\":\"Unauthorized: invalid or missing header "
	       "X-EXECD-ACCESS-TOKEN\"}";
}

static const struct httpd_ops ops = {
	.authorise = token_check,
	.refusal = token_refusal,
};

/* -- its memory ----------------------------------------------------------- */

/* What a crowd of requests took is free, but lies between what is in use. As
 * long as anybody is there, some of it is not free yet. */
static void on_trim(struct timer *t)
{
	struct execd *e = container_of(t, struct execd, trim);

	heap_trim();
	if (httpd_connection_count(e->httpd))
		timer_start(&e->trim, EXECD_TRIM_MS);
}

/* -- listening ------------------------------------------------------------ */

static int listen_at(struct execd *e, const struct addr *at)
{
	char text[ADDR_TEXT_SIZE];
	int r;

	r = httpd_listen_tcp(e->httpd, at, NULL);
	if (!r)
		log_info("listens on %s",
			 addr_text_port(at, text, sizeof(text)));
	return r;
}

static bool is_any_v6(const struct addr *at)
{
	static const uint8_t zero[16];

	return !memcmp(at->ip, zero, sizeof(zero));
}

/* [::] means every address there is: a socket for each family, so that peers
 * of IPv4 are told as such. A kernel without IPv6 is no reason to stay silent.
 */
static int execd_listen(struct execd *e)
{
	struct addr at = e->config->listen, v4 = { .port = at.port };
	char text[ADDR_TEXT_SIZE];
	int r;

	r = listen_at(e, &at);
	if (is_any_v6(&at) &&
	    (!r || r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)) {
		v4.ip[10] = v4.ip[11] = 0xff;
		at = v4;
		r = listen_at(e, &at);
	}
	if (r)
		log_error("could not listen on %s: %s",
			  addr_text_port(&at, text, sizeof(text)), err_text(r));
	return r;
}

/* An agent may have a thousand streams open, and ask beside them; a program
 * costs descriptors too: half of them are for connections. */
static void limits_set(struct execd *e)
{
	struct httpd_limits limits = { .body = EXECD_BODY_MAX };
	struct rlimit files;

	must(getrlimit(RLIMIT_NOFILE, &files) == 0);
	limits.connections = (unsigned)MIN(files.rlim_cur / 2,
					   (rlim_t)EXECD_CONNECTIONS_MAX);
	httpd_set_limits(e->httpd, &limits);
}

/* -- the end -------------------------------------------------------------- */

static void on_drained(void *ctx)
{
	struct execd *e = ctx;
	void (*stopped)(void *) = e->stopped;

	timer_stop(&e->stop_timer);
	e->stopped = NULL;
	if (stopped)
		stopped(e->stopped_ctx);
}

static void on_stop_timer(struct timer *t)
{
	on_drained(container_of(t, struct execd, stop_timer));
}

void execd_stop(struct execd *e, void (*stopped)(void *ctx), void *ctx)
{
	e->stopped = stopped;
	e->stopped_ctx = ctx;
	timer_start(&e->stop_timer, EXECD_STOP_MS);
	httpd_drain(e->httpd, on_drained, e);
}

/* -- the parts ------------------------------------------------------------ */

/* Each may use those above it. */
static int parts_new(struct execd *e)
{
	int r;

	r = reaper_new(e->loop, &e->reaper);
	if (r)
		return r;
	r = files_new(e, &e->files);
	if (r)
		return r;
	e->commands = commands_new(e);
	e->sessions = sessions_new(e);
	e->isolation = isolation_new(e);
	e->contexts = contexts_new(e);
	e->metrics = metrics_new(e);
	e->terminals = terminals_new(e);
	e->proxy = proxy_new(e);
	return 0;
}

/* In the reverse order. */
static void parts_free(struct execd *e)
{
	e->proxy = proxy_free(e->proxy);
	e->terminals = terminals_free(e->terminals);
	e->metrics = metrics_free(e->metrics);
	e->contexts = contexts_free(e->contexts);
	e->commands = commands_free(e->commands);
	e->isolation = isolation_free(e->isolation);
	e->sessions = sessions_free(e->sessions);
	e->files = files_free(e->files);
	e->reaper = reaper_free(e->reaper);
}

int execd_new(struct loop *loop, const struct execd_config *config,
	      struct execd **ret)
{
	struct execd *e = must_alloc(sizeof(*e));
	int r;

	e->loop = loop;
	e->config = config;
	timer_init(&e->stop_timer, loop, on_stop_timer);
	timer_init(&e->trim, loop, on_trim);
	r = httpd_new(loop, routes, ARRAY_LEN(routes), &ops, e, &e->httpd);
	if (!r)
		limits_set(e);
	if (!r)
		r = parts_new(e);
	if (!r)
		r = execd_listen(e);
	if (r) {
		(void)execd_free(e);
		return r;
	}
	runtime_listen(e);
	*ret = e;
	return 0;
}

struct execd *execd_free(struct execd *e)
{
	if (!e)
		return NULL;
	timer_stop(&e->stop_timer);
	timer_stop(&e->trim);
	parts_free(e);
	e->httpd = httpd_free(e->httpd);
	free(e);
	return NULL;
}
