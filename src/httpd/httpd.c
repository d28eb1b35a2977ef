/* SPDX-License-Identifier: Apache-2.0 */
/* httpd.c - the server: its listeners, its end, and what a handler may read */

#include "src/httpd/httpd.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/httpd/request.h"
#include "src/io/stream.h"

enum { ACCEPT_PAUSE_MS = 200 };

int (*httpd_tls_start)(struct ssl_ctx_st *tls, struct stream *s);

struct listener {
	struct httpd *httpd;
	struct list link;
	struct watch watch;
	struct timer pause; /* out of descriptors: try again */
	int fd;
	struct ssl_ctx_st *tls; /* borrowed; NULL = plain */
};

/* -- accepting ------------------------------------------------------------ */

static bool peer_read(int fd, const struct sockaddr_storage *from,
		      struct httpd_peer *ret)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	*ret = (struct httpd_peer){ .uid = (uid_t)-1 };
	if (from->ss_family != AF_UNIX)
		return addr_from_sockaddr((const struct sockaddr *)from,
					  &ret->address);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	ret->is_unix = true;
	ret->uid = cred.uid;
	ret->pid = cred.pid;
	return true;
}

/* The one that waits longest for its client to ask for something. */
static struct httpd_request *idle_find(const struct httpd *h, bool known)
{
	struct httpd_request *r;

	list_for_each(it, &h->requests)
	{
		r = container_of(it, struct httpd_request, link);
		if (r->state == REQUEST_HEAD && r->known == known &&
		    !(known && buf_len(&r->in)))
			return r;
	}
	return NULL;
}

/* Is there room for another connection? Where all places are taken, one that
 * has no request gives up its own, those first that have not shown yet that
 * they may ask at all: who may not cannot keep out who may. */
static bool httpd_make_room(struct httpd *h)
{
	struct httpd_request *idle;

	if (h->request_count < h->limits.connections)
		return true;
	idle = idle_find(h, false);
	if (!idle)
		idle = idle_find(h, true);
	if (!idle)
		return false;
	request_drop(idle);
	return true;
}

/* Takes fd. */
static void listener_greet(struct listener *l, int fd,
			   const struct sockaddr_storage *from)
{
	struct httpd_peer peer;
	struct stream *s;

	if (!peer_read(fd, from, &peer) || !httpd_make_room(l->httpd)) {
		(void)fd_close(fd);
		return;
	}
	peer.tls = l->tls;
	if (stream_new(l->httpd->loop, fd, &s))
		return;
	if (l->tls && httpd_tls_start(l->tls, s)) {
		stream_free(s);
		return;
	}
	request_new(l->httpd, s, &peer, false);
}

void httpd_serve(struct httpd *h, int fd, const struct httpd_peer *peer)
{
	struct stream *s;

	if (h->draining || !httpd_make_room(h)) {
		(void)fd_close(fd);
		return;
	}
	if (!stream_new(h->loop, fd, &s))
		request_new(h, s, peer, true);
}

static void on_accept(struct watch *w, unsigned ready)
{
	struct listener *l = container_of(w, struct listener, watch);
	struct sockaddr_storage from;
	socklen_t len;
	int fd;

	(void)ready;
	for (;;) {
		len = sizeof(from);
		from.ss_family = AF_UNIX; /* an unnamed peer tells nothing */
		fd = accept4(l->fd, (struct sockaddr *)&from, &len,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0) {
			listener_greet(l, fd, &from);
			continue;
		}
		if (errno == EAGAIN || errno == EWOULDBLOCK) {
			watch_spent(w, WATCH_READ);
			return;
		}
		if (errno == EINTR || errno == ECONNABORTED)
			continue;
		watch_want(w, 0); /* EMFILE and its kind */
		timer_start(&l->pause, ACCEPT_PAUSE_MS);
		return;
	}
}

static void on_pause_over(struct timer *t)
{
	struct listener *l = container_of(t, struct listener, pause);

	watch_want(&l->watch, WATCH_READ);
}

int httpd_listen_fd(struct httpd *h, int fd, struct ssl_ctx_st *tls)
{
	struct listener *l = must_alloc(sizeof(*l));
	int r;

	must(!tls || httpd_tls_start);
	r = watch_init(&l->watch, h->loop, fd, on_accept);
	if (r) {
		(void)fd_close(fd);
		free(l);
		return err_trace(r);
	}
	l->httpd = h;
	l->fd = fd;
	l->tls = tls;
	timer_init(&l->pause, h->loop, on_pause_over);
	list_init(&l->link);
	list_push(&h->listeners, &l->link);
	watch_want(&l->watch, WATCH_READ);
	return 0;
}

int httpd_listen_unix(struct httpd *h, const char *path, mode_t mode)
{
	int fd = httpd_bind_unix(path, mode);

	return fd < 0 ? fd : httpd_listen_fd(h, fd, NULL);
}

int httpd_listen_tcp(struct httpd *h, const struct addr *at,
		     struct ssl_ctx_st *tls)
{
	int fd = httpd_bind_tcp(at);

	return fd < 0 ? fd : httpd_listen_fd(h, fd, tls);
}

static void listener_free(struct listener *l)
{
	list_remove(&l->link);
	timer_stop(&l->pause);
	watch_fini(&l->watch);
	(void)fd_close(l->fd);
	free(l);
}

static void httpd_stop_listening(struct httpd *h)
{
	list_for_each(it, &h->listeners)
		listener_free(container_of(it, struct listener, link));
}

/* -- the server ----------------------------------------------------------- */

int httpd_new(struct loop *loop, const struct httpd_route *routes,
	      unsigned route_count, const struct httpd_ops *ops, void *ctx,
	      struct httpd **ret)
{
	struct httpd *h = must_alloc(sizeof(*h));

	h->loop = loop;
	h->routes = routes;
	h->route_count = route_count;
	h->ops = ops;
	h->ctx = ctx;
	list_init(&h->listeners);
	list_init(&h->requests);
	httpd_set_limits(h, &(struct httpd_limits){ 0 });
	*ret = h;
	return 0;
}

void httpd_set_limits(struct httpd *h, const struct httpd_limits *limits)
{
	h->limits = *limits;
	if (!h->limits.connections)
		h->limits.connections = HTTPD_CONNECTIONS_MAX;
	if (!h->limits.body)
		h->limits.body = HTTPD_BODY_MAX;
	if (!h->limits.silence_ms)
		h->limits.silence_ms = HTTPD_SILENCE_MS;
}

struct httpd *httpd_free(struct httpd *h)
{
	struct httpd_request *r;

	if (!h)
		return NULL;
	httpd_stop_listening(h);
	list_for_each(it, &h->requests)
	{
		r = container_of(it, struct httpd_request, link);
		r->httpd = NULL;
		list_remove(&r->link);
		if (r->stream)
			(void)stream_flush(r->stream);
		request_drop(r);
	}
	free(h->piece);
	free(h);
	return NULL;
}

unsigned httpd_connection_count(const struct httpd *h)
{
	return h->request_count;
}

void httpd_request_left(struct httpd *h)
{
	void (*drained)(void *) = h->drained;

	if (!h->draining || h->request_count || !drained)
		return;
	h->drained = NULL;
	loop_post(h->loop, drained, h->drained_ctx);
}

static void httpd_end(struct httpd *h, bool cut_streams)
{
	struct httpd_request *r;

	httpd_stop_listening(h);
	h->draining = true;
	list_for_each(it, &h->requests)
	{
		r = container_of(it, struct httpd_request, link);
		r->last = true;
		if (r->state == REQUEST_HEAD && !buf_len(&r->in)) {
			/* the last reply may not have left yet */
			r->stream = stream_close(r->stream, HTTPD_LINGER_MS);
			request_drop(r);
		} else if (r->state == REQUEST_STREAM && cut_streams) {
			request_drop(r);
		}
	}
}

void httpd_drain(struct httpd *h, void (*done)(void *ctx), void *ctx)
{
	if (h->draining)
		return;
	h->drained = done;
	h->drained_ctx = ctx;
	httpd_end(h, true);
	httpd_request_left(h);
}

void httpd_finish(struct httpd *h)
{
	if (!h->draining)
		httpd_end(h, false);
}

/* -- what a handler may read ---------------------------------------------- */

struct span httpd_method(const struct httpd_request *r)
{
	return r->head.method;
}

struct span httpd_path(const struct httpd_request *r)
{
	return r->path;
}

struct span httpd_body(const struct httpd_request *r)
{
	return buf_peek(&r->body);
}

struct span httpd_request_id(const struct httpd_request *r)
{
	return span_str(r->id);
}

const struct httpd_peer *httpd_peer(const struct httpd_request *r)
{
	return &r->peer;
}

struct span httpd_header(const struct httpd_request *r, struct span name)
{
	const struct header *field = headers_find_name(&r->head.headers, name);

	return field ? field->value : SPAN_NONE;
}

struct span httpd_param(const struct httpd_request *r, const char *name)
{
	unsigned i;

	for (i = 0; i < r->param_count; i++)
		if (span_eq(r->params[i].name, span_str(name)))
			return r->params[i].value;
	return SPAN_NONE;
}

/* The raw value of the next name=value in *rest; SPAN_NONE at the end. */
static struct span query_next(struct span *rest, const char *name)
{
	struct span value, key;

	while (rest->len) {
		value = span_cut(rest, '&');
		key = span_cut(&value, '=');
		if (span_eq(key, span_str(name)))
			return value.ptr ? value : SPAN("");
	}
	return SPAN_NONE;
}

unsigned httpd_query_count(const struct httpd_request *r, const char *name)
{
	struct span rest = r->query;
	unsigned count = 0;

	while (query_next(&rest, name).ptr)
		count++;
	return count;
}

struct span httpd_query_at(struct httpd_request *r, const char *name,
			   unsigned index)
{
	struct span rest = r->query, value, decoded;
	unsigned i;

	value = query_next(&rest, name);
	for (i = 0; i < index && value.ptr; i++)
		value = query_next(&rest, name);
	if (!value.ptr || !httpd_decode(&r->arena, value, true, &decoded))
		return SPAN_NONE;
	return decoded;
}

struct span httpd_query(struct httpd_request *r, const char *name)
{
	return httpd_query_at(r, name, 0);
}

void httpd_set_user(struct httpd_request *r, void *user)
{
	r->user = user;
}

void *httpd_user(const struct httpd_request *r)
{
	return r->user;
}
