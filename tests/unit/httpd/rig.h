/* SPDX-License-Identifier: Apache-2.0 */
/* rig.h - a server on a unix socket, and raw clients of it, in one thread
 *
 * Include after cmocka.h. The loop turns while a client sends or reads.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"

struct rig {
	struct loop *loop;
	struct httpd *httpd;
	char folder[64], path[96];
};

static inline void rig_open(struct rig *rig, const struct httpd_route *routes,
			    unsigned count, const struct httpd_ops *ops,
			    void *ctx)
{
	strcpy(rig->folder, "/tmp/httpd-test-XXXXXX");
	assert_non_null(mkdtemp(rig->folder));
	snprintf(rig->path, sizeof(rig->path), "%s/sock", rig->folder);
	assert_int_equal(loop_new(&rig->loop), 0);
	assert_int_equal(
		httpd_new(rig->loop, routes, count, ops, ctx, &rig->httpd), 0);
	assert_int_equal(httpd_listen_unix(rig->httpd, rig->path, 0600), 0);
}

static inline void rig_close(struct rig *rig)
{
	httpd_free(rig->httpd);
	for (int i = 0; i < 5; i++) {
		loop_run_once(rig->loop, false);
		usleep(2000); /* who was left hears of it by a timer */
	}
	loop_free(rig->loop);
	unlink(rig->path);
	rmdir(rig->folder);
}

static inline int client_open(const struct rig *rig)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(span_copy(span_str(rig->path), at.sun_path,
			      sizeof(at.sun_path)));
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static inline void turn(struct rig *rig)
{
	loop_run_once(rig->loop, false);
}

/* Turns until nothing more can happen by itself. */
static inline void turns(struct rig *rig, unsigned n)
{
	while (n--)
		turn(rig);
}

/* How much of it the server took within ms. */
static inline size_t client_send_for(struct rig *rig, int fd, struct span bytes,
				     unsigned ms)
{
	uint64_t end = clock_ms() + ms;
	size_t sent = 0;
	ssize_t n;

	while (sent < bytes.len && clock_ms() < end) {
		n = send(fd, bytes.ptr + sent, bytes.len - sent, MSG_NOSIGNAL);
		if (n > 0)
			sent += (size_t)n;
		else if (errno != EAGAIN)
			break; /* refused early */
		turn(rig);
	}
	return sent;
}

static inline void client_send(struct rig *rig, int fd, struct span bytes)
{
	(void)client_send_for(rig, fd, bytes, 5000);
	turns(rig, 3);
}

/* Collects until the text holds `until` (NULL: until end of stream). The text
 * is good until the next call. */
static inline const char *client_read(struct rig *rig, int fd,
				      const char *until)
{
	static char text[4 * 1024 * 1024];
	uint64_t end = clock_ms() + 5000;
	size_t len = 0;
	ssize_t n;

	text[0] = '\0';
	while (clock_ms() < end && len < sizeof(text) - 1) {
		turn(rig);
		n = recv(fd, text + len, sizeof(text) - len - 1, 0);
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return until ? "(end)" : text;
		if (n < 0)
			continue;
		len += (size_t)n;
		text[len] = '\0';
		if (until && strstr(text, until))
			return text;
	}
	return "(timeout)";
}

/* One exchange on a fresh connection; the request says "close" or is refused.
 */
static inline const char *ask(struct rig *rig, const char *request)
{
	int fd = client_open(rig);
	const char *text;

	client_send(rig, fd, span_str(request));
	text = client_read(rig, fd, NULL);
	close(fd);
	return text;
}

static inline void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in: %s", part, text);
}

static inline void assert_lacks(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" is in: %s", part, text);
}

static inline unsigned count_of(const char *text, const char *part)
{
	unsigned n = 0;

	for (; (text = strstr(text, part)); text++)
		n++;
	return n;
}

#define CLOSE "Host: x\r\nConnection: close\r\n\r\n"
