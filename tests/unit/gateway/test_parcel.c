/* SPDX-License-Identifier: Apache-2.0 */
/* test_parcel.c - changes reach several workers with threads of their own, in
 * order, and a barrier behind them means what it says */

#include "tests/unit/gateway/roles.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/text/json.h"

enum { WORKERS = 3, ROUNDS = 200 };

struct desk {
	struct roles *roles;
	struct worker workers[WORKERS];
	void *state;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct gateway *g;
	unsigned i;

	must(!roles_set_up(&d->state));
	d->roles = d->state;
	g = &d->roles->world->gateway;
	g->workers = d->workers;
	g->worker_count = WORKERS;
	for (i = 0; i < WORKERS; i++) {
		worker_init(&d->workers[i], g, i);
		must(!worker_start(&d->workers[i]));
	}
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;
	unsigned i;

	for (i = 0; i < WORKERS; i++)
		worker_fini(&d->workers[i]);
	must(!roles_tear_down(&d->state));
	free(d);
	return 0;
}

/* Turns the main loop until the control role is told something. */
static const void *await(struct desk *d, enum msg_type type,
			 uint32_t *ret_serial, struct span *ret_tail)
{
	struct pollfd p = { .fd = d->roles->control, .events = POLLIN };
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (poll(&p, 1, 0) == 0 && clock_ms() < end_ms) {
		world_turn(d->roles->world);
		(void)usleep(100);
	}
	return hear(d->roles, d->roles->control, type, ret_serial, ret_tail);
}

/* What worker i holds, read while it is at rest: nothing is under way. */
static uint32_t policy_at(const struct desk *d, unsigned i)
{
	const struct sandbox *s =
		map_find(&d->workers[i].facts.by_id, SPAN("s"));

	return s ? s->policy : 0;
}

static void parcel__a_barrier_is_behind_every_change(void **state)
{
	struct desk *d = *state;
	uint32_t round, serial;
	unsigned i;

	for (round = 1; round <= ROUNDS; round++) {
		struct msg_sandbox s = sandbox_msg("s", "10.0.0.1", round);

		say(d->roles->control, MSG_CONTROL_SANDBOX, 0, &s, SPAN_NONE);
		if (round % 3 == 0) {
			say(d->roles->control, MSG_CONTROL_SANDBOX_DROP, 0, &s,
			    SPAN_NONE);
			say(d->roles->control, MSG_CONTROL_SANDBOX, 0, &s,
			    SPAN_NONE);
		}
		say_sync(d->roles, round);
		(void)await(d, MSG_GATEWAY_SYNCED, &serial, NULL);
		assert_int_equal(serial, round);
		for (i = 0; i < WORKERS; i++)
			assert_int_equal(policy_at(d, i), round);
	}
}

static void parcel__bindings_are_shared_by_all(void **state)
{
	static const char json[] =
		"{\"revision\":3,\"bindings\":[{\"name\":\"one\",\"match\":{"
		"\"hosts\":[\"a.example\"]},\"auth\":{\"type\":\"bearer\","
		"\"credential\":\"tok\"}}]}";
	struct desk *d = *state;
	struct bindings *first = NULL, *b;
	uint32_t serial;
	unsigned i;

	say_bindings(d->roles, "", json);
	say_sync(d->roles, 1);
	serial = hear_lease(d->roles, "", "tok");
	say_result(d->roles->vault, MSG_VAULT_LEASE, serial, 0, SPAN("v"));
	(void)await(d, MSG_GATEWAY_SYNCED, &serial, NULL);
	for (i = 0; i < WORKERS; i++) {
		b = map_find(&d->workers[i].facts.bindings, SPAN(""));
		assert_non_null(b);
		assert_true(!first || b == first);
		first = b;
	}
	assert_span(secret_open(bindings_lease(first, SPAN("tok"))), "v");
}

static void parcel__status_adds_up(void **state)
{
	CLEANUP_JSON struct json *j = NULL;
	const struct msg_none none = { 0 };
	struct desk *d = *state;
	struct span tail;
	uint64_t number;
	uint32_t serial;
	unsigned i;

	say_sync(d->roles, 1);
	(void)await(d, MSG_GATEWAY_SYNCED, &serial, NULL);
	for (i = 0; i < WORKERS; i++)
		worker_counted_by(&d->workers[i], exchanges, 10 + i);
	say(d->roles->control, MSG_CONTROL_STATUS, 2, &none, SPAN_NONE);
	(void)await(d, MSG_GATEWAY_STATUS, &serial, &tail);
	assert_int_equal(json_parse(tail, &j, NULL), 0);
	assert_true(json_u64(json_find(json_find(j, "counters"), "exchanges"),
			     &number));
	assert_int_equal(number, 33);
	assert_true(json_u64(json_find(j, "loops"), &number));
	assert_int_equal(number, WORKERS);
}

static void emit_one(void *ctx)
{
	static const struct audit a = { .kind = AUDIT_HTTP, .allowed = true };
	struct worker *w = ctx;

	audit_emit(w->audit_log, &a);
}

/* They would be written in 10 ms: who asks sooner finds them all the same. */
static void parcel__status_comes_after_the_records(void **state)
{
	struct desk *d = *state;
	const struct msg_none none = { 0 };
	int fd = memfd_create("audit", MFD_CLOEXEC);
	char text[4096] = "", *at = text;
	uint32_t serial;
	unsigned i;

	must(fd >= 0 && !fcntl(fd, F_SETFL, O_APPEND)); /* as the real one */
	for (i = 0; i < WORKERS; i++) {
		audit_log_set_fd(d->workers[i].audit_log, fd);
		loop_post(d->workers[i].loop, emit_one, &d->workers[i]);
	}
	say(d->roles->control, MSG_CONTROL_STATUS, 2, &none, SPAN_NONE);
	(void)await(d, MSG_GATEWAY_STATUS, &serial, NULL);
	must(pread(fd, text, sizeof(text) - 1, 0) >= 0);
	for (i = 0; (at = strchr(at, '\n')); i++)
		at++;
	assert_int_equal(i, WORKERS);
	(void)fd_close(fd);
}

static void drain_all(struct desk *d)
{
	struct gateway *g = &d->roles->world->gateway;
	struct parcel *p = parcel_new(g, PARCEL_DRAIN);

	g->exit_status = 9;
	p->grace_ms = 1000;
	parcel_send(p);
}

static void await_drained(struct desk *d)
{
	struct gateway *g = &d->roles->world->gateway;
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (g->drained < WORKERS && clock_ms() < end_ms) {
		loop_run_once(g->loop, false);
		(void)usleep(100);
	}
	assert_int_equal(g->drained, WORKERS);
	assert_int_equal(g->exit_status, 0);
}

static void parcel__all_drain(void **state)
{
	drain_all(*state);
	await_drained(*state);
}

/* A daemon that is stopped while it starts. */
static void parcel__listeners_come_after_the_drain(void **state)
{
	static const enum listener_kind kinds[] = { LISTENER_TCP,
						    LISTENER_DNS_UDP,
						    LISTENER_DNS_TCP };
	struct desk *d = *state;
	struct gateway *g = &d->roles->world->gateway;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(kinds); i++)
		g->sockets[g->socket_count++] = (struct gateway_socket){
			socket(AF_INET,
			       (kinds[i] == LISTENER_DNS_UDP ? SOCK_DGRAM
							     : SOCK_STREAM) |
				       SOCK_CLOEXEC,
			       0),
			kinds[i], i
		};
	drain_all(d);
	parcel_send(parcel_new(g, PARCEL_LISTENERS));
	await_drained(d);
	for (i = 0; i < WORKERS; i++) {
		loop_stop(d->workers[i].loop);
		must(!pthread_join(d->workers[i].thread, NULL));
		assert_true(list_is_empty(&d->workers[i].listeners));
		assert_int_equal(fcntl(g->sockets[i].fd, F_GETFD), -1);
		must(!worker_start(&d->workers[i])); /* to be ended once more */
	}
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(parcel__a_barrier_is_behind_every_change),
		DESK_TEST(parcel__bindings_are_shared_by_all),
		DESK_TEST(parcel__status_adds_up),
		DESK_TEST(parcel__status_comes_after_the_records),
		DESK_TEST(parcel__all_drain),
		DESK_TEST(parcel__listeners_come_after_the_drain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
