/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_feed.c - the ingress between control and the workers
 *
 * Boxes and keys go to every worker as parcels, a client to one of them in
 * turn. What workers have for control, a connection or the news of an access,
 * they post to the main loop, which has the channel.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "gateway/ingress/ingress.h"
#include "gateway/ingress/ingress_box.h"
#include "gateway/inside.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"

void ingress_feed_box(struct gateway *g, const struct msg_ingress *body)
{
	struct parcel *p;

	if (!body->id[0] || body->addr_count > MSG_ADDRS_MAX) {
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	p = parcel_new(g, PARCEL_INGRESS);
	p->ingress_box = ingress_box_new(body);
	parcel_send(p);
}

void ingress_feed_drop(struct gateway *g, const struct msg_ingress *body)
{
	struct parcel *p = parcel_new(g, PARCEL_INGRESS_DROP);

	must(span_copy(span_str(body->id), p->scope, sizeof(p->scope)));
	parcel_send(p);
}

void ingress_feed_keys(struct gateway *g, const struct msg_scope *body, int fd)
{
	struct parcel *p = parcel_new(g, PARCEL_INGRESS_KEYS);
	const void *map = NULL;
	struct diag d = { 0 };
	int r = 0;

	if (body->size) {
		r = body->size > INGRESS_KEYS_TEXT_MAX || fd < 0
			    ? -EPROTO
			    : chan_map(fd, body->size, &map);
		if (!r)
			r = ingress_keys_new(span_of(map, body->size),
					     &p->ingress_keys, &d);
	}
	if (map)
		(void)munmap((void *)(uintptr_t)map, body->size);
	if (r) {
		log_error("the keys of signed routes were not usable: %s",
			  d.msg);
		gateway_accuse(g, ROLE_CONTROL);
	}
	parcel_send(p); /* without keys, then */
}

/* -- clients --------------------------------------------------------------- */

struct client_post {
	struct gateway *gateway;
	struct worker *worker; /* NULL: for control */
	struct msg_ingress_client body;
	int fd;
};

static struct client_post *post_new(struct gateway *g, int fd,
				    const struct msg_ingress_client *body)
{
	struct client_post *post = must_alloc(sizeof(*post));

	*post = (struct client_post){ .gateway = g, .body = *body, .fd = fd };
	return post;
}

static void on_adopt(void *ctx)
{
	struct client_post *post = ctx;

	ingress_adopt(post->worker->ingress, post->fd, &post->body);
	free(post);
}

void ingress_feed_client(struct gateway *g,
			 const struct msg_ingress_client *body, int fd)
{
	struct client_post *post;

	if (fd < 0) {
		gateway_accuse(g, ROLE_CONTROL);
		return;
	}
	post = post_new(g, fd, body);
	post->worker = &g->workers[g->adopted++ % g->worker_count];
	loop_post(post->worker->loop, on_adopt, post);
}

/* Without control the connection ends, and the client is told so. */
static void on_egress_client(void *ctx)
{
	struct client_post *post = ctx;
	struct gateway *g = post->gateway;

	if (g->control)
		(void)chan_send(g->control, MSG_GATEWAY_EGRESS_CLIENT, 0,
				&post->body, sizeof(post->body), SPAN_NONE,
				&post->fd, 1);
	(void)fd_close(post->fd);
	free(post);
}

void gateway_egress_client(struct gateway *g, int fd,
			   const struct msg_ingress_client *body)
{
	loop_post(g->loop, on_egress_client, post_new(g, fd, body));
}

/* -- accesses -------------------------------------------------------------- */

struct access_post {
	struct gateway *gateway;
	struct msg_scope body;
};

static void on_accessed(void *ctx)
{
	struct access_post *post = ctx;
	struct gateway *g = post->gateway;

	if (g->control)
		(void)chan_send(g->control, MSG_GATEWAY_ACCESSED, 0,
				&post->body, sizeof(post->body), SPAN_NONE,
				NULL, 0);
	free(post);
}

void gateway_ingress_accessed(struct gateway *g, const char *id)
{
	struct access_post *post = must_alloc(sizeof(*post));

	post->gateway = g;
	must(span_copy(span_str(id), post->body.scope,
		       sizeof(post->body.scope)));
	loop_post(g->loop, on_accessed, post);
}
