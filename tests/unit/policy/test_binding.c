/* SPDX-License-Identifier: Apache-2.0 */
/* test_binding.c - validation, defaults, clashes and matching of bindings */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "policy/binding.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/text/json.h"

#define BEARER "\"auth\":{\"type\":\"bearer\",\"credential\":\"c\"}"
#define HOST   "\"hosts\":[\"api.example.com\"]"

static struct binding *parse(const char *text)
{
	struct diag d = { 0 };
	struct binding *b = NULL;
	struct json *j = NULL;

	if (json_parse(span_str(text), &j, &d) || binding_parse(j, &b, &d))
		fail_msg("%s: %s", text, d.msg);
	json_free(j);
	return b;
}

/* A binding of one match object. */
static struct binding *with_match(const char *name, const char *match)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "{\"name\":\"%s\",\"match\":{%s}," BEARER "}", name, match);
	return parse(text);
}

static void assert_span(struct span s, const char *expected)
{
	if (!span_eq(s, span_str(expected)))
		fail_msg("found \"%.*s\", expected \"%s\"", SPAN_FMT(s),
			 expected);
}

static void parse__fills_in_the_defaults(void **state)
{
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);
	struct binding *b = with_match("  b  ", "\"hosts\":[\"API.Example.Com."
						"\"]");

	(void)state;
	assert_int_equal(binding_emit(b, true, &text), 0);
	assert_span(buf_peek(&text),
		    "{\"name\":\"b\",\"match\":{\"schemes\":[\"https\"],"
		    "\"ports\":[443],\"hosts\":[\"api.example.com\"],"
		    "\"methods\":[\"GET\",\"POST\",\"PUT\",\"PATCH\","
		    "\"DELETE\"],\"paths\":[\"/*\"]},\"auth\":{\"type\":"
		    "\"bearer\",\"credential\":\"c\"}}");
	assert_true(b->every_sandbox);
	buf_fini(&text);
	binding_free(b);
}

/* As clients of today mean it, who can name schemes and no ports. */
static void parse__takes_the_ports_of_the_schemes(void **state)
{
	static const struct {
		const char *schemes, *ports;
	} rows[] = {
		{ "[\"https\"]", "\"ports\":[443]," },
		{ "[\"http\"]", "\"ports\":[80]," },
		{ "[\"https\",\"http\"]", "\"ports\":[80,443]," },
	};
	struct buf text = BUF_INIT(BINDING_TEXT_MAX);
	struct binding *b;
	char match[100];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(snprintf(match, sizeof(match),
				     HOST ",\"schemes\":%s",
				     rows[i].schemes) < (int)sizeof(match));
		b = with_match("b", match);
		buf_clear(&text);
		assert_int_equal(binding_emit(b, true, &text), 0);
		assert_int_equal(buf_put(&text, span_of("", 1)), 0);
		assert_non_null(strstr(buf_peek(&text).ptr, rows[i].ports));
		binding_free(b);
	}
	buf_fini(&text);
}

/* What is emitted is read back as the same. */
static void emit__is_stable(void **state)
{
	static const char *const rows[] = {
		"{\"name\":\"b\",\"sandboxes\":[\"z\",\"a\",\"z\"],\"match\":{"
		"\"schemes\":[\"HTTP\",\"https\"],\"ports\":[8443,443,8443],"
		"\"hosts\":[\"*.Example.com\",\"x.example.com\"],"
		"\"methods\":[\"get\",\"GET\"],\"paths\":[\"/a/%7eb\","
		"\"/c/*\"]},\"auth\":{\"type\":\"apiKey\",\"name\":"
		"\"PRIVATE-TOKEN\",\"credential\":\"k\"}}",
		"{\"name\":\"b\",\"revision\":7,\"match\":{" HOST "},"
		"\"auth\":{\"type\":\"customHeaders\",\"headers\":[{\"name\":"
		"\"x-one\",\"credential\":\"1\"},{\"name\":\"Cookie\","
		"\"credential\":\"2\"}]}}",
	};
	struct buf first = BUF_INIT(BINDING_TEXT_MAX);
	struct buf second = BUF_INIT(BINDING_TEXT_MAX);
	struct binding *b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&first);
		buf_clear(&second);
		b = parse(rows[i]);
		assert_int_equal(binding_emit(b, true, &first), 0);
		binding_free(b);
		assert_int_equal(buf_put(&first, span_of("", 1)), 0);
		b = parse(buf_peek(&first).ptr);
		assert_int_equal(binding_emit(b, true, &second), 0);
		binding_free(b);
		assert_span(buf_peek(&second), buf_peek(&first).ptr);
	}
	buf_fini(&first);
	buf_fini(&second);
}

static void parse__renders_auth(void **state)
{
	static const struct {
		const char *auth, *name, *prefix;
	} rows[] = {
		{ "{\"type\":\"bearer\",\"credential\":\"c\"}", "Authorization",
		  "Bearer " },
		{ "{\"type\":\"basic\",\"credential\":\"c\"}", "Authorization",
		  "Basic " },
		{ "{\"type\":\"apiKey\",\"name\":\"x-api-KEY\","
		  "\"credential\":\"c\"}",
		  "X-Api-Key", "" },
		{ "{\"type\":\"customHeaders\",\"headers\":[{\"name\":"
		  "\"authorization\",\"credential\":\"c\"}]}",
		  "Authorization", "" },
	};
	char text[512];
	struct binding *b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		snprintf(text, sizeof(text),
			 "{\"name\":\"b\",\"match\":{" HOST "},\"auth\":%s}",
			 rows[i].auth);
		b = parse(text);
		assert_int_equal(b->header_count, 1);
		assert_span(b->headers[0].name, rows[i].name);
		assert_span(b->headers[0].prefix, rows[i].prefix);
		assert_span(b->headers[0].credential, "c");
		assert_true(binding_uses(b, SPAN("c")));
		assert_false(binding_uses(b, SPAN("d")));
		binding_free(b);
	}
}

/* Every refusal, with a word of its sentence. */
static void parse__refuses(void **state)
{
#define MATCH(m) "{\"name\":\"b\",\"match\":{" m "}," BEARER "}"
#define AUTH(a)	 "{\"name\":\"b\",\"match\":{" HOST "},\"auth\":{" a "}}"
#define KEY(n) \
	AUTH("\"type\":\"apiKey\",\"name\":\"" n "\",\"credential\":\"c\"")
	static const struct {
		const char *text, *says;
	} rows[] = {
		{ "[]", "found an array, expected an object" },
		{ "{}", "\"name\" is missing" },
		{ "{\"name\":\" \",\"match\":{" HOST "}," BEARER "}", "name" },
		{ "{\"name\":\"a\\nb\",\"match\":{" HOST "}," BEARER "}",
		  "control" },
		{ "{\"name\":\"b\"," BEARER "}", "\"match\" is missing" },
		{ "{\"name\":\"b\",\"match\":{" HOST "}}",
		  "\"auth\" is missing" },
		{ "{\"name\":\"b\",\"match\":{" HOST "}," BEARER
		  ",\"redactBodies\":true}",
		  "unknown field \"redactBodies\"" },
		{ "{\"name\":\"b\",\"match\":{" HOST "}," BEARER
		  ",\"redactBody\":1}",
		  "found a number" },
		{ "{\"name\":\"b\",\"sandboxes\":[],\"match\":{" HOST
		  "}," BEARER "}",
		  "empty" },
		{ MATCH(""), "\"hosts\" is missing" },
		{ MATCH("\"hosts\":[]"), "empty" },
		{ MATCH("\"hosts\":\"a.b\""), "found a string" },
		{ MATCH("\"hosts\":[1]"), "found a number" },
		{ MATCH("\"hosts\":[\"localhost\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"10.0.0.1\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"::1\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"a.b:443\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"https://a.b\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"a.b/c\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"a.*.b\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"*\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"*.com\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"*.*.a.com\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"a..b\"]"), "full host name" },
		{ MATCH("\"hosts\":[\"a.b\\u0000.c\"]"), "full host name" },
		{ MATCH(HOST ",\"schemes\":[\"ftp\"]"), "http or https" },
		{ MATCH(HOST ",\"schemes\":[]"), "http or https" },
		{ MATCH(HOST ",\"ports\":[0]"), "1 to 65535" },
		{ MATCH(HOST ",\"ports\":[65536]"), "1 to 65535" },
		{ MATCH(HOST ",\"ports\":[\"443\"]"), "1 to 65535" },
		{ MATCH(HOST ",\"ports\":[]"), "empty" },
		{ MATCH(HOST ",\"methods\":[\"G T\"]"), "HTTP method" },
		{ MATCH(HOST ",\"methods\":[]"), "empty" },
		{ MATCH(HOST ",\"paths\":[\"v1\"]"), "begins with" },
		{ MATCH(HOST ",\"paths\":[\"/a/%2e%2e/b\"]"), "plain path" },
		{ MATCH(HOST ",\"paths\":[\"/a%2fb\"]"), "plain path" },
		{ MATCH(HOST ",\"paths\":[\"/a?b\"]"), "plain path" },
		{ MATCH(HOST ",\"host\":[]"), "did you mean \"hosts\"" },
		{ AUTH(""), "\"type\" is missing" },
		{ AUTH("\"type\":\"none\""), "bearer, basic" },
		{ AUTH("\"type\":\"passthrough\""), "bearer, basic" },
		{ AUTH("\"type\":\"bearer\""), "\"credential\" is missing" },
		{ AUTH("\"type\":\"bearer\",\"credential\":\"\""), "name" },
		{ AUTH("\"type\":\"bearer\",\"credential\":\"c\",\"name\":"
		       "\"X\""),
		  "unknown field" },
		{ AUTH("\"type\":\"apiKey\",\"credential\":\"c\""),
		  "\"name\" is missing" },
		{ AUTH("\"type\":\"customHeaders\",\"headers\":[]"),
		  "expected 1 to" },
		{ AUTH("\"type\":\"customHeaders\",\"headers\":[{\"name\":"
		       "\"X\",\"credential\":\"c\"},{\"name\":\"x\","
		       "\"credential\":\"d\"}]"),
		  "only once" },
		{ KEY("a b"), "header name" },
		{ KEY("a\\r\\nb"), "header name" },
		{ KEY("Host"), "reserve" },
		{ KEY("content-length"), "reserve" },
		{ KEY("Content-Type"), "reserve" },
		{ KEY("transfer-encoding"), "reserve" },
		{ KEY("connection"), "reserve" },
		{ KEY("upgrade"), "reserve" },
		{ KEY("te"), "reserve" },
		{ KEY("trailer"), "reserve" },
		{ KEY("proxy-authorization"), "reserve" },
		{ KEY("proxy-authenticate"), "reserve" },
		{ KEY("forwarded"), "reserve" },
		{ KEY("x-forwarded-for"), "reserve" },
		{ KEY("x-forwarded-host"), "reserve" },
		{ KEY("x-forwarded-proto"), "reserve" },
	};
	struct binding *b;
	struct diag d;
	struct json *j;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = (struct diag){ 0 };
		assert_int_equal(json_parse(span_str(rows[i].text), &j, &d), 0);
		if (binding_parse(j, &b, &d) != -EINVAL ||
		    !strstr(d.msg, rows[i].says))
			fail_msg("%s: %s", rows[i].text, d.msg);
		json_free(j);
	}
}

static void parse__bounds_the_lists(void **state)
{
	struct buf text = BUF_INIT(1024 * 1024);
	struct diag d = { 0 };
	struct binding *b;
	struct json *j;
	unsigned i;

	(void)state;
	assert_int_equal(buf_put_str(&text, "{\"name\":\"b\"," BEARER
					    ",\"match\":{\"hosts\":["),
			 0);
	for (i = 0; i <= BINDING_LIST_MAX; i++)
		assert_int_equal(buf_putf(&text, "%s\"h%u.example.com\"",
					  i ? "," : "", i),
				 0);
	assert_int_equal(buf_put_str(&text, "]}}"), 0);
	assert_int_equal(json_parse(buf_peek(&text), &j, &d), 0);
	assert_int_equal(binding_parse(j, &b, &d), -EINVAL);
	assert_non_null(strstr(d.msg, "at most"));
	json_free(j);
	buf_fini(&text);
}

static void clashes__only_when_everything_intersects(void **state)
{
	static const struct {
		const char *a, *b;
		bool clash;
	} rows[] = {
		{ HOST, HOST, true },
		{ HOST, "\"hosts\":[\"other.example.com\"]", false },
		/* exact beats wildcard: no clash */
		{ HOST, "\"hosts\":[\"*.example.com\"]", false },
		{ "\"hosts\":[\"*.example.com\"]",
		  "\"hosts\":[\"*.example.com\"]", true },
		{ "\"hosts\":[\"*.a.example.com\"]",
		  "\"hosts\":[\"*.example.com\"]", true },
		{ "\"hosts\":[\"*.xexample.com\"]",
		  "\"hosts\":[\"*.example.com\"]", false },
		{ HOST ",\"schemes\":[\"http\"]", HOST, false },
		{ HOST ",\"ports\":[8443]", HOST, false },
		{ HOST ",\"ports\":[8443,443]", HOST, true },
		{ HOST ",\"methods\":[\"GET\"]", HOST ",\"methods\":[\"POST\"]",
		  false },
		{ HOST ",\"paths\":[\"/a\"]", HOST ",\"paths\":[\"/a\"]",
		  true },
		{ HOST ",\"paths\":[\"/a\"]", HOST ",\"paths\":[\"/b\"]",
		  false },
		{ HOST ",\"paths\":[\"/a*\"]", HOST ",\"paths\":[\"/abc\"]",
		  true },
		{ HOST ",\"paths\":[\"/a/*\"]", HOST ",\"paths\":[\"/a\"]",
		  false },
		{ HOST ",\"paths\":[\"/a/*\"]", HOST ",\"paths\":[\"/a/b/*\"]",
		  true },
		{ HOST ",\"paths\":[\"/a/*\"]", HOST ",\"paths\":[\"/b/*\"]",
		  false },
	};
	struct binding *a, *b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		a = with_match("a", rows[i].a);
		b = with_match("b", rows[i].b);
		if (binding_clashes(a, b) != rows[i].clash ||
		    binding_clashes(b, a) != rows[i].clash)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
		binding_free(a);
		binding_free(b);
	}
}

static void clashes__needs_a_common_sandbox(void **state)
{
	struct binding *one = parse("{\"name\":\"1\",\"sandboxes\":[\"s1\"],"
				    "\"match\":{" HOST "}," BEARER "}");
	struct binding *two = parse("{\"name\":\"2\",\"sandboxes\":[\"s2\","
				    "\"s3\"],\"match\":{" HOST "}," BEARER "}");
	struct binding *all = with_match("all", HOST);

	(void)state;
	assert_false(binding_clashes(one, two));
	assert_true(binding_clashes(one, all));
	assert_true(binding_clashes(all, two));
	binding_free(one);
	binding_free(two);
	binding_free(all);
}

/* -- sets ------------------------------------------------------------------ */

#define B(name, match) \
	"{\"name\":\"" name "\",\"match\":{" match "}," BEARER "}"

static struct binding_set *set_of(const char *bindings)
{
	struct binding_set *set;
	struct diag d = { 0 };
	char text[4096];

	snprintf(text, sizeof(text), "{\"revision\":5,\"bindings\":[%s]}",
		 bindings);
	if (binding_set_parse(span_str(text), &set, &d))
		fail_msg("%s", d.msg);
	return set;
}

static void set__answers_by_precedence(void **state)
{
	struct binding_set *set = set_of(B(
		"exact",
		"\"hosts\":[\"api.example.com\"],\"paths\":"
		"[\"/v1/*\"]") "," B("wild",
				     "\"hosts\":[\"*.example."
				     "com\"]") "," B("deep",
						     "\"hosts"
						     "\":[\"*"
						     ".deep."
						     "example"
						     ".com\""
						     "]") "," B("port",
								"\"hosts\":["
								"\"port.test."
								"com\"],"
								"\"ports\":["
								"8443]") "," B("plain",
									       "\"hosts\":[\"plain.test.com\"],\"schemes\":"
									       "[\"http\"],\"ports\":[80]") ","
													    "{\"name\":\"mine\",\"sandboxes\":[\"s2\",\"s1\"],\"match\":{"
													    "\"hosts\":[\"mine.test.com\"]}," BEARER
													    "}," B("twice",
														   "\"hosts\":[\"*.t.com\",\"*.a.t.com\","
														   "\"x.a.t.com\"]"));
	static const struct {
		struct binding_query q;
		enum binding_result result;
		const char *name;
	} rows[] = {
#define Q(scheme_, port_, host_, method_, path_)                        \
	{ SPAN_INIT("s1"),    scheme_,	       port_, SPAN_INIT(host_), \
	  SPAN_INIT(method_), SPAN_INIT(path_) }
#define HTTPS(host_, path_) Q(BINDING_HTTPS, 443, host_, "GET", path_)
		{ HTTPS("api.example.com", "/v1/x"), BINDING_MATCH, "exact" },
		/* exact is there but does not match: the wildcard does */
		{ HTTPS("api.example.com", "/v2"), BINDING_MATCH, "wild" },
		{ HTTPS("b.example.com", "/"), BINDING_MATCH, "wild" },
		{ HTTPS("b.c.example.com", "/"), BINDING_MATCH, "wild" },
		{ HTTPS("example.com", "/"), BINDING_NO_MATCH, NULL },
		{ HTTPS("xexample.com", "/"), BINDING_NO_MATCH, NULL },
		/* a longer wildcard does not beat a shorter one */
		{ HTTPS("x.deep.example.com", "/"), BINDING_TIE, NULL },
		{ HTTPS("deep.example.com", "/"), BINDING_MATCH, "wild" },
		{ HTTPS("port.test.com", "/"), BINDING_NO_MATCH, NULL },
		{ Q(BINDING_HTTPS, 8443, "port.test.com", "GET", "/"),
		  BINDING_MATCH, "port" },
		{ HTTPS("plain.test.com", "/"), BINDING_NO_MATCH, NULL },
		{ Q(BINDING_HTTP, 80, "plain.test.com", "GET", "/"),
		  BINDING_MATCH, "plain" },
		{ Q(BINDING_HTTPS, 443, "b.example.com", "HEAD", "/"),
		  BINDING_NO_MATCH, NULL },
		{ Q(BINDING_HTTPS, 443, "b.example.com", "get", "/"),
		  BINDING_NO_MATCH, NULL },
		{ HTTPS("mine.test.com", "/"), BINDING_MATCH, "mine" },
		/* one binding met under two of its hosts is no tie */
		{ HTTPS("x.a.t.com", "/"), BINDING_MATCH, "twice" },
		{ HTTPS("y.a.t.com", "/"), BINDING_MATCH, "twice" },
		{ HTTPS("", "/"), BINDING_NO_MATCH, NULL },
	};
	const struct binding *found[2];
	struct binding_query q;
	size_t i;

	(void)state;
	assert_int_equal(set->revision, 5);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		if (binding_set_match(set, &rows[i].q, found) != rows[i].result)
			fail_msg("%s %s", rows[i].q.host.ptr,
				 rows[i].q.path.ptr);
		if (rows[i].name)
			assert_span(found[0]->name, rows[i].name);
		if (rows[i].result == BINDING_TIE)
			assert_true(found[1] && found[0] != found[1]);
	}
	q = rows[14].q; /* mine */
	q.sandbox = SPAN("s3");
	assert_int_equal(binding_set_match(set, &q, found), BINDING_NO_MATCH);
	q.sandbox = SPAN_NONE;
	assert_int_equal(binding_set_match(set, &q, found), BINDING_NO_MATCH);
	binding_set_free(set);
}

static void set__tells_what_concerns_it(void **state)
{
	struct binding_set *set =
		set_of(B("a", "\"hosts\":[\"*.example.com\"],\"methods\":"
			      "[\"PUT\"],\"paths\":[\"/only\"]"));
	struct binding_query q = {
		.sandbox = SPAN("s"),
		.scheme = BINDING_HTTPS,
		.port = 443,
		.host = SPAN("x.example.com"),
	};

	(void)state;
	assert_true(binding_set_concerns(set, &q));
	q.port = 8443;
	assert_false(binding_set_concerns(set, &q));
	q.port = 443;
	q.scheme = BINDING_HTTP;
	assert_false(binding_set_concerns(set, &q));
	assert_false(binding_set_concerns(NULL, &q));
	binding_set_free(set);
}

static void set__refuses_as_a_whole(void **state)
{
	static const char *const rows[] = {
		"",
		"{}",
		"[]",
		"{\"revision\":1}",
		"{\"revision\":-1,\"bindings\":[]}",
		"{\"revision\":1,\"bindings\":{}}",
		"{\"revision\":1,\"bindings\":[" B("a", HOST) ",{}]}",
	};
	struct binding_set *set;
	struct diag d;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = (struct diag){ 0 };
		assert_int_equal(binding_set_parse(span_str(rows[i]), &set, &d),
				 -EINVAL);
		assert_true(diag_is_set(&d));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse__fills_in_the_defaults),
		cmocka_unit_test(parse__takes_the_ports_of_the_schemes),
		cmocka_unit_test(emit__is_stable),
		cmocka_unit_test(parse__renders_auth),
		cmocka_unit_test(parse__refuses),
		cmocka_unit_test(parse__bounds_the_lists),
		cmocka_unit_test(clashes__only_when_everything_intersects),
		cmocka_unit_test(clashes__needs_a_common_sandbox),
		cmocka_unit_test(set__answers_by_precedence),
		cmocka_unit_test(set__tells_what_concerns_it),
		cmocka_unit_test(set__refuses_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
