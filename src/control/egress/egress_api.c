/* SPDX-License-Identifier: Apache-2.0 */
/* egress_api.c - the server of the egress API: whom it lets in, what it says
 *
 * How it works: an HTTP server without a listener; its connections are handed
 * over by the gateway, which has put the sandbox's id into a header of its own
 * and taken a client's header of that name away. The token of that sandbox is
 * demanded here, before a body is read. A handler finds the box once more,
 * since between the head and the end of a body the sandbox may have gone.
 */

#include "src/control/egress/egress_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/control/control.h"
#include "src/control/egress/egress_inside.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/role/msg.h"

enum { CONNECTIONS_MAX = 1024, MESSAGE_SIZE = 1024 };

struct egress_api {
	struct control *control;
	struct httpd *httpd;
};

/* -- answers -------------------------------------------------------------- */

void egress_refuse(struct httpd_request *r, unsigned status, const char *fmt,
		   ...)
{
	char message[MESSAGE_SIZE];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	httpd_reply_error(r, status, "", "%s", message);
}

void egress_refuse_method(struct httpd_request *r, const char *allow)
{
	httpd_set_header(r, "Allow", span_str(allow));
	egress_refuse(r, 405, "method not allowed");
}

void egress_reply_json(struct httpd_request *r, unsigned status, int error,
		       struct buf *out)
{
	if (!error)
		error = buf_put(out, SPAN("\n"));
	if (error)
		egress_refuse(r, 500, "the answer is larger than %d bytes",
			      EGRESS_REPLY_MAX);
	else
		httpd_reply_json(r, status, buf_peek(out));
	buf_wipe(out);
}

static httpd_handler egress_health;
static httpd_handler egress_nowhere;

static void egress_health(void *ctx, struct httpd_request *r)
{
	const struct control *c = ctx;

	if (c->ever_loaded)
		httpd_reply(r, 200, "text/plain; charset=utf-8", SPAN("ok"));
	else
		egress_refuse(r, 503, "mitmproxy not ready");
}

static void egress_nowhere(void *ctx, struct httpd_request *r)
{
	(void)ctx;
	egress_refuse(r, 404, "not found");
}

/* -- who may -------------------------------------------------------------- */

static const struct box *box_find(const struct control *c,
				  const struct httpd_request *r)
{
	struct span id = httpd_header(r, SPAN("X-Sallyport-Sandbox"));

	if (!c->lifecycle || !id.len)
		return NULL;
	return boxes_find(&c->lifecycle->boxes, id);
}

const struct box *egress_box(struct control *c, struct httpd_request *r)
{
	const struct box *b = box_find(c, r);

	if (!b)
		egress_refuse(r, 404, EGRESS_NO_POLICY);
	return b;
}

static unsigned authorise(void *ctx, const struct httpd_request *r)
{
	struct span token = httpd_header(r, SPAN("OPENSANDBOX-EGRESS-AUTH"));
	struct control *c = ctx;
	const struct box *b = box_find(c, r);

	control_busy(c);
	if (!c->ever_loaded)
		return 503;
	if (!b || !b->has_policy || !b->egress_token[0])
		return 404;
	return secret_eq(token, span_str(b->egress_token)) ? 0 : 401;
}

static const char *refusal(void *ctx, unsigned status)
{
	(void)ctx;
	switch (status) {
	case 401:
		return "unauthorized\n";
	case 404:
		return EGRESS_NO_POLICY "\n";
	default:
		return "credential proxy is not ready\n";
	}
}

/* -- the server ----------------------------------------------------------- */

/* Then every other method of each, whose refusal is the handler's, and every
 * other path. */
static const struct httpd_route routes[] = {
#define ROUTE(method, path, auth, handler) \
	{ method, path, HTTPD_AUTH_##auth, handler, HTTPD_BODY_WHOLE },
#include "src/control/egress/routes.def"
#undef ROUTE
#define ROUTE(method, path, auth, handler) \
	{ "*", path, HTTPD_AUTH_##auth, handler, HTTPD_BODY_WHOLE },
#include "src/control/egress/routes.def"
#undef ROUTE
	{ "*", "/credential-vault/{rest*}", HTTPD_AUTH_REQUIRED, egress_nowhere,
	  HTTPD_BODY_WHOLE },
	{ "*", "/{rest*}", HTTPD_AUTH_OPEN, egress_nowhere, HTTPD_BODY_WHOLE },
};

int egress_api_new(struct control *c, struct egress_api **ret)
{
	static const struct httpd_ops ops = {
		.authorise = authorise,
		.refusal = refusal,
		.text_errors = true,
	};
	const struct httpd_limits limits = {
		.connections = CONNECTIONS_MAX,
		.body = EGRESS_BODY_MAX,
	};
	struct egress_api *e = must_alloc(sizeof(*e));
	int r;

	e->control = c;
	r = httpd_new(c->loop, routes, ARRAY_LEN(routes), &ops, c, &e->httpd);
	if (r) {
		free(e);
		return err_trace(r);
	}
	httpd_set_limits(e->httpd, &limits);
	*ret = e;
	return 0;
}

struct egress_api *egress_api_free(struct egress_api *e)
{
	if (!e)
		return NULL;
	httpd_free(e->httpd);
	free(e);
	return NULL;
}

void egress_api_serve(struct egress_api *e, int fd,
		      const struct msg_ingress_client *from)
{
	struct httpd_peer peer = {
		.uid = (uid_t)-1,
		.address.port = from->port,
	};

	memcpy(peer.address.ip, from->peer, sizeof(peer.address.ip));
	httpd_serve(e->httpd, fd, &peer);
}
