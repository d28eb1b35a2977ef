/* SPDX-License-Identifier: Apache-2.0 */
/* case.h - golden cases: a policy, questions, and the verdicts they must get
 *
 * A case file is read by people who judge whether the answers are right, and
 * run by `sallyport policy test` and the tests. Lines that begin with '#' are
 * comments. Sections:
 *
 *   --- policy FILE		the text of a policy file called FILE; repeat
 *				for several files, in their order
 *   --- ask POLICY		questions to that policy and the overlays of
 *				all files; any number of such sections
 *   --- ask sandbox ID [KEY=VALUE ...]
 *				... to the policy that chooses this sandbox
 *   --- error			in place of asking: the one error, as a line
 *				FILE:LINE:COLUMN: SENTENCE
 *
 * A question stands at the beginning of a line, in the words of explain.h; the
 * verdict on the next line, indented: what policy_verdict_text() says, a
 * colon, and the sentence.
 */
#pragma once

#include "policy/explain.h"

enum { CASE_SOURCES_MAX = 16 };

struct policy_case_result {
	unsigned questions, failed;
};

/* Is told of each question that got another answer, as a sentence with file
 * and line. */
typedef void policy_case_report(void *ctx, const char *sentence);

/* name is the case file's, for reports. 0: it ran, *ret says how; -EINVAL with
 * diag: it is no case file, or a policy in it does not load. */
WUNRES int policy_case_run(struct span text, const char *name,
			   policy_case_report *report, void *ctx,
			   struct policy_case_result *ret, struct diag *d);
