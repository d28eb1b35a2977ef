/* SPDX-License-Identifier: Apache-2.0 */
/* test_command_body.c - bodies of POST /command: what is taken, what refused */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/diag.h"
#include "src/execd/command/body.h"
#include "src/execd/process/env.h"
#include "src/text/json.h"

static struct json *parse(const char *text)
{
	struct diag d = { 0 };
	struct json *j;

	if (json_parse(span_str(text), &j, &d))
		fail_msg("%s: %s", text, d.msg);
	return j;
}

static void read__takes_every_member(void **state)
{
	struct json *j = parse("{\"command\":\"ls\",\"cwd\":\"/tmp\","
			       "\"background\":true,\"timeout\":1500,"
			       "\"uid\":1000,\"gid\":0,\"envs\":{\"A\":\"1\"},"
			       "\"later\":[1]}");
	struct command_body b;
	struct diag d = { 0 };

	(void)state;
	assert_false(command_body_read(j, &b, &d));
	assert_true(span_eq(b.command, SPAN("ls")));
	assert_true(span_eq(b.cwd, SPAN("/tmp")));
	assert_true(b.background && b.has_uid && b.has_gid);
	assert_int_equal(b.timeout_ms, 1500);
	assert_int_equal(b.uid, 1000);
	assert_int_equal(b.gid, 0);
	assert_int_equal(json_count(b.envs), 1);
	json_free(j);
}

static void read__takes_null_and_absent_alike(void **state)
{
	static const char *const texts[] = {
		"{\"command\":\"ls\"}",
		"{\"command\":\"ls\",\"cwd\":null,\"background\":null,"
		"\"timeout\":null,\"uid\":null,\"gid\":null,\"envs\":null}",
		"{\"command\":\"ls\",\"cwd\":\"\",\"background\":false,"
		"\"timeout\":0}",
	};
	struct command_body b;
	struct diag d = { 0 };
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		j = parse(texts[i]);
		assert_false(command_body_read(j, &b, &d));
		assert_null(b.cwd.ptr);
		assert_null(b.envs);
		assert_false(b.background || b.has_uid || b.has_gid);
		assert_int_equal(b.timeout_ms, 0);
		json_free(j);
	}
}

static void read__says_what_is_wrong(void **state)
{
	static const struct {
		const char *body, *sentence;
	} cases[] = {
		{ "{}", "command is absent, expected a text to run" },
		{ "{\"command\":\"\"}",
		  "command is empty, expected a text to run" },
		{ "{\"command\":7}", "command is a number, expected a string" },
		{ "{\"command\":\"a\",\"argv\":[\"b\"]}",
		  "found command and argv, expected one of them" },
		{ "{\"argv\":\"a\"}",
		  "argv is a string, expected an array of strings" },
		{ "{\"argv\":[\"a\",1]}",
		  "an item of argv is a number, expected a string" },
		{ "{\"argv\":[]}",
		  "argv names no program, expected it first" },
		{ "{\"argv\":[\"\",\"a\"]}",
		  "argv names no program, expected it first" },
		{ "{\"argv\":[\"a\",\"b\\u0000\"]}",
		  "argv holds a NUL character, which no program can be given" },
		{ "{\"command\":\"a\\u0000b\"}",
		  "command holds a NUL character, which no program can be "
		  "given" },
		{ "{\"command\":\"a\",\"cwd\":[]}",
		  "cwd is an array, expected a string" },
		{ "{\"command\":\"a\",\"background\":\"yes\"}",
		  "background is a string, expected true or false" },
		{ "{\"command\":\"a\",\"timeout\":-1}",
		  "timeout is out of range, expected a whole number from 0 to "
		  "31536000000" },
		{ "{\"command\":\"a\",\"timeout\":1.5}",
		  "timeout is out of range, expected a whole number from 0 to "
		  "31536000000" },
		{ "{\"command\":\"a\",\"uid\":4294967295}",
		  "uid is out of range, expected a whole number from 0 to "
		  "4294967294" },
		{ "{\"command\":\"a\",\"gid\":5}",
		  "found gid without uid, expected both" },
		{ "{\"command\":\"a\",\"envs\":[\"A=1\"]}",
		  "envs is an array, expected an object" },
	};
	struct command_body b;
	struct diag d;
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		d = (struct diag){ 0 };
		j = parse(cases[i].body);
		assert_true(command_body_read(j, &b, &d) < 0);
		assert_string_equal(d.msg, cases[i].sentence);
		json_free(j);
	}
}

static void envs__are_set_or_refused(void **state)
{
	static const struct {
		const char *envs;
		bool fine;
	} cases[] = {
		{ "{}", true },
		{ "{\"A\":\"1\",\"B\":\"x=y\",\"C\":\"\"}", true },
		{ "{\"A\":null}", true },
		{ "{\"\":\"1\"}", false },
		{ "{\"A=B\":\"1\"}", false },
		{ "{\"A\":\"\\u0000\"}", false },
		{ "{\"A\":1}", false },
	};
	struct command_body b = { 0 };
	struct env *env;
	struct diag d;
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		d = (struct diag){ 0 };
		j = parse(cases[i].envs);
		b.envs = j;
		env = env_new_empty();
		assert_false(env_set(env, SPAN("A"), SPAN("old")));
		assert_int_equal(!command_body_envs(&b, env, &d),
				 cases[i].fine);
		assert_int_equal(diag_is_set(&d), !cases[i].fine);
		if (i == 1)
			assert_string_equal(env_get(env, "B"), "x=y");
		if (i == 2)
			assert_null(env_get(env, "A"));
		(void)env_free(env);
		json_free(j);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__takes_every_member),
		cmocka_unit_test(read__takes_null_and_absent_alike),
		cmocka_unit_test(read__says_what_is_wrong),
		cmocka_unit_test(envs__are_set_or_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
