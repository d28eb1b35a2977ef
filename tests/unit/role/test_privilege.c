/* SPDX-License-Identifier: Apache-2.0 */
/* test_privilege.c - rights that were given up do not come back (root only) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/role/privilege.h"

enum { CAP_NET_ADMIN_BIT = 12, CAP_SYS_ADMIN_BIT = 21 };

/* Runs fn in a child; its return value is the exit status, 0 = as expected. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool no_capability_left(void)
{
	int cap;

	for (cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			return false;
	return socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EPERM &&
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

static int drop_to_nobody(void)
{
	struct privilege_user user;
	gid_t groups[8];

	if (privilege_find_user("nobody", &user) || user.uid == 0)
		return 1;
	if (privilege_drop(&user, 0))
		return 2;
	if (getuid() != user.uid || geteuid() != user.uid ||
	    getgid() != user.gid)
		return 3;
	if (setuid(0) == 0 || setgid(0) == 0)
		return 4;
	if (getgroups(8, groups) != 1 || groups[0] != user.gid)
		return 5;
	return no_capability_left() ? 0 : 6;
}

static int drop_but_stay_root(void)
{
	struct privilege_user user;

	if (privilege_find_user("", &user) || user.uid != 0)
		return 1;
	if (privilege_drop(&user, 0))
		return 2;
	if (getuid() != 0)
		return 3;
	/* uid 0 without capabilities cannot become another */
	if (setuid(1) == 0)
		return 4;
	return no_capability_left() ? 0 : 6;
}

static int reduce(void)
{
	if (privilege_reduce())
		return 1;
	if (prctl(PR_CAPBSET_READ, CAP_NET_ADMIN_BIT, 0, 0, 0) != 1)
		return 2;
	if (prctl(PR_CAPBSET_READ, CAP_SYS_ADMIN_BIT, 0, 0, 0) == 1)
		return 3;
	return drop_to_nobody();
}

static void privilege__drop_to_nobody(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_to_nobody), 0);
}

static void privilege__drop_but_stay_root(void **state)
{
	(void)state;
	assert_int_equal(in_child(drop_but_stay_root), 0);
}

static void privilege__reduce_then_drop(void **state)
{
	(void)state;
	assert_int_equal(in_child(reduce), 0);
}

static void privilege__unknown_account(void **state)
{
	struct privilege_user user;

	(void)state;
	assert_int_equal(privilege_find_user("no-such-account", &user),
			 -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(privilege__drop_to_nobody),
		cmocka_unit_test(privilege__drop_but_stay_root),
		cmocka_unit_test(privilege__reduce_then_drop),
		cmocka_unit_test(privilege__unknown_account),
	};

	if (geteuid() != 0)
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
