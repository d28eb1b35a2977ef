/* SPDX-License-Identifier: Apache-2.0 */
/* limits.c - names of limits, and how they are printed */

#include "policy/limits.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/text/json.h"

static const struct {
	const char *keyword;
	uint64_t largest;
} limits[LIMIT_NUM] = {
#define LIMIT_ROW(id, keyword, largest) [LIMIT_##id] = { keyword, largest },
	POLICY_LIMITS(LIMIT_ROW)
#undef LIMIT_ROW
};

void policy_limits_init(struct policy_limits *l)
{
	unsigned i;

	for (i = 0; i < LIMIT_NUM; i++)
		l->of[i] = LIMIT_UNSAID;
}

bool policy_limits_say(const struct policy_limits *l)
{
	unsigned i;

	for (i = 0; i < LIMIT_NUM; i++)
		if (l->of[i] != LIMIT_UNSAID)
			return true;
	return false;
}

const char *policy_limit_name(enum policy_limit limit)
{
	must(limit < LIMIT_NUM);
	return limits[limit].keyword;
}

uint64_t policy_limit_max(enum policy_limit limit)
{
	must(limit < LIMIT_NUM);
	return limits[limit].largest;
}

enum policy_limit policy_limit_find(struct span keyword)
{
	unsigned i;

	for (i = 0; i < LIMIT_NUM; i++)
		if (span_eq(keyword, span_str(limits[i].keyword)))
			break;
	return (enum policy_limit)i;
}

void policy_limits_emit(struct json_out *o, const struct policy_limits *l)
{
	unsigned i;

	if (!policy_limits_say(l))
		return;
	json_open_object(o, "limits");
	for (i = 0; i < LIMIT_NUM; i++)
		if (l->of[i] != LIMIT_UNSAID)
			json_put_u64(o, limits[i].keyword, l->of[i]);
	json_close(o);
}

const char *policy_limits_text(const struct policy_limits *l, char *dst,
			       size_t size)
{
	size_t at = 0;
	unsigned i;
	int n;

	dst[0] = '\0';
	for (i = 0; i < LIMIT_NUM; i++) {
		if (l->of[i] == LIMIT_UNSAID)
			continue;
		n = snprintf(dst + at, size - at, "%s%s=%" PRIu64,
			     at ? "," : "", limits[i].keyword, l->of[i]);
		must(n > 0 && (size_t)n < size - at); /* all of them fit */
		at += (size_t)n;
	}
	return dst;
}
