/* SPDX-License-Identifier: Apache-2.0 */
/* test_usage.c - samples from trees that imitate containers of either version
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/execd/metrics/usage.h"
#include "src/execd/whole.h"

#define MIB (1024 * 1024)

static char tree[] = "/tmp/test_usage.XXXXXX";

static void put(const char *path, const char *text)
{
	char all[512], *at;

	snprintf(all, sizeof(all), "%s%s", tree, path);
	for (at = all + sizeof(tree); (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(!mkdir(all, 0700) || errno == EEXIST);
		*at = '/';
	}
	assert_int_equal(whole_write(all, 0600, span_str(text)), 0);
}

static void put_machine(void)
{
	put("/proc/meminfo",
	    "MemTotal: 8388608 kB\nMemFree: 1 kB\nMemAvailable: 2097152 kB\n");
	put("/proc/stat", "cpu  100 0 0 900 0 0 0 0 0 0\n");
}

static int fresh(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s/*", tree);
	if (system(command))
		return -1;
	put_machine();
	return 0;
}

static int made(void **state)
{
	(void)state;
	return mkdtemp(tree) ? 0 : -1;
}

static int gone(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", tree);
	return system(command);
}

static struct usage_sample take(struct usage *u)
{
	struct usage_sample s;

	assert_int_equal(usage_take(u, &s), 0);
	assert_true(s.cpu_count > 0);
	assert_true(s.memory_used > 0 && s.memory_used <= s.memory_total);
	assert_true(s.cpu_used_pct >= 0 && s.cpu_used_pct <= 100);
	return s;
}

static void put_v2(void)
{
	put("/proc/self/cgroup", "0::/\n");
	put("/proc/self/mountinfo", "1 2 0:1 / /cg rw - cgroup2 cgroup rw\n");
	put("/cg/cpu.max", "25000 100000\n");
	put("/cg/cpu.stat", "usage_usec 1000\nuser_usec 900\n");
	put("/cg/memory.max", "536870912\n");
	put("/cg/memory.current", "209715200\n");
	put("/cg/memory.stat", "file 9\ninactive_file 104857600\n");
}

static void v2__limits_of_the_container(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	put_v2();
	usage_init(&u, tree);
	s = take(&u);
	assert_true(s.cpu_count > 0.249 && s.cpu_count < 0.251);
	assert_int_equal(s.memory_total, 512 * MIB);
	assert_int_equal(s.memory_used, 100 * MIB);
}

static void v2__percentage_of_the_quota(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	put_v2();
	usage_init(&u, tree);
	/* as if the kept reading were a second old: a quarter of a processor
	 * may be used, and half of that was */
	u.older.at_us = u.newer.at_us -= 1000000;
	u.older.whole = u.newer.whole -= 1000000;
	put("/cg/cpu.stat", "usage_usec 126000\n");
	s = take(&u);
	assert_true(s.cpu_used_pct > 35 && s.cpu_used_pct < 51);
	put("/cg/cpu.stat", "usage_usec 99126000\n");
	assert_true(take(&u).cpu_used_pct == 100);
	put("/cg/cpu.stat", "usage_usec 10\n");
	assert_true(take(&u).cpu_used_pct == 0);
}

static void v2__the_limit_above_counts(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	put_v2();
	put("/proc/self/cgroup", "0::/pod/init\n");
	put("/cg/memory.max", "max\n");
	put("/cg/pod/memory.max", "268435456\n");
	put("/cg/pod/memory.current", "134217728\n");
	put("/cg/pod/init/memory.max", "max\n");
	put("/cg/pod/init/memory.current", "4096\n");
	put("/cg/pod/init/cpu.stat", "usage_usec 5\n");
	usage_init(&u, tree);
	s = take(&u);
	assert_int_equal(s.memory_total, 256 * MIB);
	assert_int_equal(s.memory_used, 128 * MIB);
	assert_true(s.cpu_count > 0.249 && s.cpu_count < 0.251);
}

static void v1__limits_of_the_container(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	put("/proc/self/cgroup",
	    "4:memory:/docker/ab\n3:cpuacct,cpu:/docker/ab\n0::/x\n");
	put("/proc/self/mountinfo",
	    "1 2 0:1 /docker/ab /cg/mem ro - cgroup c rw,memory\n"
	    "1 2 0:2 /docker/ab /cg/cpu ro - cgroup c rw,cpuacct,cpu\n");
	put("/cg/mem/memory.limit_in_bytes", "1073741824\n");
	put("/cg/mem/memory.usage_in_bytes", "314572800\n");
	put("/cg/mem/memory.stat",
	    "inactive_file 1\ntotal_inactive_file 104857600\n");
	put("/cg/cpu/cpu.cfs_quota_us", "50000\n");
	put("/cg/cpu/cpu.cfs_period_us", "100000\n");
	put("/cg/cpu/cpuacct.usage", "77000000\n");
	usage_init(&u, tree);
	assert_int_equal(u.newer.busy, 77000);
	s = take(&u);
	assert_true(s.cpu_count > 0.499 && s.cpu_count < 0.501);
	assert_int_equal(s.memory_total, 1024 * MIB);
	assert_int_equal(s.memory_used, 200 * MIB);
}

static void v1__no_limit_is_the_machine(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	put("/proc/self/cgroup", "4:memory:/\n3:cpu:/\n2:cpuacct:/\n");
	put("/proc/self/mountinfo",
	    "1 2 0:1 / /cg/mem ro - cgroup c rw,memory\n"
	    "1 2 0:2 / /cg/cpu ro - cgroup c rw,cpu\n");
	put("/cg/mem/memory.limit_in_bytes", "9223372036854771712\n");
	put("/cg/mem/memory.usage_in_bytes", "10485760\n");
	put("/cg/cpu/cpu.cfs_quota_us", "-1\n");
	put("/cg/cpu/cpu.cfs_period_us", "100000\n");
	usage_init(&u, tree);
	s = take(&u);
	assert_int_equal(s.memory_total, 8192LL * MIB);
	assert_int_equal(s.memory_used, 10 * MIB);
	assert_true(s.cpu_count >= 1);
}

static void host__without_any_cgroup(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	usage_init(&u, tree);
	put("/proc/stat", "cpu  150 0 0 950 0 0 0 0 0 0\n");
	s = take(&u);
	assert_int_equal(s.memory_total, 8192LL * MIB);
	assert_int_equal(s.memory_used, 6144LL * MIB);
	assert_true(s.cpu_used_pct > 49.9 && s.cpu_used_pct < 50.1);
}

static void nothing__is_an_error(void **state)
{
	struct usage_sample s;
	struct usage u;

	(void)state;
	usage_init(&u, "/nonexistent");
	assert_true(usage_take(&u, &s) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(v2__limits_of_the_container, fresh),
		cmocka_unit_test_setup(v2__percentage_of_the_quota, fresh),
		cmocka_unit_test_setup(v2__the_limit_above_counts, fresh),
		cmocka_unit_test_setup(v1__limits_of_the_container, fresh),
		cmocka_unit_test_setup(v1__no_limit_is_the_machine, fresh),
		cmocka_unit_test_setup(host__without_any_cgroup, fresh),
		cmocka_unit_test_setup(nothing__is_an_error, fresh),
	};

	return cmocka_run_group_tests(tests, made, gone);
}
