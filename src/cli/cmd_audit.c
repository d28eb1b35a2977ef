/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_audit.c - sallyport audit tail: what was allowed, denied, injected */

#include <stdio.h>

#include "src/cli/api.h"
#include "src/cli/audit_stream.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"

enum { LINES_DEFAULT = 20, LINES_MAX = 10000 };

static bool record_print(void *ctx, const struct json *record, struct span text)
{
	const struct opt_daemon *where = ctx;
	char line[4096];

	if (where->json)
		printf("%.*s\n", SPAN_FMT(text));
	else
		puts(audit_sentence(record, line, sizeof(line)));
	return !fflush(stdout); /* nobody reads any more: stop */
}

int cmd_audit_tail(int argc, char **argv)
{
	struct audit_question q = { .lines = LINES_DEFAULT };
	struct opt_daemon where = { 0 };
	const char *lines = NULL;
	const struct opt opts[] = {
		{ "follow", OPT_FLAG, &q.follow, NULL,
		  "go on with the records that come", 'f' },
		{ "lines", OPT_TEXT, &lines, "N",
		  "how many records of before, at most 10000; 20", 'n' },
		{ "sandbox", OPT_TEXT, &q.sandbox, "ID", "of this sandbox only",
		  'S' },
		OPTS_DAEMON(&where),
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "audit tail [-f] [-n N] [--sandbox ID]",
		.opts = opts,
	};
	struct opt_words words;
	uint64_t count;
	struct api api;
	int r;

	r = opts_parse(&usage, argc, argv, &words);
	if (r)
		return opts_exit(r);
	if (lines) {
		if (!span_parse_u64(span_str(lines), &count) ||
		    count > LINES_MAX) {
			fprintf(stderr,
				"sallyport: --lines: found %s, "
				"expected 0 to %d\n",
				lines, LINES_MAX);
			return CLI_USAGE;
		}
		q.lines = (unsigned)count;
	}
	if (api_init(&api, &where))
		return CLI_FAILED;
	return audit_stream(&api, &q, record_print, &where);
}
