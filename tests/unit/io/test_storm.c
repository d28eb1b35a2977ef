/* SPDX-License-Identifier: Apache-2.0 */
/* test_storm.c - many streams doing anything at any moment
 *
 * Every stream is part of a chain client - middle - server. At each call back
 * an owner picks, from a seeded sequence, what to do: read, write, shut down,
 * close, reset, free, or free somebody else. The middle relays plain, or is a
 * splice. Nothing is judged but what the sanitizers see, that the loop comes
 * to rest, and that no fd is left.
 */

#include "tests/unit/io/tls_party.h"

#include <dirent.h>

enum { ACTORS = 64, ROUNDS = 40, SEEDS = 12 };

struct actor {
	struct stream *stream;
	struct actor *all;
};

static struct loop *loop;
static struct tls_world world;
static uint64_t seed;

static unsigned pick(unsigned n)
{
	return (unsigned)(random_next(&seed) >> 20) % n;
}

static unsigned open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void actor_end(struct actor *a)
{
	struct stream *s = a->stream;

	if (!s)
		return;
	a->stream = NULL;
	switch (pick(4)) {
	case 0:
		stream_free(s);
		return;
	case 1:
		stream_reset(s);
		return;
	case 2:
		stream_close_alert(s, 40);
		return;
	default:
		stream_close(s, pick(2) ? 20 : 0);
	}
}

static void actor_act(struct actor *a)
{
	static char bytes[64 * 1024];
	struct stream *s = a->stream;

	switch (pick(40)) {
	case 0:
		actor_end(a);
		return;
	case 1:
		actor_end(&a->all[pick(ACTORS)]);
		return;
	case 2:
		stream_shutdown_write(s);
		return;
	case 3:
		(void)stream_flush(s);
		return;
	case 4:
	case 5:
	case 6:
	case 7:
		(void)!stream_write(s, span_of(bytes, pick(sizeof(bytes))));
		return;
	case 8:
		stream_want(s, 0);
		return;
	default:
		(void)!stream_read(s, bytes, 1 + pick(sizeof(bytes)));
	}
}

static void actor_on_event(struct stream *s, void *ctx, unsigned events)
{
	struct actor *a = ctx;

	(void)events;
	assert_ptr_equal(a->stream, s);
	for (unsigned i = pick(4); i && a->stream; i--)
		actor_act(a);
	if (a->stream)
		stream_want(a->stream, pick(8));
}

static void actor_start(struct actor *a, int fd, SSL *ssl)
{
	assert_int_equal(stream_new(loop, fd, &a->stream), 0);
	if (ssl)
		assert_int_equal(stream_start_tls(a->stream, ssl), 0);
	stream_set_owner(a->stream, actor_on_event, a);
	stream_want(a->stream, STREAM_READABLE | STREAM_WRITABLE);
}

static void join(int left, int right)
{
	struct splice *sp;
	struct stream *a, *b;

	assert_int_equal(stream_new(loop, left, &a), 0);
	assert_int_equal(stream_new(loop, right, &b), 0);
	assert_int_equal(stream_splice(a, b, pick(3) * 10, NULL, NULL, &sp), 0);
	if (!pick(8))
		splice_cancel(sp, -EACCES);
}

/* Two actors, joined directly or over a splice, plain or TLS. */
static void couple(struct actor *a, struct actor *b)
{
	bool tls = pick(3) > 0;
	int x[2], y[2];

	(pick(2) ? tcp_pair : unix_pair)(x);
	if (pick(2)) {
		(pick(2) ? tcp_pair : unix_pair)(y);
		join(x[1], y[0]);
		x[1] = y[1];
	}
	actor_start(a, x[0], tls ? ssl_client(&world, "origin.test") : NULL);
	actor_start(b, x[1], tls ? ssl_server(&world) : NULL);
}

static void storm__leaves_nothing_behind(void **state)
{
	static struct actor actors[ACTORS];
	unsigned before = open_fds();

	(void)state;
	for (uint64_t i = 1; i <= SEEDS; i++) {
		seed = i * 7919;
		assert_int_equal(loop_new(&loop), 0);
		for (unsigned j = 0; j < ACTORS; j++)
			actors[j].all = actors;
		for (unsigned r = 0; r < ROUNDS; r++) {
			unsigned j = 2 * pick(ACTORS / 2);

			actor_end(&actors[j]);
			actor_end(&actors[j + 1]);
			couple(&actors[j], &actors[j + 1]);
			loop_run_once(loop, false);
			for (j = 0; j < ACTORS; j++)
				if (actors[j].stream)
					stream_want(actors[j].stream, pick(8));
		}
		for (unsigned j = 0; j < ACTORS; j++)
			actor_end(&actors[j]);
		loop_run_once(loop, false);
		loop = loop_free(loop);
		assert_int_equal(open_fds(), before);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(storm__leaves_nothing_behind),
	};
	int r;

	tls_world_init(&world, 0);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	tls_world_fini(&world);
	return r;
}
