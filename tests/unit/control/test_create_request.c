/* SPDX-License-Identifier: Apache-2.0 */
/* test_create_request.c - bodies of POST /sandboxes: what is taken from a good
 * one, and what is said about each kind of bad one */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/control/egress/net_policy.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/quantity.h"
#include "src/control/lifecycle/volume.h"

static const char *const host_paths[] = { "/srv/data/", "/tmp/e2e", NULL };
static const struct create_limits limits = { .timeout_max_s = 3600,
					     .host_paths = host_paths };
static const struct create_limits closed = { .closed = true };

static void test_a_whole_one(void **state)
{
	static const char body[] =
		"{\"image\":{\"uri\":\"python:3.11\",\"auth\":{\"username\":"
		"\"u\",\"password\":\"p\"}},\"entrypoint\":[\"tail\",\"-f\","
		"\"/dev/null\"],\"timeout\":600,\"resourceLimits\":{\"cpu\":"
		"\"500m\",\"memory\":\"512Mi\",\"gpu\":\"all\",\"odd\":\"x\"},"
		"\"env\":{\"A\":\"1\",\"B\":null},\"metadata\":{\"team\":\"a\","
		"\"x.io/y\":\"\"},\"networkPolicy\":{\"egress\":[{\"action\":"
		"\"allow\",\"target\":\"a.test\"}]},\"credentialProxy\":{"
		"\"enabled\":true},\"secureAccess\":true,\"platform\":{\"os\":"
		"\"linux\",\"arch\":\"amd64\"},\"extensions\":{"
		"\"access.renew.extend.seconds\":\"300\"},\"volumes\":[{"
		"\"name\":\"data\",\"mountPath\":\"/data\",\"readOnly\":true,"
		"\"host\":{\"path\":\"/srv/data/x\"}},{\"name\":\"work\","
		"\"mountPath\":\"/work\",\"subPath\":\"a/b\",\"pvc\":{"
		"\"claimName\":\"claim_1\",\"deleteOnSandboxTermination\":"
		"true}}],\"unknown\":1}";
	struct create_request *q = NULL;
	struct lifecycle_error no = { 0 };

	(void)state;
	if (create_request_parse(SPAN(body), &limits, &q, &no))
		fail_msg("%s", no.message);
	assert_true(span_eq(q->box->image, SPAN("python:3.11")));
	assert_true(span_eq(q->registry_password, SPAN("p")));
	assert_int_equal(q->box->entrypoint_count, 3);
	assert_int_equal(q->timeout_s, 600);
	assert_int_equal(q->resources.cpu_nano, 500000000);
	assert_int_equal(q->resources.memory_bytes, 512 * 1024 * 1024);
	assert_true(span_eq(q->resources.gpu, SPAN("all")));
	assert_int_equal(q->env_count, 1);
	assert_string_equal(map_find(&q->box->metadata, SPAN("x.io/y")), "");
	assert_int_equal(q->policy->count, 1);
	assert_true(q->box->has_policy && q->box->credential_proxy);
	assert_true(q->box->secure_access);
	assert_int_equal(q->box->renew_extend_s, 300);
	assert_int_equal(q->volume_count, 2);
	assert_int_equal(q->volumes[0].kind, VOLUME_HOST);
	assert_true(q->volumes[0].read_only);
	assert_int_equal(q->volumes[1].kind, VOLUME_NAMED);
	assert_true(q->volumes[1].create && q->volumes[1].delete_at_end);
	assert_null(strstr(q->box->request.ptr, "password"));
	create_request_free(q);
}

static void test_the_least(void **state)
{
	static const char image[] = "{\"image\":{\"uri\":\"a\"},\"entrypoint\":"
				    "[\"x\"],\"resourceLimits\":{},"
				    "\"timeout\":null,\"networkPolicy\":null}";
	static const char snapshot[] =
		"{\"snapshotId\":\"s\",\"resourceLimits\":{},"
		"\"networkPolicy\":{}}";
	struct create_request *q = NULL;
	struct lifecycle_error no = { 0 };

	(void)state;
	assert_int_equal(create_request_parse(SPAN(image), &closed, &q, &no),
			 0);
	assert_int_equal(q->timeout_s, 0);
	assert_false(q->box->has_policy);
	create_request_free(q);
	assert_int_equal(create_request_parse(SPAN(snapshot), &closed, &q, &no),
			 0);
	assert_true(span_eq(q->box->entrypoint[0], SPAN("tail")));
	assert_true(q->box->has_policy);
	assert_string_equal(net_policy_mode(q->policy), "deny_all");
	create_request_free(q);
}

#define GOOD                                                \
	"\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"x\"]," \
	"\"resourceLimits\":{}"
#define VOLUME(rest) "{" GOOD ",\"volumes\":[" rest "]}"

static const struct {
	const char *body;
	unsigned status;
	const char *code, *says;
} bad[] = {
	{ "", 400, "SANDBOX::INVALID_PARAMETER", "no JSON" },
	{ "[]", 400, "SANDBOX::INVALID_PARAMETER", "expected an object" },
	{ "{\"entrypoint\":[\"x\"],\"resourceLimits\":{}}", 400,
	  "SANDBOX::INVALID_PARAMETER", "\"image\" and \"snapshotId\"" },
	{ "{" GOOD ",\"snapshotId\":\"s\"}", 400, "SANDBOX::INVALID_PARAMETER",
	  "both given" },
	{ "{\"image\":{\"uri\":\"\"},\"entrypoint\":[\"x\"],"
	  "\"resourceLimits\":{}}",
	  400, "SANDBOX::INVALID_PARAMETER", "image.uri is empty" },
	{ "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[],"
	  "\"resourceLimits\":{}}",
	  400, "SANDBOX::INVALID_PARAMETER", "entrypoint: at least one" },
	{ "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[1],"
	  "\"resourceLimits\":{}}",
	  400, "SANDBOX::INVALID_PARAMETER", "entrypoint: expected a string" },
	{ "{\"image\":{\"uri\":\"a\"},\"entrypoint\":[\"x\"]}", 400,
	  "SANDBOX::INVALID_PARAMETER", "resourceLimits: expected an object" },
	{ "{" GOOD ",\"timeout\":59}", 400, "SANDBOX::INVALID_PARAMETER",
	  "at least 60" },
	{ "{" GOOD ",\"timeout\":\"600\"}", 400, "SANDBOX::INVALID_PARAMETER",
	  "whole seconds" },
	{ "{" GOOD ",\"timeout\":3601}", 400, "SANDBOX::INVALID_PARAMETER",
	  "at most 3600 s" },
	{ "{" GOOD ",\"env\":{\"A=B\":\"1\"}}", 400,
	  "SANDBOX::INVALID_PARAMETER", "cannot be a variable" },
	{ "{" GOOD ",\"env\":{\"A\":1}}", 400, "SANDBOX::INVALID_PARAMETER",
	  "a value of env" },
	{ "{" GOOD ",\"metadata\":{\"opensandbox.io/id\":\"1\"}}", 400,
	  "SANDBOX::INVALID_METADATA_LABEL", "server's own" },
	{ "{" GOOD ",\"metadata\":{\"-a\":\"1\"}}", 400,
	  "SANDBOX::INVALID_METADATA_LABEL", "is no name" },
	{ "{" GOOD ",\"metadata\":{\"Up/a\":\"1\"}}", 400,
	  "SANDBOX::INVALID_METADATA_LABEL", "no DNS name" },
	{ "{" GOOD ",\"metadata\":{\"a\":\"b c\"}}", 400,
	  "SANDBOX::INVALID_METADATA_LABEL", "is no value" },
	{ "{" GOOD ",\"networkPolicy\":{\"egress\":[{\"action\":\"maybe\","
	  "\"target\":\"a\"}]}}",
	  400, "SANDBOX::INVALID_PARAMETER", "unsupported action" },
	{ "{" GOOD ",\"credentialProxy\":{\"enabled\":true}}", 400,
	  "SANDBOX::INVALID_PARAMETER", "needs a networkPolicy" },
	{ "{" GOOD ",\"platform\":{\"os\":\"windows\"}}", 400,
	  "SANDBOX::INVALID_PARAMETER", "found \"windows\"" },
	{ "{" GOOD ",\"lifecycle\":{\"postStart\":{}}}", 400,
	  "SANDBOX::INVALID_PARAMETER", "runs no hooks" },
	{ "{" GOOD ",\"extensions\":{\"poolRef\":\"p\"}}", 400,
	  "SANDBOX::UNSUPPORTED_POOL_REF", "no pools" },
	{ "{" GOOD ",\"extensions\":{\"access.renew.extend.seconds\":\"299\"}}",
	  400, "SANDBOX::INVALID_PARAMETER", "from 300 to 86400" },
	{ VOLUME("{\"name\":\"A\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":"
		 "\"cc\"}}"),
	  400, "VOLUME::INVALID_NAME", "volumes[0].name" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"a\",\"pvc\":{\"claimName\":"
		 "\"cc\"}}"),
	  400, "VOLUME::INVALID_MOUNT_PATH", "found \"a\"" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/x/../etc\",\"pvc\":{"
		 "\"claimName\":\"cc\"}}"),
	  400, "VOLUME::INVALID_MOUNT_PATH", "/x/../etc" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\"}"), 400,
	  "VOLUME::INVALID_BACKEND", "found 0" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"ossfs\":{}}"), 400,
	  "VOLUME::UNSUPPORTED_BACKEND", "ossfs" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"subPath\":\"../b\","
		 "\"pvc\":{\"claimName\":\"cc\"}}"),
	  400, "VOLUME::INVALID_SUB_PATH", "../b" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":"
		 "\"c/../d\"}}"),
	  400, "VOLUME::INVALID_PVC_NAME", "cannot be the name" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":"
		 "\"sallyport-kit\"}}"),
	  400, "VOLUME::INVALID_PVC_NAME", "server's own" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":"
		 "\"/srv/database\"}}"),
	  400, "VOLUME::HOST_PATH_NOT_ALLOWED", "/srv/database" },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"host\":{\"path\":"
		 "\"/srv/data/../../etc\"}}"),
	  400, "VOLUME::INVALID_HOST_PATH", ".." },
	{ VOLUME("{\"name\":\"a\",\"mountPath\":\"/a\",\"pvc\":{\"claimName\":"
		 "\"cc\"}},{\"name\":\"a\",\"mountPath\":\"/b\",\"pvc\":{"
		 "\"claimName\":\"dd\"}}"),
	  400, "VOLUME::DUPLICATE_NAME", "volumes[1].name" },
};

static void test_bad_ones(void **state)
{
	struct create_request *q = NULL;
	struct lifecycle_error no;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		no = (struct lifecycle_error){ 0 };
		print_message("%s\n", bad[i].body);
		assert_true(create_request_parse(span_str(bad[i].body), &limits,
						 &q, &no) < 0);
		assert_null(q);
		assert_int_equal(no.status, bad[i].status);
		assert_string_equal(no.code, bad[i].code);
		if (!strstr(no.message, bad[i].says))
			fail_msg("\"%s\" does not say \"%s\"", no.message,
				 bad[i].says);
	}
}

static void test_unknown_members_of_a_closed_request(void **state)
{
	static const char body[] = "{" GOOD ",\"imge\":1}";
	struct create_request *q = NULL;
	struct lifecycle_error no = { 0 };

	(void)state;
	assert_true(create_request_parse(SPAN(body), &closed, &q, &no) < 0);
	assert_non_null(strstr(no.message, "imge"));
}

static void test_nothing_is_allowed_by_an_empty_list(void **state)
{
	static const char *const none[] = { NULL }, *const root[] = { "/",
								      NULL };

	(void)state;
	assert_false(volume_path_is_allowed(SPAN("/tmp"), NULL));
	assert_false(volume_path_is_allowed(SPAN("/tmp"), none));
	assert_true(volume_path_is_allowed(SPAN("/tmp"), root));
	assert_true(volume_path_is_allowed(SPAN("/srv/data"), host_paths));
	assert_true(volume_path_is_allowed(SPAN("/tmp/e2e/x"), host_paths));
	assert_false(volume_path_is_allowed(SPAN("/tmp/e2e2"), host_paths));
}

static void test_quantities(void **state)
{
	static const struct {
		const char *text;
		uint64_t cpu, bytes; /* 0: none */
	} rows[] = {
		{ "1", 1000000000, 1 },
		{ "0.5", 500000000, 0 },
		{ ".25", 250000000, 0 },
		{ "1500m", 1500000000, 0 },
		{ "1.5Gi", 0, 1610612736 },
		{ "512Mi", 0, 536870912 },
		{ "2k", 0, 2000 },
		{ "8E", 0, 0 },
		{ "99999999Pi", 0, 0 },
		{ "-1", 0, 0 },
		{ "", 0, 0 },
		{ ".", 0, 0 },
		{ "1 Gi", 0, 0 },
		{ "0", 0, 0 },
	};
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		v = 0;
		assert_int_equal(quantity_cpu(span_str(rows[i].text), &v),
				 rows[i].cpu != 0);
		assert_int_equal(v, rows[i].cpu);
		v = 0;
		assert_int_equal(quantity_bytes(span_str(rows[i].text), &v),
				 rows[i].bytes != 0);
		assert_int_equal(v, rows[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_whole_one),
		cmocka_unit_test(test_the_least),
		cmocka_unit_test(test_bad_ones),
		cmocka_unit_test(test_unknown_members_of_a_closed_request),
		cmocka_unit_test(test_nothing_is_allowed_by_an_empty_list),
		cmocka_unit_test(test_quantities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
