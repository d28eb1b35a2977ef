/* SPDX-License-Identifier: Apache-2.0 */
/* test_relay.c - bytes between a local end and a tunnel, and how each ends */

#include "tests/unit/gateway/fixture.h"

#include <sys/socket.h>
#include <unistd.h>

#include "gateway/upstream/relay.h"
#include "src/io/stream.h"

enum { MUCH_BYTES = 8 * 1024 * 1024 };

struct rig {
	struct world *world;
	struct list relays;
	struct stream *inside; /* what relay_new() gave */
	int far;	       /* the other end of the tunnel */
};

static int rig_set_up(void **state)
{
	struct rig *r = must_alloc(sizeof(*r));
	struct stream *tunnel;
	int fds[2];

	r->world = world_new();
	list_init(&r->relays);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
			 fds));
	r->far = fds[0];
	must(!stream_new(r->world->worker.loop, fds[1], &tunnel));
	must(!relay_new(&r->world->worker, &r->relays, tunnel, SPAN("first "),
			&r->inside));
	*state = r;
	return 0;
}

static int rig_tear_down(void **state)
{
	struct rig *r = *state;

	r->inside = stream_free(r->inside);
	relays_free(&r->relays);
	(void)close(r->far);
	world_free(r->world);
	free(r);
	return 0;
}

/* What the inside gives within some turns, as text. */
static void inside_gives(struct rig *r, const char *expected)
{
	char text[256] = "";
	size_t len = 0;
	ssize_t n;
	int i;

	for (i = 0; i < 200 && len < strlen(expected); i++) {
		world_settle(r->world);
		n = stream_read(r->inside, text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	assert_string_equal(text, expected);
}

/* Reads from the far end until it says nothing more now. The total; *ret_end:
 * its bytes ended. */
static size_t far_gives(struct rig *r, bool *ret_end)
{
	static char scratch[64 * 1024];
	size_t total = 0;
	ssize_t n;

	*ret_end = false;
	while ((n = read(r->far, scratch, sizeof(scratch))) > 0)
		total += (size_t)n;
	*ret_end = n == 0;
	return total;
}

static bool far_ends(struct rig *r)
{
	bool end = false;
	int i;

	for (i = 0; i < 200 && !end; i++) {
		world_settle(r->world);
		(void)far_gives(r, &end);
	}
	return end;
}

static void relay__carries_both_ways(void **state)
{
	struct rig *r = *state;
	bool end;
	size_t n;

	must(write(r->far, "second", 6) == 6);
	inside_gives(r, "first second");
	must(!stream_write(r->inside, SPAN("back")));
	must(!stream_flush(r->inside));
	world_settle(r->world);
	n = far_gives(r, &end);
	assert_int_equal(n, 4);
	assert_false(end);
}

static void relay__passes_half_an_end(void **state)
{
	struct rig *r = *state;

	stream_shutdown_write(r->inside);
	assert_true(far_ends(r));
	assert_false(list_is_empty(&r->relays));
	must(write(r->far, "still", 5) == 5);
	inside_gives(r, "first still");
	must(!shutdown(r->far, SHUT_WR));
	world_settle(r->world);
	assert_true(list_is_empty(&r->relays));
}

static void relay__ends_with_its_owner(void **state)
{
	struct rig *r = *state;

	r->inside = stream_free(r->inside);
	assert_true(far_ends(r));
	assert_true(list_is_empty(&r->relays));
}

/* A far end that does not read holds back the writer; what waits is bounded. */
static void relay__holds_back(void **state)
{
	static const char piece[64 * 1024];
	struct rig *r = *state;
	size_t taken = 0, given = 0;
	bool end;
	int i;

	for (i = 0; i < 500; i++) {
		if (!stream_write(r->inside, span_of(piece, sizeof(piece))))
			taken += sizeof(piece);
		world_settle(r->world);
	}
	assert_true(taken < MUCH_BYTES);
	for (i = 0; i < 500 && given < taken; i++) {
		given += far_gives(r, &end);
		world_settle(r->world);
	}
	assert_int_equal(given, taken);
}

int main(void)
{
#define CASE(test)                                                 \
	cmocka_unit_test_setup_teardown(relay__##test, rig_set_up, \
					rig_tear_down)
	const struct CMUnitTest tests[] = {
		CASE(carries_both_ways),
		CASE(passes_half_an_end),
		CASE(ends_with_its_owner),
		CASE(holds_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
