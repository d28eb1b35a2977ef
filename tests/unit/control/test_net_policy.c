/* SPDX-License-Identifier: Apache-2.0 */
/* test_net_policy.c - network policies of the contract: read, merged, shown */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/control/egress/net_policy.h"
#include "src/text/json.h"

static struct json *json_of(const char *text)
{
	struct json *j = NULL;

	assert_int_equal(json_parse(span_str(text), &j, NULL), 0);
	return j;
}

static struct net_policy *parse(const char *text)
{
	struct json *j CLEANUP_JSON = json_of(text);
	struct net_policy *p = NULL;
	struct diag d = { 0 };
	unsigned total;

	if (net_policy_parse(j, &p, &total, &d))
		fail_msg("%s: %s", text, d.msg);
	return p;
}

static void check(const struct net_policy *p, const char *expected)
{
	struct buf out = BUF_INIT(1024 * 1024);
	struct json_out o;

	json_start(&o, &out);
	net_policy_emit(&o, NULL, p);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(buf_put(&out, span_of("", 1)), 0);
	assert_string_equal(buf_peek(&out).ptr, expected);
	buf_fini(&out);
}

static const struct {
	const char *in, *out, *mode;
} forms[] = {
	{ "null", "{\"egress\":[],\"defaultAction\":\"deny\"}", "deny_all" },
	{ "{}", "{\"egress\":[],\"defaultAction\":\"deny\"}", "deny_all" },
	{ "{\"egress\":null,\"defaultAction\":null}",
	  "{\"egress\":[],\"defaultAction\":\"deny\"}", "deny_all" },
	{ "{\"defaultAction\":\" ALLOW \",\"other\":1}",
	  "{\"egress\":[],\"defaultAction\":\"allow\"}", "allow_all" },
	{ "{\"egress\":[{\"action\":\"Allow\",\"target\":\" *.A.com \"},"
	  "{\"target\":\"b\"},{\"action\":\"allow\",\"target\":\"b\"}]}",
	  "{\"egress\":[{\"action\":\"allow\",\"target\":\"*.A.com\"},"
	  "{\"action\":\"deny\",\"target\":\"b\"},{\"action\":\"allow\","
	  "\"target\":\"b\"}],\"defaultAction\":\"deny\"}",
	  "enforcing" },
	{ "{\"egress\":[{\"action\":\"allow\",\"target\":\"10.1.0.0/16\","
	  "\"ports\":[5432,80,80]},{\"ports\":[25]},{\"action\":\"allow\","
	  "\"target\":\"a.b\",\"ports\":null}]}",
	  "{\"egress\":[{\"action\":\"allow\",\"target\":\"10.1.0.0/16\","
	  "\"ports\":[5432,80,80]},{\"action\":\"deny\",\"ports\":[25]},"
	  "{\"action\":\"allow\",\"target\":\"a.b\"}],\"defaultAction\":"
	  "\"deny\"}",
	  "enforcing" },
};

static void test_forms(void **state)
{
	struct net_policy *p;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		p = parse(forms[i].in);
		check(p, forms[i].out);
		assert_string_equal(net_policy_mode(p), forms[i].mode);
		net_policy_free(p);
	}
}

static const struct {
	const char *text, *says;
} bad[] = {
	{ "[]", "expected an object, found an array" },
	{ "{\"defaultAction\":\"block\"}", "unsupported action \"block\"" },
	{ "{\"defaultAction\":1}", "defaultAction: expected" },
	{ "{\"egress\":{}}", "egress: expected an array" },
	{ "{\"egress\":[1]}", "egress[0]: expected an object" },
	{ "{\"egress\":[{\"action\":\"x\",\"target\":\"a\"}]}",
	  "egress[0].action: unsupported action \"x\"" },
	{ "{\"egress\":[{\"action\":\"allow\",\"target\":\" \"}]}",
	  "egress target cannot be empty" },
	{ "{\"egress\":[{\"action\":\"allow\",\"target\":7}]}",
	  "egress target cannot be empty" },
	{ "{\"egress\":[{\"target\":\"a\"},{\"target\":\"a\",\"ports\":[]}]}",
	  "egress[1].ports: expected an array of 1 to 256 ports" },
	{ "{\"egress\":[{\"target\":\"a\",\"ports\":443}]}",
	  "egress[0].ports: expected an array" },
	{ "{\"egress\":[{\"target\":\"a\",\"ports\":[443,0]}]}",
	  "egress[0].ports: expected numbers from 1 to 65535" },
	{ "{\"egress\":[{\"target\":\"a\",\"ports\":[65536]}]}",
	  "egress[0].ports: expected numbers from 1 to 65535" },
	{ "{\"egress\":[{\"target\":\"a\",\"ports\":[\"443\"]}]}",
	  "egress[0].ports: expected numbers from 1 to 65535" },
	{ "{\"egress\":[{\"target\":\"a\",\"ports\":[4.5]}]}",
	  "egress[0].ports: expected numbers from 1 to 65535" },
};

/* As many as a rule may have, and one more. */
static void test_how_many_ports(void **state)
{
	struct buf text = BUF_INIT(16 * 1024);
	struct net_policy *p = NULL;
	struct diag d = { 0 };
	struct json *j;
	unsigned total, n, i;

	(void)state;
	for (n = NET_PORTS_MAX; n <= NET_PORTS_MAX + 1; n++) {
		buf_clear(&text);
		assert_int_equal(
			buf_put_str(&text, "{\"egress\":[{\"ports\":[1"), 0);
		for (i = 2; i <= n; i++)
			assert_int_equal(buf_putf(&text, ",%u", i), 0);
		assert_int_equal(buf_put(&text, span_of("]}]}", 5)), 0);
		j = json_of(buf_peek(&text).ptr);
		if (n <= NET_PORTS_MAX) {
			assert_int_equal(net_policy_parse(j, &p, &total, &d),
					 0);
			assert_int_equal(p->rules[0].port_count, n);
			p = net_policy_free(p);
		} else {
			assert_true(net_policy_parse(j, &p, &total, &d) < 0);
			assert_null(p);
		}
		json_free(j);
	}
	buf_fini(&text);
}

static void test_refused(void **state)
{
	struct net_policy *p = NULL;
	struct diag d;
	unsigned total;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json *j CLEANUP_JSON = json_of(bad[i].text);

		d = (struct diag){ 0 };
		assert_true(net_policy_parse(j, &p, &total, &d) < 0);
		assert_null(p);
		assert_non_null(strstr(d.msg, bad[i].says));
	}
}

#define BASE                                                              \
	"{\"defaultAction\":\"allow\",\"egress\":[{\"action\":\"allow\"," \
	"\"target\":\"*.a.com\"},{\"action\":\"deny\",\"target\":\"b\"}," \
	"{\"action\":\"allow\",\"target\":\"B\"},{\"action\":\"allow\","  \
	"\"target\":\"c\"}]}"

static void test_patch_goes_in_front(void **state)
{
	struct json *j CLEANUP_JSON =
		json_of("[{\"action\":\"deny\",\"target\":\"x.a.com\"},"
			"{\"action\":\"allow\",\"target\":\"b\"},"
			"{\"action\":\"deny\",\"target\":\"X.A.COM\"},"
			"{\"action\":\"deny\",\"target\":\"B\"}]");
	struct net_policy *base = parse(BASE), *p = NULL;
	struct diag d = { 0 };
	unsigned total;

	(void)state;
	assert_int_equal(net_policy_patch(base, j, &p, &total, &d), 0);
	check(p, "{\"egress\":[{\"action\":\"deny\",\"target\":\"x.a.com\"},"
		 "{\"action\":\"allow\",\"target\":\"b\"},{\"action\":"
		 "\"allow\",\"target\":\"*.a.com\"},{\"action\":\"allow\","
		 "\"target\":\"c\"}],\"defaultAction\":\"allow\"}");
	assert_int_equal(total, 4);
	net_policy_free(p);
	net_policy_free(base);
}

#define PORTS_BASE                                                    \
	"{\"egress\":[{\"action\":\"allow\",\"target\":\"a\"},"       \
	"{\"action\":\"allow\",\"target\":\"A\",\"ports\":[80,443]}," \
	"{\"action\":\"deny\",\"ports\":[25]},"                       \
	"{\"action\":\"deny\",\"ports\":[465]}]}"

/* Equal are rules with the same target and the same set of ports. */
static void test_patch_with_ports(void **state)
{
	struct json *j CLEANUP_JSON =
		json_of("[{\"action\":\"deny\",\"target\":\"a\",\"ports\":"
			"[443,80,443]},{\"action\":\"allow\",\"ports\":[25]},"
			"{\"action\":\"deny\",\"target\":\"a\",\"ports\":"
			"[80,443]}]");
	struct net_policy *base = parse(PORTS_BASE), *p = NULL;
	struct diag d = { 0 };
	unsigned total;

	(void)state;
	assert_int_equal(net_policy_patch(base, j, &p, &total, &d), 0);
	check(p, "{\"egress\":[{\"action\":\"deny\",\"target\":\"a\",\"ports\":"
		 "[443,80,443]},{\"action\":\"allow\",\"ports\":[25]},"
		 "{\"action\":\"allow\",\"target\":\"a\"},{\"action\":\"deny\","
		 "\"ports\":[465]}],\"defaultAction\":\"deny\"}");
	net_policy_free(p);
	net_policy_free(base);
}

/* Rules go by their target, whatever their ports; those without stay. */
static void test_remove_with_ports(void **state)
{
	struct json *j CLEANUP_JSON = json_of("[\"A\",\"\"]");
	struct net_policy *base = parse(PORTS_BASE), *p = NULL;
	struct diag d = { 0 };
	unsigned removed;

	(void)state;
	assert_int_equal(net_policy_remove(base, j, &p, &removed, &d), 0);
	assert_int_equal(removed, 2);
	check(p,
	      "{\"egress\":[{\"action\":\"deny\",\"ports\":[25]},{\"action\":"
	      "\"deny\",\"ports\":[465]}],\"defaultAction\":\"deny\"}");
	net_policy_free(p);
	net_policy_free(base);
}

static void test_remove(void **state)
{
	struct json *j CLEANUP_JSON = json_of("[\" B \",\"a.com\",\"zz\"]");
	struct json *none CLEANUP_JSON = json_of("[\"zz\"]");
	struct net_policy *base = parse(BASE), *p = NULL;
	struct diag d = { 0 };
	unsigned removed;

	(void)state;
	assert_int_equal(net_policy_remove(base, j, &p, &removed, &d), 0);
	assert_int_equal(removed, 2);
	check(p, "{\"egress\":[{\"action\":\"allow\",\"target\":\"*.a.com\"},"
		 "{\"action\":\"allow\",\"target\":\"c\"}],\"defaultAction\":"
		 "\"allow\"}");
	net_policy_free(p);
	assert_int_equal(net_policy_remove(base, none, &p, &removed, &d), 0);
	assert_int_equal(removed, 0);
	net_policy_free(p);
	net_policy_free(base);
}

static void test_changes_refused(void **state)
{
	static const char *const texts[] = { "{}", "[]", "null", "[1]" };
	struct net_policy *base = parse(BASE), *p = NULL;
	struct diag d;
	unsigned n;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct json *j CLEANUP_JSON = json_of(texts[i]);

		d = (struct diag){ 0 };
		assert_true(net_policy_patch(base, j, &p, &n, &d) < 0);
		assert_true(d.msg[0] != '\0');
		d = (struct diag){ 0 };
		assert_true(net_policy_remove(base, j, &p, &n, &d) < 0);
		assert_true(d.msg[0] != '\0');
	}
	net_policy_free(base);
}

/* rules rules of names that differ. */
static struct json *many(unsigned rules, unsigned from)
{
	struct buf out = BUF_INIT(4 * 1024 * 1024);
	struct json_out o;
	struct json *j = NULL;
	char target[32];
	unsigned i;

	json_start(&o, &out);
	json_open_array(&o, NULL);
	for (i = 0; i < rules; i++) {
		(void)snprintf(target, sizeof(target), "n%u.test", from + i);
		json_open_object(&o, NULL);
		json_put_str(&o, "action", "allow");
		json_put_str(&o, "target", target);
		json_close(&o);
	}
	json_close(&o);
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(json_parse(buf_peek(&out), &j, NULL), 0);
	buf_fini(&out);
	return j;
}

static void test_how_many(void **state)
{
	struct json *full CLEANUP_JSON = many(NET_RULES_MAX, 0);
	struct json *again CLEANUP_JSON = many(10, 0);
	struct json *more CLEANUP_JSON = many(1, NET_RULES_MAX);
	struct json *over CLEANUP_JSON = many(NET_RULES_MAX + 1, 0);
	struct net_policy *empty = parse("{}"), *p = NULL, *q = NULL;
	struct diag d = { 0 };
	unsigned total;

	(void)state;
	assert_int_equal(net_policy_patch(empty, over, &q, &total, &d),
			 NET_POLICY_E_MANY);
	assert_int_equal(total, NET_RULES_MAX + 1);
	assert_int_equal(net_policy_patch(empty, full, &p, &total, &d), 0);
	assert_int_equal(net_policy_patch(p, more, &q, &total, &d),
			 NET_POLICY_E_MANY);
	assert_int_equal(total, NET_RULES_MAX + 1);
	assert_int_equal(net_policy_patch(p, again, &q, &total, &d), 0);
	assert_int_equal(total, NET_RULES_MAX);
	net_policy_free(q);
	net_policy_free(p);
	net_policy_free(empty);
}

static void test_our_own_form(void **state)
{
	struct net_policy *p = parse(
		"{\"egress\":[{\"action\":\"allow\",\"target\":\"*.A.com\"},"
		"{\"action\":\"deny\",\"target\":\"10.0.0.0/"
		"8\",\"ports\":[80]},"
		"{\"action\":\"deny\",\"ports\":[25,465]}]}");
	struct net_policy *q =
		parse("{\"egress\":[{\"action\":\"allow\",\"target\":\"a\"},"
		      "{\"action\":\"allow\",\"target\":\"https://x\"}]}");
	struct buf out = BUF_INIT(64 * 1024);
	struct diag d = { 0 };
	struct json_out o;

	(void)state;
	json_start(&o, &out);
	net_policy_emit_own(&o, p, SPAN("s-1"));
	assert_int_equal(json_done(&o), 0);
	assert_int_equal(buf_put(&out, span_of("", 1)), 0);
	assert_string_equal(
		buf_peek(&out).ptr,
		"{\"name\":\"sandbox.s-1\",\"sandboxes\":{\"ids\":[\"s-1\"]},"
		"\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\","
		"\"target\":\"*.A.com\"},{\"action\":\"deny\",\"target\":"
		"\"10.0.0.0/8\",\"ports\":[80]},{\"action\":\"deny\","
		"\"target\":\"0.0.0.0/0\",\"ports\":[25,465]},{\"action\":"
		"\"deny\",\"target\":\"::/0\",\"ports\":[25,465]}]}");
	assert_int_equal(net_policy_check(p, &d), 0);
	assert_true(net_policy_check(q, &d) < 0);
	assert_non_null(strstr(d.msg, "https://x"));
	buf_fini(&out);
	net_policy_free(p);
	net_policy_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_how_many_ports),
		cmocka_unit_test(test_patch_goes_in_front),
		cmocka_unit_test(test_patch_with_ports),
		cmocka_unit_test(test_remove_with_ports),
		cmocka_unit_test(test_remove),
		cmocka_unit_test(test_changes_refused),
		cmocka_unit_test(test_how_many),
		cmocka_unit_test(test_our_own_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
