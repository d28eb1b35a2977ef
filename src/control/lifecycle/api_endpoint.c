/* SPDX-License-Identifier: Apache-2.0 */
/* api_endpoint.c - where a port of a sandbox is reached */

#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/control.h"
#include "src/control/lifecycle/ask.h"
#include "src/control/lifecycle/endpoint.h"
#include "src/role/config.h"
#include "src/text/json.h"
#include "src/wire/h1.h"

#define INVALID	    "SANDBOX::INVALID_PARAMETER"
#define UNSUPPORTED "SANDBOX::API_NOT_SUPPORTED"

struct wish {
	uint16_t port;
	bool is_shared; /* a link that needs no header */
	uint64_t expires_s;
};

/* False: answered. */
static bool port_read(struct httpd_request *r, uint16_t *ret)
{
	uint64_t port;

	if (!span_parse_u64(httpd_param(r, "port"), &port) || port < 1 ||
	    port > UINT16_MAX) {
		httpd_reply_error(r, 400, "DOCKER::INVALID_PORT",
				  "expected a port from 1 to 65535");
		return false;
	}
	*ret = (uint16_t)port;
	return true;
}

static bool wish_read(const struct lifecycle *l, const struct box *b,
		      struct httpd_request *r, struct wish *ret)
{
	struct span expires = httpd_query(r, "expires");

	if (!port_read(r, &ret->port))
		return false;
	if (!httpd_query_count(r, "expires"))
		return true;
	ret->is_shared = true;
	if (span_eq_nocase(httpd_query(r, "use_server_proxy"), SPAN("true")))
		httpd_reply_error(r, 400, INVALID,
				  "expires: found beside use_server_proxy, "
				  "expected one of them");
	else if (!span_parse_u64(expires, &ret->expires_s) ||
		 ret->expires_s <= clock_wall_ms() / 1000)
		httpd_reply_error(r, 400, INVALID,
				  "expires: expected a time to come, in "
				  "seconds since 1970");
	else if (!b->secure_token[0])
		httpd_reply_error(r, 400, UNSUPPORTED,
				  "only a sandbox made with secureAccess has "
				  "links that expire");
	else if (!l->secrets.routes.keys[0].id ||
		 !l->control->config->ingress_listen.port)
		httpd_reply_error(r, 400, UNSUPPORTED,
				  "this node has no keys for links");
	else
		return true;
	return false;
}

void lifecycle_endpoint_get(void *ctx, struct httpd_request *r)
{
	struct lifecycle *l = ctx;
	const struct config *config = l->control->config;
	const struct box *b = ask_box(l, r);
	struct buf out = BUF_INIT(4096);
	char at[ENDPOINT_AT_SIZE];
	struct wish w = { 0 };
	struct json_out o;

	if (!b || !wish_read(l, b, r, &w))
		return;
	if (!endpoint_at(config->ingress_advertise, &config->ingress_listen,
			 httpd_head(r)->authority, at)) {
		httpd_reply_error(r, 500,
				  "DOCKER::NETWORK_MODE_ENDPOINT_UNAVAILABLE",
				  "the request has no Host to make an address "
				  "of, and ingress.advertise is not set");
		return;
	}
	json_start(&o, &out);
	if (!w.is_shared)
		endpoint_emit(&o, b, w.port, at);
	else
		must(endpoint_emit_signed(&o, b, w.port, at, &l->secrets.routes,
					  w.expires_s));
	ask_reply(r, 200, json_done(&o), &out);
}
