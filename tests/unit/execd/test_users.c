/* SPDX-License-Identifier: Apache-2.0 */
/* test_users.c - users and groups of images, tidy ones and hostile ones */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/execd/users.h"

static char folder[] = "/tmp/test_users_XXXXXX";
static char passwd[64], group[64];

static void put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(passwd, sizeof(passwd), "%s/passwd", folder);
	(void)snprintf(group, sizeof(group), "%s/group", folder);
	users_set_files(passwd, group);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)unlink(passwd);
	(void)unlink(group);
	users_set_files("/etc/passwd", "/etc/group");
	return rmdir(folder);
}

static void users__no_files(void **state)
{
	char name[USERS_NAME_SIZE];
	struct user u;
	gid_t gid;

	(void)state;
	assert_false(users_by_name(SPAN("root"), &u));
	assert_false(users_by_id(0, &u));
	assert_false(groups_by_name(SPAN("root"), &gid));
	assert_int_equal(groups_of("root", &gid, 1), 0);
	users_name(7, name);
	assert_string_equal(name, "7");
	groups_name(UINT32_MAX - 1, name);
	assert_string_equal(name, "4294967294");
}

static void users__lines(void **state)
{
	struct user u = { .uid = 99 };
	char name[USERS_NAME_SIZE];
	gid_t gids[4];

	(void)state;
	put(passwd, "# a comment\n\nroot:x:0:0:root:/root:/bin/sh\n"
		    "broken\n:x:5:5::/:\nneg:x:-1:5::/:\nall:x:4294967295:5::/:"
		    "\nsub:x:12:13\nlast:x:4294967294:7:g,e,c:/home/last:");
	assert_true(users_by_name(SPAN("root"), &u));
	assert_string_equal(u.home, "/root");
	assert_true(users_by_name(SPAN("last"), &u));
	assert_true(u.uid == 4294967294u && u.gid == 7);
	assert_string_equal(u.home, "/home/last");
	assert_true(users_by_id(12, &u));
	assert_string_equal(u.name, "sub");
	assert_string_equal(u.home, "");
	assert_false(users_by_name(SPAN("broken"), &u));
	assert_false(users_by_name(SPAN("neg"), &u));
	assert_false(users_by_name(SPAN("all"), &u));
	assert_false(users_by_name(SPAN(""), &u));
	assert_false(users_by_name(SPAN("roo"), &u));
	assert_string_equal(u.name, "sub"); /* untouched */

	put(group, "wheel:x:10:root, last\nempty:x:11:\nbad:x:y:last\n"
		   "more:x:12:lastly,last\n");
	assert_true(groups_by_name(SPAN("more"), &gids[0]));
	assert_int_equal(gids[0], 12);
	assert_false(groups_by_name(SPAN("bad"), &gids[0]));
	assert_int_equal(groups_of("last", gids, 4), 2);
	assert_true(gids[0] == 10 && gids[1] == 12);
	assert_int_equal(groups_of("last", gids, 1), 1);
	assert_int_equal(groups_of("", gids, 4), 0);
	groups_name(11, name);
	assert_string_equal(name, "empty");
}

/* A file that was changed is read again; what is too large or no file is
 * nothing. */
static void users__changes(void **state)
{
	struct user u;
	char line[128];
	FILE *f;
	int i;

	(void)state;
	put(passwd, "a:x:1:1::/:\n");
	assert_true(users_by_name(SPAN("a"), &u));
	put(passwd, "bb:x:2:1::/:\n");
	assert_false(users_by_name(SPAN("a"), &u));
	assert_true(users_by_name(SPAN("bb"), &u));

	memset(line, 'n', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	f = fopen(passwd, "w");
	assert_non_null(f);
	for (i = 0; i < 40000; i++)
		(void)fprintf(f, "%s%d:x:1:1::/:\n", line, i);
	(void)fprintf(f, "end:x:3:3::/:\n");
	assert_int_equal(fclose(f), 0);
	assert_false(users_by_name(SPAN("end"), &u));

	assert_int_equal(unlink(passwd), 0);
	assert_false(users_by_name(SPAN("bb"), &u));
	assert_int_equal(mkfifo(passwd, 0600), 0);
	assert_false(users_by_name(SPAN("bb"), &u)); /* and does not wait */
	/* a name that does not fit is no name */
	assert_int_equal(unlink(passwd), 0);
	(void)snprintf(line + 70, 20, ":x:9:9::/:\n");
	put(passwd, line);
	assert_false(users_by_id(9, &u));
}

/* Of two lines the first one counts; and of many none is far. */
static void users__many(void **state)
{
	FILE *f = fopen(passwd, "w");
	char name[USERS_NAME_SIZE];
	struct user u;
	gid_t gid;
	int i;

	(void)state;
	assert_non_null(f);
	for (i = 0; i < 20000; i++)
		(void)fprintf(f, "u%d:x:%d:%d::/%d:\n", i, i, i + 1, i);
	(void)fprintf(f, "u7:x:50000:1::/:\nlate:x:7:1::/:\n");
	assert_int_equal(fclose(f), 0);
	for (i = 0; i < 20000; i++) {
		(void)snprintf(name, sizeof(name), "u%d", i);
		assert_true(users_by_name(span_str(name), &u));
		assert_true(u.uid == (uid_t)i && u.gid == (gid_t)i + 1);
		assert_true(users_by_id((uid_t)i, &u));
		assert_string_equal(u.name, name);
	}
	assert_true(users_by_name(SPAN("late"), &u));
	assert_int_equal(u.uid, 7);
	assert_true(users_by_id(50000, &u));
	assert_string_equal(u.name, "u7");
	assert_false(users_by_id(20001, &u));
	assert_false(users_by_name(SPAN("u20001"), &u));

	put(group, "one:x:1:\none:x:2:\nother:x:1:\n");
	assert_true(groups_by_name(SPAN("one"), &gid));
	assert_int_equal(gid, 1);
	groups_name(1, name);
	assert_string_equal(name, "one");
	groups_name(2, name);
	assert_string_equal(name, "one");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(users__no_files),
		cmocka_unit_test(users__lines),
		cmocka_unit_test(users__changes),
		cmocka_unit_test(users__many),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
