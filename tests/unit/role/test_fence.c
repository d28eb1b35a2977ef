/* SPDX-License-Identifier: Apache-2.0 */
/* test_fence.c - the nftables scripts word for word, and the kernel's view of
 * them in a network namespace of our own
 *
 * The scripts are in golden/, for a reviewer to read.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/fence.h"
#include "src/role/fence_queue.h"
#include "src/role/fence_watch.h"
#include "src/role/home.h"
#include "src/role/tool.h"

#define NFT "/usr/sbin/nft"
#define IP  "/usr/sbin/ip"

static struct config *config;
static bool may_have_namespace;

static const struct fence_rules native = { true, QUEUE_NATIVE, true };
static const struct fence_rules xtables_v4 = { false, QUEUE_XTABLES, false };
static const struct fence_rules no_queue = { true, QUEUE_NONE, false };

/* For a look with diff(1). Returns the path. */
static const char *leave(const char *name, struct span text)
{
	static char path[512];
	FILE *f;

	(void)snprintf(path, sizeof(path), BUILD_DIR "/%s", name);
	f = fopen(path, "w");
	if (f) {
		(void)fwrite(text.ptr, 1, text.len, f);
		(void)fclose(f);
	}
	return path;
}

static void golden(const char *name, const struct fence_rules *rules)
{
	struct buf made = BUF_INIT(65536), kept = BUF_INIT(65536);
	struct diag d = { 0 };
	char path[512];

	(void)snprintf(path, sizeof(path),
		       SOURCE_DIR "/tests/unit/role/golden/%s", name);
	assert_int_equal(fence_script(config, rules, &made), 0);
	if (home_read(path, 40000, &kept, &d))
		fail_msg("%s", d.msg);
	if (!span_eq(buf_peek(&made), buf_peek(&kept)))
		fail_msg("%s differs from what was made; that is now in %s",
			 path, leave(name, buf_peek(&made)));
	buf_fini(&made);
	buf_fini(&kept);
}

static void fence__golden_open(void **state)
{
	(void)state;
	golden("fence_open.nft", &native);
}

static void fence__golden_open_v4(void **state)
{
	(void)state;
	golden("fence_open_v4.nft", &xtables_v4);
}

static void fence__golden_no_queue(void **state)
{
	(void)state;
	golden("fence_no_queue.nft", &no_queue);
}

/* The node connects to sandboxes. */
static void fence__golden_ingress(void **state)
{
	uint16_t port = config->ingress_listen.port;

	(void)state;
	config->ingress_listen.port = 8081;
	golden("fence_ingress.nft", &native);
	config->ingress_listen.port = port;
}

static void fence__golden_closed(void **state)
{
	(void)state;
	golden("fence_closed.nft", NULL);
}

/* What nft and ip say, as one string for strstr(). */
static const char *said_by(const char *const argv[])
{
	static char text[65536];
	struct buf out = BUF_INIT(sizeof(text) - 1);

	assert_true(tool_run(argv, SPAN_NONE, &out, 10000) >= 0);
	assert_true(span_copy(buf_peek(&out), text, sizeof(text)));
	buf_fini(&out);
	return text;
}

static const char *ip_rules(const char *family)
{
	const char *const argv[] = { IP, family, "rule", "list", NULL };

	return said_by(argv);
}

static const char *routes(const char *family)
{
	const char *const argv[] = { IP,      family,  "route", "list",
				     "table", "23057", NULL };

	return said_by(argv);
}

static const char *tables(void)
{
	const char *const argv[] = { NFT, "list", "tables", NULL };

	return said_by(argv);
}

static void need_namespace(void)
{
	if (!may_have_namespace)
		skip();
}

static void flush(void)
{
	const char *const argv[] = { NFT, "flush", "ruleset", NULL };

	assert_string_equal(said_by(argv), "");
}

static void fence__install_is_idempotent(void **state)
{
	struct buf first = BUF_INIT(65536), second = BUF_INIT(65536);
	struct fence_rules rules = { 0 };

	(void)state;
	need_namespace();
	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_read(&first), 0);
	assert_non_null(strstr(ip_rules("-4"), "fwmark 0x5a11 lookup 23057"));
	assert_non_null(strstr(routes("-4"), "local default dev lo"));
	assert_true(rules.ipv6);
	assert_non_null(strstr(ip_rules("-6"), "fwmark 0x5a11 lookup 23057"));
	assert_non_null(strstr(routes("-6"), "local default dev lo"));

	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_read(&second), 0);
	assert_true(buf_len(&first) > 500);
	assert_true(span_eq(buf_peek(&first), buf_peek(&second)));
	/* one rule, not two */
	assert_null(strstr(strstr(ip_rules("-4"), "fwmark") + 1, "fwmark"));
	buf_fini(&first);
	buf_fini(&second);
}

static void fence__close_keeps_dropping(void **state)
{
	struct buf now = BUF_INIT(65536);
	struct fence_rules rules;

	(void)state;
	need_namespace();
	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_close(config), 0);
	assert_int_equal(fence_read(&now), 0);
	assert_null(memmem(now.data, buf_len(&now), "tproxy", 6));
	assert_non_null(memmem(now.data, buf_len(&now), "drop", 4));
	assert_null(strstr(ip_rules("-4"), "fwmark"));
	assert_null(strstr(ip_rules("-6"), "fwmark"));
	buf_fini(&now);
}

/* Others' tables are others'. */
static void fence__remove_only_ours(void **state)
{
	const char *const other[] = {
		NFT, "add", "table", "ip", "other", NULL
	};
	struct fence_rules rules;

	(void)state;
	need_namespace();
	assert_string_equal(said_by(other), "");
	assert_int_equal(fence_install(config, &rules), 0);
	assert_non_null(strstr(tables(), "inet sallyport"));
	assert_int_equal(fence_remove(config), 0);
	assert_int_equal(fence_remove(config), 0); /* nothing there: fine */
	assert_null(strstr(tables(), "inet sallyport"));
	assert_non_null(strstr(tables(), "ip other"));
	assert_null(strstr(ip_rules("-4"), "fwmark"));
	assert_string_equal(routes("-4"), "");
}

/* Turns the loop until the table is as it was, at most two seconds. */
static bool comes_back(struct loop *loop, struct fence_watch *f)
{
	uint64_t end = clock_ms() + 2000;

	while (clock_ms() < end) {
		loop_run_once(loop, false);
		if (fence_watch_is_ok(f) && strstr(tables(), "inet sallyport"))
			return true;
		(void)usleep(1000);
	}
	return false;
}

static void fence__watch_restores(void **state)
{
	const char *const less[] = { NFT,	  "flush",   "chain", "inet",
				     "sallyport", "to_node", NULL };
	struct buf first = BUF_INIT(65536), now = BUF_INIT(65536);
	struct fence_watch *f;
	struct loop *loop;
	uint64_t end;
	struct fence_rules rules;

	(void)state;
	need_namespace();
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_read(&first), 0);
	assert_int_equal(fence_watch_new(loop, config, &rules, &f), 0);
	assert_true(fence_watch_is_ok(f));

	/* all of it gone */
	flush();
	assert_null(strstr(tables(), "sallyport"));
	assert_true(comes_back(loop, f));

	/* one chain emptied, the table still there */
	assert_string_equal(said_by(less), "");
	for (end = clock_ms() + 2000; clock_ms() < end;) {
		loop_run_once(loop, false);
		buf_clear(&now);
		assert_int_equal(fence_read(&now), 0);
		if (span_eq(buf_peek(&first), buf_peek(&now)))
			break;
	}
	assert_true(span_eq(buf_peek(&first), buf_peek(&now)));
	fence_watch_free(f);
	loop_free(loop);
	buf_fini(&first);
	buf_fini(&now);
}

static bool turn_until_stands(struct loop *loop, const struct fence_watch *f,
			      enum queue_kind kind)
{
	uint64_t end = clock_ms() + 2000;

	while (clock_ms() < end) {
		loop_run_once(loop, false);
		if (fence_watch_is_ok(f) &&
		    fence_queue_stands(config, kind, true))
			return true;
		(void)usleep(1000);
	}
	return false;
}

/* A rule of iptables is outside our table: it is watched all the same. */
static void fence__watch_restores_the_rule(void **state)
{
	const char *const others[] = { "/usr/sbin/iptables",
				       "-t",
				       "mangle",
				       "-A",
				       "OUTPUT",
				       "-j",
				       "ACCEPT",
				       NULL };
	struct fence_rules rules;
	struct fence_watch *f;
	struct loop *loop;

	(void)state;
	need_namespace();
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(fence_install(config, &rules), 0);
	if (rules.queue != QUEUE_XTABLES) {
		loop_free(loop);
		skip(); /* the statement is in our table */
	}
	assert_int_equal(fence_watch_new(loop, config, &rules, &f), 0);
	assert_true(fence_queue_stands(config, rules.queue, true));
	assert_true(turn_until_stands(loop, f, rules.queue));
	fence_queue_remove(config);
	assert_false(fence_queue_stands(config, rules.queue, true));
	assert_true(turn_until_stands(loop, f, rules.queue));
	fence_watch_free(f);
	assert_int_equal(fence_close(config), 0);
	assert_false(fence_queue_stands(config, rules.queue, true));
	assert_null(strstr(tables(), "mangle")); /* nor what iptables made */

	/* but what others put there stays, and is never passed over */
	assert_string_equal(said_by(others), "");
	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_close(config), 0);
	assert_non_null(strstr(tables(), "table ip mangle"));
	assert_null(strstr(tables(), "table ip6 mangle"));
	loop_free(loop);
}

static void fence__watch_ignores_others(void **state)
{
	const char *const other[] = {
		NFT, "add", "table", "ip", "another", NULL
	};
	struct fence_watch *f;
	struct loop *loop;
	struct fence_rules rules;
	int i;

	(void)state;
	need_namespace();
	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(fence_install(config, &rules), 0);
	assert_int_equal(fence_watch_new(loop, config, &rules, &f), 0);
	for (i = 0; i < 50; i++)
		loop_run_once(loop, false);
	assert_string_equal(said_by(other), "");
	for (i = 0; i < 50; i++) {
		loop_run_once(loop, false);
		assert_true(fence_watch_is_ok(f));
	}
	fence_watch_free(f);
	loop_free(loop);
}

static void tool__output_status_and_time(void **state)
{
	const char *const cat[] = { "/bin/cat", NULL };
	const char *const fails[] = { "/bin/sh", "-c", "echo no; exit 3",
				      NULL };
	const char *const sleeps[] = { "/bin/sleep", "30", NULL };
	const char *const none[] = { "/no/such/tool", NULL };
	struct buf out = BUF_INIT(200000);
	static char big[150000];

	(void)state;
	memset(big, 'x', sizeof(big));
	assert_int_equal(tool_run(cat, span_of(big, sizeof(big)), &out, 9000),
			 0);
	assert_int_equal(buf_len(&out), sizeof(big));
	buf_clear(&out);
	assert_int_equal(tool_run(fails, SPAN_NONE, &out, 9000), 3);
	assert_true(span_eq(buf_peek(&out), SPAN("no\n")));
	assert_int_equal(tool_run(sleeps, SPAN_NONE, &out, 50), -ETIMEDOUT);
	assert_int_equal(tool_run(none, SPAN_NONE, &out, 50), -ENOENT);
	buf_fini(&out);
}

static bool namespace_enter(void)
{
	struct ifreq lo = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	int fd, r;

	if (geteuid() != 0 || access(NFT, X_OK) != 0 || access(IP, X_OK) != 0 ||
	    unshare(CLONE_NEWNET) != 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	r = ioctl(fd, SIOCSIFFLAGS, &lo);
	(void)close(fd);
	return r == 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fence__golden_open),
		cmocka_unit_test(fence__golden_open_v4),
		cmocka_unit_test(fence__golden_no_queue),
		cmocka_unit_test(fence__golden_ingress),
		cmocka_unit_test(fence__golden_closed),
		cmocka_unit_test(tool__output_status_and_time),
		cmocka_unit_test(fence__install_is_idempotent),
		cmocka_unit_test(fence__close_keeps_dropping),
		cmocka_unit_test(fence__remove_only_ours),
		cmocka_unit_test(fence__watch_restores),
		cmocka_unit_test(fence__watch_restores_the_rule),
		cmocka_unit_test(fence__watch_ignores_others),
	};
	const char text[] = "{\"sandboxInterfaces\": [\"sp-*\", \"agents0\"]}";
	struct diag d = { 0 };
	int r;

	if (config_parse(span_str(text), &config, &d))
		return 1;
	may_have_namespace = namespace_enter();
	r = cmocka_run_group_tests(tests, NULL, NULL);
	config_free(config);
	return r;
}
