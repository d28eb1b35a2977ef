/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.c - the address of a port and the headers that it demands */

#include "src/control/lifecycle/endpoint.h"

#include <stdio.h>

#include "certs/signed_route.h"
#include "src/base/addr.h"
#include "src/control/lifecycle/box.h"
#include "src/text/json.h"

enum { ENDPOINT_MAX = ENDPOINT_AT_SIZE + 128 };

static bool is_any(const struct addr *a)
{
	static const uint8_t zeros[12];

	return addr_is_v4(a) ? !memcmp(a->ip + 12, zeros, 4)
			     : !memcmp(a->ip, zeros, 12) &&
				       !memcmp(a->ip + 12, zeros, 4);
}

/* "[::1]:8080" -> "[::1]" */
static struct span host_of(struct span authority)
{
	size_t cut;

	if (span_starts(authority, SPAN("["))) {
		cut = span_find(authority, ']');
		return span_of(authority.ptr,
			       cut < authority.len ? cut + 1 : 0);
	}
	return span_of(authority.ptr, span_find(authority, ':'));
}

bool endpoint_at(const char *advertise, const struct addr *listen,
		 struct span authority, char dst[ENDPOINT_AT_SIZE])
{
	struct span host = host_of(authority);
	int n = 0;

	if (advertise[0])
		return span_copy(span_str(advertise), dst, ENDPOINT_AT_SIZE);
	if (!listen->port)
		return authority.len &&
		       span_copy(authority, dst, ENDPOINT_AT_SIZE);
	if (!is_any(listen)) {
		addr_text_port(listen, dst, ENDPOINT_AT_SIZE);
		return true;
	}
	n = snprintf(dst, ENDPOINT_AT_SIZE, "%.*s:%u", SPAN_FMT(host),
		     listen->port);
	return host.len && n < ENDPOINT_AT_SIZE;
}

void endpoint_emit(struct json_out *o, const struct box *b, uint16_t port,
		   const char *at)
{
	bool is_execd = port == ENDPOINT_EXECD_PORT && b->execd_token[0];
	bool is_egress = port == ENDPOINT_EGRESS_PORT && b->has_policy &&
			 b->egress_token[0];
	char text[ENDPOINT_MAX];

	(void)snprintf(text, sizeof(text), "%s/sandboxes/%s/proxy/%u", at,
		       b->id, port);
	json_open_object(o, NULL);
	json_put_str(o, "endpoint", text);
	if (is_execd || is_egress || b->secure_token[0]) {
		json_open_object(o, "headers");
		if (is_execd)
			json_put_str(o, "X-EXECD-ACCESS-TOKEN", b->execd_token);
		if (is_egress)
			json_put_str(o, "OPENSANDBOX-EGRESS-AUTH",
				     b->egress_token);
		if (b->secure_token[0])
			json_put_str(o, "OpenSandbox-Secure-Access",
				     b->secure_token);
		json_close(o);
	}
	json_close(o);
}

bool endpoint_emit_signed(struct json_out *o, const struct box *b,
			  uint16_t port, const char *at,
			  const struct signed_keys *keys, uint64_t expires_s)
{
	char expires[SIGNED_EXPIRES_SIZE + 1];
	char signature[SIGNED_ROUTE_SIZE + 1];
	char text[ENDPOINT_MAX];

	if (!keys->keys[0].id ||
	    !signed_route_make(keys, keys->keys[0].id, span_str(b->id), port,
			       expires_s, expires, signature))
		return false;
	(void)snprintf(text, sizeof(text), "%s/%s/%u/%s/%s", at, b->id, port,
		       expires, signature);
	json_open_object(o, NULL);
	json_put_str(o, "endpoint", text);
	json_close(o);
	return true;
}
