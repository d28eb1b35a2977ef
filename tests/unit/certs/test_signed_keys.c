/* SPDX-License-Identifier: Apache-2.0 */
/* test_signed_keys.c - files of keys: good ones, and what is said of others */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "certs/signed_keys.h"
#include "src/base/diag.h"

#define KEY "AAECAwQFBgcICQoLDA0ODw=="

static void keys__in_their_order(void **state)
{
	struct signed_keys keys;
	struct diag d = { 0 };
	struct arena a;

	(void)state;
	arena_init(&a, 65536);
	assert_int_equal(signed_keys_parse(SPAN("# old\n\nb = " KEY "\r\n"
						"a=" KEY "\n"),
					   &a, &keys, &d),
			 0);
	assert_int_equal(keys.keys[0].id, 'b');
	assert_int_equal(keys.keys[0].secret.len, 16);
	assert_int_equal(keys.keys[0].secret.ptr[15], 15);
	assert_int_equal(keys.keys[1].id, 'a');
	assert_int_equal(keys.keys[2].id, 0);
	assert_int_equal(signed_keys_parse(SPAN("#\n"), &a, &keys, &d), 0);
	assert_int_equal(keys.keys[0].id, 0);
	arena_wipe(&a);
}

static void keys__all_the_ids_there_are(void **state)
{
	static const char ids[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	char text[SIGNED_KEYS_MAX * 40] = "", id[2] = "";
	struct signed_keys keys;
	struct diag d = { 0 };
	struct arena a;
	size_t i;

	(void)state;
	arena_init(&a, 65536);
	for (i = 0; i < SIGNED_KEYS_MAX; i++) {
		id[0] = ids[i];
		strcat(strcat(text, id), "=" KEY "\n");
	}
	assert_int_equal(signed_keys_parse(span_str(text), &a, &keys, &d), 0);
	assert_int_equal(keys.keys[SIGNED_KEYS_MAX - 1].id, 'z');
	arena_wipe(&a);
}

static void keys__bad_ones(void **state)
{
	static const struct {
		const char *text;
		unsigned line;
		const char *has;
	} bad[] = {
		{ "a=" KEY "\nA=" KEY, 2, "id=base64" },
		{ "ab=" KEY, 1, "id=base64" },
		{ "a", 1, "base64 of 16" },
		{ "=" KEY, 1, "id=base64" },
		{ "a=" KEY "\na=" KEY, 2, "second key of the id a" },
		{ "a=AAECAwQFBgcICQoLDA0O", 1, "base64 of 16 to 1024" },
		{ "a=not base64 at all!!!!!!", 1, "base64" },
	};
	struct signed_keys keys = { .keys[0].id = 'q' };
	struct arena a;
	struct diag d;
	size_t i;

	(void)state;
	arena_init(&a, 65536);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = (struct diag){ 0 };
		assert_int_not_equal(
			signed_keys_parse(span_str(bad[i].text), &a, &keys, &d),
			0);
		assert_int_equal(d.line, bad[i].line);
		if (!strstr(d.msg, bad[i].has) || strstr(d.msg, KEY))
			fail_msg("%s: %s", bad[i].text, d.msg);
	}
	assert_int_equal(keys.keys[0].id, 'q');
	arena_wipe(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys__in_their_order),
		cmocka_unit_test(keys__all_the_ids_there_are),
		cmocka_unit_test(keys__bad_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
