/* SPDX-License-Identifier: Apache-2.0 */
/* test_examples.c - what we show people holds: man page, example, schema */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/case.h"
#include "policy/load.h"
#include "src/base/buf.h"
#include "src/text/doc.h"

enum { FILE_MAX_BYTES = 1 << 20, EXAMPLES_WANTED = 5 };

static void read_file(const char *path, struct buf *text)
{
	FILE *f = fopen(path, "re");
	char *room;

	if (!f)
		fail_msg("no %s", path);
	assert_int_equal(buf_reserve(text, FILE_MAX_BYTES, &room), 0);
	buf_commit(text, fread(room, 1, FILE_MAX_BYTES, f));
	(void)fclose(f);
}

static void tell(void *ctx, const char *sentence)
{
	(void)ctx;
	print_message("%s\n", sentence);
}

/* One block: a case file, or a policy file. */
static void run_block(struct span block)
{
	struct policy_case_result result;
	struct policy_set *set = NULL;
	struct diag d = { 0 };
	char text[1024];

	if (span_starts(block, SPAN("--- "))) {
		if (policy_case_run(block, "man page", tell, NULL, &result, &d))
			fail_msg("%s", diag_text(&d, text, sizeof(text)));
		assert_true(result.questions > 0);
		assert_int_equal(result.failed, 0);
		return;
	}
	if (policy_load_text(block, "example", &set, &d))
		fail_msg("%.*s%s", SPAN_FMT(block),
			 diag_text(&d, text, sizeof(text)));
	assert_true(set->policy_count + set->deny_count > 0);
	policy_set_free(set);
}

static void examples__of_the_man_page_work(void **state)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	unsigned blocks = 0;
	const char *start = NULL;
	struct span rest, line;

	(void)state;
	read_file(SOURCE_DIR "/docs/man/sallyport-policy.5", &text);
	rest = buf_peek(&text);
	while (rest.len) {
		line = span_cut(&rest, '\n');
		if (span_starts(line, SPAN(".Bd -literal"))) {
			start = rest.ptr;
		} else if (span_eq(line, SPAN(".Ed"))) {
			assert_non_null(start);
			run_block(span_of(start, (size_t)(line.ptr - start)));
			start = NULL;
			blocks++;
		}
	}
	assert_true(blocks >= EXAMPLES_WANTED);
}

static void examples__of_the_policy_folder_load(void **state)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };
	char text[1024];

	(void)state;
	if (policy_load_dir(SOURCE_DIR "/deploy/policies", &set, &d))
		fail_msg("%s", diag_text(&d, text, sizeof(text)));
	assert_non_null(policy_find(set, SPAN("coding-agents")));
	assert_ptr_equal(policy_select(set, SPAN("agent-7"), NULL, 0),
			 policy_find(set, SPAN("coding-agents")));
	assert_ptr_equal(policy_select(set, SPAN("other"), NULL, 0),
			 policy_find(set, SPAN("nothing")));
	policy_set_free(set);
}

/* The properties at `path` of the schema are keys that the parser knows: with
 * null as value it complains about the value, not about the key. */
static unsigned check_properties(const struct doc_node *n, const char *before,
				 const char *after)
{
	const struct doc_node *properties = doc_find(n, "properties");
	struct policy_set *set = NULL;
	char text[256];
	unsigned count = 0;

	assert_non_null(properties);
	doc_for_each(it, properties)
	{
		struct diag d = { 0 };

		(void)snprintf(text, sizeof(text), "%s%.*s: null%s", before,
			       SPAN_FMT(it->key), after);
		assert_int_not_equal(
			policy_load_text(span_str(text), "x", &set, &d), 0);
		if (strstr(d.msg, "unknown key"))
			fail_msg("%s: %s", text, d.msg);
		count++;
	}
	return count;
}

static void schema__names_the_keys_of_the_parser(void **state)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(FILE_MAX_BYTES);
	const struct doc_node *root, *defs;
	struct doc *doc = NULL;
	struct diag d = { 0 };

	(void)state;
	read_file(SOURCE_DIR "/docs/policy.schema.json", &text);
	if (doc_parse(buf_peek(&text), &doc, &d))
		fail_msg("%u:%u: %s", d.line, d.col, d.msg);
	root = doc_root(doc);
	defs = doc_find(root, "$defs");
	assert_int_equal(check_properties(root, "", ""), 3);
	assert_int_equal(check_properties(doc_find(defs, "policy"),
					  "policies: [{", "}]"),
			 7);
	assert_int_equal(
		check_properties(doc_find(doc_find(doc_find(defs, "policy"),
						   "properties"),
					  "limits"),
				 "policies: [{name: a, limits: {", "}}]"),
		5);
	assert_int_equal(check_properties(doc_find(defs, "rule"),
					  "policies: [{name: a, egress: [{",
					  "}]}]"),
			 6);
	doc_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(examples__of_the_man_page_work),
		cmocka_unit_test(examples__of_the_policy_folder_load),
		cmocka_unit_test(schema__names_the_keys_of_the_parser),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
