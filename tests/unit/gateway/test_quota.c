/* SPDX-License-Identifier: Apache-2.0 */
/* test_quota.c - limits of a sandbox: rates in virtual time, many threads */

#include "tests/unit/gateway/fixture.h"

#include <pthread.h>

#include "gateway/registry/quota.h"

#define SECOND_US UINT64_C(1000000)
#define START_US  (1000 * SECOND_US)

enum { THREADS = 4, TAKES = 200 * 1000, OPEN_MANY = 50 * 1000 };

static int set_up(void **state)
{
	*state = quotas_new();
	return 0;
}

static int tear_down(void **state)
{
	*state = quotas_free(*state);
	return 0;
}

static struct quota *quota_of(void **state, enum quota_kind kind,
			      uint64_t limit)
{
	struct quota *q = quotas_at(*state, SPAN("a"));

	quota_set_limit(q, kind, limit);
	return q;
}

static unsigned taken(struct quota *q, enum quota_kind kind, uint64_t now_us,
		      unsigned tries)
{
	unsigned n = 0;

	while (tries--)
		n += quota_take(q, kind, now_us);
	return n;
}

static struct quota_state state_of(const struct quota *q, enum quota_kind kind,
				   uint64_t now_us)
{
	struct quota_state s;

	quota_state(q, kind, now_us, &s);
	return s;
}

/* -- whose ---------------------------------------------------------------- */

static void quota__an_id_has_one(void **state)
{
	struct quota *a = quotas_at(*state, SPAN("a"));
	struct quota *b = quotas_at(*state, SPAN("b"));

	assert_ptr_equal(quotas_at(*state, SPAN("a")), a);
	assert_ptr_not_equal(a, b);
	quota_set_limit(a, QUOTA_MINTS, 1);
	assert_true(quota_take(a, QUOTA_MINTS, START_US));
	(void)quota_unref(a);

	/* somebody refers to it still: nothing is given anew */
	assert_ptr_equal(quotas_at(*state, SPAN("a")), a);
	assert_false(quota_take(a, QUOTA_MINTS, START_US));
	assert_true(quota_take(b, QUOTA_MINTS, START_US));
	(void)quota_unref(a);
	(void)quota_unref(a);
	(void)quota_unref(b);

	a = quotas_at(*state, SPAN("a"));
	assert_int_equal(state_of(a, QUOTA_MINTS, START_US).refused, 0);
	(void)quota_unref(a);
}

/* -- rates ---------------------------------------------------------------- */

static void quota__zero_is_no_limit(void **state)
{
	struct quota *q = quotas_at(*state, SPAN("a"));

	assert_int_equal(taken(q, QUOTA_DNS, START_US, 1000), 1000);
	assert_true(quota_draw(q, QUOTA_BYTES_IN, START_US) == UINT64_MAX);
	assert_int_equal(state_of(q, QUOTA_DNS, START_US).refused, 0);
	(void)quota_unref(q);
}

static void quota__a_second_is_the_depth(void **state)
{
	static const unsigned rates[] = { 1, 2, 3, 7, 50, 1000, 4001 };
	struct quota *q = quotas_at(*state, SPAN("a"));
	uint64_t now = START_US;
	unsigned i, rate;

	for (i = 0; i < ARRAY_LEN(rates); i++) {
		rate = rates[i];
		now += 10 * SECOND_US;
		quota_set_limit(q, QUOTA_DNS, rate);
		assert_int_equal(taken(q, QUOTA_DNS, now, 2 * rate), rate);
		assert_int_equal(state_of(q, QUOTA_DNS, now).used, rate);
		assert_int_equal(taken(q, QUOTA_DNS, now + SECOND_US / 2, rate),
				 rate / 2);
		/* all of it again, and no more for a long rest */
		now += 100 * SECOND_US;
		assert_int_equal(state_of(q, QUOTA_DNS, now).used, 0);
		assert_int_equal(taken(q, QUOTA_DNS, now, 2 * rate), rate);
	}
	(void)quota_unref(q);
}

static void quota__over_time_the_rate_holds(void **state)
{
	struct quota *q = quota_of(state, QUOTA_CONNECTS, 100);
	unsigned n = 0, ms;

	for (ms = 0; ms < 60 * 1000; ms++)
		n += quota_take(q, QUOTA_CONNECTS, START_US + ms * 1000);
	assert_in_range(n, 60 * 100, 61 * 100);
	assert_int_equal(state_of(q, QUOTA_CONNECTS, 0).refused, 60 * 1000 - n);
	(void)quota_unref(q);
}

static void quota__a_new_limit_holds_at_once(void **state)
{
	struct quota *q = quota_of(state, QUOTA_DNS, 10);

	assert_int_equal(taken(q, QUOTA_DNS, START_US, 20), 10);
	/* what was used stays used: a second of it */
	quota_set_limit(q, QUOTA_DNS, 1000);
	assert_int_equal(taken(q, QUOTA_DNS, START_US, 20), 0);
	assert_in_range(taken(q, QUOTA_DNS, START_US + SECOND_US / 10, 1000),
			99, 101);
	quota_set_limit(q, QUOTA_DNS, 0);
	assert_int_equal(taken(q, QUOTA_DNS, START_US, 20), 20);
	(void)quota_unref(q);
}

/* Two that look at their clocks one after the other and take the other way
 * round. */
static void quota__a_clock_behind_gains_nothing(void **state)
{
	struct quota *q = quota_of(state, QUOTA_DNS, 10);

	assert_int_equal(taken(q, QUOTA_DNS, START_US + 100, 5), 5);
	assert_in_range(taken(q, QUOTA_DNS, START_US, 20), 4, 5);
	(void)quota_unref(q);
}

static void quota__the_largest_limits(void **state)
{
	struct quota *q = quota_of(state, QUOTA_DNS, UINT64_MAX);

	assert_int_equal(quota_limit(q, QUOTA_DNS), QUOTA_RATE_MAX);
	assert_int_equal(taken(q, QUOTA_DNS, START_US, 1000), 1000);
	quota_set_limit(q, QUOTA_BYTES_OUT, UINT64_MAX);
	assert_true(quota_limit(q, QUOTA_BYTES_OUT) == QUOTA_BYTES_MAX);
	assert_int_equal(quota_draw(q, QUOTA_BYTES_OUT, START_US),
			 QUOTA_CHUNK_MAX);
	(void)quota_unref(q);
}

/* -- bytes ---------------------------------------------------------------- */

static void quota__bytes_come_in_chunks(void **state)
{
	static const uint64_t rates[] = {
		1,     63,	    1000,
		65536, 1000 * 1000, UINT64_C(10) * 1000 * 1000 * 1000
	};
	struct quota *q = quotas_at(*state, SPAN("a"));
	uint64_t now = START_US, n, all, most, rate, ms;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rates); i++) {
		rate = rates[i];
		now += 100 * SECOND_US;
		quota_set_limit(q, QUOTA_BYTES_IN, rate);
		all = most = 0;
		for (ms = 0; ms < 10000; ms++)
			while ((n = quota_draw(q, QUOTA_BYTES_IN,
					       now + ms * 1000))) {
				all += n;
				most = MAX(most, n);
			}
		assert_true(all <= 10 * rate + rate / 4 + most);
		assert_true(all + most >= 10 * rate);
		assert_true(most <= MAX(rate / 4, 1));
		now += 10 * SECOND_US;
	}
	(void)quota_unref(q);
}

/* -- connections ---------------------------------------------------------- */

static void quota__connections_are_counted(void **state)
{
	struct quota *q = quota_of(state, QUOTA_CONNECTIONS, 2);
	struct quota_state s;

	assert_true(quota_open(q));
	assert_true(quota_open(q));
	assert_false(quota_open(q));
	s = state_of(q, QUOTA_CONNECTIONS, START_US);
	assert_int_equal(s.used, 2);
	assert_int_equal(s.limit, 2);
	assert_int_equal(s.refused, 1);
	quota_close(q);
	assert_true(quota_open(q));

	/* a lower limit ends nothing, and lets nobody in */
	quota_set_limit(q, QUOTA_CONNECTIONS, 1);
	quota_close(q);
	assert_false(quota_open(q));
	quota_close(q);
	assert_true(quota_open(q));
	quota_close(q);
	assert_int_equal(state_of(q, QUOTA_CONNECTIONS, START_US).used, 0);
	(void)quota_unref(q);
}

static void quota__who_was_refused_most(void **state)
{
	static const unsigned refused[] = { 3, 0, 7, 1, 9, 2 };
	struct quota *all[ARRAY_LEN(refused)], *most[3];
	char id[2] = "a";
	unsigned i;

	for (i = 0; i < ARRAY_LEN(refused); i++, id[0]++) {
		all[i] = quotas_at(*state, span_str(id));
		quota_set_limit(all[i], QUOTA_DNS, 1);
		(void)taken(all[i], QUOTA_DNS, START_US, refused[i] + 1);
		assert_int_equal(quota_refused(all[i]), refused[i]);
	}
	assert_int_equal(quotas_most_refused(*state, most, 3), 3);
	assert_string_equal(quota_id(most[0]), "e");
	assert_string_equal(quota_id(most[1]), "c");
	assert_string_equal(quota_id(most[2]), "a");
	for (i = 0; i < 3; i++)
		(void)quota_unref(most[i]);
	assert_null(quotas_find(*state, SPAN("z")));
	assert_ptr_equal(quotas_find(*state, SPAN("b")), all[1]);
	(void)quota_unref(all[1]);
	for (i = 0; i < ARRAY_LEN(refused); i++)
		(void)quota_unref(all[i]);
	assert_int_equal(quotas_most_refused(*state, most, 3), 0);
}

/* -- threads -------------------------------------------------------------- */

struct crowd {
	struct quotas *all;
	unsigned taken[THREADS];
	unsigned opened[THREADS];
	_Atomic unsigned next;
};

static void *crowd_member(void *ctx)
{
	struct crowd *c = ctx;
	unsigned me = c->next++, i;

	for (i = 0; i < TAKES; i++) {
		struct quota *q = quotas_at(c->all, SPAN("a"));

		c->taken[me] += quota_take(q, QUOTA_MINTS, START_US);
		(void)quota_unref(q);
	}
	for (i = 0; i < OPEN_MANY; i++) {
		struct quota *q = quotas_at(c->all, SPAN("a"));

		if (quota_open(q)) {
			c->opened[me]++;
			quota_close(q);
		}
		(void)quota_unref(q);
	}
	return NULL;
}

static void quota__threads_share_one(void **state)
{
	struct quota *q = quota_of(state, QUOTA_MINTS, 100 * 1000);
	struct crowd c = { .all = *state };
	pthread_t threads[THREADS];
	unsigned i, sum = 0;

	quota_set_limit(q, QUOTA_CONNECTIONS, THREADS);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, crowd_member, &c), 0);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	for (i = 0; i < THREADS; i++)
		sum += c.taken[i];
	assert_int_equal(sum, 100 * 1000); /* not one more, not one less */
	assert_int_equal(state_of(q, QUOTA_MINTS, START_US).refused,
			 THREADS * TAKES - sum);
	for (i = 0; i < THREADS; i++)
		assert_int_equal(c.opened[i], OPEN_MANY);
	assert_int_equal(state_of(q, QUOTA_CONNECTIONS, START_US).used, 0);
	(void)quota_unref(q);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(quota__an_id_has_one),
		TEST(quota__zero_is_no_limit),
		TEST(quota__a_second_is_the_depth),
		TEST(quota__over_time_the_rate_holds),
		TEST(quota__a_new_limit_holds_at_once),
		TEST(quota__a_clock_behind_gains_nothing),
		TEST(quota__the_largest_limits),
		TEST(quota__bytes_come_in_chunks),
		TEST(quota__connections_are_counted),
		TEST(quota__who_was_refused_most),
		TEST(quota__threads_share_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
