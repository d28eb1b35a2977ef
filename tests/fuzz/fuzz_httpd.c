/* fuzz: httpd */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_httpd.c - one connection: requests whose bodies are read in pieces
 *
 * The first byte says what the handler does (its low bits), and how the rest
 * is cut (its high bits). The same bytes come a second time in one piece: what
 * the handler sees of each body must be the same, and no request may be left.
 */

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/httpd/request.h"
#include "src/io/stream.h"

enum manner { READ_ALL, PAUSE_EACH, REPLY_AT_FIRST, STREAM_REPLY, TAKE };

enum { TURNS_MAX = 400, MANNERS = 5 };

struct run {
	enum manner manner;
	unsigned live; /* requests that the handler has */
	uint64_t seen; /* a hash of what it saw */
	struct httpd_request *paused;
};

static struct run run;
static struct loop *loop;
static struct httpd *server;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void see(const void *bytes, size_t len)
{
	const uint8_t *p = bytes;

	while (len--)
		run.seen = (run.seen ^ *p++) * 0x100000001b3;
}

static void on_gone(void *user, struct httpd_request *r)
{
	(void)user;
	run.live--;
	httpd_stream_end(r);
}

static void finish(struct httpd_request *r, bool whole)
{
	run.live--;
	run.paused = NULL;
	if (run.manner != STREAM_REPLY)
		httpd_reply_error(r, whole ? 200 : 400, "X", "done");
	else if (whole)
		httpd_stream_end(r);
	else
		httpd_stream_abort(r);
}

static void on_piece(void *user, struct httpd_request *r, enum httpd_piece kind,
		     struct span bytes)
{
	(void)user;
	if (kind != HTTPD_PIECE) {
		see(kind == HTTPD_PIECE_END ? "E" : "C", 1);
		finish(r, kind == HTTPD_PIECE_END);
		return;
	}
	must(bytes.len && bytes.len <= HTTPD_PIECE_MAX);
	see(bytes.ptr, bytes.len);
	if (run.manner == REPLY_AT_FIRST)
		finish(r, true);
	if (run.manner == PAUSE_EACH) {
		httpd_body_pause(r);
		run.paused = r;
	}
	if (run.manner == STREAM_REPLY)
		(void)!httpd_stream_write(r, bytes);
}

static void on_any(void *ctx, struct httpd_request *r)
{
	struct span rest = httpd_param(r, "rest");

	(void)ctx;
	see(rest.ptr, rest.len);
	run.live++;
	if (run.manner == TAKE && !httpd_body_length(r)) {
		run.live--;
		stream_free(httpd_take_stream(r));
		return;
	}
	if (run.manner == STREAM_REPLY)
		httpd_stream_start(r, 200, "text/plain", on_gone);
	httpd_body_read(r, on_piece);
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	(void)r;
	return 0;
}

static const struct httpd_route routes[] = {
	{ "*", "/{rest*}", HTTPD_AUTH_OPEN, on_any, HTTPD_BODY_STREAMED },
};

static void turn(int fd)
{
	char scratch[4096];

	loop_run_once(loop, false);
	while (recv(fd, scratch, sizeof(scratch), MSG_DONTWAIT) > 0)
		;
	if (run.paused) {
		struct httpd_request *r = run.paused;

		run.paused = NULL;
		httpd_body_resume(r);
	}
}

static void say(const uint8_t *data, size_t size, size_t step)
{
	const struct httpd_peer peer = { .is_unix = true };
	struct stream *s;
	int fds[2], turns;
	ssize_t n;

	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds));
	must(!stream_new(loop, fds[0], &s));
	request_new(server, s, &peer, false);
	while (size) {
		n = send(fds[1], data, MIN(step, size), MSG_NOSIGNAL);
		if (n > 0) {
			data += n;
			size -= (size_t)n;
		} else if (errno != EAGAIN) {
			break;
		}
		turn(fds[1]);
	}
	(void)shutdown(fds[1], SHUT_WR);
	for (turns = 0; turns < 8 || run.live; turns++) {
		must(turns < TURNS_MAX);
		turn(fds[1]);
		if (turns > 8)
			usleep(500); /* who is gone is told by a timer */
	}
	close(fds[1]);
	for (turns = 0; httpd_connection_count(server); turns++) {
		must(turns < TURNS_MAX);
		turn(-1);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct httpd_ops ops = { .authorise = on_authorise };
	uint64_t first;

	if (!size)
		return 0;
	if (!loop) {
		must(!loop_new(&loop));
		must(!httpd_new(loop, routes, 1, &ops, NULL, &server));
	}
	run = (struct run){ .manner = (data[0] & 15) % MANNERS };
	say(data + 1, size - 1, (size_t)(data[0] >> 4) * 7 + 1);
	first = run.seen;
	/* when the handler stops early, how much it saw is a matter of splits;
	 * amid a streamed reply the end of the client's side ends all */
	if (run.manner != READ_ALL && run.manner != PAUSE_EACH)
		return 0;
	run = (struct run){ .manner = run.manner };
	say(data + 1, size - 1, size);
	must(run.seen == first);
	return 0;
}
