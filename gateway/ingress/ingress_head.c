/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_head.c - which fields go inside, by port, and those we write */

#include "gateway/ingress/ingress_head.h"

#include <stdio.h>

#include "gateway/ingress/ingress_access.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/buf.h"
#include "src/httpd/forward.h"
#include "src/httpd/forward_head.h"
#include "src/httpd/httpd.h"
#include "src/wire/h1.h"

/* As execd calls it (src/execd/execd.h). */
#define PROXY_TOKEN "X-Sallyport-Proxy-Token"

enum { LINES_MAX = 40 * 1024, HOST_MAX = 32 };

static const struct span kept_here[] = {
	SPAN_INIT("OPEN-SANDBOX-API-KEY"),
	SPAN_INIT("OpenSandbox-Ingress-To"),
	SPAN_INIT("OPEN-SANDBOX-INGRESS"),
	SPAN_INIT("OpenSandbox-Secure-Access"),
	SPAN_INIT("Forwarded"),
	SPAN_INIT("X-Real-IP"),
};

static const struct span kept_prefixes[] = {
	SPAN_INIT("X-Forwarded-"),
	SPAN_INIT("X-Sallyport-"),
};

static bool starts_nocase(struct span s, struct span prefix)
{
	return s.len >= prefix.len &&
	       span_eq_nocase(span_of(s.ptr, prefix.len), prefix);
}

static bool drops_any(const struct header *h)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(kept_here); i++)
		if (span_eq_nocase(h->name, kept_here[i]))
			return true;
	for (i = 0; i < ARRAY_LEN(kept_prefixes); i++)
		if (starts_nocase(h->name, kept_prefixes[i]))
			return true;
	return false;
}

static bool is_execd_token(const struct header *h)
{
	return span_eq_nocase(h->name, SPAN("X-EXECD-ACCESS-TOKEN"));
}

static bool is_egress_token(const struct header *h)
{
	return span_eq_nocase(h->name, SPAN("OPENSANDBOX-EGRESS-AUTH"));
}

static bool drops_for_execd(const struct header *h)
{
	return drops_any(h) || is_egress_token(h);
}

static bool drops_for_egress(const struct header *h)
{
	return drops_any(h) || is_execd_token(h);
}

static bool drops_for_others(const struct header *h)
{
	return drops_any(h) || is_execd_token(h) || is_egress_token(h);
}

static int put_lines(struct buf *out, const struct h1_request *head,
		     const struct ingress_route *route,
		     const struct httpd_peer *peer)
{
	char text[ADDR_TEXT_SIZE];
	int r;

	r = buf_putf(out, "X-Forwarded-For: %s\r\nX-Forwarded-Proto: %s\r\n",
		     addr_text(&peer->address, text, sizeof(text)),
		     peer->tls ? "https" : "http");
	if (!r && head->authority.len)
		r = buf_putf(out, "X-Forwarded-Host: %.*s\r\n",
			     SPAN_FMT(head->authority));
	if (!r && route->prefix.len)
		r = buf_putf(out, "X-Forwarded-Prefix: %.*s\r\n",
			     SPAN_FMT(route->prefix));
	if (!r && route->port == INGRESS_PORT_EGRESS)
		r = buf_putf(out, "X-Sallyport-Sandbox: %.*s\r\n",
			     SPAN_FMT(route->id));
	return r;
}

static int put_by_execd(struct buf *lines, struct buf *path,
			const struct ingress_route *route, const char *token)
{
	int r = buf_putf(lines, PROXY_TOKEN ": %s\r\n", token);

	if (!r)
		r = buf_putf(path, "/proxy/%u%s", route->port,
			     span_starts(route->path, SPAN("/")) ? "" : "/");
	return r || !route->path.len ? r : buf_put(path, route->path);
}

bool (*ingress_head_drops(uint16_t port))(const struct header *h)
{
	switch (port) {
	case INGRESS_PORT_EXECD:
		return drops_for_execd;
	case INGRESS_PORT_EGRESS:
		return drops_for_egress;
	default:
		return drops_for_others;
	}
}

int ingress_put_head(struct buf *out, const struct h1_request *head,
		     const struct ingress_route *route,
		     const struct httpd_peer *peer, const char *token)
{
	CLEANUP(buf_wipe) struct buf lines = BUF_INIT(LINES_MAX);
	CLEANUP(buf_fini) struct buf path = BUF_INIT(FORWARD_HEAD_MAX);
	char host[HOST_MAX];
	int r = put_lines(&lines, head, route, peer);

	if (!r && *token)
		r = put_by_execd(&lines, &path, route, token);
	if (r)
		return r;
	(void)snprintf(host, sizeof(host), "127.0.0.1:%u", route->port);
	return forward_put_request(
		out, head,
		&(struct forward_edit){
			.path = *token ? buf_peek(&path) : route->path,
			.host = span_str(host),
			.lines = buf_peek(&lines),
			.drops = ingress_head_drops(route->port),
		});
}
