/* SPDX-License-Identifier: Apache-2.0 */
/* test_lock_loose.c - who is locked at which ports while these come, go and
 * get owners
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "src/base/err.h"
#include "src/role/lock_loose.h"

enum { PAIRS = 64 };

/* What holds now: "id port", each once. */
struct seen {
	char pairs[PAIRS][64];
	unsigned count, told;
};

static void on_pair(void *ctx, const struct msg_lock *at, bool add)
{
	struct seen *s = ctx;
	char pair[64];
	unsigned i;

	assert_int_equal(at->awaits_port, 0);
	(void)snprintf(pair, sizeof(pair), "%.16s %.15s", at->id, at->port);
	s->told++;
	for (i = 0; i < s->count && strcmp(s->pairs[i], pair) != 0; i++)
		continue;
	assert_int_equal(add, i == s->count); /* neither twice nor unasked */
	if (add)
		strcpy(s->pairs[s->count++], pair);
	else
		memmove(s->pairs[i], s->pairs[--s->count], sizeof(pair));
}

static bool holds(const struct seen *s, const char *pair)
{
	unsigned i;

	for (i = 0; i < s->count; i++)
		if (!strcmp(s->pairs[i], pair))
			return true;
	return false;
}

static struct loose_box *put(struct lock_loose *all, const char *id,
			     const char *bridge)
{
	struct msg_lock m = { .awaits_port = 1 };

	strcpy(m.id, id);
	strcpy(m.iface, bridge);
	return lock_loose_put(all, &m);
}

static void loose__is_at_ports_that_are_nobodys(void **state)
{
	struct loose_box *a, *b, *c;
	struct seen s = { 0 };
	struct lock_loose all;

	(void)state;
	lock_loose_init(&all, on_pair, &s);
	lock_loose_port(&all, "p1", "sp-br");
	a = put(&all, "a", "sp-br");
	assert_true(s.count == 1 && holds(&s, "a p1"));

	/* another port, another sandbox, another bridge */
	lock_loose_port(&all, "p2", "sp-br");
	lock_loose_port(&all, "p2", "sp-br"); /* told of again */
	b = put(&all, "b", "sp-br");
	c = put(&all, "c", "sp-other");
	assert_true(s.count == 4 && holds(&s, "a p2") && holds(&s, "b p1"));

	/* a port that gets an owner is his alone, as long as he has it */
	lock_loose_own(&all, "p1", true);
	assert_true(s.count == 2 && !holds(&s, "a p1") && !holds(&s, "b p1"));
	lock_loose_own(&all, "p1", true);
	lock_loose_own(&all, "p1", false);
	assert_int_equal(s.count, 2);
	lock_loose_own(&all, "p1", false);
	assert_int_equal(s.count, 4);

	/* registered before it is plugged */
	lock_loose_own(&all, "p3", true);
	lock_loose_port(&all, "p3", "sp-br");
	assert_int_equal(s.count, 4);
	lock_loose_port(&all, "p3", "");
	lock_loose_own(&all, "p3", false);

	/* a port moves, and goes */
	lock_loose_port(&all, "p2", "sp-other");
	assert_true(s.count == 3 && holds(&s, "c p2"));
	lock_loose_port(&all, "p2", "");
	assert_int_equal(s.count, 2);

	assert_null(lock_loose_drop(&all, a));
	assert_true(s.count == 1 && holds(&s, "b p1"));
	assert_null(lock_loose_drop(&all, b));
	assert_null(lock_loose_drop(&all, c));
	assert_null(lock_loose_drop(&all, NULL));
	assert_int_equal(s.count, 0);
	lock_loose_fini(&all);
}

/* The end says nothing: what it was told to is going as well. */
static void loose__ends_in_silence(void **state)
{
	struct seen s = { 0 };
	struct lock_loose all;

	(void)state;
	lock_loose_init(&all, on_pair, &s);
	lock_loose_port(&all, "p1", "sp-br");
	lock_loose_own(&all, "p2", true);
	(void)put(&all, "a", "sp-br");
	lock_loose_fini(&all);
	assert_int_equal(s.told, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loose__is_at_ports_that_are_nobodys),
		cmocka_unit_test(loose__ends_in_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
