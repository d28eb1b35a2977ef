/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow_desk.c - flows of UDP and ICMP: decisions, reviews, barriers */

#include "tests/unit/gateway/roles.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gateway/flow/flow_decide.h"
#include "gateway/flow/flow_desk.h"
#include "gateway/registry/learned.h"
#include "gateway/registry/quota.h"

#define RULES(list) "policies:\n- name: a\n  egress:\n" list
#define RULE(text)  "  - {" text "}\n"

static const char V4[] = "10.9.0.2", V6[] = "fd00:9::2";

struct desk {
	struct roles *roles;
	struct world *world;
	int queue; /* the queue role's end, or -1 */
};

static void attach(struct desk *d)
{
	int fds[2];

	must(!chan_pair(fds));
	flow_desk_attach(d->world->worker.flows, fds[0]);
	d->queue = fds[1];
}

static int set_up(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct msg_sandbox msg;
	void *roles;

	(void)roles_set_up(&roles);
	d->roles = roles;
	d->world = d->roles->world;
	d->queue = -1;
	d->world->gateway.started = true;
	msg = sandbox_msg("s", V4, 1);
	msg.addr_count = 2;
	must(inet_pton(AF_INET6, V6, msg.addrs[1]) == 1);
	facts_put_sandbox(&d->world->worker.facts, &msg);
	*state = d;
	return 0;
}

static int tear_down(void **state)
{
	struct desk *d = *state;
	void *roles = d->roles;

	(void)roles_tear_down(&roles);
	(void)fd_close(d->queue);
	free(d);
	return 0;
}

static struct msg_flow flow_of(const char *to, uint16_t port, uint8_t protocol)
{
	struct addr destination = addr_of(to, port);
	struct addr client = addr_of(addr_is_v4(&destination) ? V4 : V6, 0);
	struct msg_flow flow = {
		.client_port = port ? 40000 : 0,
		.port = port,
		.protocol = protocol,
	};

	memcpy(flow.client, client.ip, 16);
	memcpy(flow.destination, destination.ip, 16);
	return flow;
}

static struct msg_flow echo_of(const char *to)
{
	struct msg_flow flow = flow_of(to, 0, IPPROTO_ICMP);
	struct addr destination = addr_of(to, 0);

	flow.icmp_type = ICMP_ECHO;
	if (!addr_is_v4(&destination)) {
		flow.protocol = IPPROTO_ICMPV6;
		flow.icmp_type = ICMP6_ECHO_REQUEST;
	}
	return flow;
}

static void expect(struct desk *d, const struct msg_flow *flow,
		   enum flow_verdict verdict, enum audit_reason reason,
		   const char *host)
{
	struct flow_decision decision;

	flow_decide(&d->world->worker, flow, &decision);
	assert_int_equal(decision.verdict, verdict);
	assert_int_equal(decision.reason, reason);
	assert_string_equal(decision.host.text, host);
}

static void expect_udp(struct desk *d, const char *to, uint16_t port,
		       enum flow_verdict verdict, enum audit_reason reason)
{
	const struct msg_flow flow = flow_of(to, port, IPPROTO_UDP);

	expect(d, &flow, verdict, reason, "");
}

static void learn(struct desk *d, const char *host, const char *ip)
{
	struct addr a = addr_of(ip, 0);

	learned_add(d->world->gateway.learned, SPAN("s"), span_str(host), &a,
		    60, loop_now_ms(d->world->worker.loop));
}

/* -- decisions ----------------------------------------------------------- */

static void decide__by_address(void **state)
{
	struct desk *d = *state;
	struct msg_flow flow;

	world_policy(
		d->world, 1,
		RULES(RULE(
			"action: allow, target: 8.8.0.0/16, protocol: "
			"udp, ports: [7000]") RULE("action: allow, target: "
						   "2a00::/16, protocol: icmp")
			      RULE("action: allow, target: 9.9.0.0/16")));
	expect_udp(d, "8.8.1.1", 7000, FLOW_ALLOW, AUDIT_REASON_NONE);
	expect_udp(d, "8.8.1.1", 7001, FLOW_REJECT, AUDIT_REASON_POLICY);
	expect_udp(d, "8.9.1.1", 7000, FLOW_REJECT, AUDIT_REASON_POLICY);
	expect_udp(d, "9.9.1.1", 7000, FLOW_REJECT, AUDIT_REASON_POLICY);
	flow = echo_of("2a00::1");
	expect(d, &flow, FLOW_ALLOW, AUDIT_REASON_NONE, "");
	flow = echo_of("8.8.1.1");
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_POLICY, "");
}

static void decide__who_is_nobody(void **state)
{
	struct desk *d = *state;
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);

	world_policy(d->world, 1,
		     "policies: [{name: a, defaultAction: allow}]");
	flow.client[15]++;
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_UNKNOWN_SANDBOX, "");
}

/* Of ICMP echo requests only; and of protocols what the role may ask about. */
static void decide__what_is_no_flow(void **state)
{
	struct desk *d = *state;
	struct flow_decision decision;
	struct msg_flow flow;
	unsigned i;

	world_policy(d->world, 1,
		     "policies: [{name: a, defaultAction: allow}]");
	for (i = 0; i < 256; i++) {
		flow = flow_of("8.8.1.1", 0, (uint8_t)i);
		flow.icmp_type = i == IPPROTO_ICMP ? ICMP_TIMESTAMP : ICMP_ECHO;
		if (i == IPPROTO_UDP)
			continue;
		flow_decide(&d->world->worker, &flow, &decision);
		assert_int_equal(decision.verdict, FLOW_DROP);
		assert_int_equal(decision.reason, AUDIT_REASON_PROTOCOL);
		assert_false(decision.quiet);
	}
	flow = echo_of("8.8.1.1");
	flow.icmp_code = 1;
	flow_decide(&d->world->worker, &flow, &decision);
	assert_int_equal(decision.verdict, FLOW_DROP);
}

static void decide__addresses_are_guarded(void **state)
{
	struct names *names = names_new();
	struct desk *d = *state;

	world_own(d->world, "7.7.7.0/24");
	name_add(names, NAME_PIN, "pin.test", "10.1.1.1");
	name_add(names, NAME_HOSTS, "hosts.test", "10.1.1.2");
	world_names(d->world, names);
	world_policy(d->world, 1,
		     "policies: [{name: a, defaultAction: allow}]");
	expect_udp(d, "8.8.1.1", 7000, FLOW_ALLOW, AUDIT_REASON_NONE);
	expect_udp(d, "7.7.7.7", 7000, FLOW_REJECT, AUDIT_REASON_ADDRESS);
	expect_udp(d, "10.1.1.1", 7000, FLOW_REJECT, AUDIT_REASON_ADDRESS);
	expect_udp(d, "169.254.169.254", 80, FLOW_REJECT, AUDIT_REASON_ADDRESS);
	expect_udp(d, "127.0.0.1", 80, FLOW_REJECT, AUDIT_REASON_ADDRESS);
	expect_udp(d, "64:ff9b::a01:101", 80, FLOW_REJECT,
		   AUDIT_REASON_ADDRESS);

	/* a pin leads there for those whom our DNS told so */
	learn(d, "pin.test", "10.1.1.1");
	learn(d, "hosts.test", "10.1.1.2");
	{
		const struct msg_flow flow =
			flow_of("10.1.1.1", 7000, IPPROTO_UDP);

		expect(d, &flow, FLOW_ALLOW, AUDIT_REASON_NONE, "pin.test");
	}
	expect_udp(d, "10.1.1.2", 7000, FLOW_REJECT, AUDIT_REASON_ADDRESS);

	/* so does a rule that names it, of that protocol */
	world_policy(d->world, 1,
		     RULES(RULE("action: allow, target: 10.1.0.0/16, "
				"protocol: udp") RULE("action: allow, target: "
						      "7.7.7.7, protocol: "
						      "udp")));
	expect_udp(d, "10.1.9.9", 7000, FLOW_ALLOW, AUDIT_REASON_NONE);
	expect_udp(d, "7.7.7.7", 7000, FLOW_REJECT, AUDIT_REASON_ADDRESS);
}

static void decide__by_learned_names(void **state)
{
	struct desk *d = *state;
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);

	world_policy(
		d->world, 1,
		RULES(RULE("action: allow, target: yes.test, protocol: udp")
			      RULE("action: deny, target: no.test")
				      RULE("action: allow, target: tcp.test")));
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_POLICY, "");
	learn(d, "tcp.test", "8.8.1.1");
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_POLICY, "");
	learn(d, "no.test", "8.8.1.1");
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_POLICY, "no.test");
	learn(d, "yes.test", "8.8.1.1"); /* one that allows is enough */
	expect(d, &flow, FLOW_ALLOW, AUDIT_REASON_NONE, "yes.test");
	expect_udp(d, "8.8.1.2", 7000, FLOW_REJECT, AUDIT_REASON_POLICY);
}

/* A name that a rule denies is not reached by a default that allows. */
static void decide__a_denied_name_stays_denied(void **state)
{
	struct desk *d = *state;
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);

	world_policy(d->world, 1,
		     "policies:\n- name: a\n  defaultAction: allow\n"
		     "  egress: [{action: deny, target: no.test}]\n");
	learn(d, "no.test", "8.8.1.1");
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_POLICY, "no.test");
	learn(d, "other.test", "8.8.1.1"); /* they share the address */
	expect(d, &flow, FLOW_ALLOW, AUDIT_REASON_NONE, "other.test");
}

static void decide__new_flows_are_limited(void **state)
{
	struct desk *d = *state;
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);
	struct quota *quota =
		quotas_find(d->world->worker.facts.quotas, SPAN("s"));
	unsigned i, allowed = 0;

	world_policy(d->world, 1,
		     "policies: [{name: a, defaultAction: allow}]");
	quota_set_limit(quota, QUOTA_CONNECTS, 5);
	for (i = 0; i < 50; i++) {
		struct flow_decision decision;

		flow_decide(&d->world->worker, &flow, &decision);
		allowed += decision.verdict == FLOW_ALLOW;
	}
	assert_in_range(allowed, 1, 10);
	expect(d, &flow, FLOW_REJECT, AUDIT_REASON_LIMIT, "");
	flow.again = 1; /* what lives is not new */
	expect(d, &flow, FLOW_ALLOW, AUDIT_REASON_NONE, "");
	(void)quota_unref(quota);
}

/* -- the channel ----------------------------------------------------------- */

static void ask(struct desk *d, uint32_t serial, const struct msg_flow *flow)
{
	say(d->queue, MSG_QUEUE_FLOW, serial, flow, SPAN_NONE);
}

static void hear_verdict(struct desk *d, uint32_t serial,
			 enum flow_verdict verdict)
{
	const struct msg_flow_verdict *body;
	uint32_t found;

	body = hear(d->roles, d->queue, MSG_GATEWAY_FLOW, &found, NULL);
	assert_int_equal(found, serial);
	assert_int_equal(body->verdict, verdict);
}

static uint32_t hear_review(struct desk *d)
{
	uint32_t serial;

	(void)hear(d->roles, d->queue, MSG_GATEWAY_REVIEW, &serial, NULL);
	assert_int_not_equal(serial, 0);
	return serial;
}

static void say_reviewed(struct desk *d, uint32_t serial, int status)
{
	say_result(d->queue, MSG_QUEUE_REVIEWED, serial, status, SPAN_NONE);
}

/* A gateway that knows nothing yet lets questions wait, and cuts nothing. */
static void desk__early_questions_wait(void **state)
{
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);
	struct desk *d = *state;

	attach(d);
	ask(d, 1, &flow);
	flow.port = 443;
	ask(d, 2, &flow);
	assert_false(is_said(d->roles, d->queue));
	world_policy(d->world, 1,
		     "policies: [{name: a, defaultAction: allow}]");
	say_sync(d->roles, 7);
	hear_verdict(d, 1, FLOW_ALLOW);
	hear_verdict(d, 2, FLOW_REJECT);
	hear_synced(d->roles, 7);
}

static void change(struct desk *d)
{
	world_policy(d->world, 1, "policies: [{name: a}]");
	d->world->worker.facts_dirty = true;
}

/* A barrier is answered when live flows were asked about again. */
static void desk__barrier_waits_for_review(void **state)
{
	struct desk *d = *state;
	uint32_t serial;

	attach(d);
	change(d);
	say_sync(d->roles, 7);
	serial = hear_review(d);
	assert_false(is_said(d->roles, d->roles->control));
	say_reviewed(d, serial, 0);
	hear_synced(d->roles, 7);
	/* nothing changed: nothing to review */
	say_sync(d->roles, 8);
	hear_synced(d->roles, 8);
	assert_false(is_said(d->roles, d->queue));
}

/* What changes while a review runs needs another one. */
static void desk__change_during_a_review(void **state)
{
	struct desk *d = *state;
	uint32_t serial;

	attach(d);
	change(d);
	say_sync(d->roles, 7);
	serial = hear_review(d);
	change(d);
	say_sync(d->roles, 8);
	assert_false(is_said(d->roles, d->queue)); /* one at a time */
	say_reviewed(d, serial, 0);
	hear_synced(d->roles, 7);
	assert_false(is_said(d->roles, d->roles->control));
	say_reviewed(d, hear_review(d), 0);
	hear_synced(d->roles, 8);
}

static void desk__failed_review_is_tried_again(void **state)
{
	struct desk *d = *state;
	uint64_t end_ms = clock_ms() + 5000;

	attach(d);
	change(d);
	say_sync(d->roles, 7);
	say_reviewed(d, hear_review(d), EIO);
	assert_false(is_said(d->roles, d->roles->control));
	while (!is_said(d->roles, d->queue) && clock_ms() < end_ms)
		(void)usleep(10 * 1000);
	say_reviewed(d, hear_review(d), 0);
	hear_synced(d->roles, 7);
}

/* No queue role, no answer; one that comes is asked for the review first. */
static void desk__barrier_waits_for_the_role(void **state)
{
	struct desk *d = *state;

	change(d);
	say_sync(d->roles, 7);
	assert_false(is_said(d->roles, d->roles->control));
	attach(d);
	(void)hear_review(d);
	d->queue = fd_close(d->queue); /* it dies in the middle */
	world_settle(d->world);
	assert_false(is_said(d->roles, d->roles->control));
	attach(d);
	say_reviewed(d, hear_review(d), 0);
	hear_synced(d->roles, 7);
}

/* Before there can be a queue role nobody waits for one. */
static void desk__start_waits_for_nobody(void **state)
{
	struct desk *d = *state;

	d->world->gateway.started = false;
	change(d);
	say_sync(d->roles, 7);
	hear_synced(d->roles, 7);
	attach(d);
	(void)hear_review(d); /* but what was before is looked at */
}

static void desk__accuses(void **state)
{
	const struct msg_none none = { 0 };
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);
	struct desk *d = *state;

	attach(d);
	say(d->queue, MSG_ROLE_READY, 0, &none, SPAN_NONE);
	hear_accused(d->roles, ROLE_QUEUE);
	(void)fd_close(d->queue);
	attach(d);
	say_reviewed(d, 77, 0); /* nobody asked for it */
	hear_accused(d->roles, ROLE_QUEUE);
	(void)fd_close(d->queue);
	attach(d);
	ask(d, 0, &flow);
	hear_accused(d->roles, ROLE_QUEUE);
	(void)fd_close(d->queue);
	attach(d);
	say(d->queue, MSG_QUEUE_FLOW, 1, &flow, SPAN("tail"));
	hear_accused(d->roles, ROLE_QUEUE);
}

static void desk__counters_are_told(void **state)
{
	const struct msg_queue_counters counters = { .packets = 5, .cut = 2 };
	struct desk *d = *state;

	attach(d);
	say(d->queue, MSG_QUEUE_COUNTERS, 0, &counters, SPAN_NONE);
	world_settle(d->world);
	assert_int_equal(flow_desk_counters(d->world->worker.flows)->cut, 2);
}

/* A packet costs its sender too little to fill a disk with. */
static void desk__records_are_bounded(void **state)
{
	struct msg_flow flow = flow_of("8.8.1.1", 7000, IPPROTO_UDP);
	int audit = memfd_create("audit", MFD_CLOEXEC);
	struct desk *d = *state;
	static char text[1 << 20];
	unsigned i, lines = 0;
	uint64_t left_out;
	ssize_t n;

	audit_log_set_fd(d->world->worker.audit_log, audit);
	attach(d);
	change(d);
	say_sync(d->roles, 7);
	say_reviewed(d, hear_review(d), 0);
	for (i = 1; i <= 400; i++) {
		ask(d, i, &flow);
		hear_verdict(d, i, FLOW_REJECT);
	}
	world_settle(d->world);
	n = pread(audit, text, sizeof(text), 0);
	for (i = 0; i < n; i++)
		lines += text[i] == '\n';
	left_out = d->world->worker.counters[COUNTER_flows_unrecorded];
	assert_int_equal(lines + left_out, 400);
	assert_in_range(lines, 50, 200);
	assert_non_null(strstr(text, "\"kind\":\"flow\",\"sandbox\":\"s\","
				     "\"client\":\"10.9.0.2:40000\","
				     "\"original\":\"8.8.1.1:7000\","
				     "\"scheme\":\"udp\""));
	audit_log_set_fd(d->world->worker.audit_log, -1);
	(void)fd_close(audit);
}

static struct msg_drop drop_of(enum drop_reason reason, const char *from,
			       const char *to)
{
	struct msg_drop m = {
		.count = 1,
		.reason = reason,
		.ethertype = 0x0800,
		.protocol = 47,
	};
	struct addr a = addr_of(from, 0);

	memcpy(m.source, a.ip, sizeof(m.source));
	a = addr_of(to, 0);
	memcpy(m.destination, a.ip, sizeof(m.destination));
	return m;
}

static const char *audited(int audit)
{
	static char text[1 << 16];
	ssize_t n = pread(audit, text, sizeof(text) - 1, 0);

	text[MAX(n, 0)] = '\0';
	(void)!ftruncate(audit, 0);
	(void)lseek(audit, 0, SEEK_SET);
	return text;
}

/* What the kernel dropped is in the records, and one kind hides no other. */
static void desk__dropped_packets_are_recorded(void **state)
{
	struct msg_drop m = drop_of(DROP_PROTOCOL, "10.9.0.2", "8.8.1.1");
	int audit = memfd_create("audit", MFD_CLOEXEC);
	struct msg_drops sums = { .of = { [DROP_MAC] = 7 }, .told = 1 };
	struct desk *d = *state;
	struct worker *w = &d->world->worker;
	const char *text;
	unsigned i;

	audit_log_set_fd(w->audit_log, audit);
	attach(d);
	say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	m = (struct msg_drop){ .reason = DROP_QUEUE_FULL, .count = 40 };
	say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	say(d->queue, MSG_QUEUE_DROPS, 0, &sums, SPAN_NONE);
	world_settle(d->world);
	text = audited(audit);
	assert_non_null(strstr(text, "\"kind\":\"packet\","
				     "\"client\":\"10.9.0.2\","
				     "\"original\":\"8.8.1.1\","
				     "\"scheme\":\"ip\",\"protocol\":47,"
				     "\"verdict\":\"deny\","
				     "\"reason\":\"protocol\""));
	assert_non_null(strstr(text, "\"kind\":\"packet\","
				     "\"verdict\":\"deny\","
				     "\"reason\":\"queue_full\""));
	assert_non_null(strstr(text, "\"alike\":40"));
	assert_int_equal(flow_desk_drops(w->flows)->of[DROP_MAC], 7);

	m = drop_of(DROP_PROTOCOL, "10.9.0.2", "8.8.1.1");
	for (i = 0; i < 300; i++)
		say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	m.reason = DROP_FRAGMENT;
	say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	m.reason = DROP_FRAME;
	m.ethertype = 0x8847;
	memset(m.source, 0, sizeof(m.source));
	memset(m.destination, 0, sizeof(m.destination));
	say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	world_settle(d->world);
	text = audited(audit);
	assert_in_range(w->counters[COUNTER_flows_unrecorded], 100, 280);
	assert_non_null(strstr(text, "\"reason\":\"fragment\""));
	assert_non_null(strstr(text, "\"kind\":\"packet\","
				     "\"scheme\":\"frame\","
				     "\"verdict\":\"deny\","
				     "\"reason\":\"frame\""));

	/* no such reason */
	m.reason = DROP_NUM;
	say(d->queue, MSG_QUEUE_DROP, 0, &m, SPAN_NONE);
	hear_accused(d->roles, ROLE_QUEUE);
	audit_log_set_fd(w->audit_log, -1);
	(void)fd_close(audit);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(decide__by_address),
		TEST(decide__who_is_nobody),
		TEST(decide__what_is_no_flow),
		TEST(decide__addresses_are_guarded),
		TEST(decide__by_learned_names),
		TEST(decide__a_denied_name_stays_denied),
		TEST(decide__new_flows_are_limited),
		TEST(desk__early_questions_wait),
		TEST(desk__barrier_waits_for_review),
		TEST(desk__change_during_a_review),
		TEST(desk__failed_review_is_tried_again),
		TEST(desk__barrier_waits_for_the_role),
		TEST(desk__start_waits_for_nobody),
		TEST(desk__accuses),
		TEST(desk__counters_are_told),
		TEST(desk__records_are_bounded),
		TEST(desk__dropped_packets_are_recorded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
