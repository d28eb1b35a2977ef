/* SPDX-License-Identifier: Apache-2.0 */
/* test_lock_set.c - elements enter with their first owner and leave with the
 * last
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/base/addr.h"
#include "src/role/lock_set.h"
#include "src/role/nfnl.h"

static struct msg_lock lock_of(const char *id, const char *iface,
			       const char *port, const char *ip)
{
	struct msg_lock m = { .addr_count = 1 };
	struct addr a;

	strcpy(m.id, id);
	strcpy(m.iface, iface);
	strcpy(m.port, port);
	assert_true(addr_parse(span_str(ip), &a));
	memcpy(m.addrs[0], a.ip, sizeof(a.ip));
	return m;
}

/* Messages that a change puts into a transaction. */
static unsigned changed(struct lock_set *s, const struct msg_lock *m, bool add)
{
	struct nfnl n;
	unsigned count;

	nfnl_init(&n);
	lock_set_own(s, &n, m, add);
	assert_false(n.full);
	count = n.count;
	nfnl_fini(&n);
	return count;
}

static void lock_set__counts_owners(void **state)
{
	struct msg_lock a = lock_of("a", "sp-a", "", "10.0.0.2");
	struct msg_lock b = lock_of("b", "sp-a", "", "10.0.0.3");
	struct lock_set s;

	(void)state;
	lock_set_init(&s);
	/* own4, any_link_local, held twice (inet, arp) */
	assert_int_equal(changed(&s, &a, true), 4);
	/* the device is held already */
	assert_int_equal(changed(&s, &b, true), 1);
	/* the same again, as in a change: nothing moves */
	assert_int_equal(changed(&s, &a, true), 0);
	assert_int_equal(changed(&s, &a, false), 0);
	assert_int_equal(changed(&s, &a, false), 1);
	assert_int_equal(changed(&s, &b, false), 4);
	assert_int_equal(map_count(&s.counts), 0);
	lock_set_fini(&s);
}

static void lock_set__port_and_mac(void **state)
{
	struct msg_lock m = lock_of("a", "sp-br", "veth1", "10.0.0.2");
	struct lock_set s;

	(void)state;
	m.has_mac = 1;
	memcpy(m.mac, "\x02\x42\x0a\0\0\x02", 6);
	lock_set_init(&s);
	/* own4 three times, the link-local address of the mac twice, with_mac,
	 * own_mac, macs, port_macs, ports */
	assert_int_equal(changed(&s, &m, true), 10);
	assert_int_equal(changed(&s, &m, false), 10);
	assert_int_equal(map_count(&s.counts), 0);
	lock_set_fini(&s);
}

/* What awaits its port makes the bridge nobody's: packets of other ports, whose
 * mark was taken already, must find no word of the bridge's own. */
static void lock_set__awaits_port(void **state)
{
	struct msg_lock m = lock_of("a", "sp-br", "", "10.0.0.2");
	struct msg_lock at = lock_of("a", "sp-br", "veth1", "10.0.0.2");
	struct lock_set s;

	(void)state;
	m.has_mac = at.has_mac = 1;
	m.awaits_port = 1;
	memcpy(m.mac, "\x02\x42\x0a\0\0\x02", 6);
	memcpy(at.mac, m.mac, 6);
	lock_set_init(&s);
	/* held twice (inet, arp) */
	assert_int_equal(changed(&s, &m, true), 2);
	assert_int_equal(changed(&s, &at, true), 10);
	assert_int_equal(changed(&s, &m, false), 2);
	assert_int_equal(changed(&s, &at, false), 10);
	assert_int_equal(map_count(&s.counts), 0);
	lock_set_fini(&s);
}

static void lock_set__keys_are_padded(void **state)
{
	static const char mac_key[] = "veth1\0\0\0\0\0\0\0\0\0\0\0"
				      "\x02\x42\x0a\0\0\x02\0";
	struct msg_lock m = lock_of("a", "sp-br", "veth1", "10.0.0.2");
	struct span key, found = SPAN_NONE;
	struct lock_set s;
	size_t cursor = 0;

	(void)state;
	m.has_mac = 1;
	memcpy(m.mac, "\x02\x42\x0a\0\0\x02", 6);
	lock_set_init(&s);
	lock_set_own(&s, NULL, &m, true);
	while (map_next(&s.counts, &cursor, &key)) {
		/* a name is 16 bytes, what follows a multiple of 4 */
		if (key.len > 1 + 16)
			assert_int_equal((key.len - 1) % 4, 0);
		if (key.len == 1 + sizeof(mac_key) &&
		    !memcmp(key.ptr + 1, mac_key, sizeof(mac_key)))
			found = key;
	}
	assert_non_null(found.ptr);
	lock_set_fini(&s);
}

static void lock_set__ports_of_nobody(void **state)
{
	struct lock_set s;
	struct nfnl n;

	(void)state;
	lock_set_init(&s);
	nfnl_init(&n);
	lock_set_port(&s, &n, "veth9", true);
	lock_set_port(&s, &n, "veth9", false);
	assert_int_equal(n.count, 2);
	/* every set is emptied, then filled with what is counted */
	lock_set_port(&s, NULL, "veth9", true);
	n.count = 0;
	lock_set_refill(&s, &n);
	assert_int_equal(n.count, 14 + 1);
	nfnl_fini(&n);
	lock_set_fini(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lock_set__counts_owners),
		cmocka_unit_test(lock_set__port_and_mac),
		cmocka_unit_test(lock_set__awaits_port),
		cmocka_unit_test(lock_set__keys_are_padded),
		cmocka_unit_test(lock_set__ports_of_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
