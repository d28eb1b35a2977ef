/* SPDX-License-Identifier: Apache-2.0 */
/* test_endpoint.c - where clients are sent, and with which headers; records of
 * snapshots */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "certs/signed_route.h"
#include "src/base/addr.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/endpoint.h"
#include "src/control/lifecycle/list_query.h"
#include "src/text/json.h"

#define ID "0b0ec1ea-1c2d-4e3f-8a4b-5c6d7e8f9a0b"

static void endpoint__where_the_ingress_is(void **state)
{
	static const struct {
		const char *advertise, *listen, *authority, *at;
	} rows[] = {
		{ "gw.example:443", "10.0.0.1:8081", "x", "gw.example:443" },
		{ "", "10.0.0.1:8081", "x:8080", "10.0.0.1:8081" },
		{ "", "[fd00::1]:8081", "x:8080", "[fd00::1]:8081" },
		{ "", "0.0.0.0:8081", "node.example:8080",
		  "node.example:8081" },
		{ "", "[::]:8081", "[fd00::2]:8080", "[fd00::2]:8081" },
		{ "", "[::]:8081", "node", "node:8081" },
		{ "", "0.0.0.0:8081", "", NULL },
		{ "", "[::]:8081", "[fd00::2", NULL },
		{ "", "", "node.example:8080", "node.example:8080" },
		{ "", "", "", NULL },
	};
	char at[ENDPOINT_AT_SIZE];
	struct addr listen;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		listen = (struct addr){ 0 };
		if (rows[i].listen[0])
			assert_true(addr_parse_port(span_str(rows[i].listen), 0,
						    &listen));
		if (endpoint_at(rows[i].advertise, &listen,
				span_str(rows[i].authority), at))
			assert_string_equal(at, rows[i].at);
		else
			assert_null(rows[i].at);
	}
}

static struct box *a_box(void)
{
	struct box *b = box_new();

	strcpy(b->id, ID);
	strcpy(b->execd_token, "exec");
	strcpy(b->egress_token, "egress");
	b->has_policy = true;
	return b;
}

static void assert_endpoint(const struct box *b, uint16_t port,
			    const char *expected)
{
	struct buf out = BUF_INIT(4096);
	struct json_out o;

	json_start(&o, &out);
	endpoint_emit(&o, b, port, "node:8081");
	assert_int_equal(json_done(&o), 0);
	assert_true(span_eq(buf_peek(&out), span_str(expected)));
	buf_fini(&out);
}

static void endpoint__has_what_its_port_demands(void **state)
{
	struct box *b = a_box();

	(void)state;
	assert_endpoint(b, 8000,
			"{\"endpoint\":\"node:8081/sandboxes/" ID
			"/proxy/8000\"}");
	assert_endpoint(b, 44772,
			"{\"endpoint\":\"node:8081/sandboxes/" ID
			"/proxy/44772\",\"headers\":{\"X-EXECD-ACCESS-TOKEN\":"
			"\"exec\"}}");
	assert_endpoint(b, 18080,
			"{\"endpoint\":\"node:8081/sandboxes/" ID
			"/proxy/18080\",\"headers\":{"
			"\"OPENSANDBOX-EGRESS-AUTH\":\"egress\"}}");
	/* without a policy there is nothing to ask about */
	b->has_policy = false;
	assert_endpoint(b, 18080,
			"{\"endpoint\":\"node:8081/sandboxes/" ID
			"/proxy/18080\"}");
	strcpy(b->secure_token, "secure");
	assert_endpoint(b, 8000,
			"{\"endpoint\":\"node:8081/sandboxes/" ID
			"/proxy/8000\",\"headers\":{"
			"\"OpenSandbox-Secure-Access\":\"secure\"}}");
	box_free(b);
}

static void endpoint__signed_is_what_the_ingress_takes(void **state)
{
	struct signed_keys keys = { 0 };
	struct buf out = BUF_INIT(4096);
	struct box *b = a_box();
	char text[512] = "", expires[32], signature[32];
	struct json_out o;

	(void)state;
	json_start(&o, &out);
	assert_false(endpoint_emit_signed(&o, b, 80, "n:1", &keys, 2000));
	keys.keys[0].id = 'a';
	keys.keys[0].secret = SPAN("0123456789abcdef");
	assert_true(endpoint_emit_signed(&o, b, 80, "n:1", &keys, 2000));
	assert_int_equal(json_done(&o), 0);
	assert_true(span_copy(buf_peek(&out), text, sizeof(text)));
	assert_int_equal(sscanf(text,
				"{\"endpoint\":\"n:1/" ID
				"/80/%31[0-9a-z]/%31[0-9a-z]\"}",
				expires, signature),
			 2);
	assert_true(signed_route_check(&keys, SPAN(ID), 80, span_str(expires),
				       span_str(signature), 2000));
	assert_false(signed_route_check(&keys, SPAN(ID), 81, span_str(expires),
					span_str(signature), 2000));
	buf_fini(&out);
	box_free(b);
}

/* -- snapshots --------------------------------------------------------------
 */

static struct capture *a_capture(const char *id, uint64_t created_ms)
{
	struct capture *s = must_alloc(sizeof(*s));

	strcpy(s->id, id);
	strcpy(s->sandbox_id, ID);
	strcpy(s->name, "first");
	s->created_ms = created_ms;
	s->changed_ms = created_ms + 1;
	return s;
}

static void capture__stored_form_comes_back(void **state)
{
	struct capture *s = a_capture("c1", 1000), *back = NULL;
	struct buf out = BUF_INIT(4096);
	struct diag d = { 0 };
	struct json_out o;

	(void)state;
	s->state = CAPTURE_FAILED;
	strcpy(s->message, "no space");
	json_start(&o, &out);
	capture_emit_stored(&o, s);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(capture_parse(buf_peek(&out), &back, &d), 0);
	assert_memory_equal(s, back, sizeof(*s));
	free(s);
	free(back);
	buf_fini(&out);
}

static void capture__damaged_records(void **state)
{
	static const char *const bad[] = {
		"[]",
		"{\"id\":\"a\"}",
		"{\"id\":\"\",\"sandboxId\":\"b\",\"name\":\"\",\"message\":"
		"\"\",\"state\":\"Ready\"}",
		"{\"id\":\"a\",\"sandboxId\":\"b\",\"name\":\"\",\"message\":"
		"\"\",\"state\":\"Odd\"}",
		"{\"id\":\"0123456789012345678901234567890123456789\","
		"\"sandboxId\":\"b\",\"name\":\"\",\"message\":\"\",\"state\":"
		"\"Ready\"}",
	};
	struct capture *s = NULL;
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		d = (struct diag){ 0 };
		assert_int_not_equal(capture_parse(span_str(bad[i]), &s, &d),
				     0);
		assert_true(d.msg[0]);
	}
	assert_null(s);
}

static void assert_listed(const struct captures *all, const char *query,
			  const char *expected)
{
	struct lifecycle_error no = { 0 };
	struct buf out = BUF_INIT(8192);
	struct list_query q;
	struct json_out o;

	assert_int_equal(list_query_parse(span_str(query), &q, &no), 0);
	json_start(&o, &out);
	captures_emit(&o, all, &q);
	assert_int_equal(json_done(&o), 0);
	if (!span_eq(buf_peek(&out), span_str(expected)))
		fail_msg("%.*s", SPAN_FMT(buf_peek(&out)));
	list_query_fini(&q);
	buf_fini(&out);
}

#define NO_ITEMS                                                    \
	"{\"items\":[],\"pagination\":{\"page\":1,\"pageSize\":20," \
	"\"totalItems\":0,\"totalPages\":0,\"hasNextPage\":false}}"

static void capture__lists(void **state)
{
	struct captures all;
	struct capture *ready = a_capture("c2", 2000);

	(void)state;
	captures_init(&all);
	captures_put(&all, a_capture("c1", 1000));
	ready->state = CAPTURE_READY;
	ready->name[0] = '\0';
	captures_put(&all, ready);
	assert_listed(&all, "sandboxId=" ID "&pageSize=1",
		      "{\"items\":[{\"id\":\"c2\",\"sandboxId\":\"" ID
		      "\",\"status\":{\"state\":\"Ready\","
		      "\"lastTransitionAt\":\"1970-01-01T00:00:02.001Z\"},"
		      "\"createdAt\":\"1970-01-01T00:00:02.000Z\"}],"
		      "\"pagination\":{\"page\":1,\"pageSize\":1,"
		      "\"totalItems\":2,\"totalPages\":2,\"hasNextPage\":"
		      "true}}");
	assert_listed(&all, "state=creating&state=failed&name=first",
		      "{\"items\":[{\"id\":\"c1\",\"sandboxId\":\"" ID
		      "\",\"name\":\"first\",\"status\":{\"state\":"
		      "\"Creating\",\"reason\":\"snapshot_accepted\","
		      "\"message\":\"Snapshot creation accepted.\","
		      "\"lastTransitionAt\":\"1970-01-01T00:00:01.001Z\"},"
		      "\"createdAt\":\"1970-01-01T00:00:01.000Z\"}],"
		      "\"pagination\":{\"page\":1,\"pageSize\":20,"
		      "\"totalItems\":1,\"totalPages\":1,\"hasNextPage\":"
		      "false}}");
	assert_listed(&all, "sandboxId=other", NO_ITEMS);
	assert_listed(&all, "name=firs", NO_ITEMS);
	assert_listed(&all, "state=Odd", NO_ITEMS);
	captures_remove(&all, SPAN("c1"));
	assert_null(captures_find(&all, SPAN("c1")));
	captures_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(endpoint__where_the_ingress_is),
		cmocka_unit_test(endpoint__has_what_its_port_demands),
		cmocka_unit_test(endpoint__signed_is_what_the_ingress_takes),
		cmocka_unit_test(capture__stored_form_comes_back),
		cmocka_unit_test(capture__damaged_records),
		cmocka_unit_test(capture__lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
