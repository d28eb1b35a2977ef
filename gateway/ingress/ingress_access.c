/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_access.c - tokens and signatures against what control said */

#include "gateway/ingress/ingress_access.h"

#include <openssl/sha.h>

#include "gateway/ingress/ingress_box.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "src/wire/h1.h"

static bool refuse(struct ingress_refusal *no, unsigned status,
		   const char *sentence)
{
	*no = (struct ingress_refusal){ .status = status,
					.sentence = sentence };
	return false;
}

static bool token_matches(struct span token, const uint8_t want[MSG_HASH_SIZE])
{
	unsigned char hash[SHA256_DIGEST_LENGTH];

	_Static_assert((int)MSG_HASH_SIZE == SHA256_DIGEST_LENGTH, "SHA-256");
	must(SHA256((const unsigned char *)(token.len ? token.ptr : ""),
		    token.len, hash));
	return secret_eq(span_of(hash, sizeof(hash)),
			 span_of(want, MSG_HASH_SIZE));
}

static bool execd_check(const struct ingress_box *box,
			const struct h1_request *head,
			struct ingress_refusal *no)
{
	const struct header *h =
		headers_find_name(&head->headers, SPAN("X-EXECD-ACCESS-TOKEN"));

	if (!box->msg.has_execd_token)
		return true;
	if (h && token_matches(h->value, box->msg.execd_token))
		return true;
	return refuse(no, 401,
		      h ? "the X-EXECD-ACCESS-TOKEN is not this sandbox's\n"
			: "this port needs the header X-EXECD-ACCESS-TOKEN\n");
}

static bool signature_check(struct ingress_box *box,
			    const struct ingress_keys *keys,
			    const struct ingress_route *route,
			    const struct ingress_times *at,
			    struct ingress_refusal *no)
{
	uint64_t wait_ms = ingress_box_wait_ms(box, at->now_ms);

	if (!keys || !keys->keys.keys[0].id)
		return refuse(no, 503,
			      "there are no keys for signed routes here\n");
	if (wait_ms) {
		(void)refuse(no, 429,
			     "too many signatures of this sandbox failed\n");
		no->wait_ms = wait_ms;
		return false;
	}
	if (signed_route_check(&keys->keys, route->id, route->port,
			       route->expires, route->signature, at->wall_s))
		return true;
	ingress_box_failed(box, at->now_ms);
	return refuse(no, 401,
		      "the route's signature is not valid, or has expired\n");
}

bool ingress_access_check(struct ingress_box *box,
			  const struct ingress_keys *keys,
			  struct ingress_route *route,
			  const struct h1_request *head,
			  const struct ingress_times *at,
			  struct ingress_refusal *no)
{
	const struct header *h;

	if (route->port == INGRESS_PORT_EGRESS ||
	    route->port == INGRESS_PORT_EXECD || !box->msg.is_secured) {
		ingress_route_unsign(route);
		return route->port != INGRESS_PORT_EXECD ||
		       execd_check(box, head, no);
	}
	h = headers_find_name(&head->headers,
			      SPAN("OpenSandbox-Secure-Access"));
	if (h)
		return token_matches(h->value, box->msg.secure_token) ||
		       refuse(no, 401,
			      "the OpenSandbox-Secure-Access is not this "
			      "sandbox's\n");
	if (route->signature.ptr)
		return signature_check(box, keys, route, at, no);
	return refuse(no, 401,
		      "this sandbox needs the header OpenSandbox-Secure-Access "
		      "or a signed route\n");
}
