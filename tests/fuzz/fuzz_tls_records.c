/* fuzz: io */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_tls_records.c - a peer with the keys, who sends what he likes: the
 * stream gives its reader nothing but what was sent as bytes, in order
 *
 * Input: a byte whose bits are: 1 a client's stream, 2 the reader has little
 * room, 4 it reads seldom; then steps of a type, a length and so many bytes.
 * Type 0: bytes as they are; 1: a key update as it should be; 2: bytes, the
 * length 256 times as large; any other is that of a record.
 */

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/io/tls/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEPS_MAX = 200, SENT_MAX = 512 * 1024 };

static const char secret[32] = "no secret at all, and known here";
static char sent[SENT_MAX], got[64 * 1024];
static size_t sent_len, got_len;

static struct stream *stream_with_keys(struct loop *loop, int fd, bool client)
{
	struct tls_way way = { .secret_len = sizeof(secret) };
	struct stream *s = NULL;

	memcpy(way.secret, secret, sizeof(secret));
	must(stream_new(loop, fd, &s) == 0);
	s->tls = must_alloc(sizeof(*s->tls));
	s->tls->records = tls_records_new(0x1301, client, &way, &way);
	must(s->tls->records != NULL);
	s->tls->records->update_at = 50;
	s->tls->ready = true;
	s->tls_ops = &tls_records_ops;
	return s;
}

static void read_some(struct loop *loop, struct stream *s, size_t room)
{
	ssize_t n;

	for (int i = 0; i < 64; i++) {
		loop_run_once(loop, false);
		n = stream_read(s, got, room);
		if (n <= 0)
			break;
		if ((size_t)n > sent_len - got_len ||
		    memcmp(got, sent + got_len, (size_t)n) != 0)
			abort();
		got_len += (size_t)n;
		(void)!stream_write(s, span_of(got, (size_t)n));
		(void)stream_flush(s);
	}
}

static void write_all(int fd, const char *bytes, size_t len)
{
	(void)!send(fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void put(int fd, struct tls_keys *k, uint8_t type, struct span bytes)
{
	static char dst[TLS_PLAIN_MAX + TLS_SEAL_SIZE];

	if (type == TLS_TYPE_DATA) {
		if (bytes.len > SENT_MAX - sent_len)
			return;
		memcpy(sent + sent_len, bytes.ptr, bytes.len);
		sent_len += bytes.len;
	}
	tls_seal(k, type, bytes, dst);
	write_all(fd, dst, bytes.len + TLS_SEAL_SIZE);
}

static void step(int fd, struct tls_keys *k, uint8_t type, struct span bytes)
{
	static char many[TLS_PLAIN_MAX];
	static const char update[] = "\x18\0\0\1\1";

	if (type == 0) {
		write_all(fd, bytes.ptr, bytes.len);
	} else if (type == 1) {
		put(fd, k, TLS_TYPE_HANDSHAKE, span_of(update, 5));
		tls_keys_update(k);
	} else if (type == 2) {
		memset(many, (int)bytes.len, sizeof(many));
		put(fd, k, TLS_TYPE_DATA,
		    span_of(many, MIN(bytes.len * 256, sizeof(many))));
	} else {
		put(fd, k, type, bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tls_keys k = { 0 };
	struct loop *loop = NULL;
	struct stream *s;
	char drop[65536];
	size_t at = 1, len;
	int fds[2];
	unsigned steps;

	if (!size)
		return 0;
	sent_len = got_len = 0;
	must(loop_new(&loop) == 0);
	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
			fds) == 0);
	s = stream_with_keys(loop, fds[0], data[0] & 1);
	must(tls_keys_init(&k, 0x1301, span_of(secret, 32), true, 0));
	for (steps = 0; at + 2 <= size && steps < STEPS_MAX; steps++) {
		len = MIN((size_t)data[at + 1], size - at - 2);
		step(fds[1], &k, data[at], span_of(data + at + 2, len));
		at += 2 + len;
		if (!(data[0] & 4) || steps % 8 == 7)
			read_some(loop, s, data[0] & 2 ? 7 : sizeof(got));
		(void)!recv(fds[1], drop, sizeof(drop), MSG_DONTWAIT);
	}
	stream_shutdown_write(s);
	read_some(loop, s, sizeof(got));
	stream_free(s);
	loop_free(loop);
	tls_keys_fini(&k);
	(void)close(fds[1]);
	return 0;
}
