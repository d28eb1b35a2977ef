/* SPDX-License-Identifier: Apache-2.0 */
/* test_denied.c - what control is told of denied names, and how much of it */

#include "tests/unit/gateway/roles.h"

#include "gateway/audit/audit.h"
#include "gateway/audit/denied.h"

enum { QUIET_MS = 1000 };

static struct audit record(struct span host)
{
	return (struct audit){
		.kind = AUDIT_DNS,
		.reason = AUDIT_REASON_POLICY,
		.sandbox = SPAN("s-1"),
		.host = host,
		.port = 53,
		.detail = SPAN("denied by rule 1"),
	};
}

/* How many messages control got of it since the last time. */
static unsigned told(struct roles *r, struct msg_denied *last)
{
	unsigned count = 0;

	world_settle(r->world);
	while (is_said(r, r->control)) {
		*last = *(const struct msg_denied *)hear(
			r, r->control, MSG_GATEWAY_DENIED, NULL, NULL);
		count++;
	}
	return count;
}

static void denied__what_is_told(void **state)
{
	struct roles *r = *state;
	struct denied *d = denied_new(&r->world->gateway, QUIET_MS);
	struct audit a = record(SPAN("evil.example"));
	struct msg_denied m = { 0 };

	denied_look(d, &a, 5000);
	assert_int_equal(told(r, &m), 1);
	assert_string_equal(m.id, "s-1");
	assert_string_equal(m.host, "evil.example");
	assert_string_equal(m.kind, "dns");
	assert_string_equal(m.text, "denied by rule 1");
	assert_int_equal(m.port, 53);
	/* of another kind, but the same name: quiet for a while */
	a.kind = AUDIT_HTTP;
	denied_look(d, &a, 5999);
	assert_int_equal(told(r, &m), 0);
	a.sandbox = SPAN("s-2");
	denied_look(d, &a, 5999);
	assert_int_equal(told(r, &m), 1);
	assert_string_equal(m.kind, "http");
	a.sandbox = SPAN("s-1");
	denied_look(d, &a, 6000);
	assert_int_equal(told(r, &m), 1);
	denied_free(d);
}

static void denied__what_is_not(void **state)
{
	struct roles *r = *state;
	struct denied *d = denied_new(&r->world->gateway, QUIET_MS);
	struct audit rows[6];
	struct msg_denied m;
	char text[2 * MSG_TEXT_SIZE];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		rows[i] = record(SPAN("x.example"));
	rows[0].allowed = true;
	rows[1].reason = AUDIT_REASON_NO_NAME;
	rows[2].host = SPAN_NONE;
	rows[3].host_learned = true;
	rows[4].sandbox = SPAN_NONE;
	memset(text, 'x', sizeof(text));
	rows[5].host = span_of(text, MSG_NAME_SIZE); /* no name is so long */
	for (i = 0; i < ARRAY_LEN(rows); i++)
		denied_look(d, &rows[i], 5000);
	assert_int_equal(told(r, &m), 0);
	/* a long reason is cut */
	rows[0] = record(SPAN("x.example"));
	rows[0].detail = span_of(text, sizeof(text));
	denied_look(d, &rows[0], 5000);
	assert_int_equal(told(r, &m), 1);
	assert_int_equal(strlen(m.text), MSG_TEXT_SIZE - 1);
	denied_free(d);
}

/* However many names a sandbox makes up. */
static void denied__has_a_rate(void **state)
{
	struct roles *r = *state;
	struct denied *d = denied_new(&r->world->gateway, QUIET_MS);
	struct msg_denied m;
	unsigned i, count = 0;
	struct audit a;
	char name[32];
	int len;

	for (i = 0; i < 3000; i++) {
		len = snprintf(name, sizeof(name), "n%u.example", i);
		a = record(span_of(name, (size_t)len));
		denied_look(d, &a, 5000 + i); /* in three seconds */
		if (i % 50 == 49)
			count += told(r, &m);
	}
	assert_in_range(count, DENIED_AT_ONCE + 2 * DENIED_PER_SECOND,
			DENIED_AT_ONCE + 3 * DENIED_PER_SECOND + 1);
	denied_free(d);
}

#define ROLES_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, roles_set_up, roles_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROLES_TEST(denied__what_is_told),
		ROLES_TEST(denied__what_is_not),
		ROLES_TEST(denied__has_a_rate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
