/* SPDX-License-Identifier: Apache-2.0 */
/* test_redact.c - no injected value survives in what an origin echoes */

#include "tests/unit/gateway/fixture.h"

#include <errno.h>

#include "gateway/pipeline/redact.h"

enum { SECRETS = 3, ROUNDS = 20000 };

struct desk {
	struct request req;
	struct audit audit;
	struct secret *secrets[SECRETS];
};

static void desk_open(struct desk *d, const char *const values[SECRETS])
{
	unsigned i;

	*d = (struct desk){ 0 };
	d->req.audit = &d->audit;
	for (i = 0; i < SECRETS && values[i]; i++) {
		must(!secret_dup(span_str(values[i]), &d->secrets[i]));
		d->req.injections[i].secret = d->secrets[i];
	}
	d->req.injection_count = i;
}

static void desk_close(struct desk *d)
{
	unsigned i;

	for (i = 0; i < SECRETS; i++)
		(void)secret_free(d->secrets[i]);
}

static void redact__replaces_every_echo(void **state)
{
	static const struct {
		const char *secrets[SECRETS], *value, *expected;
		unsigned count;
	} rows[] = {
		{ { "s3cret" }, "", "", 0 },
		{ { "s3cret" }, "plain", "plain", 0 },
		{ { "s3cret" }, "s3cret", "[REDACTED]", 1 },
		{ { "s3cret" }, "s3cre", "s3cre", 0 },
		{ { "s3cret" }, "s3cret!", "[REDACTED]!", 1 },
		{ { "s3cret" }, "!s3cret", "![REDACTED]", 1 },
		{ { "s3cret" },
		  "a s3cret b s3cret c",
		  "a [REDACTED] b [REDACTED] c",
		  2 },
		{ { "s3cret" }, "s3crets3cret", "[REDACTED][REDACTED]", 2 },
		{ { "s3cret" }, "ss3cret", "s[REDACTED]", 1 },
		{ { "s3cret" }, "Bearer s3cret", "Bearer [REDACTED]", 1 },
		{ { NULL }, "s3cret", "s3cret", 0 },
		/* several */
		{ { "one", "two", "three" },
		  "three two one",
		  "[REDACTED] [REDACTED] [REDACTED]",
		  3 },
		/* the longer where both begin */
		{ { "tok", "token" }, "a token", "a [REDACTED]", 1 },
		{ { "token", "tok" }, "tok token", "[REDACTED] [REDACTED]", 2 },
		/* one inside the other */
		{ { "okay", "tokay2" }, "tokay2", "[REDACTED]", 1 },
		/* overlapping: nothing of the second shows either */
		{ { "abcXYZ", "XYZdef" }, "-abcXYZdef-", "-[REDACTED]-", 1 },
		{ { "XYZdef", "abcXYZ" }, "abcXYZdef", "[REDACTED]", 1 },
		{ { "aab", "abc", "bcd" }, "aabcd", "[REDACTED]", 1 },
		{ { "aaaa" }, "aaaaaa", "[REDACTED]", 1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		CLEANUP(buf_fini) struct buf out = BUF_INIT(1024);
		struct desk d;

		desk_open(&d, rows[i].secrets);
		assert_int_equal(
			redact_value(&d.req, span_str(rows[i].value), &out), 0);
		assert_span(buf_peek(&out), rows[i].expected);
		assert_int_equal(d.audit.redactions, rows[i].count);
		desk_close(&d);
	}
}

/* Bytes of text outside every occurrence of every value. */
static size_t uncovered(const char *text, size_t len,
			const char *const values[SECRETS], char *dst)
{
	bool covered[64] = { false };
	size_t i, j, n = 0;

	for (i = 0; i < len; i++)
		for (j = 0; j < SECRETS; j++)
			if (span_starts(span_of(text + i, len - i),
					span_str(values[j])))
				memset(covered + i, true, strlen(values[j]));
	for (i = 0; i < len; i++)
		if (!covered[i])
			dst[n++] = text[i];
	return n;
}

/* Cuts the replacements out again. */
static size_t without_marks(struct span out, char *dst)
{
	size_t n = 0;

	while (out.len) {
		if (span_starts(out, SPAN("[REDACTED]"))) {
			out = span_from(out, 10);
			continue;
		}
		dst[n++] = out.ptr[0];
		out = span_from(out, 1);
	}
	return n;
}

static void redact__leaves_no_injected_value(void **state)
{
	static const char *const values[SECRETS] = { "abab", "bb", "aca" };
	CLEANUP(buf_fini) struct buf out = BUF_INIT(4096);
	uint32_t random = 1;
	struct desk d;
	char text[24], kept[64], expected[64];
	size_t len, i;
	unsigned round;

	(void)state;
	desk_open(&d, values);
	for (round = 0; round < ROUNDS; round++) {
		random = random * 1103515245u + 12345u;
		len = (random >> 16) % sizeof(text);
		for (i = 0; i < len; i++) {
			random = random * 1103515245u + 12345u;
			text[i] = "abc"[(random >> 16) % 3];
		}
		buf_clear(&out);
		assert_int_equal(redact_value(&d.req, span_of(text, len), &out),
				 0);
		i = uncovered(text, len, values, expected);
		assert_int_equal(without_marks(buf_peek(&out), kept), i);
		assert_memory_equal(kept, expected, i);
	}
	desk_close(&d);
}

static void redact__an_empty_secret_matches_nothing(void **state)
{
	static const char *const values[SECRETS] = { "x", "", "y" };
	CLEANUP(buf_fini) struct buf out = BUF_INIT(64);
	struct desk d;

	(void)state;
	desk_open(&d, values);
	assert_int_equal(redact_value(&d.req, SPAN("axb"), &out), 0);
	assert_span(buf_peek(&out), "a[REDACTED]b");
	desk_close(&d);
}

static void redact__takes_any_bytes(void **state)
{
	static const char value[] = "\0\xff s3\0cret \xff";
	CLEANUP(buf_fini) struct buf out = BUF_INIT(64);
	struct desk d;

	(void)state;
	desk_open(&d, (const char *const[SECRETS]){ NULL });
	must(!secret_dup(span_of("s3\0cret", 7), &d.secrets[0]));
	d.req.injections[0].secret = d.secrets[0];
	d.req.injection_count = 1;
	assert_int_equal(
		redact_value(&d.req, span_of(value, sizeof(value) - 1), &out),
		0);
	assert_true(
		span_eq(buf_peek(&out), span_of("\0\xff [REDACTED] \xff", 15)));
	desk_close(&d);
}

static void redact__says_when_there_is_no_room(void **state)
{
	static const char *const values[SECRETS] = { "x" };
	struct desk d;
	size_t room;

	(void)state;
	desk_open(&d, values);
	for (room = 0; room <= 14; room++) {
		CLEANUP(buf_fini) struct buf out = BUF_INIT(room);

		assert_int_equal(redact_value(&d.req, SPAN("abxcd"), &out),
				 room == 14 ? 0 : -ENOBUFS);
	}
	desk_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(redact__replaces_every_echo),
		cmocka_unit_test(redact__leaves_no_injected_value),
		cmocka_unit_test(redact__an_empty_secret_matches_nothing),
		cmocka_unit_test(redact__takes_any_bytes),
		cmocka_unit_test(redact__says_when_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
