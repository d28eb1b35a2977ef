/* SPDX-License-Identifier: Apache-2.0 */
/* test_golden.c - run every tests/policy/<name>.case; one policy_test_golden
 * argument runs just that file */

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/case.h"
#include "src/base/buf.h"

enum { CASES_WANTED = 25, CASE_FILE_MAX = 1 << 20 };

static const char *only;

static void report(void *ctx, const char *sentence)
{
	(void)ctx;
	print_message("%s\n", sentence);
}

static void read_file(const char *path, struct buf *text)
{
	FILE *f = fopen(path, "re");
	char *room;

	assert_non_null(f);
	assert_int_equal(buf_reserve(text, CASE_FILE_MAX, &room), 0);
	buf_commit(text, fread(room, 1, CASE_FILE_MAX, f));
	assert_true(feof(f));
	(void)fclose(f);
}

static bool run_case(const char *name)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(CASE_FILE_MAX);
	struct policy_case_result result;
	char path[4096], error[1024];
	struct diag d = { 0 };

	(void)snprintf(path, sizeof(path), SOURCE_DIR "/tests/policy/%s", name);
	read_file(path, &text);
	if (policy_case_run(buf_peek(&text), name, report, NULL, &result, &d)) {
		print_message("%s: %s\n", name,
			      diag_text(&d, error, sizeof(error)));
		return false;
	}
	if (!result.questions)
		print_message("%s: asks nothing\n", name);
	return result.questions && !result.failed;
}

static void golden__every_case_gets_its_verdicts(void **state)
{
	DIR *dir = opendir(SOURCE_DIR "/tests/policy");
	unsigned cases = 0, failed = 0;
	struct dirent *entry;

	(void)state;
	assert_non_null(dir);
	while ((entry = readdir(dir))) {
		if (!span_ends(span_str(entry->d_name), SPAN(".case")) ||
		    (only && strcmp(only, entry->d_name) != 0))
			continue;
		cases++;
		failed += !run_case(entry->d_name);
	}
	(void)closedir(dir);
	assert_int_equal(failed, 0);
	assert_true(cases >= (only ? 1 : CASES_WANTED));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden__every_case_gets_its_verdicts),
	};

	only = argc > 1 ? argv[1] : NULL;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
