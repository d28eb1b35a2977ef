/* SPDX-License-Identifier: Apache-2.0 */
/* sign.c - leaves: from a worker's wish to the vault's signature and back */

#include "gateway/sign.h"

#include <openssl/x509.h>

#include "certs/leaf_cache.h"
#include "gateway/inside.h"
#include "gateway/tls/leaf_source.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/log.h"

/* Lives from the wish in the worker to the answer there. */
struct sign {
	struct list link; /* in gateway->signs, main thread */
	struct worker *worker;
	uint32_t serial; /* 0: no vault to ask */
	struct msg_sign body;
	char sandbox[MSG_NAME_SIZE];
	X509 *leaf;
};

/* In the worker's loop. */
static void on_answer(void *ctx)
{
	struct sign *sign = ctx;

	leaf_source_answer(sign->worker->leaves, span_str(sign->body.name),
			   sign->leaf);
	free(sign);
}

static void sign_send(struct gateway *g, struct sign *sign)
{
	sign->serial = 0;
	if (!g->vault)
		return; /* sign_resume() follows when it is back */
	sign->serial = chan_serial(g->vault);
	(void)chan_send(g->vault, MSG_GATEWAY_SIGN, sign->serial, &sign->body,
			sizeof(sign->body),
			span_of(g->leaf_spki, g->leaf_spki_len), NULL, 0);
}

/* In the main loop. */
static void on_wish(void *ctx)
{
	struct sign *sign = ctx;
	struct gateway *g = sign->worker->gateway;

	list_push(&g->signs, &sign->link);
	sign_send(g, sign);
}

void gateway_sign(struct worker *w, struct span name, struct span sandbox)
{
	struct sign *sign = must_alloc(sizeof(*sign));

	list_init(&sign->link);
	sign->worker = w;
	must(span_copy(name, sign->body.name, sizeof(sign->body.name)));
	(void)span_copy(sandbox, sign->sandbox, sizeof(sign->sandbox));
	loop_post(w->gateway->loop, on_wish, sign);
}

static struct sign *sign_find(struct gateway *g, uint32_t serial)
{
	list_for_each(it, &g->signs)
	{
		struct sign *sign = container_of(it, struct sign, link);

		if (serial && sign->serial == serial)
			return sign;
	}
	return NULL;
}

static void sign_take(struct gateway *g, struct sign *sign, struct span der)
{
	const unsigned char *at = (const unsigned char *)der.ptr;

	sign->leaf = d2i_X509(NULL, &at, (long)der.len);
	if (!sign->leaf) {
		gateway_accuse(g, ROLE_VAULT);
		return;
	}
	leaf_cache_put(g->leaf_cache, span_str(sign->sandbox),
		       span_str(sign->body.name), sign->leaf, clock_wall_ms());
}

void sign_on_message(struct gateway *g, struct chan_msg *m)
{
	struct span der;
	const struct msg_result *result = msg_body(m->type, m->payload, &der);
	struct sign *sign = sign_find(g, m->serial);

	if (!result) {
		gateway_accuse(g, ROLE_VAULT);
		return;
	}
	if (!sign)
		return;
	list_remove(&sign->link);
	if (result->status)
		log_warn("no leaf for %s: %s", sign->body.name, result->text);
	else
		sign_take(g, sign, der);
	loop_post(sign->worker->loop, on_answer, sign);
}

void sign_resume(struct gateway *g)
{
	list_for_each(it, &g->signs)
		sign_send(g, container_of(it, struct sign, link));
}

void sign_fini(struct gateway *g)
{
	list_for_each(it, &g->signs)
	{
		struct sign *sign = container_of(it, struct sign, link);

		list_remove(it);
		free(sign);
	}
}
