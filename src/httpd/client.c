/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - one blocking HTTP/1.1 exchange with our own API
 *
 * How it works: the socket is blocking with send and receive timeouts. The
 * reply's head is collected until h1_scan() finds its end; then pieces of the
 * body go to a sink, whatever its framing. Replies of 1xx are skipped.
 */

#include "src/httpd/client.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/wire/h1.h"

enum {
	CLIENT_HEAD_MAX = 64 * 1024,
	CLIENT_REQUEST_MAX = 2 * 1024 * 1024,
	CLIENT_TIMEOUT_MS = 30 * 1000,
};

struct exchange {
	int fd;
	struct buf in;
	struct h1_response head;
	size_t head_len;
	struct h1_chunked chunked;
	uint64_t left;
	/* where the body goes: to fn, or to reply */
	httpd_piece_fn *fn;
	void *ctx;
	struct buf *reply;
};

/* -- connecting ----------------------------------------------------------- */

static int client_socket(const struct httpd_target *target,
			 struct sockaddr_storage *at, socklen_t *len)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd;

	if (target->socket_path) {
		if (!span_copy(span_str(target->socket_path), un.sun_path,
			       sizeof(un.sun_path)))
			return -ENAMETOOLONG;
		memcpy(at, &un, sizeof(un));
		*len = sizeof(un);
	} else {
		*len = addr_to_sockaddr(&target->address, at);
	}
	fd = socket(at->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static int client_connect(const struct httpd_target *target, bool patient)
{
	unsigned ms =
		target->timeout_ms ? target->timeout_ms : CLIENT_TIMEOUT_MS;
	struct timeval limit = { .tv_sec = ms / 1000,
				 .tv_usec = (ms % 1000) * 1000L };
	const struct timeval none = { 0 };
	struct sockaddr_storage at = { 0 };
	socklen_t len;
	int r, fd;

	fd = client_socket(target, &at, &len);
	if (fd < 0)
		return fd;
	r = setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (patient && !target->timeout_ms)
		limit = none;
	if (r ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    connect(fd, (struct sockaddr *)&at, len)) {
		r = errno == EAGAIN || errno == EINPROGRESS ? -ETIMEDOUT
							    : -errno;
		(void)fd_close(fd);
		return r;
	}
	return fd;
}

/* -- the request ---------------------------------------------------------- */

static int client_send_all(int fd, struct span bytes)
{
	ssize_t n;

	while (bytes.len) {
		n = send(fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? -ETIMEDOUT : -errno;
		bytes = span_from(bytes, (size_t)n);
	}
	return 0;
}

static int client_send(int fd, const struct httpd_target *target,
		       const char *method, const char *path, struct span body)
{
	struct buf out = BUF_INIT(CLIENT_REQUEST_MAX);
	int r;

	r = buf_putf(&out,
		     "%s %s HTTP/1.1\r\nHost: localhost\r\n"
		     "Connection: close\r\n",
		     method, path);
	if (!r && target->token)
		r = buf_putf(&out, "Authorization: Bearer %s\r\n",
			     target->token);
	if (!r && body.ptr)
		r = buf_putf(&out,
			     "Content-Type: application/json\r\n"
			     "Content-Length: %zu\r\n",
			     body.len);
	if (!r)
		r = buf_put(&out, SPAN("\r\n"));
	if (!r)
		r = buf_put(&out, body);
	if (!r)
		r = client_send_all(fd, buf_peek(&out));
	buf_wipe(&out); /* a credential may have been in it */
	return r;
}

/* -- the reply ------------------------------------------------------------ */

/* > 0 bytes came, 0 end of stream, or -errno. */
static int client_receive(struct exchange *x)
{
	char *room;
	ssize_t n;
	int r;

	r = buf_reserve(&x->in, 16 * 1024, &room);
	if (r)
		return -EPROTO;
	do {
		n = recv(x->fd, room, 16 * 1024, 0);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN ? -ETIMEDOUT : -errno;
	buf_commit(&x->in, (size_t)n);
	return (int)n;
}

/* Leaves the final head at the front of .in, .head parsed over it. */
static int client_receive_head(struct exchange *x, struct span method)
{
	struct h1_scan scan = { 0 };
	struct span head;
	int n, got;

	for (;;) {
		n = h1_scan(&scan, buf_peek(&x->in), CLIENT_HEAD_MAX);
		if (n < 0)
			return -EPROTO;
		if (!n) {
			got = client_receive(x);
			if (got <= 0)
				return got ? got : -EPROTO;
			continue;
		}
		head = span_of(buf_peek(&x->in).ptr, (size_t)n);
		if (h1_parse_response(head, method, &x->head))
			return -EPROTO;
		x->head_len = (size_t)n;
		if (x->head.status >= 200)
			return 0;
		buf_consume(&x->in, (size_t)n);
		scan = (struct h1_scan){ 0 };
	}
}

/* 0 go on, 1 the sink has enough, or -ENOBUFS. */
static int client_give(struct exchange *x, struct span piece)
{
	if (!piece.len)
		return 0;
	if (x->fn && x->head.status == 200)
		return !x->fn(x->ctx, piece);
	return buf_put(x->reply, piece);
}

static int client_give_chunks(struct exchange *x)
{
	struct span in = buf_peek(&x->in), piece;
	size_t before = in.len;
	int r = 0;

	while (!r && in.len && !x->chunked.done) {
		if (h1_chunked_next(&x->chunked, &in, &piece, NULL))
			return -EPROTO;
		r = client_give(x, piece);
	}
	buf_consume(&x->in, before - in.len);
	return r ? r : x->chunked.done;
}

static int client_give_bytes(struct exchange *x)
{
	struct span in = buf_peek(&x->in);
	int r;

	if (x->head.body == H1_BODY_LENGTH)
		in.len = (size_t)MIN((uint64_t)in.len, x->left);
	r = client_give(x, in);
	buf_consume(&x->in, in.len);
	x->left -= x->head.body == H1_BODY_LENGTH ? in.len : 0;
	if (r)
		return r;
	return x->head.body == H1_BODY_LENGTH && !x->left;
}

static int client_receive_body(struct exchange *x)
{
	int r, got;

	x->left = x->head.length;
	for (;;) {
		if (x->head.body == H1_BODY_NONE)
			return 0;
		r = x->head.body == H1_BODY_CHUNKED ? client_give_chunks(x)
						    : client_give_bytes(x);
		if (r)
			return r < 0 ? r : 0;
		got = client_receive(x);
		if (got < 0)
			return got;
		if (!got)
			return x->head.body == H1_BODY_CLOSE ? 0 : -EPROTO;
	}
}

static int client_exchange(struct exchange *x,
			   const struct httpd_target *target,
			   const char *method, const char *path,
			   struct span body, unsigned *status)
{
	int r;

	x->fd = client_connect(target, x->fn);
	if (x->fd < 0)
		return x->fd;
	buf_init(&x->in, CLIENT_HEAD_MAX + 64 * 1024);
	r = client_send(x->fd, target, method, path, body);
	/* a refusal may have come while we were still sending */
	if (!r || r == -EPIPE || r == -ECONNRESET)
		r = client_receive_head(x, span_str(method));
	if (!r) {
		*status = x->head.status;
		buf_consume(&x->in, x->head_len);
		r = client_receive_body(x);
	}
	buf_fini(&x->in);
	x->fd = fd_close(x->fd);
	return r;
}

int httpd_client_call(const struct httpd_target *target, const char *method,
		      const char *path, struct span body, unsigned *status,
		      struct buf *reply)
{
	struct exchange x = { .reply = reply };

	return client_exchange(&x, target, method, path, body, status);
}

int httpd_client_stream(const struct httpd_target *target, const char *path,
			unsigned *status, httpd_piece_fn *fn, void *ctx,
			struct buf *reply)
{
	struct exchange x = { .reply = reply, .fn = fn, .ctx = ctx };

	return client_exchange(&x, target, "GET", path, SPAN_NONE, status);
}

int httpd_client_encode(struct buf *dst, struct span text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
	size_t i;
	int r = 0;

	for (i = 0; i < text.len && !r; i++) {
		if (text.ptr[i] && strchr(plain, text.ptr[i]))
			r = buf_put(dst, span_of(text.ptr + i, 1));
		else
			r = buf_putf(dst, "%%%02X", (unsigned char)text.ptr[i]);
	}
	return r;
}
