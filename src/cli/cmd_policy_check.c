/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_policy_check.c - sallyport policy check: are these policy files sound? */

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "policy/load.h"
#include "policy/model.h"
#include "src/base/err.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"

static void set_tell(const char *path, const struct policy_set *set)
{
	unsigned rules = set->deny_count + set->allow_count;
	const struct policy_model *m;

	for (m = set->policies; m; m = m->next)
		rules += m->rule_count;
	printf("%s: %u %s, %u %s\n", path, set->policy_count,
	       set->policy_count == 1 ? "policy" : "policies", rules,
	       rules == 1 ? "rule" : "rules");
}

static int path_check(const char *path)
{
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	struct diag d = { 0 };
	char line[1024];
	struct stat st;
	int r;

	if (stat(path, &st)) {
		fprintf(stderr, "%s: %s\n", path, err_text(errno));
		return CLI_FAILED;
	}
	if (S_ISDIR(st.st_mode))
		r = policy_load_dir(path, &set, &d);
	else
		r = policy_load_file(path, &set, &d);
	if (r) {
		fprintf(stderr, "%s\n", diag_text(&d, line, sizeof(line)));
		return CLI_FAILED;
	}
	set_tell(path, set);
	return CLI_OK;
}

int cmd_policy_check(int argc, char **argv)
{
	const struct opt_usage usage = {
		.line = "policy check DIR|FILE...",
		.min = 1,
		.max = OPT_ANY,
	};
	struct opt_words words;
	unsigned i;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	for (i = 0; i < words.count; i++)
		if (path_check(words.items[i]))
			r = CLI_FAILED;
	return r;
}
