/* SPDX-License-Identifier: Apache-2.0 */
/* case.c - run one file of golden cases, line by line */

#include "policy/case.h"

#include <errno.h>
#include <stdio.h>

#include "policy/load.h"
#include "src/base/log.h"

enum { CASE_NAME_SIZE = 128, CASE_LINE_SIZE = 2048, CASE_DETAIL_SIZE = 2048 };

enum section {
	IN_NOTHING,
	IN_POLICY,
	IN_QUESTIONS,
	IN_ERROR,
};

struct run {
	const char *name;
	policy_case_report *report;
	void *ctx;
	struct policy_case_result *result;
	struct diag *diag;

	struct span rest; /* text not yet read */
	unsigned line;	  /* of the line just read */
	enum section section;

	struct policy_source sources[CASE_SOURCES_MAX];
	char names[CASE_SOURCES_MAX][CASE_NAME_SIZE];
	unsigned source_count;

	struct policy_set *set; /* once asking began */
	struct policy_pair pair;
};

static int malformed(struct run *run, const char *what)
{
	(void)snprintf(run->diag->file, sizeof(run->diag->file), "%s",
		       run->name);
	return diag_set(run->diag, run->line, 0, "%s", what);
}

static void run_init(struct run *run)
{
	buf_init(&run->pair.overlay_bytes, 0);
	buf_init(&run->pair.policy_bytes, 0);
}

static void run_fini(struct run *run)
{
	policy_pair_fini(&run->pair);
	run->set = policy_set_free(run->set);
}

static bool next_line(struct run *run, struct span *ret)
{
	if (!run->rest.len)
		return false;
	*ret = span_cut(&run->rest, '\n');
	run->line++;
	return true;
}

static bool is_indented(struct span line)
{
	return line.len && (line.ptr[0] == ' ' || line.ptr[0] == '\t');
}

static bool is_blank(struct span line)
{
	return !span_trim(line).len || line.ptr[0] == '#';
}

static void mismatch(struct run *run, unsigned line, struct span question,
		     struct span expected, const char *found)
{
	char sentence[3 * CASE_LINE_SIZE];

	run->result->failed++;
	(void)snprintf(sentence, sizeof(sentence),
		       "%s:%u: %.*s\n  expected %.*s\n  found    %s", run->name,
		       line, SPAN_FMT(question), SPAN_FMT(expected), found);
	run->report(run->ctx, sentence);
}

/* One question, and its verdict on the next line. */
static int ask(struct run *run, struct span question)
{
	char flags[64], sentence[CASE_DETAIL_SIZE];
	char found[CASE_DETAIL_SIZE + 80];
	struct policy_question q;
	unsigned line = run->line;
	struct span expected;
	struct verdict v;
	int r;

	if (!next_line(run, &expected) || !is_indented(expected))
		return malformed(run, "found a question without its verdict, "
				      "expected one, indented, below it");
	r = policy_question_parse(question, &q, run->diag);
	if (r) {
		(void)snprintf(run->diag->file, sizeof(run->diag->file), "%s",
			       run->name);
		run->diag->line = line;
		return r;
	}
	policy_pair_match(&run->pair, &q.query, &v);
	policy_question_fini(&q);
	(void)snprintf(found, sizeof(found), "%s: %s",
		       policy_verdict_text(&v, flags, sizeof(flags)),
		       policy_pair_sentence(&run->pair, &v, sentence,
					    sizeof(sentence)));
	run->result->questions++;
	expected = span_trim(expected);
	if (!span_eq(expected, span_str(found)))
		mismatch(run, line, question, expected, found);
	return 0;
}

static int begin_policy(struct run *run, struct span name)
{
	unsigned at = run->source_count;

	if (run->section == IN_QUESTIONS || run->section == IN_ERROR)
		return malformed(run, "found a policy behind questions, "
				      "expected policies first");
	if (at == CASE_SOURCES_MAX ||
	    !span_copy(span_trim(name), run->names[at], CASE_NAME_SIZE))
		return malformed(run, "found too many policies, or too long a "
				      "name");
	run->sources[at].name = run->names[at];
	run->sources[at].text = span_of(run->rest.ptr, 0);
	run->source_count++;
	run->section = IN_POLICY;
	return 0;
}

static const struct policy_model *select_sandbox(struct run *run,
						 struct span words)
{
	struct policy_label labels[POLICY_LABELS_MAX];
	struct span id = span_cut(&words, ' '), word;
	unsigned count = 0;

	while (words.len && count < POLICY_LABELS_MAX) {
		word = span_cut(&words, ' ');
		labels[count].key = span_cut(&word, '=');
		labels[count++].value = word;
	}
	return policy_select(run->set, id, labels, count);
}

static int begin_ask(struct run *run, struct span words)
{
	static const struct span sandbox = SPAN_INIT("sandbox ");
	const struct policy_model *m;
	int r = 0;

	if (run->section == IN_NOTHING || run->section == IN_ERROR)
		return malformed(run, "found questions without a policy");
	if (!run->set)
		r = policy_load_texts(run->sources, run->source_count,
				      &run->set, run->diag);
	if (r)
		return r;
	words = span_trim(words);
	if (span_starts(words, sandbox)) {
		m = select_sandbox(run, span_from(words, sandbox.len));
	} else {
		m = policy_find(run->set, words);
		if (!m)
			return malformed(run, "found a name that no policy "
					      "above has");
	}
	run->section = IN_QUESTIONS;
	policy_pair_fini(&run->pair);
	r = policy_pair_init(&run->pair, run->set, m, 1);
	return r ? malformed(run, "found a policy that cannot be compiled") : 0;
}

/* The policies must fail to load with exactly this line. */
static int expect_error(struct run *run, struct span expected)
{
	char text[sizeof(struct diag) + 32];
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	run->result->questions++;
	if (!policy_load_texts(run->sources, run->source_count, &set, &d))
		mismatch(run, run->line, SPAN("--- error"), expected,
			 "no error");
	else if (!span_eq(expected,
			  span_str(diag_text(&d, text, sizeof(text)))))
		mismatch(run, run->line, SPAN("--- error"), expected, text);
	policy_set_free(set);
	return 0;
}

static int begin_section(struct run *run, struct span head)
{
	static const struct span policy = SPAN_INIT("policy ");
	static const struct span questions = SPAN_INIT("ask ");

	if (span_starts(head, policy))
		return begin_policy(run, span_from(head, policy.len));
	if (span_starts(head, questions))
		return begin_ask(run, span_from(head, questions.len));
	if (!span_eq(head, SPAN("error")) || !run->source_count)
		return malformed(run, "found an unknown section, expected "
				      "policy, ask or error");
	run->section = IN_ERROR;
	return 0;
}

static int on_line(struct run *run, struct span line)
{
	static const struct span rule = SPAN_INIT("--- ");
	struct policy_source *source;

	if (span_starts(line, rule))
		return begin_section(run, span_from(line, rule.len));
	switch (run->section) {
	case IN_POLICY:
		source = &run->sources[run->source_count - 1];
		source->text.len =
			(size_t)(line.ptr + line.len - source->text.ptr);
		source->text.len += run->rest.ptr > line.ptr + line.len;
		return 0;
	case IN_QUESTIONS:
		if (is_blank(line))
			return 0;
		return is_indented(line)
			       ? malformed(run, "found a verdict without a "
						"question")
			       : ask(run, line);
	case IN_ERROR:
		return is_blank(line) ? 0 : expect_error(run, line);
	case IN_NOTHING:
		break;
	}
	return is_blank(line) ? 0
			      : malformed(run, "found text outside of any "
					       "section");
}

int policy_case_run(struct span text, const char *name,
		    policy_case_report *report, void *ctx,
		    struct policy_case_result *ret, struct diag *d)
{
	CLEANUP(run_fini)
	struct run run = { .name = name,
			   .report = report,
			   .ctx = ctx,
			   .result = ret,
			   .diag = d,
			   .rest = text };
	struct span line;
	int r = 0;

	run_init(&run);
	*ret = (struct policy_case_result){ 0 };
	while (!r && next_line(&run, &line))
		r = on_line(&run, line);
	return r;
}
