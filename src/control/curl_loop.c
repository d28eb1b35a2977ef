/* SPDX-License-Identifier: Apache-2.0 */
/* curl_loop.c - libcurl's multi interface on our loop
 *
 * How it works: libcurl tells which sockets it has and what it waits for at
 * each, and when it wants to be called at the latest. It expects to be told of
 * readiness as a level, and does not say whether it read all there was; our
 * watches are edges that are remembered. So the kernel is asked by poll() what
 * a socket is ready for before libcurl is called, and what it is not ready for
 * any more is forgotten: the next edge tells.
 *
 * libcurl may not be called from its own callbacks. Whatever those lead to
 * (calls that begin or are cancelled by who is told of a piece) waits until it
 * has returned; answers are given then, too.
 */

#include "src/control/curl_loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"

struct curl_socket {
	struct watch watch;
	struct curl_loop *curl;
	struct list link;
};

/* -- what libcurl has done ------------------------------------------------ */

static void collect(struct curl_loop *c)
{
	const CURLMsg *m;
	CURLcode result;
	CURL *easy;
	int left;

	while ((m = curl_multi_info_read(c->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		easy = m->easy_handle; /* m goes with the handle */
		result = m->data.result;
		c->ops->done(c->ctx, easy, result);
	}
}

static void act(struct curl_loop *c, curl_socket_t fd, int bits)
{
	CURLMcode r;
	int running;

	must(!c->inside);
	c->inside = true;
	r = curl_multi_socket_action(c->multi, fd, bits, &running);
	c->inside = false;
	if (r)
		log_error("libcurl failed: %s", curl_multi_strerror(r));
	collect(c);
	c->ops->rest(c->ctx);
}

/* -- sockets -------------------------------------------------------------- */

static void on_socket(struct watch *w, unsigned ready)
{
	struct curl_socket *s = container_of(w, struct curl_socket, watch);
	struct pollfd now = { .fd = w->fd, .events = POLLIN | POLLOUT };
	unsigned spent = 0;
	int bits = 0;

	(void)ready;
	if (poll(&now, 1, 0) < 0)
		return; /* it is asked again at the next turn */
	if (now.revents & (POLLIN | POLLHUP | POLLERR))
		bits |= CURL_CSELECT_IN;
	else
		spent |= WATCH_READ | WATCH_HUP;
	if (now.revents & POLLOUT)
		bits |= CURL_CSELECT_OUT;
	else
		spent |= WATCH_WRITE;
	watch_spent(w, spent);
	if (bits)
		act(s->curl, w->fd, bits); /* may free s */
}

static struct curl_socket *socket_free(struct curl_socket *s)
{
	watch_fini(&s->watch);
	list_remove(&s->link);
	free(s);
	return NULL;
}

static struct curl_socket *socket_new(struct curl_loop *c, int fd)
{
	struct curl_socket *s = must_alloc(sizeof(*s));

	list_init(&s->link);
	s->curl = c;
	if (watch_init(&s->watch, c->loop, fd, on_socket))
		return socket_free(s);
	list_push(&c->sockets, &s->link);
	return s;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
			  void *socket)
{
	struct curl_socket *s = socket;
	struct curl_loop *c = ctx;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_free(s);
		return 0;
	}
	if (!s) {
		s = socket_new(c, fd);
		if (!s)
			return -1; /* out of watches: the transfer fails */
		(void)curl_multi_assign(c->multi, fd, s);
	}
	watch_want(&s->watch,
		   (what & CURL_POLL_IN ? WATCH_READ : 0U) |
			   (what & CURL_POLL_OUT ? WATCH_WRITE : 0U));
	return 0;
}

/* -- time ----------------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	act(container_of(t, struct curl_loop, timer), CURL_SOCKET_TIMEOUT, 0);
}

static int on_curl_timer(CURLM *multi, long ms, void *ctx)
{
	struct curl_loop *c = ctx;

	(void)multi;
	if (ms < 0)
		timer_stop(&c->timer);
	else
		timer_start(&c->timer, (uint64_t)ms);
	return 0;
}

/* -- transfers ------------------------------------------------------------ */

int curl_loop_add(struct curl_loop *c, CURL *easy)
{
	CURLMcode r;

	c->inside = true;
	r = curl_multi_add_handle(c->multi, easy);
	c->inside = false;
	return r ? err_origin(-ENOMEM) : 0;
}

void curl_loop_remove(struct curl_loop *c, CURL *easy)
{
	must(!c->inside);
	c->inside = true;
	must(!curl_multi_remove_handle(c->multi, easy));
	c->inside = false;
}

int curl_loop_init(struct curl_loop *c, struct loop *loop,
		   const struct curl_loop_ops *ops, void *ctx, long kept)
{
	CURLM *m;

	*c = (struct curl_loop){ .loop = loop, .ops = ops, .ctx = ctx };
	list_init(&c->sockets);
	timer_init(&c->timer, loop, on_timer);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_origin(-ENOMEM);
	m = c->multi = curl_multi_init();
	if (!m ||
	    curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, on_curl_socket) ||
	    curl_multi_setopt(m, CURLMOPT_SOCKETDATA, c) ||
	    curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_curl_timer) ||
	    curl_multi_setopt(m, CURLMOPT_TIMERDATA, c) ||
	    curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, kept))
		return err_origin(-ENOMEM);
	return 0;
}

void curl_loop_fini(struct curl_loop *c)
{
	c->inside = true;
	if (c->multi)
		curl_multi_cleanup(c->multi);
	c->inside = false;
	timer_stop(&c->timer);
	list_for_each(it, &c->sockets)
		socket_free(container_of(it, struct curl_socket, link));
	curl_global_cleanup();
}
