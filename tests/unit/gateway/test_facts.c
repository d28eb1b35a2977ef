/* SPDX-License-Identifier: Apache-2.0 */
/* test_facts.c - who a source is, and what lives as long as it is used */

#include "tests/unit/gateway/fixture.h"

#include <errno.h>

enum { MANY = 2000, RULES_MANY = 2000 };

static const char allow_a[] = "policies:\n- name: a\n  egress:\n"
			      "  - {action: allow, target: a.example}\n";
static const char allow_b[] = "policies:\n- name: b\n  egress:\n"
			      "  - {action: allow, target: b.example}\n";
static const char deny_a[] = "deny: [{target: a.example}]\n";

static struct quotas *quotas;

static int set_up(void **state)
{
	struct facts *f = must_alloc(sizeof(*f));

	quotas = quotas_new();
	facts_init(f, quotas);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	facts_fini(*state);
	quotas = quotas_free(quotas);
	free(*state);
	return 0;
}

static const char *who(struct facts *f, const char *ip, const char *iface)
{
	struct addr a = addr_of(ip, 0);
	struct sandbox *s = facts_find_sandbox(f, &a, iface);

	return s ? s->id : "";
}

static void put(struct facts *f, const char *id, const char *ip,
		const char *iface)
{
	struct msg_sandbox msg = sandbox_msg(id, ip, 1);

	must(span_copy(span_str(iface), msg.iface, sizeof(msg.iface)));
	facts_put_sandbox(f, &msg);
}

static void facts__identity_is_address_and_interface(void **state)
{
	struct facts *f = *state;

	put(f, "any", "10.0.0.1", "");
	put(f, "wired", "10.0.0.2", "sp-2");
	put(f, "six", "fd00::3", "sp-3");
	assert_string_equal(who(f, "10.0.0.1", "sp-9"), "any");
	assert_string_equal(who(f, "10.0.0.1", ""), "any");
	assert_string_equal(who(f, "10.0.0.2", "sp-2"), "wired");
	assert_string_equal(who(f, "10.0.0.2", "sp-1"), "");
	assert_string_equal(who(f, "10.0.0.2", "sp-22"), "");
	assert_string_equal(who(f, "10.0.0.2", ""), "");
	assert_string_equal(who(f, "fd00::3", "sp-3"), "six");
	assert_string_equal(who(f, "10.0.0.3", "sp-3"), "");
	assert_string_equal(who(f, "::", ""), "");
}

static void facts__several_addresses_are_one_sandbox(void **state)
{
	struct msg_sandbox msg = sandbox_msg("two", "10.0.0.1", 1);
	struct facts *f = *state;
	struct addr six = addr_of("fd00::1", 0);

	memcpy(msg.addrs[1], six.ip, sizeof(six.ip));
	msg.addr_count = 2;
	facts_put_sandbox(f, &msg);
	assert_string_equal(who(f, "10.0.0.1", ""), "two");
	assert_string_equal(who(f, "fd00::1", ""), "two");

	/* more than there is room for reads nothing behind the array */
	msg.addr_count = UINT32_MAX;
	facts_put_sandbox(f, &msg);
	assert_string_equal(who(f, "fd00::1", ""), "two");
	facts_drop_sandbox(f, SPAN("two"));
	assert_string_equal(who(f, "fd00::1", ""), "");
	assert_int_equal(map_count(&f->by_addr), 0);
}

static void facts__new_addresses_replace_the_old(void **state)
{
	struct facts *f = *state;
	struct addr a = addr_of("10.0.0.1", 0);
	struct sandbox *old;

	put(f, "s", "10.0.0.1", "");
	old = sandbox_ref(facts_find_sandbox(f, &a, ""));
	put(f, "s", "10.0.0.2", "");
	assert_string_equal(who(f, "10.0.0.1", ""), "");
	assert_string_equal(who(f, "10.0.0.2", ""), "s");
	assert_true(old->gone);
	assert_string_equal(old->id, "s"); /* its sessions still read it */
	(void)sandbox_unref(old);
	assert_int_equal(map_count(&f->by_id), 1);
}

static const char *at_device(struct facts *f, const char *ip,
			     const char *device)
{
	const struct addr a = addr_of(ip, 0);
	const struct sandbox *s = facts_find_device(f, &a, device, false);

	return s ? s->id : "";
}

static const char *locked_at(struct facts *f, const char *ip,
			     const char *device)
{
	const struct addr a = addr_of(ip, 0);
	const struct sandbox *s = facts_find_device(f, &a, device, true);

	return s ? s->id : "";
}

/* Whatever source address it claims, it is the one that is plugged in there. */
static void facts__who_is_at_a_device(void **state)
{
	struct msg_sandbox msg = sandbox_msg("port", "10.0.0.5", 1);
	struct facts *f = *state;

	put(f, "any", "10.0.0.1", "");
	put(f, "wired", "10.0.0.2", "sp-2");
	assert_string_equal(at_device(f, "10.0.0.2", "sp-2"), "wired");
	assert_string_equal(at_device(f, "10.0.0.9", "sp-2"), "wired");
	assert_string_equal(at_device(f, "10.0.0.1", "sp-2"), "wired");
	assert_string_equal(at_device(f, "10.0.0.2", "sp-3"), "");
	assert_string_equal(at_device(f, "10.0.0.1", ""), "any");

	/* a port of a bridge stands for itself, not for the bridge */
	(void)snprintf(msg.iface, sizeof(msg.iface), "sp-br");
	(void)snprintf(msg.port, sizeof(msg.port), "p5");
	facts_put_sandbox(f, &msg);
	assert_string_equal(at_device(f, "10.0.0.9", "p5"), "port");
	assert_string_equal(at_device(f, "10.0.0.5", "sp-br"), "");
	/* but where the lock holds its source */
	assert_string_equal(locked_at(f, "10.0.0.5", "sp-br"), "port");
	assert_string_equal(locked_at(f, "10.0.0.9", "sp-br"), "");
	assert_string_equal(locked_at(f, "10.0.0.9", "p5"), "port");
	assert_string_equal(locked_at(f, "10.0.0.5", "sp-2"), "wired");

	/* two at one interface: the source says which; one goes, one stays */
	put(f, "second", "10.0.0.3", "sp-2");
	assert_string_equal(at_device(f, "10.0.0.2", "sp-2"), "wired");
	assert_string_equal(at_device(f, "10.0.0.3", "sp-2"), "second");
	facts_drop_sandbox(f, SPAN("second"));
	assert_string_equal(at_device(f, "10.0.0.9", "sp-2"), "wired");
	facts_drop_sandbox(f, SPAN("wired"));
	assert_string_equal(at_device(f, "10.0.0.9", "sp-2"), "");

	/* moved */
	put(f, "port", "10.0.0.5", "sp-7");
	assert_string_equal(at_device(f, "10.0.0.5", "p5"), "");
	assert_string_equal(at_device(f, "10.0.0.6", "sp-7"), "port");
}

static uint64_t limit(struct facts *f, const char *id, enum quota_kind kind)
{
	const struct sandbox *s = map_find(&f->by_id, span_str(id));

	return quota_limit(s->quota, kind);
}

static void put_policy(struct facts *f, uint32_t id, const char *text)
{
	struct policy *p = world_policy_new(id, text);

	facts_put_policy(f, p);
	(void)policy_unref(p);
	facts_settle(f);
}

static void facts__limits_are_the_policys_or_the_nodes(void **state)
{
	struct facts *f = *state;

	f->limits.of[LIMIT_CONNECTIONS] = 1024;
	f->limits.of[LIMIT_MINTS] = 100;
	put(f, "s", "10.0.0.1", ""); /* under policy 1, which is not here yet */
	assert_int_equal(limit(f, "s", QUOTA_CONNECTIONS), 1024);
	put_policy(f, 1,
		   "policies:\n- name: a\n  limits: {connections: 5,"
		   " bytesPerSecond: 1000, mintsPerSecond: 0}\n");
	assert_int_equal(limit(f, "s", QUOTA_CONNECTIONS), 5);
	assert_int_equal(limit(f, "s", QUOTA_BYTES_IN), 1000);
	assert_int_equal(limit(f, "s", QUOTA_BYTES_OUT), 1000);
	assert_int_equal(limit(f, "s", QUOTA_MINTS), 0);
	assert_int_equal(limit(f, "s", QUOTA_DNS), 0);

	/* a sandbox that comes later, and a policy that changes */
	put(f, "t", "10.0.0.2", "");
	assert_int_equal(limit(f, "t", QUOTA_CONNECTIONS), 5);
	put_policy(f, 1, "policies:\n- name: a\n  limits: {dnsPerSecond: 7}\n");
	assert_int_equal(limit(f, "s", QUOTA_CONNECTIONS), 1024);
	assert_int_equal(limit(f, "t", QUOTA_DNS), 7);
	assert_int_equal(limit(f, "t", QUOTA_MINTS), 100);
	facts_drop_policy(f, 1);
	facts_settle(f);
	assert_int_equal(limit(f, "t", QUOTA_DNS), 0);
}

/* Neither new addresses nor another policy are a new allowance. */
static void facts__what_was_used_stays_used(void **state)
{
	struct facts *f = *state;
	struct quota_state s;
	struct quota *q;

	f->limits.of[LIMIT_DNS] = 2;
	put(f, "s", "10.0.0.1", "");
	q = quotas_find(quotas, SPAN("s"));
	assert_true(quota_take(q, QUOTA_DNS, 1000));
	assert_true(quota_open(q));
	(void)quota_unref(q);

	put(f, "s", "10.0.0.2", "");
	put_policy(f, 1, "policies:\n- name: a\n  limits: {dnsPerSecond: 4}\n");
	q = quotas_find(quotas, SPAN("s"));
	quota_state(q, QUOTA_DNS, 1000, &s);
	assert_int_equal(s.used, 2); /* half a second of it, then and now */
	quota_state(q, QUOTA_CONNECTIONS, 1000, &s);
	assert_int_equal(s.used, 1);
	quota_close(q);
	(void)quota_unref(q);
	facts_drop_sandbox(f, SPAN("s"));
	assert_null(quotas_find(quotas, SPAN("s")));
}

static void facts__a_new_policy_keeps_the_object(void **state)
{
	struct msg_sandbox msg = sandbox_msg("s", "10.0.0.1", 1);
	struct facts *f = *state;
	struct addr a = addr_of("10.0.0.1", 0);
	struct sandbox *s;
	uint64_t version;

	facts_put_sandbox(f, &msg);
	s = facts_find_sandbox(f, &a, "");
	version = f->version;
	msg.policy = 2;
	facts_put_sandbox(f, &msg);
	assert_ptr_equal(facts_find_sandbox(f, &a, ""), s);
	assert_int_equal(s->policy, 2);
	assert_false(s->gone);
	assert_true(f->version > version);
}

static void facts__an_address_has_one_owner(void **state)
{
	struct facts *f = *state;

	put(f, "first", "10.0.0.1", "");
	put(f, "second", "10.0.0.1", "");
	assert_string_equal(who(f, "10.0.0.1", ""), "second");
	facts_drop_sandbox(f, SPAN("first")); /* takes nothing of second's */
	assert_string_equal(who(f, "10.0.0.1", ""), "second");
	facts_drop_sandbox(f, SPAN("second"));
	assert_string_equal(who(f, "10.0.0.1", ""), "");
	facts_drop_sandbox(f, SPAN("second")); /* again: nothing */
}

static void facts__many_come_and_go(void **state)
{
	struct facts *f = *state;
	char id[16], ip[24];
	unsigned i, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++) {
			(void)snprintf(id, sizeof(id), "s%u", i);
			(void)snprintf(ip, sizeof(ip), "10.%u.%u.%u", round,
				       i / 250, i % 250 + 1);
			put(f, id, ip, "");
		}
		assert_int_equal(map_count(&f->by_id), MANY);
		assert_int_equal(map_count(&f->by_addr), MANY);
	}
	for (i = 0; i < MANY; i++) {
		(void)snprintf(id, sizeof(id), "s%u", i);
		facts_drop_sandbox(f, span_str(id));
	}
	assert_int_equal(map_count(&f->by_addr), 0);
}

/* -- policies ---------------------------------------------------------------
 */

static struct span policy_name(const struct facts *f, uint32_t id)
{
	struct sandbox s = { .policy = id };
	const struct snapshot *p = facts_policy(f, &s);

	return p ? p->name : SPAN("");
}

static bool give_policy(struct facts *f, uint32_t id, const char *text)
{
	struct policy *p = world_policy_new(id, text);
	bool matters = facts_put_policy(f, p);

	(void)policy_unref(p);
	return matters;
}

/* Only a policy that a sandbox is under has anything looked at again. */
static void facts__know_which_policies_matter(void **state)
{
	struct facts *f = *state;

	assert_false(give_policy(f, 1, allow_a));
	assert_false(give_policy(f, 2, allow_a));
	put(f, "s", "10.0.0.1", ""); /* under policy 1 */
	assert_false(give_policy(f, 2, allow_b));
	assert_false(facts_drop_policy(f, 2));
	assert_true(give_policy(f, 1, allow_b));
	facts_settle(f);
	assert_true(facts_drop_policy(f, 1));
	assert_true(give_policy(f, 2, allow_b)); /* not settled yet */
	facts_settle(f);
	assert_true(give_policy(f, 0, deny_a));
	facts_settle(f);
	facts_drop_sandbox(f, SPAN("s"));
	assert_false(give_policy(f, 1, allow_a));
	assert_true(facts_drop_policy(f, 0));
}

static void facts__policies_are_found_by_id(void **state)
{
	struct facts *f = *state;

	assert_false(give_policy(f, 1, allow_a));
	assert_false(give_policy(f, 256, allow_b));
	assert_span(policy_name(f, 1), "a");
	assert_span(policy_name(f, 256), "b");
	assert_span(policy_name(f, 2), "");
	assert_null(facts_overlay(f));
	give_policy(f, 0, deny_a);
	assert_non_null(facts_overlay(f));
	assert_span(policy_name(f, 0), "");
	facts_drop_policy(f, 0);
	assert_null(facts_overlay(f));
	facts_drop_policy(f, 1);
	facts_drop_policy(f, 1);
	assert_span(policy_name(f, 1), "");
}

static void facts__a_replaced_policy_lives_while_referenced(void **state)
{
	struct facts *f = *state;
	struct policy *p = world_policy_new(1, allow_a);

	facts_put_policy(f, p);
	give_policy(f, 1, allow_b);
	assert_span(policy_name(f, 1), "b");
	assert_span(p->snapshot.name, "a");
	(void)policy_unref(p);

	/* put once more: one reference each time */
	p = world_policy_new(1, allow_a);
	facts_put_policy(f, p);
	facts_put_policy(f, p);
	facts_drop_policy(f, 1);
	assert_span(p->snapshot.name, "a");
	(void)policy_unref(p);
}

/* Over the size that is copied: it stays mapped. */
static void facts__a_large_policy_is_mapped(void **state)
{
	CLEANUP(buf_fini) struct buf text = BUF_INIT(1024 * 1024);
	struct facts *f = *state;
	struct policy *p;
	unsigned i;

	must(!buf_put_str(&text, "policies:\n- name: large\n  egress:\n"));
	for (i = 0; i < RULES_MANY; i++)
		must(!buf_putf(&text,
			       "  - {action: allow, target: h%u.example}\n",
			       i));
	must(!buf_put(&text, span_of("", 1)));
	p = world_policy_new(3, buf_peek(&text).ptr);
	assert_true(policy_is_mapped(p));
	facts_put_policy(f, p);
	(void)policy_unref(p);
	assert_span(policy_name(f, 3), "large");
}

static void policy__refuses_what_is_none(void **state)
{
	static const char bytes[] = "this is no compiled policy, surely not it";
	struct policy_bodies *all = policy_bodies_new();
	struct msg_policy msg = { .policy = 1, .size = sizeof(bytes) };
	int fd = chan_memfd(span_of(bytes, sizeof(bytes)));
	struct policy *p;

	(void)state;
	assert_true(policy_new(all, &msg, fd, &p) < 0);
	msg.size = 1024 * 1024; /* more than is there */
	assert_true(policy_new(all, &msg, fd, &p) < 0);
	msg.size = 0;
	assert_true(policy_new(all, &msg, fd, &p) < 0);
	assert_true(policy_new(all, &msg, -1, &p) < 0);
	(void)fd_close(fd);
	policy_bodies_free(all);
}

/* What they are called is no part of what they say. */
static void policy__those_that_say_the_same_share_it(void **state)
{
	static const char text[] = "policies:\n- name: %s\n  egress:\n"
				   "  - {action: allow, target: %s.example}\n";
	struct policy_bodies *all = policy_bodies_new();
	struct policy *p[3];
	char of[3][256];

	(void)state;
	snprintf(of[0], sizeof(of[0]), text, "one", "a");
	snprintf(of[1], sizeof(of[1]), text, "two", "a");
	snprintf(of[2], sizeof(of[2]), text, "three", "b");
	p[0] = world_policy_at(all, 1, of[0]);
	p[1] = world_policy_at(all, 2, of[1]);
	p[2] = world_policy_at(all, 3, of[2]);
	assert_ptr_equal(p[0]->body, p[1]->body);
	assert_ptr_not_equal(p[0]->body, p[2]->body);
	assert_span(p[0]->snapshot.name, "one");
	assert_span(p[1]->snapshot.name, "two");
	assert_ptr_equal(p[0]->snapshot.head, p[1]->snapshot.head);

	(void)policy_unref(p[0]);
	p[0] = world_policy_at(all, 4, of[0]);
	assert_ptr_equal(p[0]->body, p[1]->body);
	(void)policy_unref(p[0]);
	(void)policy_unref(p[1]);
	p[1] = world_policy_at(all, 2, of[1]); /* once more from nothing */
	policy_bodies_free(all);	       /* before its last policies */
	assert_int_equal(snapshot_rule_count(&p[1]->snapshot), 1);
	(void)policy_unref(p[1]);
	(void)policy_unref(p[2]);
}

/* -- what the node knows ----------------------------------------------------
 */

static void facts__own_addresses(void **state)
{
	struct facts *f = *state;
	struct own_addresses *own =
		must_alloc(sizeof(*own) + 2 * sizeof(own->items[0]));
	struct addr a = addr_of("192.0.2.7", 0), b = addr_of("2001:db8::7", 0);
	struct addr c = addr_of("192.0.2.8", 0);

	assert_false(facts_is_own(f, &a));
	own->refs = 1;
	own->count = 2;
	must(cidr_parse(SPAN("192.0.2.7/32"), &own->items[0]));
	must(cidr_parse(SPAN("2001:db8::/64"), &own->items[1]));
	facts_put_own(f, own);
	assert_true(facts_is_own(f, &a));
	assert_true(facts_is_own(f, &b));
	assert_false(facts_is_own(f, &c));
	facts_put_own(f, own); /* the same again */
	(void)own_unref(own);
	assert_true(facts_is_own(f, &a));
}

static void facts__every_change_moves_the_version(void **state)
{
	struct facts *f = *state;
	struct names *n = names_new();
	uint64_t version = f->version;

	put(f, "s", "10.0.0.1", "");
	assert_true(f->version > version);
	version = f->version;
	facts_drop_sandbox(f, SPAN("s"));
	assert_true(f->version > version);
	version = f->version;
	give_policy(f, 1, allow_a);
	assert_true(f->version > version);
	version = f->version;
	facts_drop_policy(f, 1);
	assert_true(f->version > version);
	version = f->version;
	facts_put_names(f, n);
	assert_true(f->version > version);
	(void)names_unref(n);
}

/* -- authorities against destinations ---------------------------------------
 */

static void destination__compares_authorities(void **state)
{
	static const struct {
		const char *host, *original;
		uint16_t port;
		const char *authority;
		bool agrees;
	} rows[] = {
		{ "a.example", "192.0.2.1", 443, "a.example", true },
		{ "a.example", "192.0.2.1", 443, "A.EXAMPLE.", true },
		{ "a.example", "192.0.2.1", 443, "a.example:443", true },
		{ "a.example", "192.0.2.1", 443, "a.example:80", false },
		{ "a.example", "192.0.2.1", 443, "a.example:8443", false },
		{ "a.example", "192.0.2.1", 8443, "a.example:8443", true },
		{ "a.example", "192.0.2.1", 8443, "a.example", true },
		{ "a.example", "192.0.2.1", 443, "b.example", false },
		{ "a.example", "192.0.2.1", 443, "x.a.example", false },
		{ "a.example", "192.0.2.1", 443, "a.example.b", false },
		{ "a.example", "192.0.2.1", 443, "example", false },
		/* the address of a named connection is not its authority */
		{ "a.example", "192.0.2.1", 443, "192.0.2.1", false },
		{ "a.example", "192.0.2.1", 443, "192.0.2.1:443", false },
		{ NULL, "192.0.2.1", 443, "192.0.2.1", true },
		{ NULL, "192.0.2.1", 443, "192.0.2.1:443", true },
		{ NULL, "192.0.2.1", 443, "192.0.2.1:444", false },
		{ NULL, "192.0.2.1", 443, "192.0.2.2", false },
		{ NULL, "192.0.2.1", 443, "[::ffff:192.0.2.1]", true },
		{ NULL, "192.0.2.1", 443, "a.example", false },
		{ NULL, "2001:db8::1", 443, "[2001:db8:0::1]", true },
		{ NULL, "2001:db8::1", 443, "[2001:db8::1]:443", true },
		{ NULL, "2001:db8::1", 443, "[2001:db8::2]", false },
	};
	struct destination d;
	struct authority a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		d = destination_of(SCHEME_HTTPS, rows[i].host,
				   addr_of(rows[i].original, rows[i].port));
		assert_true(
			authority_parse(span_str(rows[i].authority), 443, &a));
		if (destination_is_authority(&d, &a) != rows[i].agrees)
			fail_msg("row %zu: %s", i, rows[i].authority);
	}
}

static void destination__schemes_have_names(void **state)
{
	(void)state;
	assert_string_equal(scheme_name(SCHEME_HTTP), "http");
	assert_string_equal(scheme_name(SCHEME_HTTPS), "https");
	assert_string_equal(scheme_name(SCHEME_TCP), "tcp");
	assert_int_equal(scheme_port(SCHEME_HTTP), 80);
	assert_int_equal(scheme_port(SCHEME_HTTPS), 443);
	assert_int_equal(scheme_port(SCHEME_TCP), 0);
}

#define FACTS_TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		FACTS_TEST(facts__identity_is_address_and_interface),
		FACTS_TEST(facts__several_addresses_are_one_sandbox),
		FACTS_TEST(facts__new_addresses_replace_the_old),
		FACTS_TEST(facts__who_is_at_a_device),
		FACTS_TEST(facts__a_new_policy_keeps_the_object),
		FACTS_TEST(facts__an_address_has_one_owner),
		FACTS_TEST(facts__many_come_and_go),
		FACTS_TEST(facts__policies_are_found_by_id),
		FACTS_TEST(facts__know_which_policies_matter),
		FACTS_TEST(facts__a_replaced_policy_lives_while_referenced),
		FACTS_TEST(facts__a_large_policy_is_mapped),
		cmocka_unit_test(policy__refuses_what_is_none),
		cmocka_unit_test(policy__those_that_say_the_same_share_it),
		FACTS_TEST(facts__own_addresses),
		FACTS_TEST(facts__limits_are_the_policys_or_the_nodes),
		FACTS_TEST(facts__what_was_used_stays_used),
		FACTS_TEST(facts__every_change_moves_the_version),
		cmocka_unit_test(destination__compares_authorities),
		cmocka_unit_test(destination__schemes_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
