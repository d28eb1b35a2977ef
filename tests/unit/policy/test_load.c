/* SPDX-License-Identifier: Apache-2.0 */
/* test_load.c - what is refused, with which sentence; files and directories */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "policy/load.h"
#include "src/base/buf.h"
#include "src/base/err.h"

/* A rule of the only policy. */
#define RULE(rule)   "policies:\n- name: a\n  egress:\n  - {" rule "}\n"
#define POLICY(more) "policies:\n- name: a\n  " more "\n"

static void load__refuses_with_place_and_sentence(void **state)
{
	static const struct {
		const char *text, *error;
	} rows[] = {
		{ "", "f:1:1: found null, expected a map" },
		{ "# nothing\n", "f:1:1: found null, expected a map" },
		{ "[]", "f:1:1: found a list, expected a map" },
		{ "policys: []", "f:1:1: found the unknown key \"policys\", "
				 "expected perhaps \"policies\"" },
		{ "policies: {}", "f:1:11: policies: found a map, expected a "
				  "list" },
		{ "policies: [x]", "f:1:12: found a string, expected a map" },
		{ "policies:\n- egress: []",
		  "f:2:3: found a policy without \"name\", expected one" },
		{ "policies:\n- name: 7", "f:2:9: name: found a number, "
					  "expected a string" },
		{ "policies:\n- name: a b",
		  "f:2:9: name: found \"a b\", expected 1 to 128 letters, "
		  "digits, '.', '_' or '-', and not \"operator\"" },
		{ "policies:\n- name: operator", "found \"operator\"" },
		{ "policies:\n- name: .hidden", "found \".hidden\"" },
		{ "policies:\n- name: a\n- name: b\n- name: a",
		  "f:4:3: found a second policy a, expected one (the first is "
		  "at f:2)" },
		{ POLICY("egres: []"),
		  "f:3:3: found the unknown key \"egres\", expected perhaps "
		  "\"egress\"" },
		{ POLICY("defaultAction: Allow"),
		  "f:3:18: defaultAction: found \"Allow\", expected allow or "
		  "deny" },
		{ POLICY("defaultAction: true"), "found \"true\", expected" },
		{ POLICY("defaultAction:"), "found null, expected allow or" },
		{ POLICY("egress: {}"), "f:3:11: egress: found a map" },
		{ POLICY("sandboxes: {}"), "found neither ids nor labels" },
		{ POLICY("sandboxes: {id: [a]}"), "expected perhaps \"ids\"" },
		{ POLICY("sandboxes: {ids: [a*b]}"),
		  "found \"a*b\", expected a sandbox id" },
		{ POLICY("sandboxes: {ids: [\"\"]}"), "expected a sandbox id" },
		{ POLICY("sandboxes: {ids: [7]}"), "found a number, expected" },
		{ POLICY("sandboxes: {labels: {}}"), "labels: found 0" },
		{ POLICY("sandboxes: {labels: {a: 1}}"),
		  "a: found a number, expected a string" },
		{ POLICY("inspect: [10.0.0.1]"),
		  "f:3:13: found \"10.0.0.1\", expected a host name or "
		  "*.name" },
		{ POLICY("passthrough: x.com"), "found a string, expected a "
						"list" },
		{ POLICY("inspect: [b.com, \"*.a.com\"]\n"
			 "  passthrough: [c.com, \"*.A.com.\"]"),
		  "f:4:24: found \"*.A.com.\", expected it in only one of "
		  "inspect and passthrough" },
		{ POLICY("limits: [1]"), "f:3:11: limits: found a list" },
		{ POLICY("limits: {conections: 1}"),
		  "f:3:12: found the unknown key \"conections\", expected "
		  "perhaps \"connections\"" },
		{ POLICY("limits: {connections: -1}"), "found \"-1\"" },
		{ POLICY("limits: {dnsPerSecond: 1.5}"), "found \"1.5\"" },
		{ POLICY("limits: {mintsPerSecond: \"5\"}"),
		  "mintsPerSecond: found a string" },
		{ POLICY("limits: {connections: 1048577}"),
		  "found \"1048577\"" },
		{ POLICY("limits: {bytesPerSecond: 1000000000001}"),
		  "found \"1000000000001\"" },
		{ RULE("action: allow"), "f:4:5: found a rule without "
					 "\"target\", expected one" },
		{ RULE("target: a.com"), "found a rule without \"action\"" },
		{ RULE("action: permit, target: a.com"),
		  "f:4:14: action: found \"permit\", expected allow or deny" },
		{ RULE("action: allow, target: 7"), "target: found a number" },
		{ RULE("action: allow, target: \"*\""), "found \"*\"" },
		{ RULE("action: allow, target: \"a.*.com\""), "found \"a.*" },
		{ RULE("action: allow, target: \"*a.com\""), "found \"*a." },
		{ RULE("action: allow, target: \"*.*.com\""), "found \"*.*" },
		{ RULE("action: allow, target: a..com"), "found \"a..com\"" },
		{ RULE("action: allow, target: \"a.com:443\""), "found \"a" },
		{ RULE("action: allow, target: 127.1"), "found" },
		{ RULE("action: allow, target: 0x7f.1"), "found" },
		{ RULE("action: allow, target: \"b\\u00fccher.example\""),
		  "found \"b\\xc3\\xbccher.example\", expected a host name, "
		  "*.name, an address or a CIDR prefix" },
		{ RULE("action: allow, target: 10.0.0.1/8"),
		  "target: found \"10.0.0.1/8\", expected no bits behind the "
		  "prefix, as in 10.0.0.0/8" },
		{ RULE("action: allow, target: 10.0.0.0/33"), "found \"10." },
		{ RULE("action: allow, target: a.com, port: [1]"),
		  "found the unknown key \"port\", expected perhaps "
		  "\"ports\"" },
		{ RULE("action: allow, target: a.com, ports: 443"),
		  "ports: found a number, expected a list" },
		{ RULE("action: allow, target: a.com, ports: []"),
		  "ports: found an empty list, expected at least one item, or "
		  "no ports at all" },
		{ RULE("action: allow, target: a.com, ports: [0]"),
		  "found \"0\", expected a port from 1 to 65535 or a range "
		  "like \"8000-8100\"" },
		{ RULE("action: allow, target: a.com, ports: [65536]"),
		  "found \"65536\"" },
		{ RULE("action: allow, target: a.com, ports: [\"9-8\"]"),
		  "found \"9-8\"" },
		{ RULE("action: allow, target: a.com, ports: [\"9-\"]"),
		  "found \"9-\"" },
		{ RULE("action: allow, target: a.com, ports: [\"1-2-3\"]"),
		  "found \"1-2-3\"" },
		{ RULE("action: allow, target: a.com, ports: [1.5]"),
		  "found \"1.5\"" },
		{ RULE("action: allow, target: a.com, ports: [-1]"),
		  "found \"-1\"" },
		{ RULE("action: allow, target: a.com, ports: [[1]]"),
		  "found a list, expected a port" },
		{ RULE("action: allow, target: a.com, protocol: TCP"),
		  "found \"TCP\", expected tcp, udp, icmp or any" },
		{ RULE("action: allow, target: a.com, protocol: icmp, ports: "
		       "[1]"),
		  "found \"icmp\", expected a protocol with ports" },
		{ RULE("action: allow, target: a.com, protocol: udp, methods: "
		       "[GET]"),
		  "found \"udp\", expected tcp, because the rule has methods "
		  "or paths" },
		{ RULE("action: allow, target: a.com, methods: []"),
		  "methods: found an empty list" },
		{ RULE("action: allow, target: a.com, methods: [\"G T\"]"),
		  "found \"G T\", expected a method such as GET" },
		{ RULE("action: allow, target: a.com, methods: [1]"),
		  "found \"1\", expected a method" },
		{ RULE("action: allow, target: a.com, paths: [v1]"),
		  "found \"v1\", expected a path that begins with '/'" },
		{ RULE("action: allow, target: a.com, paths: [/a/../b]"),
		  "found \"/a/../b\", expected a path" },
		{ RULE("action: allow, target: a.com, paths: [/%7Ea]"),
		  "found \"/%7Ea\"" },
		{ RULE("action: allow, target: a.com, paths: [/a?b=1]"),
		  "found \"/a?b=1\"" },
		{ RULE("action: allow, target: a.com, paths: [\"/*/b\"]"),
		  "found \"/*/b\"" },
		{ RULE("action: allow, target: a.com, paths: [\"/a**\"]"),
		  "found \"/a**\"" },
		{ RULE("action: allow, target: a.com, methods: [GET]") "  "
								       "passthr"
								       "ough: "
								       "[\"*."
								       "com\"]"
								       "\n",
		  "f:4: found methods or paths for a.com, expected none: "
		  "policy a passes *.com through unopened" },
		{ "deny: a.com", "f:1:7: deny: found a string, expected a "
				 "list" },
		{ "deny: [{action: deny, target: a.com}]",
		  "f:1:9: found the unknown key \"action\"" },
		{ "allow: [{ports: [1]}]", "found a rule without \"target\"" },
		{ "allow: [[a]]", "found a list, expected a map" },
		{ POLICY("passthrough: [a.com]") "deny:\n"
						 "- {target: a.com, paths: "
						 "[/x]}\n",
		  "f:5: found methods or paths for a.com" },
	};
	struct policy_set *set = NULL;
	char text[1000];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct diag d = { 0 };

		if (!policy_load_text(span_str(rows[i].text), "f", &set, &d))
			fail_msg("loaded: %s", rows[i].text);
		assert_null(set);
		if (!strstr(diag_text(&d, text, sizeof(text)), rows[i].error))
			fail_msg("%s\ngave   %s\nwanted %s", rows[i].text, text,
				 rows[i].error);
	}
}

static struct policy_set *load(const char *text)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	if (policy_load_text(span_str(text), "f", &set, &d))
		fail_msg("%u:%u: %s", d.line, d.col, d.msg);
	return set;
}

static void load__understands_every_key(void **state)
{
	struct policy_set *set =
		load("deny: [bad.example, {target: 10.0.0.0/8, ports: [22]}]\n"
		     "allow:\n- target: good.example\n  protocol: udp\n"
		     "policies:\n"
		     "- name: one\n"
		     "  sandboxes: {ids: [a, \"b-*\"], labels: {team: red}}\n"
		     "  defaultAction: allow\n"
		     "  egress:\n"
		     "  - action: deny\n"
		     "    target: \"*.X.example.\"\n"
		     "    ports: [1, \"2\", \"3-65535\"]\n"
		     "    methods: [get, M-SEARCH]\n"
		     "    paths: [/, \"/a*\"]\n"
		     "  inspect: [i.example]\n"
		     "  passthrough: [\"*.p.example\"]\n"
		     "- {name: two}\n");
	const struct policy_model *one;
	const struct policy_rule *r;

	(void)state;
	one = policy_find(set, SPAN("one"));
	assert_non_null(one);
	assert_int_equal(set->policy_count, 2);
	assert_ptr_equal(one->next, policy_find(set, SPAN("two")));
	assert_int_equal(one->default_action, VERDICT_ALLOW);
	assert_int_equal(one->line, 6);
	r = one->rules;
	assert_int_equal(r->target.kind, TARGET_WILDCARD);
	assert_true(span_eq(r->target.name, SPAN("x.example")));
	assert_int_equal(r->port_count, 3);
	assert_int_equal(r->ports[2].first, 3);
	assert_int_equal(r->ports[2].last, 65535);
	assert_true(span_eq(r->methods[0], SPAN("GET")));
	assert_int_equal(r->protocol, PROTOCOL_TCP);
	assert_int_equal(r->line, 10);
	assert_int_equal(set->deny_count, 2);
	assert_int_equal(set->deny[1].target.cidr.prefix, 104);
	assert_int_equal(set->allow[0].protocol, PROTOCOL_UDP);
	assert_int_equal(set->allow[0].action, VERDICT_ALLOW);
	policy_set_free(set);
}

static void load__one_takes_its_name_from_the_caller(void **state)
{
	struct policy_set *set = NULL;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(policy_load_one(SPAN("{\"egress\":[]}"), "body",
					 SPAN("put-here"), &set, &d),
			 0);
	assert_true(span_eq(set->policies->name, SPAN("put-here")));
	set = policy_set_free(set);
	assert_int_equal(policy_load_one(SPAN("{\"name\":\"x\"}"), "body",
					 SPAN_NONE, &set, &d),
			 0);
	assert_true(span_eq(set->policies->name, SPAN("x")));
	set = policy_set_free(set);

	assert_int_equal(policy_load_one(SPAN("{\"name\":\"x\"}"), "body",
					 SPAN("y"), &set, &d),
			 -EINVAL);
	assert_string_equal(d.msg, "name: found \"x\", expected the name it is "
				   "put under, or none");
	assert_string_equal(d.file, "body");
	d = (struct diag){ 0 };
	assert_int_equal(
		policy_load_one(SPAN("{}"), "body", SPAN_NONE, &set, &d),
		-EINVAL);
	d = (struct diag){ 0 };
	assert_int_equal(
		policy_load_one(SPAN("{}"), "body", SPAN("a/b"), &set, &d),
		-EINVAL);
	assert_non_null(strstr(d.msg, "a name that no policy can have"));
	assert_null(set);
}

/* -- directories -------------------------------------------------------- */

static void write_file(const char *dir, const char *name, const char *text)
{
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void remove_file(const char *dir, const char *name)
{
	char path[4096];

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(remove(path), 0);
}

static void load__reads_a_directory_in_name_order(void **state)
{
	static const char *const names[] = { "20-b.json", "10-a.yaml",
					     "30-c.yml",  ".hidden.yaml",
					     "notes.txt", "x.yaml~" };
	char dir[] = "/tmp/policy-test-XXXXXX";
	struct policy_set *set = NULL;
	struct diag d = { 0 };
	size_t i;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(policy_load_dir(dir, &set, &d), 0);
	assert_int_equal(set->policy_count, 0);
	set = policy_set_free(set);

	write_file(dir, names[0],
		   "{\"policies\":[{\"name\":\"b\"}],"
		   "\"deny\":[\"b.example\"]}");
	write_file(dir, names[1],
		   "policies: [{name: a}]\n"
		   "deny: [a.example]\n");
	write_file(dir, names[2], "policies: [{name: c}]\n");
	for (i = 3; i < ARRAY_LEN(names); i++)
		write_file(dir, names[i], "not: [a policy");
	if (policy_load_dir(dir, &set, &d))
		fail_msg("%s", d.msg);
	assert_int_equal(set->policy_count, 3);
	assert_true(span_eq(set->policies->name, SPAN("a")));
	assert_true(span_eq(set->policies->next->file, SPAN("20-b.json")));
	assert_int_equal(set->deny_count, 2);
	assert_true(span_eq(set->deny[1].target.name, SPAN("b.example")));
	set = policy_set_free(set);

	write_file(dir, names[2], "policies: [{name: a}]\n");
	assert_int_equal(policy_load_dir(dir, &set, &d), -EINVAL);
	assert_null(set);
	assert_string_equal(d.file, "30-c.yml");
	assert_non_null(strstr(d.msg, "the first is at 10-a.yaml:1"));

	for (i = 0; i < ARRAY_LEN(names); i++)
		remove_file(dir, names[i]);
	assert_int_equal(remove(dir), 0);
	d = (struct diag){ 0 };
	assert_int_equal(policy_load_dir(dir, &set, &d), -ENOENT);
	assert_string_equal(d.file, dir);
	d = (struct diag){ 0 };
	assert_int_equal(policy_load_file("/dev/null", &set, &d), -ENODEV);
	d = (struct diag){ 0 };
	assert_int_equal(policy_load_file("/", &set, &d), -EISDIR);
	d = (struct diag){ 0 };
	assert_int_equal(policy_load_file("/nowhere.yaml", &set, &d), -ENOENT);
	assert_null(set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(load__refuses_with_place_and_sentence),
		cmocka_unit_test(load__understands_every_key),
		cmocka_unit_test(load__one_takes_its_name_from_the_caller),
		cmocka_unit_test(load__reads_a_directory_in_name_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
