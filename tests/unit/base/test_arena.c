/* SPDX-License-Identifier: Apache-2.0 */
/* test_arena.c - zeroed, aligned, capped, and overflow that sticks */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "src/base/arena.h"

static bool is_zero(const char *p, size_t len)
{
	while (len--)
		if (*p++)
			return false;
	return true;
}

static void arena__zeroed_aligned_and_apart(void **state)
{
	static char *pieces[2000];
	static size_t lens[2000];
	struct arena a;
	size_t i, at;

	(void)state;
	arena_init(&a, 4 << 20);
	srandom(3);
	for (i = 0; i < 2000; i++) {
		lens[i] = (size_t)random() % (random() % 50 ? 100 : 20000);
		pieces[i] = arena_alloc(&a, lens[i]);
		assert_non_null(pieces[i]);
		assert_int_equal((uintptr_t)pieces[i] % 16, 0);
		assert_true(is_zero(pieces[i], lens[i]));
		memset(pieces[i], (int)(i % 255) + 1, lens[i]);
	}
	for (i = 0; i < 2000; i++)
		for (at = 0; at < lens[i]; at++)
			assert_int_equal((unsigned char)pieces[i][at],
					 i % 255 + 1);
	assert_true(a.total <= a.cap);
	arena_fini(&a);
	assert_int_equal(a.total, 0);
	assert_int_equal(a.cap, 4 << 20);
}

static void arena__overflow_is_sticky(void **state)
{
	struct arena a;

	(void)state;
	arena_init(&a, 8192);
	assert_non_null(arena_alloc(&a, 4000));
	assert_non_null(arena_alloc(&a, 4000));
	assert_false(arena_overflowed(&a));
	assert_null(arena_alloc(&a, 4000));
	assert_true(arena_overflowed(&a));
	/* even what would fit */
	assert_null(arena_alloc(&a, 1));
	assert_null(arena_dup(&a, SPAN("a")).ptr);
	assert_null(arena_dup_lower(&a, SPAN("a")).ptr);
	assert_null(arena_printf(&a, "%d", 1).ptr);
	arena_fini(&a);
	assert_false(arena_overflowed(&a));
	assert_non_null(arena_alloc(&a, 1));
	arena_fini(&a);
}

static void arena__absurd_sizes(void **state)
{
	static const size_t sizes[] = { 4097,	      SIZE_MAX, SIZE_MAX - 15,
					SIZE_MAX / 2, 4096,	4081 };
	struct arena a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		arena_init(&a, 4096);
		assert_null(arena_alloc(&a, sizes[i]));
		assert_true(arena_overflowed(&a));
		arena_fini(&a);
	}
	/* a cap below the size of a block holds nothing, but refuses well */
	arena_init(&a, 100);
	assert_null(arena_alloc(&a, 1));
	assert_true(arena_overflowed(&a));
	arena_fini(&a);
	arena_init(&a, 0);
	assert_null(arena_alloc(&a, 0));
	arena_fini(&a);
}

static void arena__copies(void **state)
{
	struct arena a;
	struct span s;

	(void)state;
	arena_init(&a, 16384);
	s = arena_dup(&a, SPAN("ab\0c"));
	assert_int_equal(s.len, 4);
	assert_memory_equal(s.ptr, "ab\0c", 5);
	s = arena_dup(&a, SPAN_NONE);
	assert_non_null(s.ptr);
	assert_string_equal(s.ptr, "");
	s = arena_dup_lower(&a, SPAN("Host@[\xc4"));
	assert_string_equal(s.ptr, "host@[\xc4");
	s = arena_printf(&a, "%s:%d", "a", 5);
	assert_string_equal(s.ptr, "a:5");
	assert_int_equal(s.len, 3);
	s = arena_printf(&a, "%5000d", 1);
	assert_int_equal(s.len, 5000);
	arena_fini(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arena__zeroed_aligned_and_apart),
		cmocka_unit_test(arena__overflow_is_sticky),
		cmocka_unit_test(arena__absurd_sizes),
		cmocka_unit_test(arena__copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
