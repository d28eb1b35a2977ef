/* SPDX-License-Identifier: Apache-2.0 */
/* load_conn.c - one connection: shake, ask, read, check */

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "tests/bench/load.h"

enum { ERRORS_MAX = 1000, ERRORS_TOLD = 10 };

void conn_close(struct conn *c)
{
	list_remove(&c->link);
	if (c->state == CONN_RESTING)
		c->load->resting_count--;
	h2_end(c);
	if (c->ssl) {
		(void)SSL_shutdown(c->ssl);
		SSL_free(c->ssl);
	}
	ERR_clear_error();
	if (c->fd >= 0)
		(void)close(c->fd);
	c->ssl = NULL;
	c->fd = -1;
	c->state = CONN_NONE;
}

static int socket_begin(const struct plan *p)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)p->port) };
	const int on = 1;
	int fd;

	must(inet_pton(AF_INET, p->address, &to.sin_addr) == 1);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	must(fd >= 0);
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	(void)connect(fd, (struct sockaddr *)&to, sizeof(to));
	return fd; /* a failed connect is seen by the handshake */
}

static void conn_name_host(struct conn *c)
{
	const struct plan *p = c->load->plan;
	const char *mark = strstr(p->host, "%u");

	if (!mark) {
		(void)snprintf(c->host, sizeof(c->host), "%s", p->host);
		return;
	}
	(void)snprintf(c->host, sizeof(c->host), "%.*s%" PRIu64 "%s",
		       (int)(mark - p->host), p->host,
		       c->load->begun % p->hosts, mark + 2);
}

void conn_open(struct conn *c)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					    EPOLLET,
				  .data.ptr = c };
	struct load *l = c->load;

	conn_name_host(c);
	l->begun++;
	c->begun_us = clock_us();
	c->fd = socket_begin(l->plan);
	c->ssl = SSL_new(l->ctx);
	must(c->ssl && SSL_set_fd(c->ssl, c->fd) == 1);
	SSL_set_app_data(c->ssl, c);
	must(SSL_set_tlsext_host_name(c->ssl, c->host) == 1);
	must(SSL_set1_host(c->ssl, c->host) == 1);
	if (l->plan->resume && l->session)
		must(SSL_set_session(c->ssl, l->session) == 1);
	SSL_set_connect_state(c->ssl);
	c->state = CONN_SHAKING;
	must(epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) == 0);
}

/* Another connection in the place of this one, if the plan has one. */
static void conn_replace(struct conn *c)
{
	struct load *l = c->load;

	conn_close(c);
	if (l->over || l->plan->mode == MODE_WAIT)
		return;
	if (l->plan->count && l->begun >= l->plan->count)
		return;
	conn_open(c);
}

static void conn_fail(struct conn *c, const char *what)
{
	struct load *l = c->load;
	unsigned long e = ERR_peek_error();

	if (l->plan->mode != MODE_WAIT) {
		if (l->tally.errors++ < ERRORS_TOLD)
			(void)fprintf(stderr, "%s: %s: %s\n", c->host, what,
				      e ? ERR_reason_error_string(e)
					: err_text(errno));
		if (l->tally.errors > ERRORS_MAX) {
			(void)fprintf(stderr, "too many errors\n");
			exit(1);
		}
	}
	conn_replace(c);
}

static void conn_rest(struct conn *c)
{
	c->state = CONN_RESTING;
	list_push(&c->load->resting, &c->link);
	c->load->resting_count++;
}

/* Writes of the request's body what the socket takes. */
static bool conn_upload(struct conn *c)
{
	static const char zeros[READ_BYTES];
	int n;

	while (c->upload_left) {
		n = SSL_write(c->ssl, zeros,
			      (int)MIN(c->upload_left, sizeof(zeros)));
		if (n <= 0)
			return SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_WRITE;
		c->upload_left -= (uint64_t)n;
		if (c->load->measuring)
			c->load->tally.bytes += (uint64_t)n;
	}
	return true;
}

void conn_ask(struct conn *c)
{
	const struct plan *p = c->load->plan;
	char request[1024], length[64] = "";
	int len;

	if (c->state == CONN_RESTING) {
		list_remove(&c->link);
		c->load->resting_count--;
	}
	if (p->upload)
		(void)snprintf(length, sizeof(length),
			       "Content-Length: %" PRIu64 "\r\n", p->upload);
	len = snprintf(
		request, sizeof(request),
		"%s %s HTTP/1.1\r\nHost: %s\r\n"
		"User-Agent: sallyport-load\r\nAccept: */*\r\n%s%s%s%s\r\n",
		p->upload ? "POST" : "GET", p->path, c->host, length,
		p->token ? "Authorization: " : "", p->token ? p->token : "",
		p->token ? "\r\n" : "");
	c->state = CONN_READING;
	c->head_len = 0;
	c->head_done = false;
	c->upload_left = p->upload;
	if (SSL_write(c->ssl, request, len) != len || !conn_upload(c))
		conn_fail(c, "request");
}

/* The exchange is whole: what comes next is the mode's business. */
static void conn_done(struct conn *c)
{
	struct load *l = c->load;

	if (l->measuring)
		tally_add(&l->tally, clock_us() - c->begun_us, c->injected);
	switch (l->plan->mode) {
	case MODE_KEEP:
		c->begun_us = clock_us();
		conn_ask(c);
		return;
	case MODE_PACED:
	case MODE_IDLE:
		conn_rest(c);
		return;
	case MODE_CLOSE:
		conn_replace(c);
		return;
	case MODE_WAIT:
		l->over = c->injected;
		conn_close(c);
		return;
	case MODE_H2: /* counts by stream */
	case MODE_EVENTS:
	case MODE_NUM:
		break;
	}
	must(!"a mode");
}

/* The head in c->head is whole: end is the first byte after it. */
static bool head_parse(struct conn *c, size_t end)
{
	const char *length;

	c->head[end - 1] = '\0';
	length = strcasestr(c->head, "\r\ncontent-length:");
	if (strncmp(c->head, "HTTP/1.1 200", 12) != 0)
		return false;
	if (!length != (c->load->plan->mode == MODE_EVENTS))
		return false;
	c->injected = strcasestr(c->head, "\r\nx-inj: 1\r") != NULL;
	c->body_left = length ? strtoull(length + 17, NULL, 10) : 0;
	c->head_done = true;
	return true;
}

/* Finds "data: STAMP\n", wherever a chunk or a read was cut. */
static void events_take(struct conn *c, const char *bytes, size_t len)
{
	static const char mark[] = "data: ";
	const size_t mark_len = sizeof(mark) - 1;
	struct load *l = c->load;
	const char *p;

	for (p = bytes; p < bytes + len; p++) {
		if (c->stamp_at < mark_len) {
			c->stamp_at = *p == mark[c->stamp_at] ? c->stamp_at + 1
							      : *p == mark[0];
			c->stamp = 0;
		} else if (*p >= '0' && *p <= '9') {
			c->stamp = c->stamp * 10 + (uint64_t)(*p - '0');
		} else {
			c->stamp_at = 0;
			if (l->measuring)
				tally_add(&l->tally, clock_us() - c->stamp,
					  c->injected);
		}
	}
}

/* False: no answer that we can count. */
static bool conn_take(struct conn *c, const char *bytes, size_t len)
{
	size_t before = c->head_len, part = MIN(len, HEAD_BYTES - before);
	const char *end;

	if (!c->head_done) {
		memcpy(c->head + before, bytes, part);
		c->head_len += part;
		end = memmem(c->head, c->head_len, "\r\n\r\n", 4);
		if (!end)
			return c->head_len < HEAD_BYTES;
		part = (size_t)(end + 4 - c->head);
		len -= part - before;
		if (!head_parse(c, part))
			return false;
		bytes += part - before;
	}
	if (c->load->plan->mode == MODE_EVENTS)
		events_take(c, bytes, len);
	else if (len > c->body_left)
		return false;
	else
		c->body_left -= len;
	if (c->load->measuring)
		c->load->tally.bytes += len;
	return true;
}

/* False: nothing more for now. */
static bool conn_read(struct conn *c)
{
	int n;

	if (c->upload_left && !conn_upload(c)) {
		conn_fail(c, "upload");
		return true;
	}
	n = SSL_read(c->ssl, c->load->scratch, READ_BYTES);
	if (n <= 0) {
		if (SSL_get_error(c->ssl, n) == SSL_ERROR_WANT_READ) {
			if (c->h2 && !h2_send(c))
				conn_fail(c, "request");
			return false;
		}
		conn_fail(c, "response");
	} else if (c->h2) {
		if (!h2_take(c, c->load->scratch, (size_t)n))
			conn_fail(c, "unexpected stream");
	} else if (c->state != CONN_READING || c->upload_left ||
		   !conn_take(c, c->load->scratch, (size_t)n)) {
		conn_fail(c, "unexpected answer");
	} else if (c->head_done && !c->body_left &&
		   c->load->plan->mode != MODE_EVENTS) {
		conn_done(c);
	}
	return true;
}

static bool conn_shake(struct conn *c)
{
	struct load *l = c->load;
	int r = SSL_do_handshake(c->ssl);

	if (r == 1) {
		l->up_count++;
		if (l->measuring) {
			l->tally.handshakes++;
			l->tally.resumed += SSL_session_reused(c->ssl) == 1;
		}
		if (l->plan->mode != MODE_H2)
			conn_ask(c);
		else if (!h2_begin(c))
			conn_fail(c, "HTTP/2");
		return true;
	}
	r = SSL_get_error(c->ssl, r);
	if (r == SSL_ERROR_WANT_READ || r == SSL_ERROR_WANT_WRITE)
		return false;
	conn_fail(c, "handshake");
	return true;
}

void conn_run(struct conn *c)
{
	bool more = true;

	while (more && !c->load->over && c->state != CONN_NONE)
		more = c->state == CONN_SHAKING ? conn_shake(c) : conn_read(c);
}

void conn_init(struct conn *c, struct load *l)
{
	c->load = l;
	c->fd = -1;
	list_init(&c->link);
}
