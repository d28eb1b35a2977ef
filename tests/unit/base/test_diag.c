/* SPDX-License-Identifier: Apache-2.0 */
/* test_diag.c - the first error wins, its text, and the nearest word */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "src/base/diag.h"

static void diag__first_error_wins(void **state)
{
	struct diag d = { 0 };

	(void)state;
	assert_false(diag_is_set(&d));
	assert_int_equal(diag_set(&d, 3, 4, "found %s", "a"), -EINVAL);
	assert_int_equal(diag_set(&d, 5, 6, "found %s", "b"), -EINVAL);
	assert_true(diag_is_set(&d));
	assert_string_equal(d.msg, "found a");
	assert_int_equal(d.line, 3);
	assert_int_equal(d.col, 4);
	assert_int_equal(diag_set(NULL, 1, 1, "x"), -EINVAL);
}

static void diag__text(void **state)
{
	struct diag d = { .file = "p.yaml", .line = 3, .col = 7, .msg = "no" };
	char text[64], small[8], none[1];

	(void)state;
	assert_string_equal(diag_text(&d, text, sizeof(text)),
			    "p.yaml:3:7: no");
	d.col = 0;
	assert_string_equal(diag_text(&d, text, sizeof(text)), "p.yaml:3: no");
	d.line = 0;
	assert_string_equal(diag_text(&d, text, sizeof(text)), "p.yaml: no");
	d.file[0] = '\0';
	assert_string_equal(diag_text(&d, text, sizeof(text)), "no");
	d.line = 12;
	assert_string_equal(diag_text(&d, text, sizeof(text)), "12: no");
	assert_string_equal(diag_text(&d, small, sizeof(small)), "12: no");
	d.line = 1234567;
	assert_string_equal(diag_text(&d, small, sizeof(small)), "1234567");
	assert_string_equal(diag_text(&d, none, sizeof(none)), "");
}

static void diag__suggest(void **state)
{
	static const char *const words[] = { "egress",	  "defaultAction",
					     "sandboxes", "passthrough",
					     "inspect",	  "tls",
					     NULL };
	static const char *const none[] = { NULL };
	char longer[128];

	(void)state;
	assert_string_equal(diag_suggest("egres", words), "egress");
	assert_string_equal(diag_suggest("Egress", words), "egress");
	assert_string_equal(diag_suggest("egerss", words), "egress");
	assert_string_equal(diag_suggest("default_action", words),
			    "defaultAction");
	assert_string_equal(diag_suggest("sandbox", words), "sandboxes");
	assert_string_equal(diag_suggest("tsl", words), "tls");
	assert_string_equal(diag_suggest("egress", words), "egress");
	assert_null(diag_suggest("credential", words));
	assert_null(diag_suggest("x", words));
	assert_null(diag_suggest("", words));
	assert_null(diag_suggest("egress", none));
	/* a word too long to compare is near to nothing */
	memset(longer, 'e', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_null(diag_suggest(longer, words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(diag__first_error_wins),
		cmocka_unit_test(diag__text),
		cmocka_unit_test(diag__suggest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
