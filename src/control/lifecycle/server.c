/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - the lifecycle API's routes, and who may use them
 *
 * How it works: a client sends the API's key as OPEN-SANDBOX-API-KEY. Where the
 * configuration says that there is none, a key that is sent all the same is
 * ignored, as some clients always send one. Programs in browsers may ask too
 * (CORS, Fetch standard 3.2): the key is no credential that a browser adds by
 * itself, so any origin may.
 *
 * The way to a port of a sandbox is open to everybody here, since the gateway
 * checks what that port demands.
 */

#include "src/control/lifecycle/server.h"

#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/runtime.h"
#include "src/role/config.h"

static httpd_handler preflight;

#define BOTH(method, path, auth, handler, body)         \
	{ method, path, auth, handler, body },          \
	{                                               \
		method, "/v1" path, auth, handler, body \
	}

static const struct httpd_route routes[] = {
	/* every method, before any other route of the path */
	BOTH("*", "/sandboxes/{id}/proxy/{port}", HTTPD_AUTH_OPEN,
	     lifecycle_proxy, HTTPD_BODY_STREAMED),
	BOTH("*", "/sandboxes/{id}/proxy/{port}/{rest*}", HTTPD_AUTH_OPEN,
	     lifecycle_proxy, HTTPD_BODY_STREAMED),
#define ROUTE(method, path, auth, handler)                        \
	BOTH(method, path, auth, handler, HTTPD_BODY_WHOLE),      \
		BOTH("OPTIONS", path, HTTPD_AUTH_OPEN, preflight, \
		     HTTPD_BODY_WHOLE),
#include "src/control/lifecycle/routes.def"
#undef ROUTE
};

/* What a browser asks before it lets a page ask. */
static void preflight(void *ctx, struct httpd_request *r)
{
	struct span wanted =
		httpd_header(r, SPAN("Access-Control-Request-Headers"));

	(void)ctx;
	httpd_set_header(r, "Access-Control-Allow-Methods",
			 SPAN("DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"));
	if (wanted.len)
		httpd_set_header(r, "Access-Control-Allow-Headers", wanted);
	httpd_set_header(r, "Access-Control-Max-Age", SPAN("600"));
	httpd_set_header(r, "Vary", SPAN("Access-Control-Request-Headers"));
	httpd_reply_ok(r);
}

static void begin(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	if (!httpd_header(r, SPAN("Origin")).ptr)
		return;
	httpd_set_header(r, "Access-Control-Allow-Origin", SPAN("*"));
	httpd_set_header(r, "Access-Control-Expose-Headers",
			 SPAN("Location, X-Request-ID"));
}

static unsigned authorise(void *ctx, const struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	struct span key = httpd_header(r, SPAN("OPEN-SANDBOX-API-KEY"));

	control_busy(l->control);
	l->key_was_sent = key.len > 0;
	if (!l->control->config->lifecycle_insecure &&
	    !lifecycle_key_is(&l->secrets, key))
		return 401;
	return l->control->ever_loaded ? 0 : 503;
}

/* Is asked right after authorise(), about the same request. */
static const char *refusal(void *ctx, unsigned status)
{
	const struct lifecycle *l = ctx;

	if (status == 503)
		return "{\"code\":\"SANDBOX::NOT_READY\",\"message\":\"the "
		       "vault was not read yet\"}";
	if (l->key_was_sent)
		return "{\"code\":\"INVALID_API_KEY\",\"message\":\"the key in "
		       "OPEN-SANDBOX-API-KEY is not the API's\"}";
	return "{\"code\":\"MISSING_API_KEY\",\"message\":\"the header "
	       "OPEN-SANDBOX-API-KEY is missing\"}";
}

int lifecycle_server_new(struct lifecycle *l, struct httpd **ret)
{
	static const struct httpd_ops ops = {
		.begin = begin,
		.authorise = authorise,
		.refusal = refusal,
	};

	/* each creation that waits in line holds a connection */
	static const struct httpd_limits limits = {
		.connections = 2 * CREATES_WAITING_MAX,
	};
	int r;

	r = httpd_new(l->control->loop, routes, ARRAY_LEN(routes), &ops, l,
		      ret);
	if (!r)
		httpd_set_limits(*ret, &limits);
	return r;
}
