/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact_automaton.c - the automaton's shape, and what it stands for */

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "tests/unit/gateway/redact_kit.h"

/* Where and how long the matches of text are, in the order of their ends. */
static unsigned find_all(const struct kit *k, struct span text, size_t *ends,
			 size_t *lens, unsigned most)
{
	struct cursor c = cursor_at(0);
	unsigned count = 0;

	while (automaton_find(k->automaton, &c, text)) {
		must(count < most);
		ends[count] = c.pos;
		lens[count++] = automaton_match(k->automaton, c.state);
	}
	return count;
}

static void automaton__finds_ends(void **state)
{
	size_t ends[8], lens[8];
	struct kit k = { 0 };

	(void)state;
	kit_add(&k, "", SPAN("one-secret"));
	kit_add(&k, "", SPAN("secret-two"));
	kit_add(&k, "", SPAN("cret-t"));
	kit_build(&k);
	assert_int_equal(
		find_all(&k, SPAN("x one-secret-two y"), ends, lens, 8), 3);
	assert_int_equal(ends[0], 12);
	assert_int_equal(lens[0], 10);
	assert_int_equal(ends[1], 14);
	assert_int_equal(lens[1], 6);
	assert_int_equal(ends[2], 16);
	assert_int_equal(lens[2], 10);
	assert_int_equal(
		find_all(&k, SPAN("one-secre secret- cret-"), ends, lens, 8),
		0);
	kit_fini(&k);
}

/* At each offset and alone in a piece of just its length. */
static void automaton__finds_every_pattern(void **state)
{
	char text[600];
	size_t at;
	struct kit k = { 0 };
	struct span pattern;
	unsigned i;

	(void)state;
	kit_add(&k, "", SPAN("\x01\x02\x03/<+\xff\xfe\x80q\"%"));
	kit_add(&k, "Basic ", SPAN("YWxpY2U6d29uZGVybGFuZA=="));
	kit_build(&k);
	for (i = 0; i < patterns_count(k.patterns); i++) {
		pattern = patterns_text(k.patterns, i);
		assert_true(pattern.len <= automaton_longest(k.automaton));
		for (at = 0; at < 40; at++) {
			memset(text, '-', sizeof(text));
			memcpy(text + at, pattern.ptr, pattern.len);
			assert_true(find_all(&k,
					     span_of(text, at + pattern.len),
					     (size_t[64]){ 0 },
					     (size_t[64]){ 0 }, 64) >= 1);
		}
	}
	kit_fini(&k);
}

/* A state is its text: what was read last of a pattern's begin. */
static void automaton__state_is_text(void **state)
{
	struct cursor c = cursor_at(0);
	struct kit k = { 0 };
	char text[64];
	uint32_t s = 0;
	size_t i;

	(void)state;
	kit_add(&k, "", SPAN("abcabcabd"));
	kit_build(&k);
	for (i = 0; i < 7; i++) {
		c = cursor_at(s);
		assert_false(automaton_find(k.automaton, &c,
					    span_of(&"abcabca"[i], 1)));
		s = c.state;
		assert_int_equal(automaton_depth(k.automaton, s), i + 1);
	}
	automaton_text(k.automaton, s, 2, 4, text);
	assert_memory_equal(text, "cabc", 4);
	c = cursor_at(s);
	assert_false(automaton_find(k.automaton, &c, SPAN("bc")));
	assert_int_equal(automaton_depth(k.automaton, c.state), 6);
	automaton_text(k.automaton, c.state, 0, 6, text);
	assert_memory_equal(text, "abcabc", 6);
	c = cursor_at(c.state);
	assert_true(automaton_find(k.automaton, &c, SPAN("abd")));
	assert_int_equal(automaton_match(k.automaton, c.state), 9);
	assert_int_equal(automaton_open(k.automaton, c.state), 0);
	kit_fini(&k);
}

static void automaton__of_nothing(void **state)
{
	struct kit k = { .patterns = patterns_new() };
	size_t none;

	(void)state;
	kit_build(&k);
	assert_int_equal(automaton_longest(k.automaton), 0);
	assert_int_equal(find_all(&k, SPAN("anything at all, of any length"),
				  &none, &none, 1),
			 0);
	kit_fini(&k);
	assert_null(automaton_ref(NULL));
	assert_null(automaton_unref(NULL));
}

/* More nodes than there may be. */
static void automaton__is_bounded(void **state)
{
	struct kit k = { 0 };
	struct secret *s;
	char value[3000];
	uint32_t x = 1;
	size_t i;
	int r = 0;

	(void)state;
	k.patterns = patterns_new();
	while (!r) {
		for (i = 0; i < sizeof(value); i++)
			value[i] = (char)((x = x * 1664525 + 1013904223) >> 24);
		assert_int_equal(secret_dup(span_of(value, sizeof(value)), &s),
				 0);
		r = patterns_add(k.patterns, SPAN(""), s);
		(void)secret_free(s);
	}
	assert_int_equal(r, PATTERNS_E_FULL);
	assert_int_equal(automaton_new(k.patterns, &k.automaton),
			 AUTOMATON_E_FULL);
	assert_null(k.automaton);
	kit_fini(&k);
}

static void *search_often(void *arg)
{
	struct automaton *a = automaton_ref(arg);
	struct cursor c;
	unsigned i;

	for (i = 0; i < 2000; i++) {
		c = cursor_at(0);
		must(automaton_find(a, &c, SPAN("here is a shared secret !")));
	}
	(void)automaton_unref(a);
	return NULL;
}

static void automaton__is_shared(void **state)
{
	pthread_t threads[4];
	struct kit k = { 0 };
	size_t i;

	(void)state;
	kit_add(&k, "", SPAN("shared secret"));
	kit_build(&k);
	for (i = 0; i < ARRAY_LEN(threads); i++)
		must(!pthread_create(&threads[i], NULL, search_often,
				     k.automaton));
	for (i = 0; i < ARRAY_LEN(threads); i++)
		must(!pthread_join(threads[i], NULL));
	kit_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(automaton__finds_ends),
		cmocka_unit_test(automaton__finds_every_pattern),
		cmocka_unit_test(automaton__state_is_text),
		cmocka_unit_test(automaton__of_nothing),
		cmocka_unit_test(automaton__is_bounded),
		cmocka_unit_test(automaton__is_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
