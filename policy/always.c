/* SPDX-License-Identifier: Apache-2.0 */
/* always.c - lines into the tree of a list, which is then parsed as one
 *
 * So targets, bounds and errors are those of the lists in policy files.
 */

#include "policy/always.h"

#include <stdlib.h>

#include "policy/parse.h"
#include "src/base/err.h"
#include "src/text/doc.h"

bool policy_is_always(struct span name, enum verdict_kind *ret)
{
	if (span_eq(name, SPAN("deny.always")))
		*ret = VERDICT_DENY;
	else if (span_eq(name, SPAN("allow.always")))
		*ret = VERDICT_ALLOW;
	else
		return false;
	return true;
}

/* Cuts the next target off *rest; line is the number of the one before. False:
 * there is none. */
static bool target_next(struct span *rest, uint32_t *line, struct span *ret)
{
	while (rest->len) {
		*ret = span_trim(span_cut(rest, '\n'));
		(*line)++;
		if (ret->len && ret->ptr[0] != '#')
			return true;
	}
	return false;
}

int policy_parse_always(const struct policy_parser *p, struct span text,
			enum verdict_kind action,
			const struct policy_rule **ret, unsigned *ret_count)
{
	CLEANUP_FREE struct doc_node *nodes = NULL;
	struct doc_node list = { .kind = DOC_LIST, .line = 1, .col = 1 };
	struct span rest = text, target;
	uint32_t count = 0, line = 0, i;

	if (text.len > DOC_TEXT_MAX)
		return diag_set(p->diag, 0, 0,
				"found %zu bytes, expected at most %d",
				text.len, DOC_TEXT_MAX);
	while (target_next(&rest, &line, &target))
		count++;
	nodes = must_alloc(MAX(count, 1u) * sizeof(*nodes));
	rest = text;
	line = 0;
	for (i = 0; i < count && target_next(&rest, &line, &target); i++)
		nodes[i] = (struct doc_node){
			.kind = DOC_STRING,
			.next = i + 1 < count ? &nodes[i + 1] : NULL,
			.text = arena_dup(p->arena, target),
			.line = line,
			.col = 1,
		};
	list.count = count;
	list.children = count ? nodes : NULL;
	return policy_parse_overlay(p, &list, action, ret, ret_count);
}
