/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - what is kept between connections to an origin
 *
 * A group lives while it has connections, idle or busy, or a TLS session worth
 * keeping; the number of groups without connections is bounded, the least
 * recently used goes first.
 */

#include "gateway/upstream/pool.h"

#include <errno.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "gateway/registry/facts.h"
#include "gateway/tls/suites.h"
#include "gateway/upstream/origin_h2.h"
#include "gateway/worker.h"
#include "src/base/err.h"
#include "src/base/map.h"
#include "src/io/stream.h"
#include "src/role/config.h"

enum {
	GROUPS_RESTING_MAX = 2048,
	/* An origin that spoke only HTTP/1.1 may have learnt since. */
	ALPN_H1_MS = 10 * 60 * 1000,
	KEY_BYTES = MSG_NAME_SIZE + HOST_MAX + 64,
};

struct origin_group {
	struct origin_pool *pool;
	struct list idle;    /* struct origin.link, newest first */
	struct list resting; /* in pool->resting while it has no connection */
	unsigned origins;    /* busy and idle */
	enum origin_alpn alpn;
	uint64_t alpn_ms;	/* when it was found out */
	bool h2_only;		/* it refused to speak HTTP/1.1 */
	struct list shared;	/* HTTP/2: those that take new streams */
	struct origin *opening; /* HTTP/2: one more, for who waits for it */
	struct list waiting;	/* ... struct origin.link */
	SSL_SESSION *session;
	size_t key_len;
	char key[];
};

struct origin_pool {
	struct worker *worker;
	struct map groups;
	struct list resting; /* newest first */
	unsigned resting_count;
	struct list lru; /* idle origins of all groups, newest first */
	unsigned idle_count;
};

static int ssl_group_index = -1;

/* sandbox, scheme, name or address, port: all that must agree. Whether the
 * name was proved is part of it: a connection by address serves no name. */
static struct span group_key(const struct sandbox *s,
			     const struct destination *d, char dst[KEY_BYTES])
{
	size_t id_len = MIN(strlen(s->id), (size_t)MSG_NAME_SIZE), at = 0;
	uint8_t tail[4] = { (uint8_t)d->scheme, (uint8_t)(d->port >> 8),
			    (uint8_t)d->port, d->by_name };

	memcpy(dst, s->id, id_len);
	at = id_len;
	dst[at++] = '\0';
	memcpy(dst + at, tail, sizeof(tail));
	at += sizeof(tail);
	memcpy(dst + at, d->host.text, d->host.len);
	at += d->host.len;
	if (!d->by_name) {
		memcpy(dst + at, d->original.ip, sizeof(d->original.ip));
		at += sizeof(d->original.ip);
	}
	return span_of(dst, at);
}

struct origin_pool *origin_pool_new(struct worker *w)
{
	struct origin_pool *pool = must_alloc(sizeof(*pool));

	pool->worker = w;
	map_init(&pool->groups);
	list_init(&pool->resting);
	list_init(&pool->lru);
	return pool;
}

static void group_free(struct origin_group *g)
{
	struct origin_pool *pool = g->pool;

	if (!list_is_empty(&g->resting)) {
		list_remove(&g->resting);
		pool->resting_count--;
	}
	(void)map_take(&pool->groups, span_of(g->key, g->key_len));
	SSL_SESSION_free(g->session);
	free(g);
}

static void group_rest(struct origin_group *g)
{
	struct origin_pool *pool = g->pool;

	if (!g->session) {
		group_free(g);
		return;
	}
	list_push_front(&pool->resting, &g->resting);
	if (++pool->resting_count > GROUPS_RESTING_MAX)
		group_free(list_last(&pool->resting, struct origin_group,
				     resting));
}

struct origin_group *pool_at(struct origin_pool *pool, const struct sandbox *s,
			     const struct destination *d)
{
	char bytes[KEY_BYTES];
	struct span key = group_key(s, d, bytes);
	struct origin_group *g = map_find(&pool->groups, key);

	if (!g) {
		g = must_alloc(sizeof(*g) + key.len);
		g->pool = pool;
		g->key_len = key.len;
		memcpy(g->key, key.ptr, key.len);
		list_init(&g->idle);
		list_init(&g->resting);
		list_init(&g->shared);
		list_init(&g->waiting);
		(void)map_set(&pool->groups, key, g);
	} else if (!list_is_empty(&g->resting)) {
		list_remove(&g->resting);
		pool->resting_count--;
	}
	g->origins++;
	return g;
}

static void idle_unlink(struct origin *o)
{
	if (list_is_empty(&o->lru))
		return;
	list_remove(&o->link);
	list_remove(&o->lru);
	o->group->pool->idle_count--;
}

static struct origin *group_shared(const struct origin_group *g)
{
	list_for_each(it, &g->shared)
	{
		struct origin *o = container_of(it, struct origin, shared);

		if (origin_h2_has_room(o))
			return o;
	}
	return NULL;
}

struct origin *pool_take(struct origin_pool *pool, const struct sandbox *s,
			 const struct destination *d, bool h2)
{
	char bytes[KEY_BYTES];
	struct origin_group *g =
		map_find(&pool->groups, group_key(s, d, bytes));
	struct origin *o;

	if (!g)
		return NULL;
	o = h2 ? group_shared(g) : NULL;
	if (o) {
		idle_unlink(o);
		timer_stop(&o->timer);
		return o;
	}
	/* where HTTP/2 is spoken, or may be, a client of HTTP/2 gets it */
	if (h2 && g->alpn != ORIGIN_ALPN_H1)
		return NULL;
	o = list_first(&g->idle, struct origin, link);
	if (!o)
		return NULL;
	idle_unlink(o);
	timer_stop(&o->timer);
	stream_want(o->stream, 0);
	stream_set_owner(o->stream, NULL, NULL);
	return o;
}

enum origin_alpn origin_alpn(struct worker *w, const struct sandbox *s,
			     const struct destination *d)
{
	char bytes[KEY_BYTES];
	struct origin_group *g =
		map_find(&w->pool->groups, group_key(s, d, bytes));

	if (g && g->alpn == ORIGIN_ALPN_H1 &&
	    loop_now_ms(w->loop) - g->alpn_ms > ALPN_H1_MS)
		g->alpn = ORIGIN_ALPN_UNKNOWN;
	return g ? g->alpn : ORIGIN_ALPN_UNKNOWN;
}

bool pool_note_alpn(struct origin *o)
{
	if (!stream_is_tls(o->stream))
		return false;
	if (span_eq(stream_tls_alpn(o->stream), SPAN("h2"))) {
		o->group->alpn = ORIGIN_ALPN_H2;
		list_push(&o->group->shared, &o->shared);
		return true;
	}
	o->group->h2_only = false;
	if (o->wants_h2) {
		o->group->alpn = ORIGIN_ALPN_H1;
		o->group->alpn_ms = loop_now_ms(o->worker->loop);
	}
	return false;
}

void pool_note_h2_only(struct origin *o)
{
	o->group->h2_only = true;
}

bool pool_is_h2_only(struct origin_pool *pool, const struct sandbox *s,
		     const struct destination *d)
{
	char bytes[KEY_BYTES];
	const struct origin_group *g =
		map_find(&pool->groups, group_key(s, d, bytes));

	return g && g->h2_only;
}

bool pool_wait(struct origin *o)
{
	struct origin_group *g = o->group;

	if (!o->wants_h2 || g->alpn != ORIGIN_ALPN_H2 || g->opening == o)
		return false;
	if (!g->opening) {
		g->opening = o;
		return false;
	}
	list_push(&g->waiting, &o->link);
	return true;
}

void pool_wait_over(struct origin *o, struct list *ret_waiting)
{
	struct origin_group *g = o->group;
	struct origin *w;

	if (!g || g->opening != o)
		return;
	g->opening = NULL;
	while ((w = list_first(&g->waiting, struct origin, link))) {
		list_remove(&w->link);
		list_push(ret_waiting, &w->link);
	}
}

void pool_retire(struct origin *o)
{
	idle_unlink(o);
	list_remove(&o->shared);
}

/* The least recently used one goes. One of HTTP/2 may be at work: o itself is,
 * when its last exchange lets go of it, and none at all are kept. So it ends by
 * itself, once it has said so. */
static void idle_evict(struct origin_pool *pool)
{
	struct origin *o = list_last(&pool->lru, struct origin, lru);

	if (o->h2)
		origin_retire(o);
	else
		(void)origin_free(o);
}

void pool_put_idle(struct origin *o)
{
	struct origin_pool *pool = o->group->pool;

	if (!list_is_empty(&o->lru))
		return;
	if (!o->h2)
		list_push_front(&o->group->idle, &o->link);
	list_push_front(&pool->lru, &o->lru);
	if (++pool->idle_count > pool->worker->config->upstream_idle)
		idle_evict(pool);
}

void pool_forget(struct origin *o)
{
	struct origin_group *g = o->group;

	if (o->stream && stream_ssl(o->stream))
		(void)SSL_set_ex_data(stream_ssl(o->stream), ssl_group_index,
				      NULL);
	pool_retire(o);
	list_remove(&o->link);
	o->group = NULL;
	if (g && !--g->origins)
		group_rest(g);
}

void origin_pool_drop_idle(struct origin_pool *pool)
{
	struct origin *o;

	while ((o = list_first(&pool->lru, struct origin, lru)))
		(void)origin_free(o);
}

struct origin_pool *origin_pool_free(struct origin_pool *pool)
{
	struct origin_group *g;

	if (!pool)
		return NULL;
	origin_pool_drop_idle(pool);
	while ((g = list_first(&pool->resting, struct origin_group, resting)))
		group_free(g);
	map_fini(&pool->groups);
	free(pool);
	return NULL;
}

/* TLS 1.3 sends sessions whenever it likes, also after origin_free(): the
 * group is found through the SSL, which the origin clears first. */
static int on_new_session(SSL *ssl, SSL_SESSION *session)
{
	struct origin *o = SSL_get_ex_data(ssl, ssl_group_index);

	if (!o || !o->group)
		return 0;
	SSL_SESSION_free(o->group->session);
	o->group->session = session;
	return 1; /* the reference is ours now */
}

int origin_ctx_new(struct x509_store_st *trust, struct ssl_ctx_st **ret)
{
	SSL_CTX *ctx = stream_tls_context_new(false);

	if (!ctx || !SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) ||
	    !SSL_CTX_set_ciphersuites(ctx, TLS_SUITES))
		return err_origin(-EIO);
	ssl_group_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	SSL_CTX_set1_cert_store(ctx, trust);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT |
						    SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(ctx, on_new_session);
	SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION |
					 SSL_OP_NO_COMPRESSION |
					 SSL_OP_CLEANSE_PLAINTEXT);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	*ret = ctx;
	return 0;
}

/* Whom the certificate must name. */
static bool ssl_expect(SSL *ssl, const struct destination *d)
{
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	bool v4;

	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	if (d->host.len)
		return SSL_set_tlsext_host_name(ssl, d->host.text) &&
		       SSL_set1_host(ssl, d->host.text);
	v4 = addr_is_v4(&d->original);
	return X509_VERIFY_PARAM_set1_ip(param, d->original.ip + (v4 ? 12 : 0),
					 v4 ? 4 : 16);
}

struct ssl_st *origin_ssl_new(struct worker *w, const struct destination *d,
			      bool h2)
{
	static const unsigned char h1[] = "\x08http/1.1";
	static const unsigned char both[] = "\x02h2\x08http/1.1";
	SSL *ssl = SSL_new(w->origin_ctx);

	if (!ssl)
		return NULL;
	SSL_set_connect_state(ssl);
	if (!ssl_expect(ssl, d) ||
	    SSL_set_alpn_protos(ssl, h2 ? both : h1,
				h2 ? sizeof(both) - 1 : sizeof(h1) - 1)) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}

struct ssl_st *group_new_ssl(struct origin *o)
{
	SSL *ssl = origin_ssl_new(o->worker, &o->aim->destination, o->wants_h2);

	if (!ssl)
		return NULL;
	if (!SSL_set_ex_data(ssl, ssl_group_index, o)) {
		SSL_free(ssl);
		return NULL;
	}
	if (o->group->session)
		(void)SSL_set_session(ssl, o->group->session);
	return ssl;
}
