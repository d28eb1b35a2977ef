/* SPDX-License-Identifier: Apache-2.0 */
/* server_tcp.c - DNS over TCP: length-prefixed, pipelined, bounded
 *
 * How it works: a connection reads while it has fewer than PIPELINE_MAX
 * questions kept and little unsent output; answers go out as they come, in any
 * order (RFC 7766 6.2.1.1). It ends when the client ends it and all answers
 * are out, when no whole question came for the idle time, and at once on bytes
 * that are no query, because then the framing cannot be trusted any more.
 *
 * Inside question_run() a connection is never freed: sending only notes that
 * the stream failed, and connection_serve() looks at that afterwards.
 */

#include "gateway/dns/server.h"

#include "gateway/dns/question.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/io/loop.h"
#include "src/io/stream.h"

enum {
	PIPELINE_MAX = 64,
	TCP_QUERY_MAX = 4096,
	UNSENT_MAX = STREAM_UNSENT_MAX / 2, /* WRITABLE comes below it */
	LINGER_MS = 2000,
};

struct connection {
	struct dns_path path;
	struct list link; /* in server->connections */
	struct stream *stream;
	struct dns_client client;
	struct client_load *load;
	struct timer idle;
	struct buf in;
	bool has_ended; /* the client sends no more */
	bool is_broken; /* the stream takes no more */
};

static struct connection *connection_of(struct dns_path *path)
{
	return container_of(path, struct connection, path);
}

static void connection_free(struct connection *c)
{
	struct dns_server *s = c->path.server;

	path_fini(&c->path);
	timer_stop(&c->idle);
	if (c->is_broken)
		c->stream = stream_free(c->stream);
	else
		c->stream = stream_close(c->stream, LINGER_MS);
	buf_fini(&c->in);
	list_remove(&c->link);
	s->connection_count--;
	c->load->connections--;
	load_settle(c->load);
	free(c);
}

static void connection_send(struct dns_path *path,
			    const struct dns_client *client,
			    struct span message)
{
	struct connection *c = connection_of(path);
	uint8_t *framed = path->server->reply;

	(void)client;
	must(message.ptr == (char *)framed + 2);
	framed[0] = (uint8_t)(message.len >> 8);
	framed[1] = (uint8_t)message.len;
	if (c->is_broken ||
	    stream_write(c->stream, span_of(framed, message.len + 2))) {
		path->server->counters->unsent++;
		c->is_broken = true;
	}
	timer_start(&c->idle, path->server->config.idle_ms);
}

/* The next whole message in .in; 0 none yet, -1 it can never be a query. */
static int connection_next(const struct connection *c, struct span *ret)
{
	struct span in = buf_peek(&c->in);
	size_t len;

	if (in.len < 2)
		return 0;
	len = (size_t)(uint8_t)in.ptr[0] << 8 | (uint8_t)in.ptr[1];
	if (len < DNS_HEAD_SIZE || len > TCP_QUERY_MAX)
		return -1;
	if (in.len - 2 < len)
		return 0;
	*ret = span_of(in.ptr + 2, len);
	return 1;
}

static bool connection_is_full(const struct connection *c)
{
	return c->path.question_count >= PIPELINE_MAX ||
	       stream_unsent(c->stream) >= UNSENT_MAX;
}

/* Answers what was read. False: the connection cannot go on. */
static bool connection_answer(struct connection *c)
{
	struct span message;
	int r;

	while (!connection_is_full(c)) {
		r = connection_next(c, &message);
		if (r == 0)
			break;
		if (r < 0) {
			c->path.server->counters->malformed++;
			return false;
		}
		timer_start(&c->idle, c->path.server->config.idle_ms);
		if (!question_run(&c->path, &c->client, message) ||
		    c->is_broken)
			return false;
		buf_consume(&c->in, 2 + message.len);
	}
	return true;
}

/* What to wait for now. False: nothing, all is said. */
static bool connection_await(struct connection *c)
{
	unsigned events = 0;

	if (c->has_ended && !c->path.question_count && !connection_is_full(c))
		return false;
	if (stream_unsent(c->stream) >= UNSENT_MAX)
		events = STREAM_WRITABLE;
	else if (!c->has_ended && !connection_is_full(c))
		events = STREAM_READABLE;
	stream_want(c->stream, events);
	return true;
}

/* Goes on with what is there; may free the connection. */
static void connection_serve(struct connection *c)
{
	if (c->is_broken || !connection_answer(c) || !connection_await(c))
		connection_free(c);
}

/* One read per call; the loop calls again while there is more. */
static void connection_read(struct connection *c)
{
	size_t room = 2 + TCP_QUERY_MAX - buf_len(&c->in);
	ssize_t n;
	char *dst;

	must(!buf_reserve(&c->in, room, &dst));
	n = stream_read(c->stream, dst, room);
	if (n > 0)
		buf_commit(&c->in, (size_t)n);
	else if (n == 0)
		c->has_ended = true;
	else if (n != STREAM_AGAIN)
		c->is_broken = true;
}

static void connection_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct connection *c = ctx;

	(void)s;
	if (events & STREAM_READABLE && !connection_is_full(c))
		connection_read(c);
	connection_serve(c);
	/* c may be gone */
}

static void connection_on_answered(struct dns_path *path)
{
	connection_serve(connection_of(path));
}

static void connection_on_idle(struct timer *t)
{
	struct connection *c = container_of(t, struct connection, idle);

	/* the resolver ends every question in bounded time */
	if (c->path.question_count)
		timer_start(t, c->path.server->config.idle_ms);
	else
		connection_free(c);
}

static const struct dns_path_ops tcp_ops = {
	.tcp = true,
	.send = connection_send,
	.answered = connection_on_answered,
};

void dns_server_give(struct dns_server *s, struct stream *stream,
		     const struct dns_client *client)
{
	struct client_load *load = load_at(s, client);
	struct connection *c;

	if (s->connection_count >= s->config.connections_max ||
	    load->connections >= s->config.client_connections_max) {
		load_settle(load);
		s->counters->connections_refused++;
		(void)stream_reset(stream);
		return;
	}
	c = must_alloc(sizeof(*c));
	path_init(&c->path, s, &tcp_ops);
	c->stream = stream;
	c->client = *client;
	c->load = load;
	buf_init(&c->in, 2 + TCP_QUERY_MAX);
	timer_init(&c->idle, s->loop, connection_on_idle);
	list_init(&c->link);
	list_push(&s->connections, &c->link);
	load->connections++;
	s->connection_count++;
	s->counters->connections++;

	stream_set_owner(stream, connection_on_event, c);
	stream_want(stream, STREAM_READABLE);
	timer_start(&c->idle, s->config.idle_ms);
}

void dns_server_close_tcp(struct dns_server *s)
{
	struct connection *c;

	list_for_each(it, &s->connections)
	{
		c = container_of(it, struct connection, link);
		c->is_broken = true; /* no lingering */
		connection_free(c);
	}
}
