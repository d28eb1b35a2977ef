/* SPDX-License-Identifier: Apache-2.0 */
/* test_blocks.c - the last one given is the next one taken, and bounds hold */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/attrib.h"
#include "src/base/blocks.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { KEEPS = 0 };
#else
enum { KEEPS = 1 };
#endif

static void blocks__sizes_are_rounded_up(void **state)
{
	(void)state;
	assert_int_equal(block_size(0), 0);
	assert_int_equal(block_size(BLOCK_MAX + 1), BLOCK_MAX + 1);
	if (!KEEPS) {
		assert_int_equal(block_size(1), 1);
		return;
	}
	assert_int_equal(block_size(1), BLOCK_SMALL_STEP);
	assert_int_equal(block_size(BLOCK_SMALL_STEP), BLOCK_SMALL_STEP);
	assert_int_equal(block_size(BLOCK_SMALL_STEP + 1),
			 2 * BLOCK_SMALL_STEP);
	assert_int_equal(block_size(BLOCK_SMALL_MAX), BLOCK_SMALL_MAX);
	assert_int_equal(block_size(BLOCK_SMALL_MAX + 1), BLOCK_STEP);
	assert_int_equal(block_size(BLOCK_STEP), BLOCK_STEP);
	assert_int_equal(block_size(BLOCK_STEP + 1), 2 * BLOCK_STEP);
	assert_int_equal(block_size(BLOCK_MAX), BLOCK_MAX);
}

static void blocks__every_byte_can_be_used(void **state)
{
	static const size_t sizes[] = {
		1,
		BLOCK_SMALL_STEP,
		BLOCK_SMALL_STEP + 1,
		BLOCK_SMALL_MAX,
		BLOCK_SMALL_MAX + 1,
		BLOCK_STEP,
		BLOCK_STEP + 1,
		BLOCK_MAX - 1,
		BLOCK_MAX,
		BLOCK_MAX + 1,
	};
	unsigned round;
	size_t i;

	(void)state;
	blocks_keep(1024 * 1024);
	for (round = 0; round < 3; round++)
		for (i = 0; i < ARRAY_LEN(sizes); i++) {
			void *a = block_take(sizes[i]);
			void *b = block_take(sizes[i]);

			assert_true(a != b);
			memset(a, 0xaa, block_size(sizes[i]));
			memset(b, 0xbb, block_size(sizes[i]));
			block_give(a, sizes[i]);
			block_give(b, sizes[i]);
		}
	block_give(NULL, BLOCK_STEP);
	free(block_take(0));
	blocks_drop();
	blocks_keep(0);
}

/* Of two given the second comes first, for any size that rounds to theirs. */
static void blocks__last_in_first_out(void **state)
{
	void *a = block_take(3000), *b = block_take(4096), *c;

	(void)state;
	blocks_keep(64 * 1024);
	block_give(a, 3000);
	block_give(b, 4096);
	c = block_take(2049);
	if (KEEPS)
		assert_ptr_equal(c, b);
	block_give(c, 2049);
	/* another size is another stack */
	c = block_take(BLOCK_STEP);
	assert_true(c != a && c != b);
	block_give(c, BLOCK_STEP);
	c = block_take(4000);
	if (KEEPS)
		assert_ptr_equal(c, b);
	block_give(c, 4000);
	blocks_drop();
	blocks_keep(0);
}

static void blocks__small_ones_too(void **state)
{
	void *a = block_take(33), *b = block_take(64), *c;

	(void)state;
	blocks_keep(BLOCK_SMALL_PART * 64);
	block_give(a, 33);
	block_give(b, 64); /* over the limit of small ones */
	c = block_take(40);
	if (KEEPS)
		assert_ptr_equal(c, a);
	block_give(c, 40);
	blocks_drop();
	blocks_keep(0);
}

static void blocks__zeroed_ones_are_clean_again(void **state)
{
	static const char zeros[BLOCK_STEP];
	char *a;
	unsigned i;

	(void)state;
	blocks_keep(64 * 1024);
	for (i = 0; i < 2; i++) {
		a = block_take_zeroed(sizeof(zeros));
		assert_memory_equal(a, zeros, sizeof(zeros));
		memset(a, 0xaa, sizeof(zeros));
		block_give(a, sizeof(zeros));
	}
	blocks_drop();
	blocks_keep(0);
}

static void blocks__no_more_than_the_limit_is_kept(void **state)
{
	void *a[4];
	unsigned i;

	(void)state;
	blocks_keep(3 * BLOCK_MAX);
	/* three fit, the fourth goes back to malloc */
	for (i = 0; i < 4; i++)
		a[i] = block_take(BLOCK_MAX);
	for (i = 0; i < 4; i++)
		block_give(a[i], BLOCK_MAX);
	if (KEEPS)
		for (i = 0; i < 3; i++)
			assert_ptr_equal(block_take(BLOCK_MAX), a[2 - i]);
	for (i = 0; KEEPS && i < 3; i++)
		block_give(a[i], BLOCK_MAX);
	blocks_drop();
	blocks_keep(0);
}

/* Nothing is kept by who did not ask for it: valgrind and the sanitizers would
 * find it lost with the thread. */
static void *stranger(void *ctx)
{
	void *a = block_take(BLOCK_STEP);

	block_give(ctx, BLOCK_STEP);
	block_give(a, BLOCK_STEP);
	return NULL;
}

static void blocks__another_thread_may_give(void **state)
{
	void *p = block_take(BLOCK_STEP), *q;
	pthread_t thread;

	(void)state;
	blocks_keep(64 * 1024);
	assert_int_equal(pthread_create(&thread, NULL, stranger, p), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	q = block_take(BLOCK_STEP);
	memset(q, 1, BLOCK_STEP);
	block_give(q, BLOCK_STEP);
	blocks_drop();
	blocks_keep(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks__sizes_are_rounded_up),
		cmocka_unit_test(blocks__every_byte_can_be_used),
		cmocka_unit_test(blocks__last_in_first_out),
		cmocka_unit_test(blocks__small_ones_too),
		cmocka_unit_test(blocks__zeroed_ones_are_clean_again),
		cmocka_unit_test(blocks__no_more_than_the_limit_is_kept),
		cmocka_unit_test(blocks__another_thread_may_give),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
