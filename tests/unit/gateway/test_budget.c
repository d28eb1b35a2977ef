/* SPDX-License-Identifier: Apache-2.0 */
/* test_budget.c - new names under a wildcard are few, whoever asks how */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "gateway/registry/budget.h"
#include "src/base/err.h"

enum { RATE = 60 };

static const uint64_t START_MS = 1000000;

static int set_up(void **state)
{
	*state = budget_new(RATE);
	return 0;
}

static int tear_down(void **state)
{
	*state = budget_free(*state);
	return 0;
}

/* "n<i>.<zone>" */
static bool take(struct budget *b, const char *id, unsigned i, const char *zone,
		 unsigned labels, uint64_t now_ms)
{
	char host[256];

	(void)snprintf(host, sizeof(host), "n%u.%s", i, zone);
	return budget_take(b, span_str(id), span_str(host), labels, now_ms);
}

/* How many of `count` new names from `first` on go through. */
static unsigned through(struct budget *b, unsigned first, unsigned count,
			uint64_t now_ms)
{
	unsigned i, paid = 0;

	for (i = first; i < first + count; i++)
		paid += take(b, "a", i, "example.com", 2, now_ms);
	return paid;
}

static void budget__new_names_are_bounded(void **state)
{
	struct budget *b = *state;
	uint64_t now_ms = START_MS;

	assert_int_equal(through(b, 0, 1000, now_ms), RATE);
	/* one more for every second of a rate of 60 a minute */
	assert_int_equal(through(b, 2000, 10, now_ms + 999), 0);
	assert_int_equal(through(b, 3000, 10, now_ms + 1000), 1);
	assert_int_equal(through(b, 4000, 1000, now_ms + 11000), 10);
	/* never more than a minute's worth at once */
	assert_int_equal(through(b, 6000, 1000, now_ms + 24 * 3600 * 1000),
			 RATE);
}

static void budget__known_names_are_cheap(void **state)
{
	struct budget *b = *state;
	unsigned i;

	assert_int_equal(through(b, 0, RATE, START_MS), RATE);
	for (i = 0; i < BUDGET_REPEATS; i++)
		assert_int_equal(through(b, 0, RATE, START_MS), RATE);
	/* but no other channel: ten times as many, and ten a second then */
	assert_int_equal(through(b, 0, RATE, START_MS), 0);
	assert_int_equal(through(b, 0, RATE, START_MS + 900), 9);
	assert_false(take(b, "a", RATE, "example.com", 2, START_MS));

	/* the oldest is forgotten when there are many, and costs again */
	for (i = 0; i < BUDGET_KNOWN_MAX; i++)
		assert_true(take(b, "a", 1000 + i, "example.com", 2,
				 START_MS + (i + 1) * 1000));
	assert_false(take(b, "a", 0, "example.com", 2,
			  START_MS + BUDGET_KNOWN_MAX * 1000));
}

static void budget__zones_and_sandboxes_have_their_own(void **state)
{
	struct budget *b = *state;

	assert_int_equal(through(b, 0, 1000, START_MS), RATE);
	assert_true(take(b, "b", 0, "example.com", 2, START_MS));
	assert_true(take(b, "a", 0, "example.org", 2, START_MS));
	/* deeper labels are the same zone: data may stand in any of them */
	assert_false(take(b, "a", 0, "x.example.com", 2, START_MS));
	assert_false(take(b, "a", 0, "x.y.z.example.com", 2, START_MS));
	/* a rule for *.y.example.com has a zone of its own */
	assert_true(take(b, "a", 0, "x.y.example.com", 3, START_MS));
	assert_int_equal(budget_zones(b), 4);
	budget_forget(b, SPAN("a"));
	assert_int_equal(budget_zones(b), 1);
}

/* Zones are never wider than two labels, and short names have one too. */
static void budget__zones_have_two_labels_at_least(void **state)
{
	struct budget *b = *state;

	assert_true(budget_take(b, SPAN("a"), SPAN("com"), 0, START_MS));
	assert_true(budget_take(b, SPAN("a"), SPAN("a.com"), 0, START_MS));
	assert_true(budget_take(b, SPAN("a"), SPAN("x.a.com"), 1, START_MS));
	assert_true(budget_take(b, SPAN("a"), SPAN("x.b.com"), 1, START_MS));
	assert_int_equal(budget_zones(b), 3);
}

/* Who may ask for everything gets no fresh budget by going through zones. */
static void budget__new_zones_are_bounded(void **state)
{
	struct budget *b = *state;
	unsigned i, paid = 0;
	char zone[32];

	for (i = 0; i < 1000; i++) {
		(void)snprintf(zone, sizeof(zone), "zone%u.test", i);
		paid += take(b, "a", 0, zone, 0, START_MS);
	}
	assert_int_equal(paid, RATE);
	assert_int_equal(budget_zones(b), BUDGET_ZONES_MAX);
}

static void budget__none_is_no_bound(void **state)
{
	struct budget *b = budget_new(0);

	(void)state;
	assert_int_equal(through(b, 0, 10000, START_MS), 10000);
	assert_int_equal(budget_zones(b), 0);
	b = budget_free(b);
	assert_null(budget_free(NULL));
}

static void budget__forms(void **state)
{
	const struct budget_form form = { 20, 8, 4 };

	(void)state;
	assert_true(budget_form_fits(&form, SPAN("a.b.c.d")));
	assert_false(budget_form_fits(&form, SPAN("a.b.c.d.e")));
	assert_true(budget_form_fits(&form, SPAN("12345678.b.c")));
	assert_false(budget_form_fits(&form, SPAN("a.123456789.c")));
	assert_true(budget_form_fits(&form, SPAN("12345678.12345678.ab")));
	assert_false(budget_form_fits(&form, SPAN("12345678.12345678.abc")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(budget__new_names_are_bounded),
		TEST(budget__known_names_are_cheap),
		TEST(budget__zones_and_sandboxes_have_their_own),
		TEST(budget__zones_have_two_labels_at_least),
		TEST(budget__new_zones_are_bounded),
		cmocka_unit_test(budget__none_is_no_bound),
		cmocka_unit_test(budget__forms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
