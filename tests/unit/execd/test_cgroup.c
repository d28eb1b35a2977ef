/* SPDX-License-Identifier: Apache-2.0 */
/* test_cgroup.c - the kernel's texts about limits and use, and bad ones */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/execd/metrics/cgroup.h"

static void number__limits_and_counts(void **state)
{
	static const struct {
		const char *text;
		uint64_t value;
	} good[] = {
		{ "0\n", 0 },
		{ "4096", 4096 },
		{ "536870912\n", 536870912 },
		{ "max\n", CGROUP_NONE },
		{ "-1\n", CGROUP_NONE },
		{ "9223372036854771712\n", CGROUP_NONE }, /* v1, 4 KiB pages */
		{ "9223372036854710272\n", CGROUP_NONE }, /* v1, 64 KiB */
	};
	static const char *const bad[] = { "", "\n", "12a\n", "maximum",
					   "99999999999999999999" };
	uint64_t v;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		assert_true(cgroup_parse_number(span_str(good[i].text), &v));
		assert_true(v == good[i].value);
	}
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		v = 7;
		assert_false(cgroup_parse_number(span_str(bad[i]), &v));
		assert_int_equal(v, 7);
	}
}

static void cpu_max__quota_over_period(void **state)
{
	double cores;

	(void)state;
	assert_true(cgroup_parse_cpu_max(SPAN("150000 100000\n"), &cores));
	assert_true(cores > 1.499 && cores < 1.501);
	assert_true(cgroup_parse_cpu_max(SPAN("50000\n"), &cores));
	assert_true(cores > 0.499 && cores < 0.501);
	assert_true(cgroup_parse_cpu_max(SPAN("max 100000\n"), &cores));
	assert_true(cores == 0);
	assert_false(cgroup_parse_cpu_max(SPAN(""), &cores));
	assert_false(cgroup_parse_cpu_max(SPAN("0 100000"), &cores));
	assert_false(cgroup_parse_cpu_max(SPAN("1 0"), &cores));
	assert_false(cgroup_parse_cpu_max(SPAN("1 2 3"), &cores));
}

static void key__whole_words_only(void **state)
{
	static const struct span stat =
		SPAN_INIT("anon 5\nfile 70\ninactive_file 12\nxinactive_file "
			  "1\nfile_x 9");
	uint64_t v = 0;

	(void)state;
	assert_true(cgroup_parse_key(stat, SPAN("inactive_file"), &v));
	assert_int_equal(v, 12);
	assert_true(cgroup_parse_key(stat, SPAN("file_x"), &v));
	assert_int_equal(v, 9);
	assert_false(cgroup_parse_key(stat, SPAN("ile"), &v));
	assert_false(cgroup_parse_key(SPAN("file\n"), SPAN("file"), &v));
	assert_false(cgroup_parse_key(SPAN("file x\n"), SPAN("file"), &v));
}

static const struct span self_text =
	SPAN_INIT("8:pids:/\n4:memory:/docker/ab\n"
		  "2:cpu,cpuacct:/docker/ab\n0::/docker/ab/init\n");

static void self__by_controller(void **state)
{
	struct span path = SPAN_NONE;

	(void)state;
	assert_true(cgroup_parse_self(self_text, SPAN("cpuacct"), &path));
	assert_true(span_eq(path, SPAN("/docker/ab")));
	assert_true(cgroup_parse_self(self_text, SPAN(""), &path));
	assert_true(span_eq(path, SPAN("/docker/ab/init")));
	assert_false(cgroup_parse_self(self_text, SPAN("cpuset"), &path));
	assert_false(cgroup_parse_self(SPAN("0::\n"), SPAN(""), &path));
}

static void mount__finds_the_hierarchy(void **state)
{
	static const struct span info = SPAN_INIT(
		"31 23 0:28 / /sys/fs/cgroup rw shared:1 master:2 - tmpfs t "
		"rw\n"
		"32 31 0:29 /docker/ab /sys/fs/cgroup/cpu rw - cgroup c "
		"rw,cpu\n"
		"41 31 0:38 / /sys/with\\040blank rw - cgroup2 c rw\n");
	struct cgroup_mount m;

	(void)state;
	assert_true(cgroup_parse_mount(info, SPAN("cpu"), &m));
	assert_string_equal(m.root, "/docker/ab");
	assert_string_equal(m.point, "/sys/fs/cgroup/cpu");
	assert_true(cgroup_parse_mount(info, SPAN(""), &m));
	assert_string_equal(m.point, "/sys/with blank");
	assert_false(cgroup_parse_mount(info, SPAN("memory"), &m));
	assert_false(cgroup_parse_mount(SPAN("1 2 3 /a /b rw cgroup2 x rw\n"),
					SPAN(""), &m));
}

static void folder__below_the_mount_and_never_outside(void **state)
{
	static const struct {
		const char *root, *path, *folder;
	} rows[] = {
		{ "/", "/", "/cg" },
		{ "/", "/a/b", "/cg/a/b" },
		{ "/docker/ab", "/docker/ab", "/cg" },
		{ "/docker/ab", "/docker/ab/init", "/cg/init" },
		{ "/docker/ab", "/docker/abc", "/cg" },
		{ "/docker/ab", "/", "/cg" },
		{ "/", "/../other", "/cg" },
	};
	struct cgroup_mount m = { .point = "/cg" };
	char folder[CGROUP_PATH_SIZE];
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(span_copy(span_str(rows[i].root), m.root,
				      sizeof(m.root)));
		assert_true(cgroup_folder(&m, span_str(rows[i].path), folder));
		assert_string_equal(folder, rows[i].folder);
	}
}

static void stat__busy_is_all_but_idle(void **state)
{
	uint64_t busy, total;

	(void)state;
	assert_true(proc_parse_stat(
		SPAN("cpu  10 1 5 100 20 2 3 4 50 60\ncpu0 1\n"), &busy,
		&total));
	assert_int_equal(total, 145);
	assert_int_equal(busy, 25);
	assert_true(proc_parse_stat(SPAN("cpu 1 2 3 4\n"), &busy, &total));
	assert_int_equal(busy, 6);
	assert_false(proc_parse_stat(SPAN("cpu 1 2 3\n"), &busy, &total));
	assert_false(proc_parse_stat(SPAN("intr 1 2 3 4\n"), &busy, &total));
}

static void meminfo__new_and_old_kernels(void **state)
{
	uint64_t total, free;

	(void)state;
	assert_true(proc_parse_meminfo(SPAN("MemTotal:  100 kB\nMemFree: 20 "
					    "kB\nMemAvailable: 60 kB\n"),
				       &total, &free));
	assert_int_equal(total, 100 * 1024);
	assert_int_equal(free, 60 * 1024);
	assert_true(proc_parse_meminfo(
		SPAN("MemTotal: 100 kB\nMemFree: 20 kB\nCached: 30 kB\n"),
		&total, &free));
	assert_int_equal(free, 50 * 1024);
	assert_true(proc_parse_meminfo(
		SPAN("MemTotal: 100 kB\nMemAvailable: 999 kB\n"), &total,
		&free));
	assert_int_equal(free, 100 * 1024);
	assert_false(
		proc_parse_meminfo(SPAN("MemTotal: 0 kB\n"), &total, &free));
	assert_false(
		proc_parse_meminfo(SPAN("MemFree: 1 kB\n"), &total, &free));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(number__limits_and_counts),
		cmocka_unit_test(cpu_max__quota_over_period),
		cmocka_unit_test(key__whole_words_only),
		cmocka_unit_test(self__by_controller),
		cmocka_unit_test(mount__finds_the_hierarchy),
		cmocka_unit_test(folder__below_the_mount_and_never_outside),
		cmocka_unit_test(stat__busy_is_all_but_idle),
		cmocka_unit_test(meminfo__new_and_old_kernels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
