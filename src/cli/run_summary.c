/* SPDX-License-Identifier: Apache-2.0 */
/* run_summary.c - after `sallyport run`: what was allowed, denied, injected
 *
 * Counted over the audit records of the sandbox; each different refusal is
 * shown once, since it is what people look for.
 */

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "src/base/map.h"
#include "src/cli/audit_stream.h"
#include "src/cli/run.h"
#include "src/text/json.h"

enum { RECORDS_MAX = 10000, REFUSALS_SHOWN = 20, SETTLE_MS = 50 };

struct summary {
	const char *since; /* an earlier sandbox may have had the same id */
	unsigned allowed, denied, injected, shown;
	struct map refusals; /* host and reason -> this summary */
};

static void refusal_show(struct summary *s, const struct json *record)
{
	struct span host = json_text(json_find(record, "host"));
	struct span reason = json_text(json_find(record, "reason"));
	char line[4096], key[512];

	(void)snprintf(key, sizeof(key), "%.*s %.*s", SPAN_FMT(host),
		       SPAN_FMT(reason));
	if (map_set(&s->refusals, span_str(key), s))
		return; /* the same again */
	if (s->shown++ < REFUSALS_SHOWN)
		fprintf(stderr, "sallyport:   %s\n",
			audit_sentence(record, line, sizeof(line)));
}

/* Times of one form compare as texts. */
static bool is_since(const struct json *record, const char *since)
{
	struct span time = json_text(json_find(record, "time"));
	size_t len = strlen(since);

	return time.len == len && memcmp(time.ptr, since, len) >= 0;
}

static bool record_count(void *ctx, const struct json *record, struct span text)
{
	struct summary *s = ctx;

	(void)text;
	if (!is_since(record, s->since))
		return true;
	if (json_bool(json_find(record, "injected")))
		s->injected++;
	if (span_eq(json_text(json_find(record, "verdict")), SPAN("allow"))) {
		s->allowed++;
		return true;
	}
	s->denied++;
	refusal_show(s, record);
	return true;
}

void run_summary_print(const struct api *api, const char *id, const char *since)
{
	const struct timespec settle = { .tv_nsec = SETTLE_MS * 1000000L };
	const struct audit_question q = {
		.sandbox = id,
		.lines = RECORDS_MAX,
	};
	struct summary s = { .since = since };

	map_init(&s.refusals);
	(void)nanosleep(&settle, NULL); /* the last exchange's record */
	if (!audit_stream(api, &q, record_count, &s))
		fprintf(stderr,
			"sallyport: %s: %u allowed, %u denied, %u with a "
			"credential injected\n",
			id, s.allowed, s.denied, s.injected);
	map_fini(&s.refusals);
}
