/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - libcurl's multi interface on our loop
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

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/docker/inside.h"

enum { CONNECTIONS_KEPT = 16 };

struct engine_socket {
	struct watch watch;
	struct docker *docker;
	struct list link;
};

/* -- what libcurl has done ------------------------------------------------ */

static void engine_collect(struct docker *d)
{
	struct docker_call *call;
	const CURLMsg *m;
	CURLcode result;
	int left;

	while ((m = curl_multi_info_read(d->multi, &left))) {
		if (m->msg != CURLMSG_DONE)
			continue;
		result = m->data.result; /* m goes with the handle */
		must(!curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE,
					&call));
		docker_call_end(call, transfer_status(call, result));
	}
}

static void engine_act(struct docker *d, curl_socket_t fd, int bits)
{
	CURLMcode r;
	int running;

	must(!d->inside);
	d->inside = true;
	r = curl_multi_socket_action(d->multi, fd, bits, &running);
	d->inside = false;
	if (r)
		log_error("libcurl failed: %s", curl_multi_strerror(r));
	engine_collect(d);
	docker_go_on(d);
}

/* -- sockets -------------------------------------------------------------- */

static void on_socket(struct watch *w, unsigned ready)
{
	struct engine_socket *s = container_of(w, struct engine_socket, watch);
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
		engine_act(s->docker, w->fd, bits); /* may free s */
}

static struct engine_socket *socket_free(struct engine_socket *s)
{
	watch_fini(&s->watch);
	list_remove(&s->link);
	free(s);
	return NULL;
}

static struct engine_socket *socket_new(struct docker *d, int fd)
{
	struct engine_socket *s = must_alloc(sizeof(*s));

	list_init(&s->link);
	s->docker = d;
	if (watch_init(&s->watch, d->loop, fd, on_socket))
		return socket_free(s);
	list_push(&d->sockets, &s->link);
	return s;
}

static int on_curl_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
			  void *socket)
{
	struct engine_socket *s = socket;
	struct docker *d = ctx;

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			socket_free(s);
		return 0;
	}
	if (!s) {
		s = socket_new(d, fd);
		if (!s)
			return -1; /* out of watches: the transfer fails */
		(void)curl_multi_assign(d->multi, fd, s);
	}
	watch_want(&s->watch,
		   (what & CURL_POLL_IN ? WATCH_READ : 0U) |
			   (what & CURL_POLL_OUT ? WATCH_WRITE : 0U));
	return 0;
}

/* -- time ----------------------------------------------------------------- */

static void on_timer(struct timer *t)
{
	engine_act(container_of(t, struct docker, timer), CURL_SOCKET_TIMEOUT,
		   0);
}

static int on_curl_timer(CURLM *multi, long ms, void *ctx)
{
	struct docker *d = ctx;

	(void)multi;
	if (ms < 0)
		timer_stop(&d->timer);
	else
		timer_start(&d->timer, (uint64_t)ms);
	return 0;
}

/* -- calls ---------------------------------------------------------------- */

int engine_add(struct docker_call *call)
{
	struct docker *d = call->docker;
	CURLMcode r;

	d->inside = true;
	r = curl_multi_add_handle(d->multi, call->easy);
	d->inside = false;
	return r ? err_origin(-ENOMEM) : 0;
}

void engine_remove(struct docker_call *call)
{
	struct docker *d = call->docker;

	must(!d->inside);
	d->inside = true;
	must(!curl_multi_remove_handle(d->multi, call->easy));
	d->inside = false;
}

int engine_new(struct docker *d)
{
	CURLM *m;

	list_init(&d->sockets);
	timer_init(&d->timer, d->loop, on_timer);
	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return err_origin(-ENOMEM);
	m = d->multi = curl_multi_init();
	if (!m ||
	    curl_multi_setopt(m, CURLMOPT_SOCKETFUNCTION, on_curl_socket) ||
	    curl_multi_setopt(m, CURLMOPT_SOCKETDATA, d) ||
	    curl_multi_setopt(m, CURLMOPT_TIMERFUNCTION, on_curl_timer) ||
	    curl_multi_setopt(m, CURLMOPT_TIMERDATA, d) ||
	    curl_multi_setopt(m, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_KEPT))
		return err_origin(-ENOMEM);
	return 0;
}

void engine_free(struct docker *d)
{
	d->inside = true;
	if (d->multi)
		curl_multi_cleanup(d->multi);
	d->inside = false;
	timer_stop(&d->timer);
	list_for_each(it, &d->sockets)
		socket_free(container_of(it, struct engine_socket, link));
	curl_global_cleanup();
}
