/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_policy_test.c - sallyport policy test: run case files, like the tests do
 */

#include <stdio.h>

#include "policy/case.h"
#include "src/base/err.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"
#include "src/cli/proc.h"

enum { CASE_MAX = 16 * 1024 * 1024 };

static void failure_tell(void *ctx, const char *sentence)
{
	(void)ctx;
	fprintf(stderr, "%s\n", sentence);
}

static int case_run(const char *path, struct policy_case_result *sum)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(CASE_MAX);
	struct policy_case_result result = { 0 };
	struct diag d = { 0 };
	char line[1024];
	int r;

	r = file_read(path, &text);
	if (r) {
		fprintf(stderr, "%s: %s\n", path, err_text(r));
		return CLI_FAILED;
	}
	if (policy_case_run(buf_peek(&text), path, failure_tell, NULL, &result,
			    &d)) {
		fprintf(stderr, "%s\n", diag_text(&d, line, sizeof(line)));
		return CLI_FAILED;
	}
	sum->questions += result.questions;
	sum->failed += result.failed;
	return result.failed ? CLI_FAILED : CLI_OK;
}

int cmd_policy_test(int argc, char **argv)
{
	const struct opt_usage usage = {
		.line = "policy test CASEFILE...",
		.min = 1,
		.max = OPT_ANY,
	};
	struct policy_case_result sum = { 0 };
	unsigned i, broken = 0;
	struct opt_words words;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	for (i = 0; i < words.count; i++)
		if (case_run(words.items[i], &sum))
			broken++;
	printf("%u of %u files as expected, %u of %u questions\n",
	       words.count - broken, words.count, sum.questions - sum.failed,
	       sum.questions);
	return broken ? CLI_FAILED : CLI_OK;
}
