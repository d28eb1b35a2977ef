/* SPDX-License-Identifier: Apache-2.0 */
/* cmd_policy_explain.c - sallyport policy explain: what would decide this?
 *
 * Asks the daemon about a sandbox, or with --file the policies of a file or
 * folder without any daemon. The exit status tells the verdict: 0 allowed, 1
 * denied.
 */

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/explain.h"
#include "policy/load.h"
#include "src/base/diag.h"
#include "src/cli/api.h"
#include "src/cli/command.h"
#include "src/cli/opts.h"
#include "src/cli/routes.h"
#include "src/cli/table.h"
#include "src/text/json.h"

enum { LABELS_MAX = 64, QUESTION_MAX = 16 * 1024 };

struct explain {
	struct opt_daemon daemon;
	const char *file, *policy, *sandbox;
	struct opt_list labels;
	bool foreign_allowed;
	struct opt_words words;
};

static int explain_parse(struct explain *e, int argc, char **argv)
{
	const struct opt opts[] = {
		{ "sandbox", OPT_TEXT, &e->sandbox, "ID",
		  "the sandbox that would ask", 'S' },
		{ "file", OPT_TEXT, &e->file, "PATH",
		  "ask this policy file or folder, not the daemon", 'f' },
		{ "policy", OPT_TEXT, &e->policy, "NAME",
		  "with --file: this policy, whatever it chooses", 'p' },
		{ "label", OPT_LIST, &e->labels, "KEY=VALUE",
		  "with --file: a label of the sandbox", 'l' },
		{ "allow-foreign-resolvers", OPT_FLAG, &e->foreign_allowed,
		  NULL, "with --file: as dns.allowForeignResolvers says", 0 },
		OPTS_DAEMON(&e->daemon),
		{ 0 },
	};
	const struct opt_usage usage = {
		.line = "policy explain (--sandbox ID | --file PATH) "
			"(URL [METHOD] | name HOST | connect [tcp|udp|icmp] "
			"HOST[:PORT] [at ADDRESS])",
		.min = 1,
		.max = 5,
		.opts = opts,
	};

	return opts_parse(&usage, argc, argv, &e->words);
}

/* -- without a daemon ----------------------------------------------------- */

static bool is_url(const struct explain *e)
{
	return strstr(e->words.items[0], "://") != NULL;
}

/* "GET https://..." from URL [METHOD]; other forms as they are. */
static int question_put(const struct explain *e, struct buf *text)
{
	const char *first = e->words.items[0];
	unsigned i;
	int r = 0;

	if (is_url(e))
		return buf_putf(text, "%s %s",
				e->words.count > 1 ? e->words.items[1] : "GET",
				first);
	for (i = 0; i < e->words.count && !r; i++)
		r = buf_putf(text, "%s%s", i ? " " : "", e->words.items[i]);
	return r;
}

static const struct policy_model *model_find(const struct explain *e,
					     const struct policy_set *set)
{
	struct policy_label labels[LABELS_MAX];
	unsigned i, count = MIN(e->labels.count, (unsigned)LABELS_MAX);
	struct span rest;

	if (e->policy)
		return policy_find(set, span_str(e->policy));
	if (!e->sandbox && !count && set->policy_count == 1)
		return set->policies; /* there is no doubt */
	for (i = 0; i < count; i++) {
		rest = span_str(e->labels.items[i]);
		labels[i].key = span_cut(&rest, '=');
		labels[i].value = rest;
	}
	return policy_select(set, span_str(e->sandbox), labels, count);
}

static int diag_fail(const struct diag *d)
{
	char line[1024];

	fprintf(stderr, "sallyport: %s\n", diag_text(d, line, sizeof(line)));
	return CLI_FAILED;
}

static int answer(const struct policy_pair *pair, struct span text)
{
	struct policy_question question;
	char kind[64], sentence[2048], limits[POLICY_LIMITS_TEXT_SIZE];
	struct diag d = { 0 };
	struct verdict v;

	if (policy_question_parse(text, &question, &d)) {
		(void)diag_fail(&d);
		return CLI_USAGE;
	}
	policy_pair_match(pair, &question.query, &v);
	printf("%s: %s\n", policy_verdict_text(&v, kind, sizeof(kind)),
	       policy_pair_sentence(pair, &v, sentence, sizeof(sentence)));
	policy_question_fini(&question);
	if (pair->has_policy &&
	    policy_limits_say(snapshot_limits(&pair->policy)))
		printf("limits: %s\n",
		       policy_limits_text(snapshot_limits(&pair->policy),
					  limits, sizeof(limits)));
	return v.kind == VERDICT_ALLOW ? CLI_OK : CLI_FAILED;
}

static int explain_file(const struct explain *e)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(QUESTION_MAX);
	struct policy_set *set CLEANUP_POLICY_SET = NULL;
	struct policy_pair pair;
	struct diag d = { 0 };
	struct stat st;
	int r;

	if (!stat(e->file, &st) && S_ISDIR(st.st_mode))
		r = policy_load_dir(e->file, &set, &d);
	else
		r = policy_load_file(e->file, &set, &d);
	if (r)
		return diag_fail(&d);
	if (question_put(e, &text))
		return CLI_USAGE;
	r = policy_pair_init(&pair, set, model_find(e, set), 1);
	pair.foreign_allowed = e->foreign_allowed;
	r = r ? CLI_FAILED : answer(&pair, buf_peek(&text));
	policy_pair_fini(&pair);
	return r;
}

/* -- with one ------------------------------------------------------------- */

static int explain_ask(const struct explain *e)
{
	struct buf body CLEANUP(buf_fini) = BUF_INIT(QUESTION_MAX);
	struct buf text CLEANUP(buf_fini) = BUF_INIT(QUESTION_MAX);
	struct api_reply reply CLEANUP_REPLY = { 0 };
	char verdict[64], reason[2048], binding[256];
	struct json_out out;
	struct api api;
	int r;

	json_start(&out, &body);
	json_open_object(&out, NULL);
	json_put_str(&out, "sandbox", e->sandbox);
	if (is_url(e)) {
		json_put_str(&out, "url", e->words.items[0]);
		json_put_str(&out, "method",
			     e->words.count > 1 ? e->words.items[1] : "GET");
	} else if (question_put(e, &text)) {
		return CLI_USAGE;
	} else {
		json_put_text(&out, "words", buf_peek(&text));
	}
	json_close(&out);
	if (json_done(&out) || api_init(&api, &e->daemon))
		return CLI_USAGE;
	r = api_call(&api, "POST", ROUTE_EXPLAIN, buf_peek(&body), &reply);
	if (r)
		return r;
	table_cell(reply.json, "verdict", verdict, sizeof(verdict));
	if (e->daemon.json) {
		api_print(&reply);
	} else {
		printf("%s: %s\n", verdict,
		       table_cell(reply.json, "sentence", reason,
				  sizeof(reason)));
		table_cell(reply.json, "limits", reason, sizeof(reason));
		if (strcmp(reason, "-"))
			printf("limits: %s\n", reason);
		table_cell(reply.json, "binding", binding, sizeof(binding));
		if (strcmp(binding, "-"))
			printf("binding: %s\n", binding);
		table_cell(reply.json, "bindingTie", binding, sizeof(binding));
		if (strcmp(binding, "-"))
			printf("refused, bindings tie: %s\n", binding);
	}
	return strcmp(verdict, "allow") ? CLI_FAILED : CLI_OK;
}

int cmd_policy_explain(int argc, char **argv)
{
	struct explain e = { 0 };
	int r;

	r = explain_parse(&e, argc, argv);
	if (r)
		return opts_exit(r);
	if (e.file)
		return explain_file(&e);
	if (!e.sandbox) {
		fputs("sallyport: whose request? --sandbox ID or --file PATH\n",
		      stderr);
		return CLI_USAGE;
	}
	return explain_ask(&e);
}
