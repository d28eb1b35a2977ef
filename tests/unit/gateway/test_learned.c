/* SPDX-License-Identifier: Apache-2.0 */
/* test_learned.c - names that our DNS gave for addresses, and for how long */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <pthread.h>

#include "gateway/registry/learned.h"
#include "src/base/err.h"

static const uint64_t START_MS = 1000000;
enum { HOLD_S = 1800 };
static const uint64_t HOLD_MS = HOLD_S * 1000ull;

static struct addr addr_of(const char *text)
{
	struct addr a;

	must(addr_parse(span_str(text), &a));
	return a;
}

static struct addr addr_no(unsigned i)
{
	struct addr a = addr_of("198.51.0.0");

	a.ip[14] = (uint8_t)(i >> 8);
	a.ip[15] = (uint8_t)i;
	return a;
}

/* Collects what learned_each() shows: "a b c". */
struct seen {
	char text[4096];
	unsigned count, stop_after;
};

static bool see(void *ctx, struct span host)
{
	struct seen *s = ctx;
	size_t len = strlen(s->text);

	(void)snprintf(s->text + len, sizeof(s->text) - len, "%s%.*s",
		       len ? " " : "", SPAN_FMT(host));
	return ++s->count == s->stop_after;
}

static const char *names(struct learned *l, const char *id, struct addr a,
			 uint64_t now_ms)
{
	static struct seen s;

	s = (struct seen){ 0 };
	assert_false(learned_each(l, span_str(id), &a, now_ms, see, &s));
	return s.text;
}

static void add(struct learned *l, const char *id, const char *host,
		struct addr a, uint32_t ttl_s, uint64_t now_ms)
{
	learned_add(l, span_str(id), span_str(host), &a, ttl_s, now_ms);
}

static int set_up(void **state)
{
	*state = learned_new(HOLD_S);
	return 0;
}

static int tear_down(void **state)
{
	*state = learned_free(*state);
	return 0;
}

static void learned__is_by_sandbox_and_address(void **state)
{
	struct learned *l = *state;
	struct addr four = addr_of("192.0.2.1"), six = addr_of("2001:db8::1");

	assert_string_equal(names(l, "a", four, START_MS), "");
	add(l, "a", "one.example", four, 60, START_MS);
	add(l, "a", "two.example", four, 60, START_MS);
	add(l, "a", "six.example", six, 60, START_MS);
	four.port = 443; /* says nothing */
	assert_string_equal(names(l, "a", four, START_MS),
			    "two.example one.example");
	assert_string_equal(names(l, "a", six, START_MS), "six.example");
	assert_string_equal(names(l, "b", four, START_MS), "");
	assert_string_equal(names(l, "a", addr_of("192.0.2.2"), START_MS), "");

	/* told again: still once, and first */
	add(l, "a", "one.example", four, 60, START_MS);
	assert_string_equal(names(l, "a", four, START_MS),
			    "one.example two.example");
	assert_int_equal(learned_count(l), 3);
}

static void learned__stops_at_the_first_that_fits(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");
	struct seen s = { .stop_after = 2 };

	add(l, "a", "one.example", a, 60, START_MS);
	add(l, "a", "two.example", a, 60, START_MS);
	add(l, "a", "three.example", a, 60, START_MS);
	assert_true(learned_each(l, SPAN("a"), &a, START_MS, see, &s));
	assert_string_equal(s.text, "three.example two.example");
}

/* case 10: an answer with TTL 0 is usable when the client connects */
static void learned__holds_beyond_the_ttl(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");

	add(l, "a", "zero.example", a, 0, START_MS);
	add(l, "a", "long.example", a, 60, START_MS);
	assert_string_equal(names(l, "a", a, START_MS + HOLD_MS - 1),
			    "long.example zero.example");
	assert_string_equal(names(l, "a", a, START_MS + HOLD_MS),
			    "long.example");
	assert_string_equal(names(l, "a", a, START_MS + HOLD_MS + 59999),
			    "long.example");
	assert_string_equal(names(l, "a", a, START_MS + HOLD_MS + 60000), "");
	assert_int_equal(learned_count(l), 0);
}

static void learned__a_later_answer_never_shortens(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");

	add(l, "a", "x.example", a, 3600, START_MS);
	add(l, "a", "x.example", a, 0, START_MS + 1);
	assert_string_equal(names(l, "a", a, START_MS + HOLD_MS + 3599000),
			    "x.example");
	add(l, "a", "x.example", a, UINT32_MAX, START_MS);
	assert_string_equal(names(l, "a", a, START_MS + UINT32_MAX * 1000ull),
			    "x.example");
}

static void learned__use_renews(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");
	uint64_t now_ms = START_MS;
	int i;

	add(l, "a", "x.example", a, 0, START_MS);
	for (i = 0; i < 10; i++) {
		now_ms += HOLD_MS - 1;
		learned_use(l, SPAN("a"), &a, now_ms);
	}
	assert_string_equal(names(l, "a", a, now_ms + HOLD_MS - 1),
			    "x.example");
	/* what is over stays over */
	learned_use(l, SPAN("a"), &a, now_ms + HOLD_MS);
	assert_string_equal(names(l, "a", a, now_ms + HOLD_MS), "");
	learned_use(l, SPAN("nobody"), &a, now_ms);
}

/* A name that rotates through more addresses than one answer carries. */
static void learned__keeps_every_address_of_a_rotating_name(void **state)
{
	struct learned *l = *state;
	unsigned round, i;

	for (round = 0; round < 10; round++)
		for (i = 0; i < 30; i++)
			add(l, "a", "big.example", addr_no(30 * round + i), 5,
			    START_MS + round * 5000);
	for (i = 0; i < 300; i++)
		assert_string_equal(
			names(l, "a", addr_no(i), START_MS + HOLD_MS / 2),
			"big.example");
	assert_int_equal(learned_count(l), 300);
}

static void learned__the_least_used_gives_way(void **state)
{
	struct learned *l = *state;
	struct addr first = addr_no(0), second = addr_no(1), other;
	unsigned i;

	other = addr_of("192.0.2.9");
	add(l, "b", "other.example", other, 60, START_MS);
	for (i = 0; i < LEARNED_MAX; i++)
		add(l, "a", "x.example", addr_no(i), 60, START_MS);
	learned_use(l, SPAN("a"), &first, START_MS);
	add(l, "a", "y.example", addr_of("192.0.2.1"), 60, START_MS);
	assert_int_equal(learned_count(l), LEARNED_MAX + 1);
	assert_string_equal(names(l, "a", first, START_MS), "x.example");
	assert_string_equal(names(l, "a", second, START_MS), "");
	assert_string_equal(names(l, "a", addr_no(2), START_MS), "x.example");

	/* a sandbox pushes out only what is its own */
	for (i = 0; i < 3 * LEARNED_MAX; i++)
		add(l, "a", "z.example", addr_no(i), 60, START_MS);
	assert_string_equal(names(l, "b", other, START_MS), "other.example");
	assert_int_equal(learned_count(l), LEARNED_MAX + 1);
}

static void learned__what_is_over_makes_room_first(void **state)
{
	struct learned *l = *state;
	unsigned i;

	for (i = 0; i < 100; i++)
		add(l, "a", "x.example", addr_no(i), 0, START_MS);
	add(l, "a", "y.example", addr_no(100), 0, START_MS + HOLD_MS);
	assert_int_equal(learned_count(l), 1);
}

static void learned__names_of_an_address_are_bounded(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");
	struct seen s = { .stop_after = LEARNED_NAMES_MAX + 1 };
	char host[32];
	unsigned i;

	for (i = 0; i < LEARNED_NAMES_MAX + 10; i++) {
		(void)snprintf(host, sizeof(host), "n%u.example", i);
		add(l, "a", host, a, 60, START_MS);
	}
	assert_false(learned_each(l, SPAN("a"), &a, START_MS, see, &s));
	assert_int_equal(s.count, LEARNED_NAMES_MAX);
	assert_null(strstr(s.text, "n9.example"));
	assert_non_null(strstr(s.text, "n10.example"));
}

static void learned__forgets_a_sandbox(void **state)
{
	struct learned *l = *state;
	struct addr a = addr_of("192.0.2.1");

	add(l, "a", "x.example", a, 60, START_MS);
	add(l, "b", "x.example", a, 60, START_MS);
	learned_forget(l, SPAN("a"));
	learned_forget(l, SPAN("nobody"));
	assert_string_equal(names(l, "a", a, START_MS), "");
	assert_string_equal(names(l, "b", a, START_MS), "x.example");
	assert_int_equal(learned_count(l), 1);
	assert_null(learned_free(NULL));
}

enum { THREADS = 4, ROUNDS = 20000 };

struct party {
	struct learned *l;
	unsigned index;
};

static bool is_mine(void *ctx, struct span host)
{
	(void)ctx;
	return span_eq(host, SPAN("x.example"));
}

/* Every thread has a sandbox of its own and one that all share. */
static void *party_run(void *arg)
{
	struct party *p = arg;
	struct addr a;
	char id[8];
	unsigned i, found = 0;

	(void)snprintf(id, sizeof(id), "own%u", p->index);
	for (i = 0; i < ROUNDS; i++) {
		a = addr_no(i % 500);
		learned_add(p->l, span_str(id), SPAN("x.example"), &a, 60,
			    START_MS);
		learned_add(p->l, SPAN("all"), SPAN("x.example"), &a, 60,
			    START_MS);
		found += learned_each(p->l, span_str(id), &a, START_MS, is_mine,
				      NULL);
		learned_use(p->l, SPAN("all"), &a, START_MS + 1);
		if (i % 1000 == 999)
			learned_forget(p->l, SPAN("all"));
		(void)learned_count(p->l);
	}
	return (void *)(uintptr_t)found;
}

static void learned__threads_share_it(void **state)
{
	struct party parties[THREADS];
	pthread_t threads[THREADS];
	void *found;
	unsigned i;

	for (i = 0; i < THREADS; i++) {
		parties[i] = (struct party){ *state, i };
		assert_int_equal(pthread_create(&threads[i], NULL, party_run,
						&parties[i]),
				 0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &found), 0);
		assert_int_equal((uintptr_t)found, ROUNDS);
	}
	learned_forget(*state, SPAN("all"));
	assert_int_equal(learned_count(*state), THREADS * 500);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(learned__is_by_sandbox_and_address),
		TEST(learned__stops_at_the_first_that_fits),
		TEST(learned__holds_beyond_the_ttl),
		TEST(learned__a_later_answer_never_shortens),
		TEST(learned__use_renews),
		TEST(learned__keeps_every_address_of_a_rotating_name),
		TEST(learned__the_least_used_gives_way),
		TEST(learned__what_is_over_makes_room_first),
		TEST(learned__names_of_an_address_are_bounded),
		TEST(learned__forgets_a_sandbox),
		TEST(learned__threads_share_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
