/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - one question to the upstream servers, until one of them answers
 *
 * How it works: an ask makes tries. A try opens a connected UDP socket to the
 * server that nameservers_pick() names, sends the question and waits for its
 * turn's end. What ends a try, and what follows:
 *
 *   an answer			the ask is over
 *   TC, or too many bogus replies	the same server over TCP
 *   the server does not know EDNS	again without OPT
 *   another error code			the next server; this one is not
 *					asked again by this ask
 *   silence, ICMP error		the next server; this one goes to the
 *					corner for a while
 *
 * The ask fails when every server gave an error code, after ASK_TRIES_MAX
 * tries, or at its deadline. From the third try on the question goes out
 * without OPT, for paths that swallow it.
 */

#include "gateway/dns/ask.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "gateway/dns/nameserver.h"
#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/io/loop.h"
#include "src/io/stream.h"
#include "src/wire/dns_emit.h"

enum {
	ASK_QUERY_SIZE = 2 + DNS_UDP_MIN, /* with the length of TCP */
	ASK_DATAGRAM_SIZE = 4096,
	ASK_WAIT_MS = 20, /* before trying again to get a socket */
	ASK_PLAIN_TRY = 3,
};

enum ask_state {
	ASK_WAITING, /* nothing is open; the timer begins the next try */
	ASK_UDP,     /* .fd and .watch are open */
	ASK_TCP,     /* .stream is open */
};

struct ask {
	struct nameservers *ns;
	ask_fn *fn;
	void *ctx;
	struct dns_name name;
	uint16_t type;
	uint64_t deadline_ms;
	/* over all tries */
	unsigned tries;
	unsigned refused;    /* bit i: server i gave an error code */
	uint32_t generation; /* of the list that the bits mean */
	bool plain;	     /* without OPT: a server did not know it */
	/* this try */
	enum ask_state state;
	int server; /* index */
	struct addr address;
	uint16_t id;
	unsigned bogus;
	struct timer timer;
	struct watch watch;
	int fd;
	struct stream *stream;
	struct buf in;
};

static uint64_t ask_now_ms(const struct ask *a)
{
	return loop_now_ms(a->ns->loop);
}

/* The server of this try, or NULL when the list was replaced since. */
static struct nameserver *ask_server(struct ask *a)
{
	if (a->generation != a->ns->generation)
		return NULL;
	return &a->ns->items[a->server];
}

static void ask_blame(struct ask *a)
{
	struct nameserver *server = ask_server(a);

	if (server)
		nameserver_failed(server, ask_now_ms(a));
}

static void ask_praise(struct ask *a)
{
	struct nameserver *server = ask_server(a);

	if (server)
		nameserver_answered(server);
}

/* Closes what the try has open; replies already read stay in .in. */
static void ask_close(struct ask *a)
{
	timer_stop(&a->timer);
	switch (a->state) {
	case ASK_WAITING:
		break;
	case ASK_UDP:
		watch_fini(&a->watch);
		a->fd = fd_close(a->fd);
		break;
	case ASK_TCP:
		a->stream = stream_free(a->stream);
		break;
	}
	a->state = ASK_WAITING;
}

struct ask *ask_free(struct ask *a)
{
	if (!a)
		return NULL;
	ask_close(a);
	buf_fini(&a->in);
	a->ns->asks--;
	free(a);
	return NULL;
}

static void ask_finish(struct ask *a, const struct dns_message *reply)
{
	ask_close(a);
	a->fn(a->ctx, reply);
	(void)ask_free(a);
}

/* Writes the question with a fresh id behind two bytes of length. */
static struct span ask_query(struct ask *a, uint8_t dst[ASK_QUERY_SIZE])
{
	bool plain = a->plain || a->tries >= ASK_PLAIN_TRY;
	size_t len;

	must(getrandom(&a->id, sizeof(a->id), 0) == sizeof(a->id));
	len = dns_emit_query(a->id, &a->name, a->type, plain ? 0 : DNS_UDP_MAX,
			     dst + 2, ASK_QUERY_SIZE - 2);
	must(len > 0);
	dst[0] = (uint8_t)(len >> 8);
	dst[1] = (uint8_t)len;
	return span_of(dst, len + 2);
}

static void ask_start_timer(struct ask *a, uint64_t delay_ms)
{
	uint64_t now_ms = ask_now_ms(a);
	uint64_t left_ms =
		a->deadline_ms > now_ms ? a->deadline_ms - now_ms : 1;

	timer_start(&a->timer, MIN(delay_ms, left_ms));
}

static watch_fn ask_on_datagram;

static int ask_open_udp(struct ask *a)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = addr_to_sockaddr(&a->address, &sa);
	uint8_t bytes[ASK_QUERY_SIZE];
	int fd CLEANUP_FD = -1;
	struct span query;
	int r;

	fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	query = span_from(ask_query(a, bytes), 2);
	if (connect(fd, (struct sockaddr *)&sa, sa_len) < 0 ||
	    send(fd, query.ptr, query.len, MSG_NOSIGNAL) < 0) {
		ask_blame(a);
		return -errno;
	}
	r = watch_init(&a->watch, a->ns->loop, fd, ask_on_datagram);
	if (r)
		return r;

	watch_want(&a->watch, WATCH_READ);
	a->fd = fd;
	fd = -1; /* it is the ask's now */
	a->state = ASK_UDP;
	a->ns->counters->upstream_udp++;
	ask_start_timer(a, a->ns->timeout_ms);
	return 0;
}

/* Begins the next try. False: there is none. */
static bool ask_try(struct ask *a)
{
	struct nameservers *ns = a->ns;
	uint64_t now_ms = ask_now_ms(a);

	ask_close(a);
	if (a->generation != ns->generation) {
		a->generation = ns->generation;
		a->refused = 0;
	}
	a->server = nameservers_pick(ns, a->refused, now_ms);
	if (a->server < 0 || a->tries == ASK_TRIES_MAX ||
	    now_ms >= a->deadline_ms)
		return false;

	a->tries++;
	a->bogus = 0;
	a->address = ns->items[a->server].address;
	if (ask_open_udp(a) < 0)
		ask_start_timer(a, ASK_WAIT_MS);
	return true;
}

/* Frees the ask when there is no further try. */
static void ask_next(struct ask *a)
{
	if (!ask_try(a))
		ask_finish(a, NULL);
}

static void ask_on_timer(struct timer *t)
{
	struct ask *a = container_of(t, struct ask, timer);

	if (a->state != ASK_WAITING) {
		a->ns->counters->upstream_timeouts++;
		ask_blame(a);
	}
	ask_next(a);
	/* a may be gone */
}

/* Acts on a reply to our question. Frees the ask or begins another try. */
static void ask_judge(struct ask *a, const struct dns_message *reply)
{
	ask_praise(a);
	switch (reply->rcode) {
	case DNS_NOERROR:
	case DNS_NXDOMAIN:
		if (reply->flags & DNS_FLAG_TC)
			break; /* over TCP, where it makes no sense */
		ask_finish(a, reply);
		return;
	case DNS_FORMERR:
	case DNS_NOTIMP:
	case DNS_BADVERS:
		if (a->plain)
			break;
		a->plain = true;
		ask_next(a);
		return;
	default:
		break;
	}
	a->ns->counters->upstream_errors++;
	if (ask_server(a))
		a->refused |= 1u << a->server;
	ask_next(a);
}

static bool ask_is_answered(const struct ask *a, struct span bytes,
			    struct dns_message *ret)
{
	return dns_parse_reply(bytes, ret) == DNS_OK && ret->id == a->id &&
	       ret->type == a->type && ret->qclass == DNS_CLASS_IN &&
	       dns_name_eq(&ret->name, &a->name);
}

static void ask_on_stream(struct stream *s, void *ctx, unsigned events);

/* Asks the same server over TCP, with a whole turn. */
static void ask_start_tcp(struct ask *a)
{
	ask_close(a);
	buf_clear(&a->in);
	if (stream_connect(a->ns->loop, &a->address, &a->stream) < 0) {
		ask_blame(a);
		ask_next(a);
		return;
	}
	a->state = ASK_TCP;
	a->ns->counters->upstream_tcp++;
	stream_set_owner(a->stream, ask_on_stream, a);
	stream_want(a->stream, STREAM_CONNECTED);
	ask_start_timer(a, a->ns->timeout_ms);
}

/* True: the try is over, a may be gone. */
static bool ask_take_datagram(struct ask *a, struct span bytes)
{
	struct dns_message reply;

	if (!ask_is_answered(a, bytes, &reply)) {
		a->ns->counters->upstream_bogus++;
		if (++a->bogus < ASK_BOGUS_MAX)
			return false;
		ask_start_tcp(a);
		return true;
	}
	if (reply.flags & DNS_FLAG_TC)
		ask_start_tcp(a);
	else
		ask_judge(a, &reply);
	return true;
}

static void ask_on_datagram(struct watch *w, unsigned ready)
{
	struct ask *a = container_of(w, struct ask, watch);
	uint8_t bytes[ASK_DATAGRAM_SIZE];
	ssize_t n;

	(void)ready;
	for (;;) {
		n = recv(a->fd, bytes, sizeof(bytes), 0);
		if (n < 0)
			break;
		if (ask_take_datagram(a, span_of(bytes, (size_t)n)))
			return; /* a may be gone */
	}
	if (errno == EAGAIN || errno == EINTR) {
		if (errno == EAGAIN)
			watch_spent(w, WATCH_READ);
		return;
	}
	ask_blame(a); /* ICMP: nobody is there */
	ask_next(a);
}

/* How many bytes are still missing from the framed reply. */
static size_t ask_missing(const struct ask *a)
{
	struct span in = buf_peek(&a->in);

	if (in.len < 2)
		return 2 - in.len;
	return 2 + ((size_t)(uint8_t)in.ptr[0] << 8 | (uint8_t)in.ptr[1]) -
	       in.len;
}

/* 0 when the reply is whole; STREAM_AGAIN; or why there will be none. */
static int ask_read_stream(struct ask *a)
{
	size_t missing;
	ssize_t n;
	char *room;
	int r;

	while ((missing = ask_missing(a))) {
		r = buf_reserve(&a->in, missing, &room);
		if (r)
			return r;
		n = stream_read(a->stream, room, missing);
		if (n == 0)
			return -EPIPE;
		if (n < 0)
			return (int)n;
		buf_commit(&a->in, (size_t)n);
	}
	return 0;
}

static int ask_write_stream(struct ask *a)
{
	uint8_t bytes[ASK_QUERY_SIZE];
	int r;

	r = stream_error(a->stream);
	if (!r)
		r = stream_write(a->stream, ask_query(a, bytes));
	if (!r)
		stream_want(a->stream, STREAM_READABLE);
	return r;
}

static void ask_on_stream(struct stream *s, void *ctx, unsigned events)
{
	struct dns_message reply;
	struct ask *a = ctx;
	int r = 0;

	(void)s;
	if (events & STREAM_CONNECTED)
		r = ask_write_stream(a);
	if (!r && events & STREAM_READABLE) {
		r = ask_read_stream(a);
		if (!r && ask_is_answered(a, span_from(buf_peek(&a->in), 2),
					  &reply)) {
			ask_judge(a, &reply);
			return; /* a may be gone */
		}
		if (!r)
			r = -EBADMSG;
	}
	if (r && r != STREAM_AGAIN) {
		ask_blame(a);
		ask_next(a);
	}
}

struct ask *ask_new(struct nameservers *ns, const struct dns_name *name,
		    uint16_t type, uint64_t deadline_ms, ask_fn *fn, void *ctx)
{
	struct ask *a;

	if (ns->asks >= ASKS_MAX)
		return NULL;
	a = must_alloc(sizeof(*a));
	a->ns = ns;
	a->fn = fn;
	a->ctx = ctx;
	a->name = *name;
	a->type = type;
	a->deadline_ms = deadline_ms;
	a->generation = ns->generation;
	a->fd = -1;
	buf_init(&a->in, 2 + DNS_MESSAGE_MAX);
	timer_init(&a->timer, ns->loop, ask_on_timer);
	ns->asks++;
	/* without a first try the timer reports the failure, from the loop */
	if (!ask_try(a))
		timer_start(&a->timer, 1);
	return a;
}
