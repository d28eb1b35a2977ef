/* SPDX-License-Identifier: Apache-2.0 */
/* test_list_query.c - query strings of lists, and points in time */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/list_query.h"
#include "src/control/lifecycle/rfc3339.h"
#include "src/text/json.h"

static void parse(struct list_query *q, const char *raw)
{
	struct lifecycle_error no = { 0 };

	if (list_query_parse(span_str(raw), q, &no))
		fail_msg("%s: %s", raw, no.message);
}

static void assert_pair(const struct list_query *q, unsigned at,
			const char *name, const char *value)
{
	assert_true(at < q->pair_count);
	assert_true(span_eq(q->pairs[at].name, span_str(name)));
	assert_true(span_eq(q->pairs[at].value, span_str(value)));
}

static void query__nothing_is_the_first_page(void **state)
{
	struct list_query q;

	(void)state;
	parse(&q, "");
	assert_int_equal(q.page, 1);
	assert_int_equal(q.page_size, LIST_PAGE_SIZE);
	assert_int_equal(q.state_count + q.pair_count, 0);
	assert_null(q.sandbox_id.ptr);
	assert_null(q.name.ptr);
	list_query_fini(&q);
}

static void query__everything(void **state)
{
	struct list_query q;

	(void)state;
	parse(&q, "state=Running&state=paused&page=3&x=%zz&pageSize=200&"
		  "sandboxId=a%2Db&name=o%20k&metadata=k1%3Dv1%26k2%3D");
	assert_int_equal(q.state_count, 2);
	assert_true(span_eq(q.states[1], SPAN("paused")));
	assert_int_equal(q.page, 3);
	assert_int_equal(q.page_size, 200);
	assert_true(span_eq(q.sandbox_id, SPAN("a-b")));
	assert_true(span_eq(q.name, SPAN("o k")));
	assert_int_equal(q.pair_count, 2);
	assert_pair(&q, 0, "k1", "v1");
	assert_pair(&q, 1, "k2", "");
	list_query_fini(&q);
}

/* Names and values are escaped inside, and some clients escape all of it
 * again. */
static void query__metadata_escaped_twice(void **state)
{
	static const char *const same[] = {
		"metadata=a.io%2Fk%3Dv%2Bw%26b%3Dc",
		"metadata=a.io%252Fk%3Dv%252Bw%26b%3Dc",
		"metadata=a.io%252Fk%253Dv%25252Bw%2526b%253Dc",
	};
	struct list_query q;
	size_t i;

	(void)state;
	parse(&q, same[0]);
	assert_pair(&q, 0, "a.io/k", "v w"); /* '+' inside is a space */
	list_query_fini(&q);
	for (i = 1; i < sizeof(same) / sizeof(same[0]); i++) {
		parse(&q, same[i]);
		assert_int_equal(q.pair_count, 2);
		assert_pair(&q, 0, "a.io/k", "v+w");
		assert_pair(&q, 1, "b", "c");
		list_query_fini(&q);
	}
}

static void query__what_is_wrong_is_said(void **state)
{
	static const struct {
		const char *raw, *code, *has;
	} bad[] = {
		{ "page=0", "SANDBOX::INVALID_PARAMETER", "page: found \"0\"" },
		{ "page=x", "SANDBOX::INVALID_PARAMETER", "from 1" },
		{ "page=", "SANDBOX::INVALID_PARAMETER", "page" },
		{ "page=4294967296", "SANDBOX::INVALID_PARAMETER", "page" },
		{ "pageSize=201", "SANDBOX::INVALID_PARAMETER", "to 200" },
		{ "state=%4", "SANDBOX::INVALID_PARAMETER", "broken escape" },
		{ "sandboxId=%00", "SANDBOX::INVALID_PARAMETER", "escape" },
		{ "metadata=team", "INVALID_METADATA_FORMAT",
		  "found \"team\"" },
		{ "metadata=a%3Db%26c", "INVALID_METADATA_FORMAT", "\"c\"" },
		{ "metadata=%3Dv", "INVALID_METADATA_FORMAT", "name=value" },
		{ "metadata=a%3D%25zz", "INVALID_METADATA_FORMAT", "%zz" },
		{ "metadata=%25z", "INVALID_METADATA_FORMAT", "escape" },
	};
	struct lifecycle_error no;
	struct list_query q;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		no = (struct lifecycle_error){ 0 };
		assert_int_not_equal(
			list_query_parse(span_str(bad[i].raw), &q, &no), 0);
		assert_int_equal(no.status, 400);
		assert_string_equal(no.code, bad[i].code);
		if (!strstr(no.message, bad[i].has))
			fail_msg("%s: %s", bad[i].raw, no.message);
		list_query_fini(&q);
	}
}

static void query__is_bounded(void **state)
{
	static char raw[LIST_QUERY_MAX + 2];
	struct lifecycle_error no;
	struct list_query q;
	unsigned i;

	(void)state;
	for (i = 0; i <= LIST_STATES_MAX; i++)
		strcat(raw, "state=a&");
	assert_int_not_equal(list_query_parse(span_str(raw), &q, &no), 0);
	list_query_fini(&q);
	strcpy(raw, "metadata=");
	for (i = 0; i <= LIST_PAIRS_MAX; i++)
		strcat(raw, "a%3Db%26");
	assert_int_not_equal(list_query_parse(span_str(raw), &q, &no), 0);
	list_query_fini(&q);
	memset(raw, 'a', sizeof(raw) - 1);
	assert_int_not_equal(list_query_parse(span_str(raw), &q, &no), 0);
	list_query_fini(&q);
}

static void page__of_few_items(void **state)
{
	struct buf out = BUF_INIT(1024);
	struct json_out o;
	struct list_query q;

	(void)state;
	parse(&q, "page=2&pageSize=20");
	assert_int_equal(list_page_first(&q, 25), 20);
	assert_int_equal(list_page_end(&q, 25), 25);
	assert_int_equal(list_page_first(&q, 5), 5);
	assert_int_equal(list_page_end(&q, 5), 5);
	list_query_fini(&q);
	json_start(&o, &out);
	json_open_object(&o, NULL);
	list_page_emit(&o, 2, 20, 41);
	json_close(&o);
	assert_int_equal(json_done(&o), 0);
	assert_true(span_eq(buf_peek(&out),
			    SPAN("{\"pagination\":{\"page\":2,\"pageSize\":20,"
				 "\"totalItems\":41,\"totalPages\":3,"
				 "\"hasNextPage\":true}}")));
	buf_fini(&out);
}

/* -- points in time ---------------------------------------------------------
 */

static void rfc3339__good_ones(void **state)
{
	static const struct {
		const char *text;
		uint64_t ms;
	} good[] = {
		{ "1970-01-01T00:00:00Z", 0 },
		{ "2025-11-16T14:30:45Z", 1763303445000 },
		{ "2025-11-16t14:30:45.5z", 1763303445500 },
		{ "2025-11-16 14:30:45.123456+00:00", 1763303445123 },
		{ "2025-11-16T15:30:45.1234567+01:00", 1763303445123 },
		{ "2025-11-16T04:00:45-10:30", 1763303445000 },
		{ "2016-12-31T23:59:60Z", 1483228800000 },
		{ "9999-12-31T23:59:59.999Z", 253402300799999 },
	};
	uint64_t ms;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		ms = 1;
		if (!rfc3339_parse(span_str(good[i].text), &ms) ||
		    ms != good[i].ms)
			fail_msg("%s: %llu", good[i].text,
				 (unsigned long long)ms);
	}
}

static void rfc3339__every_truncation_is_refused(void **state)
{
	static const char text[] = "2025-11-16T14:30:45.1+01:00";
	uint64_t ms = 7;
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(text) - 1; len++)
		assert_false(rfc3339_parse(span_of(text, len), &ms));
	assert_int_equal(ms, 7);
}

static void rfc3339__bad_ones(void **state)
{
	static const char *const bad[] = {
		"2025-11-16T14:30:45",
		"2025-11-31T14:30:45Z",
		"2025-11-16T24:30:45Z",
		"2025-11-16T14:30:61Z",
		"2025-11-16T14:30:45.Z",
		"2025-11-16T14:30:45Z ",
		"2025-11-16T14:30:45+24:00",
		"2025-11-16T14:30:45+01:60",
		"2025-11-16T14:30:45+0100",
		"1969-12-31T23:59:59Z",
		"1970-01-01T00:00:00+00:01",
		"+2025-11-16T14:30:45Z",
		"2025-11-16T14:30:45,5Z",
		"1763303445",
		"2025-11-16T14:30:45.0000000000000000000Z",
	};
	uint64_t ms = 7;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (rfc3339_parse(span_str(bad[i]), &ms))
			fail_msg("%s", bad[i]);
	assert_int_equal(ms, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(query__nothing_is_the_first_page),
		cmocka_unit_test(query__everything),
		cmocka_unit_test(query__metadata_escaped_twice),
		cmocka_unit_test(query__what_is_wrong_is_said),
		cmocka_unit_test(query__is_bounded),
		cmocka_unit_test(page__of_few_items),
		cmocka_unit_test(rfc3339__good_ones),
		cmocka_unit_test(rfc3339__every_truncation_is_refused),
		cmocka_unit_test(rfc3339__bad_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
