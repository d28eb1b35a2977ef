/* SPDX-License-Identifier: Apache-2.0 */
/* test_registry_echo.c - a password in a registry's own words */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/log.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/registry_echo.h"

static const struct vector {
	const char *message, *user, *password;
	bool echoes;
} vectors[] = {
	{ "unauthorized: authentication required", "u", "hunter2", false },
	{ "unauthorized: u:hunter2", "u", "hunter2", true },
	{ "hunter2", "u", "hunter2", true },
	/* base64 of u:hunter2 */
	{ "found dTpodW50ZXIy, no", "u", "hunter2", true },
	{ "found dTpodW50ZXI, no", "u", "hunter2", false },
	/* as it is escaped: a backslash, a byte of UTF-8 */
	{ "found a\\x5cb\\xfcc", "u",
	  "a\\b\xfc"
	  "c",
	  true },
	{ "found a\\b\xfc"
	  "c",
	  "u",
	  "a\\b\xfc"
	  "c",
	  false },
	/* cut: with dots, at the end of a line, in base64 */
	{ "found hunt...", "u", "hunter2", true },
	{ "found hun...", "u", "hunter2", false },
	{ "found hunte", "u", "hunter2", true },
	{ "found dTpodW...", "u", "hunter2", true },
	{ "hunt that", "u", "hunter2", false },
	{ "", "u", "hunter2", false },
	{ "...", "u", "hunter2", false },
	/* three letters are in every sentence; none are nobody's */
	{ "unauthorized", "u", "aut", false },
	{ "unauthorized", "u", "auth", true },
	{ "unauthorized", "unauthorized", "", false },
};

static void echo__is_found(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(vectors); i++)
		if (registry_echoes(
			    vectors[i].message, span_str(vectors[i].user),
			    span_str(vectors[i].password)) != vectors[i].echoes)
			fail_msg("vector %zu: %s", i, vectors[i].message);
}

/* Longer than any message: cut there, it is still found. */
static void echo__of_a_long_token_is_found(void **state)
{
	char token[4000], text[4100], message[DOCKER_MESSAGE_SIZE];
	struct span user = SPAN("u"), password = span_of(token, sizeof(token));
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(token); i++)
		token[i] = (char)('!' + i * 7 % 90);
	memcpy(text, "you said ", 9);
	memcpy(text + 9, token, sizeof(token));
	(void)log_escape(span_of(text, 9 + sizeof(token)), message,
			 sizeof(message));
	assert_true(registry_echoes(message, user, password));
	/* all of it is above 0x7e: four characters a byte */
	memset(token, 0xee, sizeof(token));
	memcpy(text + 9, token, sizeof(token));
	(void)log_escape(span_of(text, 9 + sizeof(token)), message,
			 sizeof(message));
	assert_true(registry_echoes(message, user, password));
	assert_false(registry_echoes("you said nothing", user, password));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(echo__is_found),
		cmocka_unit_test(echo__of_a_long_token_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
