/* fuzz: policy */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_policy.c - any text as a policy file: what loads must compile, open,
 * answer, and survive being printed and read again; and as a list of lines */

#include <stdlib.h>

#include "policy/explain.h"
#include "policy/load.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_BYTES = 1 << 24 };

static void ask(const struct policy_pair *pair)
{
	static const char *const questions[] = {
		"name a.example.com",
		"connect a.example.com:443 at 10.0.0.1",
		"GET https://b.a.example.com/v1/x",
		"connect udp [::1]:53",
	};
	struct policy_question q;
	char sentence[512];
	struct diag d = { 0 };
	struct verdict v;
	unsigned i;

	for (i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (policy_question_parse(span_str(questions[i]), &q, &d))
			abort();
		policy_pair_match(pair, &q.query, &v);
		policy_pair_sentence(pair, &v, sentence, sizeof(sentence));
		policy_question_fini(&q);
	}
}

static void print_and_read(const struct policy_model *m)
{
	struct buf one = BUF_INIT(MAX_BYTES), two = BUF_INIT(MAX_BYTES);
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	if (policy_emit(m, &one) ||
	    policy_load_one(buf_peek(&one), "again", m->name, &set, &d) ||
	    policy_emit(set->policies, &two) ||
	    !span_eq(buf_peek(&one), buf_peek(&two)))
		abort();
	policy_set_free(set);
	buf_fini(&one);
	buf_fini(&two);
}

static void read_lines(struct span text)
{
	const struct policy_source sources[] = {
		{ SPAN_INIT("policies: [{name: p}]"), "p.yaml" },
		{ text, "deny.always" },
		{ text, "allow.always" },
	};
	struct policy_set *set = NULL;
	struct policy_pair pair;
	struct diag d = { 0 };

	if (policy_load_texts(sources, 3, &set, &d)) {
		if (!diag_is_set(&d) || set)
			abort();
		return;
	}
	if (set->deny_count != set->allow_count)
		abort();
	if (!policy_pair_init(&pair, set, set->policies, 1))
		ask(&pair);
	policy_pair_fini(&pair);
	policy_set_free(set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct policy_model *m;
	struct policy_set *set = NULL;
	struct policy_pair pair;
	struct diag d = { 0 };

	read_lines(span_of(data, size));
	if (policy_load_text(span_of(data, size), "fuzz", &set, &d)) {
		if (!diag_is_set(&d) || set)
			abort();
		return 0;
	}
	for (m = set->policies; m; m = m->next) {
		if (!policy_pair_init(&pair, set, m, 1))
			ask(&pair);
		policy_pair_fini(&pair);
		print_and_read(m);
	}
	policy_set_free(set);
	return 0;
}
