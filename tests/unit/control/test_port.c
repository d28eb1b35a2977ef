/* SPDX-License-Identifier: Apache-2.0 */
/* test_port.c - the port that leads to a process, in namespaces of its own */

#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/err.h"
#include "src/control/lifecycle/port.h"

enum { SKIPPED = 77 };

static pid_t guests[3];

/* A process in a network namespace of its own. */
static pid_t guest_new(void)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	must(!pipe(ready));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		must(!unshare(CLONE_NEWNET));
		must(write(ready[1], &byte, 1) == 1);
		for (;;)
			pause();
	}
	must(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void PRINTF(1, 2) sh(const char *fmt, ...)
{
	char command[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(command, sizeof(command), fmt, args);
	va_end(args);
	if (system(command))
		fail_msg("%s", command);
}

/* Guest 2 has no port, guest 1 has one on another bridge too. */
static int set_up(void **state)
{
	unsigned i;

	(void)state;
	must(!unshare(CLONE_NEWNET));
	for (i = 0; i < ARRAY_LEN(guests); i++)
		guests[i] = guest_new();
	sh("ip link add sp-t0 type bridge && ip link add other0 type bridge");
	for (i = 0; i < 2; i++)
		sh("ip link add vt%u type veth peer name e0 netns %d && "
		   "ip link set vt%u master sp-t0",
		   i, guests[i], i);
	sh("ip link add vo1 type veth peer name e1 netns %d && "
	   "ip link set vo1 master other0",
	   guests[1]);
	return 0;
}

static int tear_down(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(guests); i++) {
		kill(guests[i], SIGKILL);
		waitpid(guests[i], NULL, 0);
	}
	return 0;
}

static void ports__are_found_by_namespace(void **state)
{
	char name[MSG_IFACE_SIZE] = "";

	(void)state;
	assert_int_equal(port_find(guests[0], "sp-t0", name), 0);
	assert_string_equal(name, "vt0");
	assert_int_equal(port_find(guests[1], "sp-t0", name), 0);
	assert_string_equal(name, "vt1");
	assert_int_equal(port_find(guests[1], "other0", name), 0);
	assert_string_equal(name, "vo1");
}

static void what_is_not_there__is_said(void **state)
{
	char name[MSG_IFACE_SIZE] = "kept";
	pid_t gone = fork();

	(void)state;
	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);
	assert_int_equal(port_find(guests[0], "sp-none", name), -ENODEV);
	assert_int_equal(port_find(guests[0], "other0", name), -ENODEV);
	assert_int_equal(port_find(guests[2], "sp-t0", name), -ENODEV);
	assert_int_equal(port_find(getpid(), "sp-t0", name), -ENODEV);
	assert_int_equal(port_find(gone, "sp-t0", name), -ESRCH);
	assert_string_equal(name, "kept");
}

static void two_ports__are_none(void **state)
{
	char name[MSG_IFACE_SIZE] = "kept";

	(void)state;
	sh("ip link add vt9 type veth peer name e9 netns %d && "
	   "ip link set vt9 master sp-t0",
	   guests[0]);
	assert_int_equal(port_find(guests[0], "sp-t0", name), -EEXIST);
	sh("ip link del vt9");
	assert_int_equal(port_find(guests[0], "sp-t0", name), 0);
}

/* More than fit into one answer of the kernel. */
static void many__are_looked_through(void **state)
{
	char name[MSG_IFACE_SIZE];

	(void)state;
	sh("for i in $(seq 200); do echo link add d$i type veth peer name "
	   "p$i; done | ip -batch -");
	assert_int_equal(port_find(guests[0], "sp-t0", name), 0);
	assert_string_equal(name, "vt0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports__are_found_by_namespace),
		cmocka_unit_test(what_is_not_there__is_said),
		cmocka_unit_test(two_ports__are_none),
		cmocka_unit_test(many__are_looked_through),
	};

	if (geteuid() != 0)
		return SKIPPED;
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
