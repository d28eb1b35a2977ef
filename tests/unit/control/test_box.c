/* SPDX-License-Identifier: Apache-2.0 */
/* test_box.c - records of sandboxes: what is stored comes back, what is shown
 * has no token, lists are filtered and paged */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/control/lifecycle/box.h"
#include "src/text/json.h"

static const char stored[] =
	"{\"id\":\"3f0c1a52-8a4e-4a43-9d0c-6b8c6b1a2f10\",\"container\":"
	"\"abc\",\"state\":\"Running\",\"reason\":\"CONTAINER_RUNNING\","
	"\"message\":\"it runs\",\"createdMs\":1764500000123,\"changedMs\":"
	"1764500001000,\"expiresMs\":1764500600123,\"image\":\"python:3.11\","
	"\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"],\"metadata\":{"
	"\"env\":\"stage\",\"team\":\"a\"},\"platformOs\":\"linux\","
	"\"platformArch\":\"amd64\",\"request\":{\"resourceLimits\":{\"cpu\":"
	"\"1\"}},\"hasPolicy\":true,\"credentialProxy\":true,\"renewExtendS\":"
	"300,\"v4\":\"10.20.0.7\",\"v6\":\"fd00::7\",\"port\":\"veth1\","
	"\"execdToken\":\"execd-secret\",\"egressToken\":\"egress-secret\","
	"\"secureToken\":\"secure-secret\"}";

static struct box *parse(const char *text)
{
	struct diag d = { 0 };
	struct box *b = NULL;

	if (box_parse(span_str(text), &b, &d))
		fail_msg("%s", d.msg);
	return b;
}

static void test_stored_form_comes_back(void **state)
{
	struct buf out = BUF_INIT(64 * 1024);
	struct box *b = parse(stored);
	struct json_out o;

	(void)state;
	json_start(&o, &out);
	box_emit_stored(&o, b);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(buf_len(&out), strlen(stored));
	assert_memory_equal(buf_peek(&out).ptr, stored, strlen(stored));
	assert_memory_equal(b->mac, "\x02\x42\x0a\x14\x00\x07", 6);
	buf_fini(&out);
	box_free(b);
}

static void test_shown_form(void **state)
{
	static const char shown[] =
		"{\"id\":\"3f0c1a52-8a4e-4a43-9d0c-6b8c6b1a2f10\",\"status\":{"
		"\"state\":\"Running\",\"reason\":\"CONTAINER_RUNNING\","
		"\"message\":\"it runs\",\"lastTransitionAt\":"
		"\"2025-11-30T10:53:21.000Z\"},\"metadata\":{\"env\":\"stage\","
		"\"team\":\"a\"},\"image\":{\"uri\":\"python:3.11\"},"
		"\"platform\":{\"os\":\"linux\",\"arch\":\"amd64\"},"
		"\"entrypoint\":[\"tail\",\"-f\",\"/dev/null\"],\"expiresAt\":"
		"\"2025-11-30T11:03:20.123Z\",\"createdAt\":"
		"\"2025-11-30T10:53:20.123Z\"}";
	struct buf out = BUF_INIT(64 * 1024);
	struct box *b = parse(stored);
	struct json_out o;

	(void)state;
	json_start(&o, &out);
	box_emit(&o, b, true);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(buf_len(&out), strlen(shown));
	assert_memory_equal(buf_peek(&out).ptr, shown, strlen(shown));
	buf_clear(&out);
	json_start(&o, &out);
	box_emit(&o, b, false);
	assert_int_equal(json_done(&o), 0);
	assert_null(memmem(buf_peek(&out).ptr, buf_len(&out), "image", 5));
	assert_null(memmem(buf_peek(&out).ptr, buf_len(&out), "secret", 6));
	buf_fini(&out);
	box_free(b);
}

static void test_damaged_records(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{}",
		"{\"id\":\"a\",\"execdToken\":\"t\",\"egressToken\":\"t\","
		"\"state\":\"Dancing\",\"v4\":\"10.0.0.1\"}",
		"{\"id\":\"a\",\"execdToken\":\"t\",\"egressToken\":\"t\","
		"\"state\":\"Running\"}",
		"{\"id\":\"0123456789012345678901234567890123456789\","
		"\"execdToken\":\"t\",\"egressToken\":\"t\",\"state\":"
		"\"Running\",\"v4\":\"10.0.0.1\"}",
		"{\"id\":\"a\",\"egressToken\":\"t\",\"state\":\"Running\","
		"\"v4\":\"10.0.0.1\"}",
	};
	struct diag d = { 0 };
	struct box *b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		b = NULL;
		assert_true(box_parse(span_str(bad[i]), &b, &d) < 0);
		assert_null(b);
		assert_true(d.msg[0] != '\0');
	}
}

/* Ten of them, box-0 the oldest; every second one is paused. */
static void fill(struct boxes *all)
{
	char text[256];
	unsigned i;

	boxes_init(all);
	for (i = 0; i < 10; i++) {
		(void)snprintf(text, sizeof(text),
			       "{\"id\":\"box-%u\",\"state\":\"%s\","
			       "\"createdMs\":%u,\"metadata\":{\"n\":\"%u\"},"
			       "\"execdToken\":\"t\",\"egressToken\":\"t\","
			       "\"v4\":\"10.0.0.%u\"}",
			       i, i % 2 ? "Paused" : "Running", 1000 + i, i / 5,
			       i + 1);
		boxes_put(all, parse(text));
	}
}

/* The ids of the page, without "box-", in their order. */
static void check(const struct boxes *all, const struct boxes_query *q,
		  const char *ids, const char *pagination)
{
	struct buf out = BUF_INIT(64 * 1024);
	struct json *j = NULL;
	char found[16] = "";
	struct json_out o;
	struct span id;
	size_t n = 0;

	json_start(&o, &out);
	boxes_emit(&o, all, q);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(json_parse(buf_peek(&out), &j, NULL), 0);
	json_for_each(item, json_find(j, "items"))
	{
		id = json_text(json_find(item, "id"));
		found[n++] = id.ptr[4];
	}
	assert_string_equal(found, ids);
	buf_clear(&out);
	assert_int_equal(json_emit(&out, json_find(j, "pagination")), 0);
	assert_int_equal(buf_len(&out), strlen(pagination));
	assert_memory_equal(buf_peek(&out).ptr, pagination, buf_len(&out));
	json_free(j);
	buf_fini(&out);
}

static void test_lists(void **state)
{
	const struct box_pair first_half = { SPAN("n"), SPAN("0") };
	const struct box_pair neither[] = { first_half,
					    { SPAN("m"), SPAN("0") } };
	struct boxes all;

	(void)state;
	fill(&all);
	check(&all, &(struct boxes_query){ .page = 1, .page_size = 4 }, "9876",
	      "{\"page\":1,\"pageSize\":4,\"totalItems\":10,\"totalPages\":3,"
	      "\"hasNextPage\":true}");
	check(&all, &(struct boxes_query){ .page = 3, .page_size = 4 }, "10",
	      "{\"page\":3,\"pageSize\":4,\"totalItems\":10,\"totalPages\":3,"
	      "\"hasNextPage\":false}");
	check(&all, &(struct boxes_query){ .page = 4, .page_size = 4 }, "",
	      "{\"page\":4,\"pageSize\":4,\"totalItems\":10,\"totalPages\":3,"
	      "\"hasNextPage\":false}");
	check(&all,
	      &(struct boxes_query){ .states = 1U << BOX_PAUSED,
				     .metadata = &first_half,
				     .metadata_count = 1,
				     .page = 1,
				     .page_size = 20 },
	      "31",
	      "{\"page\":1,\"pageSize\":20,\"totalItems\":2,\"totalPages\":1,"
	      "\"hasNextPage\":false}");
	check(&all,
	      &(struct boxes_query){ .metadata = neither,
				     .metadata_count = 2,
				     .page = 1,
				     .page_size = 20 },
	      "",
	      "{\"page\":1,\"pageSize\":20,\"totalItems\":0,\"totalPages\":0,"
	      "\"hasNextPage\":false}");
	boxes_remove(&all, SPAN("box-3"));
	assert_null(boxes_find(&all, SPAN("box-3")));
	assert_non_null(boxes_find(&all, SPAN("box-4")));
	boxes_fini(&all);
}

static void test_metadata(void **state)
{
	struct box *b = parse(stored);

	(void)state;
	box_set_metadata(b, SPAN("env"), SPAN("prod"));
	box_set_metadata(b, SPAN("team"), SPAN_NONE);
	box_set_metadata(b, SPAN("gone"), SPAN_NONE);
	box_set_metadata(b, SPAN("empty"), SPAN(""));
	assert_string_equal(map_find(&b->metadata, SPAN("env")), "prod");
	assert_null(map_find(&b->metadata, SPAN("team")));
	assert_string_equal(map_find(&b->metadata, SPAN("empty")), "");
	assert_int_equal(map_count(&b->metadata), 2);
	box_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored_form_comes_back),
		cmocka_unit_test(test_shown_form),
		cmocka_unit_test(test_damaged_records),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_metadata),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
