/* SPDX-License-Identifier: Apache-2.0 */
/* test_vault_request.c - what clients write of a vault: taken, cleaned, refused
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/control/egress/vault_request.h"
#include "src/control/vault_change.h"
#include "src/text/json.h"

#define SECRET	  "s3cr3t-value"
#define BEARER	  "\"auth\":{\"type\":\"bearer\",\"credential\":\"c\"}"
#define HOST	  "\"match\":{\"hosts\":[\"a.example.com\"]}"
#define ONE(b)	  "{\"bindings\":[{\"name\":\"b\"," b "}]}"
#define MATCH(m)  ONE("\"match\":{" m "}," BEARER)
#define AUTH(a)	  ONE(HOST ",\"auth\":{" a "}")
#define SOURCE(s) "{\"credentials\":[{\"name\":\"n\",\"source\":{" s "}}]}"

static const char defaults[] =
	"{\"name\":\"b\",\"revision\":9,\"match\":{\"schemes\":[\"https\"],"
	"\"ports\":[443],\"hosts\":[\"a.example.com\"],\"methods\":[\"GET\","
	"\"POST\",\"PUT\",\"PATCH\",\"DELETE\"],\"paths\":[\"/*\"]},\"auth\":"
	"{\"type\":\"bearer\"}}";

static const struct {
	const char *in, *out; /* NULL: as defaults */
} taken[] = {
	{ ONE(HOST "," BEARER), NULL },
	{ MATCH("\"hosts\":[\" A.Example.COM. \"],\"schemes\":null,\"ports\":"
		"[],\"methods\":null,\"paths\":[]"),
	  NULL },
	{ MATCH("\"hosts\":[\"a.example.com\",\"A.example.com\"],\"ports\":"
		"[443,443],\"schemes\":[\"HTTPS\"]"),
	  NULL },
	{ ONE("\"match\":{\"schemes\":[\"http\"],\"ports\":[80],\"hosts\":"
	      "[\"*.example.com\"],\"methods\":[\"get\"],\"paths\":[\"/v1/*\"]}"
	      ",\"auth\":{\"type\":\"apiKey\",\"name\":\"PRIVATE-TOKEN\","
	      "\"credential\":\"c\"}"),
	  "{\"name\":\"b\",\"revision\":9,\"match\":{\"schemes\":[\"http\"],"
	  "\"ports\":[80],\"hosts\":[\"*.example.com\"],\"methods\":[\"GET\"],"
	  "\"paths\":[\"/v1/*\"]},\"auth\":{\"type\":\"apiKey\",\"name\":"
	  "\"Private-Token\"}}" },
	{ AUTH("\"type\":\"customHeaders\",\"headers\":[{\"name\":\"x-a\","
	       "\"credential\":\"c\"}]"),
	  "{\"name\":\"b\",\"revision\":9,\"match\":{\"schemes\":[\"https\"],"
	  "\"ports\":[443],\"hosts\":[\"a.example.com\"],\"methods\":[\"GET\","
	  "\"POST\",\"PUT\",\"PATCH\",\"DELETE\"],\"paths\":[\"/*\"]},"
	  "\"auth\":{\"type\":\"customHeaders\"}}" },
};

static void bindings__are_normalised(void **state)
{
	struct buf out = BUF_INIT(64 * 1024);
	struct vault_change *c;
	struct json_out o;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		struct diag d = { 0 };

		if (vault_request_parse_create(span_str(taken[i].in), &c, &d))
			fail_msg("%s: %s", taken[i].in, d.msg);
		assert_int_equal(c->binding_count, 1);
		assert_int_equal(c->bindings[0].verb, CHANGE_ADD);
		buf_clear(&out);
		json_start(&o, &out);
		binding_emit_shown(&o, c->bindings[0].binding, 9);
		assert_int_equal(json_done(&o), 0);
		assert_int_equal(buf_put(&out, span_of("", 1)), 0);
		assert_string_equal(buf_peek(&out).ptr,
				    taken[i].out ? taken[i].out : defaults);
		vault_change_free(c);
	}
	buf_fini(&out);
}

static const struct {
	const char *in, *says;
} refused[] = {
	{ "", "not JSON" },
	{ "[]", "expected an object" },
	{ "{\"credential\":[]}", "did you mean" },
	{ "{\"other\":null}", "unknown field" },
	{ "{\"credentials\":{}}", "expected an array" },
	{ "{\"expectedRevision\":1}", "unknown field" },
	{ "{\"credentials\":[{\"name\":\" \",\"source\":{\"value\":\"v\"}}]}",
	  "name" },
	{ SOURCE("\"value\":\"\""), "missing" },
	{ SOURCE("\"value\":null"), "missing" },
	{ SOURCE("\"type\":\"env\",\"value\":\"" SECRET "\""),
	  "unsupported credential source type" },
	{ SOURCE("\"value\":\"" SECRET "\\n\""), "CR, LF" },
	{ SOURCE("\"value\":\"" SECRET "\",\"x\":1"), "unknown field" },
	{ ONE(BEARER), "\"match\" is missing" },
	{ ONE(HOST), "\"auth\" is missing" },
	{ MATCH("\"hosts\":[]"), "\"hosts\" is missing" },
	{ MATCH("\"hosts\":[\"localhost\"]"), "host \"localhost\"" },
	{ MATCH("\"hosts\":[\"192.0.2.1\"]"), "host \"192.0.2.1\"" },
	{ MATCH("\"hosts\":[\"https://a.b\"]"), "host" },
	{ MATCH("\"hosts\":[\"a.b:443\"]"), "host" },
	{ MATCH("\"hosts\":[\"a.*.b\"]"), "host" },
	{ MATCH("\"hosts\":[\"a.b\"],\"ports\":[0]"), "ports" },
	{ MATCH("\"hosts\":[\"a.b\"],\"schemes\":[\"ftp\"]"), "scheme" },
	{ MATCH("\"hosts\":[\"a.b\"],\"paths\":[\"v1\"]"), "path" },
	{ MATCH("\"hosts\":[\"a.b\"],\"port\":[1]"), "unknown field" },
	{ AUTH("\"type\":\"bearer\""), "\"credential\" is missing" },
	{ AUTH("\"type\":\"digest\",\"credential\":\"c\""), "type \"digest\"" },
	{ AUTH("\"type\":\"passthrough\""),
	  "\"passthrough\" is not supported" },
	{ AUTH("\"type\":\"apiKey\",\"name\":\"Host\",\"credential\":\"c\""),
	  "header \"Host\"" },
	{ AUTH("\"type\":\"apiKey\",\"name\":\"X-Forwarded-For\","
	       "\"credential\":\"c\""),
	  "header" },
	{ AUTH("\"type\":\"customHeaders\",\"headers\":[{\"name\":\"x-a\","
	       "\"credential\":\"c\"},{\"name\":\"X-A\",\"credential\":\"c\"}"
	       "]"),
	  "only once" },
	{ ONE(HOST "," BEARER ",\"substitutions\":[]"),
	  "\"substitutions\" are not supported" },
	{ ONE(HOST "," BEARER ",\"sandboxes\":[\"x\"]"), "\"sandboxes\"" },
	{ ONE(HOST "," BEARER ",\"revision\":1"), "\"revision\"" },
};

static void requests__are_refused(void **state)
{
	struct vault_change *c;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct diag d = { 0 };

		if (!vault_request_parse_create(span_str(refused[i].in), &c,
						&d))
			fail_msg("taken: %s", refused[i].in);
		if (strncmp(d.msg, "invalid credential vault request: ", 34) ||
		    !strstr(d.msg, refused[i].says) || strstr(d.msg, SECRET))
			fail_msg("%s: \"%s\" is not in \"%s\"", refused[i].in,
				 refused[i].says, d.msg);
	}
}

static void patches__look_at_every_list(void **state)
{
	static const char *const rows[] = {
		"{\"bindings\":{\"add\":[{\"name\":\"b\",\"substitutions\":1}]}"
		"}",
		"{\"bindings\":{\"replace\":[{\"name\":\"b\",\"auth\":{"
		"\"type\":"
		"\"passthrough\"}}]}}",
	};
	struct vault_change *c;
	struct diag d = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_not_equal(
			vault_request_parse_patch(span_str(rows[i]), &c, &d),
			0);
		assert_non_null(strstr(d.msg, "mutation request: binding "
					      "\"b\": "));
		assert_non_null(strstr(d.msg, "not supported"));
	}
	assert_int_equal(
		vault_request_parse_patch(
			SPAN("{\"expectedRevision\":4,\"credentials\":{\"add\":"
			     "null,\"replace\":[],\"delete\":[\" d \"]},"
			     "\"bindings\":null}"),
			&c, &d),
		0);
	assert_int_equal(c->expected, 4);
	assert_int_equal(c->credential_count, 1);
	assert_int_equal(c->credentials[0].verb, CHANGE_DELETE);
	assert_true(span_eq(c->credentials[0].name, SPAN("d")));
	vault_change_free(c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bindings__are_normalised),
		cmocka_unit_test(requests__are_refused),
		cmocka_unit_test(patches__look_at_every_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
