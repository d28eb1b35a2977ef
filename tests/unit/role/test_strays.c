/* SPDX-License-Identifier: Apache-2.0 */
/* test_strays.c - which ports are strays, and since when */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "src/role/config.h"
#include "src/role/links.h"
#include "src/role/strays.h"

static struct link stray(const char *name, uint32_t index)
{
	struct link link = { .index = index,
			     .is_veth = true,
			     .master = CONFIG_BRIDGE };

	(void)snprintf(link.name, sizeof(link.name), "%s", name);
	return link;
}

/* Is it one after a minute of looks? */
static bool in_time(struct link link)
{
	struct stray_looks all;
	uint64_t now_ms;
	bool is = false;

	stray_looks_init(&all);
	for (now_ms = 1000; now_ms <= 1000 + STRAY_MS;
	     now_ms += STRAY_LOOK_MS) {
		assert_false(is); /* not before */
		stray_looks_begin(&all);
		is = stray_looks_see(&all, &link, now_ms);
	}
	stray_looks_fini(&all);
	return is;
}

static void strays__are_ports_that_lead_nowhere(void **state)
{
	static const char *const other[] = { "veth0", "veth01234567",
					     "veth0123x56", "eth01234567",
					     "veth0123456x" };
	struct link link = stray("veth0123abc", 7);
	size_t i;

	(void)state;
	assert_true(in_time(link));
	link.is_far = true; /* into a container */
	assert_false(in_time(link));
	link = stray("veth0123abc", 7);
	link.is_veth = false;
	assert_false(in_time(link));
	link = stray("veth0123abc", 7);
	(void)snprintf(link.master, sizeof(link.master), "sp-mine");
	assert_false(in_time(link));
	link.master[0] = '\0';
	assert_false(in_time(link));
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++)
		assert_false(in_time(stray(other[i], 7)));
}

static void strays__begin_anew_when_they_change(void **state)
{
	struct link one = stray("veth0123abc", 7), far = one;
	struct stray_looks all;

	(void)state;
	far.is_far = true;
	stray_looks_init(&all);
	stray_looks_begin(&all);
	assert_false(stray_looks_see(&all, &one, 1000));

	/* into a container meanwhile, and back */
	stray_looks_begin(&all);
	assert_false(stray_looks_see(&all, &far, 1000 + STRAY_MS));
	stray_looks_begin(&all);
	assert_false(stray_looks_see(&all, &one, 1000 + STRAY_MS));
	assert_false(stray_looks_see(&all, &one, 999 + 2 * STRAY_MS));

	/* another device of that name */
	stray_looks_begin(&all);
	one.index = 8;
	assert_false(stray_looks_see(&all, &one, 1000 + 2 * STRAY_MS));
	assert_true(stray_looks_see(&all, &one, 1000 + 3 * STRAY_MS));
	stray_looks_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strays__are_ports_that_lead_nowhere),
		cmocka_unit_test(strays__begin_anew_when_they_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
