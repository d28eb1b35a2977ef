/* SPDX-License-Identifier: Apache-2.0 */
/* test_opts.c - words of a command line into options, and what is refused */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "src/base/span.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"

enum { WORDS = 16 };

struct parsed {
	bool flag;
	const char *text;
	struct opt_list list;
	struct opt_words words;
};

static int parse(const char *line, bool stop, struct parsed *ret)
{
	static char copy[512];
	static char *argv[WORDS + 1];
	const struct opt opts[] = {
		{ "flag", OPT_FLAG, &ret->flag, NULL, "", 'f' },
		{ "text", OPT_TEXT, &ret->text, "T", "", 't' },
		{ "list", OPT_LIST, &ret->list, "L", "" },
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "test",
		.min = 1,
		.max = 3,
		.stop_at_word = stop,
		.opts = opts,
	};
	char *save = NULL, *word;
	int argc = 0;

	*ret = (struct parsed){ 0 };
	(void)span_copy(span_str(line), copy, sizeof(copy));
	for (word = strtok_r(copy, " ", &save); word && argc < WORDS;
	     word = strtok_r(NULL, " ", &save))
		argv[argc++] = word;
	argv[argc] = NULL;
	return opts_parse(&usage, argc, argv, &ret->words);
}

static void opts__every_form(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(
		parse("c --flag --text a one --list x --list=y two", false, &p),
		0);
	assert_true(p.flag);
	assert_string_equal(p.text, "a");
	assert_int_equal(p.list.count, 2);
	assert_string_equal(p.list.items[1], "y");
	assert_int_equal(p.words.count, 2);
	assert_string_equal(p.words.items[0], "one");
	assert_string_equal(p.words.items[1], "two");
	assert_null(p.words.items[2]);

	assert_int_equal(parse("c -f -tb -t c w", false, &p), 0);
	assert_true(p.flag);
	assert_string_equal(p.text, "c"); /* the last one wins */
	assert_int_equal(parse("c --text= w", false, &p), 0);
	assert_string_equal(p.text, "");
	assert_int_equal(parse("c - w", false, &p), 0); /* "-" is a word */
	assert_string_equal(p.words.items[0], "-");
}

static void opts__dashes_end_options(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(parse("c -f -- --text -- x", false, &p), 0);
	assert_int_equal(p.words.count, 3);
	assert_string_equal(p.words.items[0], "--text");
	assert_string_equal(p.words.items[1], "--");
	assert_null(p.text);
}

static void opts__first_word_may_end_them(void **state)
{
	struct parsed p;

	(void)state;
	assert_int_equal(parse("c -f cmd --text -x", true, &p), 0);
	assert_true(p.flag);
	assert_int_equal(p.words.count, 3);
	assert_string_equal(p.words.items[1], "--text");
	assert_null(p.text);
}

static void opts__refused(void **state)
{
	static const char *const lines[] = {
		"c",		 /* a word is missing */
		"c a b c d",	 /* one too many */
		"c --nothing a", /* unknown */
		"c -x a",	 /* unknown */
		"c --tex v a",	 /* no abbreviations */
		"c a --text",	 /* no value */
		"c --flag=1 a",	 /* a flag with a value */
	};
	struct parsed p;
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lines); i++)
		assert_int_equal(parse(lines[i], false, &p), OPTS_E_USAGE);
	assert_int_equal(opts_exit(OPTS_E_USAGE), CLI_USAGE);
	assert_int_equal(parse("c --help", false, &p), OPTS_E_HELP);
	assert_int_equal(opts_exit(OPTS_E_HELP), CLI_OK);
}

static void opts__list_is_bounded(void **state)
{
	static char name[] = "c", word[] = "--list=x";
	static char *argv[OPT_LIST_MAX + 3];
	struct opt_list list = { 0 };
	const struct opt opts[] = {
		{ "list", OPT_LIST, &list, "L", "" },
		{ 0 },
	};
	const struct opt_usage usage = { .line = "test", .opts = opts };
	struct opt_words words;
	int i;

	(void)state;
	argv[0] = name;
	for (i = 1; i <= OPT_LIST_MAX + 1; i++)
		argv[i] = word;
	assert_int_equal(opts_parse(&usage, OPT_LIST_MAX + 1, argv, &words), 0);
	assert_int_equal(list.count, OPT_LIST_MAX);
	list.count = 0;
	assert_int_equal(opts_parse(&usage, OPT_LIST_MAX + 2, argv, &words),
			 OPTS_E_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opts__every_form),
		cmocka_unit_test(opts__dashes_end_options),
		cmocka_unit_test(opts__first_word_may_end_them),
		cmocka_unit_test(opts__refused),
		cmocka_unit_test(opts__list_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
