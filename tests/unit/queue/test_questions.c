/* SPDX-License-Identifier: Apache-2.0 */
/* test_questions.c - order, shares and time of what the gateway was asked */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/queue/questions.h"

static int set_up(void **state)
{
	*state = questions_new();
	return 0;
}

static int tear_down(void **state)
{
	*state = questions_free(*state);
	return 0;
}

static void add_packet(struct questions *q, uint32_t ifindex, uint32_t packet,
		       uint64_t due_ms)
{
	struct question *x = questions_add(q, QUESTION_PACKET, ifindex);

	assert_non_null(x);
	x->packet = packet;
	x->due_ms = due_ms;
}

static void questions__order(void **state)
{
	struct questions *q = *state;
	uint32_t i;

	assert_null(questions_first(q));
	assert_int_equal(questions_due(q), 0);
	/* around the ring more than once */
	for (i = 0; i < 3 * QUESTIONS_MAX; i++) {
		add_packet(q, i, i, 1000 + i);
		add_packet(q, i, i + 1, 1001 + i);
		assert_int_equal(questions_first(q)->packet, i);
		assert_int_equal(questions_due(q), 1000 + i);
		questions_drop_first(q);
		assert_int_equal(questions_first(q)->packet, i + 1);
		questions_drop_first(q);
		assert_null(questions_first(q));
	}
}

static void questions__share(void **state)
{
	struct questions *q = *state;
	uint32_t i;

	for (i = 0; i < QUESTIONS_SHARE; i++)
		add_packet(q, 7, i, 1000);
	assert_null(questions_add(q, QUESTION_PACKET, 7));
	add_packet(q, 8, 1, 1000); /* another's is its own */
	questions_drop_first(q);
	add_packet(q, 7, i, 1000);
	assert_null(questions_add(q, QUESTION_PACKET, 7));
}

static void questions__ring_is_full(void **state)
{
	struct questions *q = *state;
	uint32_t i;

	for (i = 0; i < QUESTIONS_MAX; i++)
		add_packet(q, i, i, 1000);
	assert_null(questions_add(q, QUESTION_PACKET, i));
	assert_null(questions_add(q, QUESTION_REVIEW, i));
	assert_false(questions_may_review(q));
	questions_drop_first(q);
	add_packet(q, 0, i, 1000);
}

/* What expired keeps its place until it is answered, but counts no more. */
static void questions__time(void **state)
{
	struct questions *q = *state;
	uint32_t i;

	for (i = 0; i < QUESTIONS_SHARE; i++)
		add_packet(q, 7, i, 1000 + i);
	assert_null(questions_expire(q, 999));
	for (i = 0; i < 10; i++) {
		assert_int_equal(questions_expire(q, 1009)->packet, i);
	}
	assert_null(questions_expire(q, 1009));
	assert_int_equal(questions_due(q), 1010);
	assert_int_equal(questions_first(q)->kind, QUESTION_OVER);
	add_packet(q, 7, 999, 2000); /* ten places of the share are free */
	for (i = 0; i < 10; i++)
		questions_drop_first(q);
	assert_int_equal(questions_first(q)->kind, QUESTION_PACKET);
	assert_int_equal(questions_first(q)->packet, 10);
	for (i = 0; i < 9; i++)
		add_packet(q, 7, i, 3000);
	assert_null(questions_add(q, QUESTION_PACKET, 7));
}

static void questions__answered_before_its_time(void **state)
{
	struct questions *q = *state;

	add_packet(q, 1, 1, 1000);
	add_packet(q, 1, 2, 1001);
	questions_drop_first(q);
	assert_int_equal(questions_expire(q, 5000)->packet, 2);
	assert_null(questions_expire(q, 5000));
	questions_drop_first(q);
	assert_null(questions_first(q));
}

/* Reviews have a window of their own, and time does not end them. */
static void questions__reviews(void **state)
{
	struct questions *q = *state;
	uint32_t i;

	for (i = 0; i < QUESTIONS_REVIEW; i++) {
		assert_true(questions_may_review(q));
		assert_non_null(questions_add(q, QUESTION_REVIEW, 7));
		assert_int_equal(questions_reviews(q), i + 1);
	}
	assert_false(questions_may_review(q));
	add_packet(q, 7, 5, 1000); /* no share is used up by them */
	assert_int_equal(questions_due(q), 1000);
	assert_int_equal(questions_expire(q, 1000)->packet, 5);
	assert_int_equal(questions_reviews(q), QUESTIONS_REVIEW);
	questions_drop_first(q);
	assert_true(questions_may_review(q));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(questions__order),
		TEST(questions__share),
		TEST(questions__ring_is_full),
		TEST(questions__time),
		TEST(questions__answered_before_its_time),
		TEST(questions__reviews),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
