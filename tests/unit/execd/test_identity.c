/* SPDX-License-Identifier: Apache-2.0 */
/* test_identity.c - a thread that is another user, and itself again behind it
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/span.h"
#include "src/execd/files/identity.h"
#include "src/execd/users.h"

enum { UID = 23456, GID = 34567, OTHER_GID = 45678 };

static char folder[] = "/tmp/test_identity_XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const char *text, mode_t mode)
{
	FILE *f = fopen(in_folder(name), "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(in_folder(name), mode), 0);
}

/* A line of this thread's status, behind its name. */
static void status_line(const char *name, char dst[128])
{
	FILE *f = fopen("/proc/thread-self/status", "r");
	char line[256];

	assert_non_null(f);
	dst[0] = '\0';
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			(void)snprintf(dst, 128, "%s", line + strlen(name));
	assert_int_equal(fclose(f), 0);
	assert_true(dst[0]);
}

struct self {
	char uid[128], gid[128], groups[128], effective[128], permitted[128];
};

static void self_read(struct self *s)
{
	memset(s, 0, sizeof(*s));
	status_line("Uid:", s->uid);
	status_line("Gid:", s->gid);
	status_line("Groups:", s->groups);
	status_line("CapEff:", s->effective);
	status_line("CapPrm:", s->permitted);
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chmod(folder, 0777), 0);
	put("passwd", "ann:x:23456:1:::\n", 0644);
	put("group", "staff:x:45678:bob,ann\nothers:x:45679:bob\n", 0644);
	put("secret", "for root\n", 0600);
	put("shared", "for staff\n", 0640);
	assert_true(geteuid() != 0 ||
		    !chown(in_folder("shared"), 0, OTHER_GID));
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "passwd", "group", "secret",
					     "shared", "made" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++)
		(void)unlink(in_folder(names[i]));
	users_set_files("/etc/passwd", "/etc/group");
	return rmdir(folder);
}

static void ann_init(struct identity *i)
{
	static char passwd[128], group[128];

	(void)snprintf(passwd, sizeof(passwd), "%s", in_folder("passwd"));
	(void)snprintf(group, sizeof(group), "%s", in_folder("group"));
	users_set_files(passwd, group);
	identity_init(i, UID, GID);
	identity_look_up(i);
}

static void identity__groups_are_the_image_s(void **state)
{
	struct identity i;

	(void)state;
	ann_init(&i);
	assert_true(i.given && i.uid == UID && i.gid == GID);
	assert_int_equal(i.group_count, 1);
	assert_int_equal(i.groups[0], OTHER_GID);
	identity_init(&i, UID + 1, GID);
	identity_look_up(&i);
	assert_int_equal(i.group_count, 0);
}

static void identity__not_given_is_nothing(void **state)
{
	const struct identity i = { 0 };
	struct self before, after;

	(void)state;
	self_read(&before);
	assert_int_equal(identity_enter(&i), 0);
	assert_null(identity_current());
	self_read(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	identity_leave();
}

/* What the user may and may not, on a thread of its own. */
static void *ann_work(void *arg)
{
	const struct identity *i = arg;
	struct self before, during, after;
	struct stat st;
	int fd;

	self_read(&before);
	assert_int_equal(identity_enter(i), 0);
	assert_ptr_equal(identity_current(), i);
	self_read(&during);
	assert_non_null(strstr(during.uid, "\t23456\t0\t23456"));
	assert_non_null(strstr(during.gid, "\t34567\t0\t34567"));
	assert_non_null(strstr(during.groups, "34567 45678"));
	assert_non_null(strstr(during.effective, "\t0000000000000000"));

	assert_int_equal(open(in_folder("secret"), O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(chown(in_folder("secret"), UID, GID), -1);
	assert_int_equal(errno, EPERM);
	fd = open(in_folder("shared"), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	fd = open(in_folder("made"), O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_int_equal(fstat(fd, &st), 0);
	assert_true(st.st_uid == UID && st.st_gid == GID);
	assert_int_equal(close(fd), 0);
	/* asks for the effective user, not for that of files */
	assert_int_equal(open("/proc/sys/kernel/core_pattern", O_WRONLY), -1);
	assert_int_equal(errno, EACCES);

	identity_leave();
	assert_null(identity_current());
	self_read(&after);
	assert_memory_equal(&before, &after, sizeof(before));
	fd = open(in_folder("secret"), O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
	return NULL;
}

static void identity__a_thread_alone(void **state)
{
	struct self before, after;
	struct identity i;
	pthread_t thread;

	(void)state;
	if (geteuid())
		skip();
	ann_init(&i);
	self_read(&before);
	assert_int_equal(pthread_create(&thread, NULL, ann_work, &i), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	self_read(&after);
	assert_memory_equal(&before, &after, sizeof(before));

	/* and this one, which was not made for it */
	(void)unlink(in_folder("made"));
	(void)ann_work(&i);
}

static void identity__memory_stays_closed(void **state)
{
	int before = prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
	struct identity i;

	(void)state;
	if (geteuid())
		skip();
	ann_init(&i);
	assert_int_equal(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
	assert_int_equal(identity_enter(&i), 0);
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	identity_leave();
	assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
	(void)prctl(PR_SET_DUMPABLE, before, 0, 0, 0);
}

/* In a child, which is no longer root. */
static int common_user(void)
{
	struct identity i;
	struct self before, after;

	if (!geteuid() &&
	    (setresgid(GID, GID, GID) || setresuid(UID, UID, UID)))
		return 1;
	self_read(&before);
	identity_init(&i, 0, 0);
	if (identity_enter(&i) != -EPERM || identity_current())
		return 2;
	identity_init(&i, geteuid(), getegid() + 1);
	if (identity_enter(&i) != -EPERM)
		return 3;
	identity_init(&i, geteuid(), getegid());
	if (identity_enter(&i) || identity_current() != &i)
		return 4;
	identity_leave();
	self_read(&after);
	return memcmp(&before, &after, sizeof(before)) ? 5 : 0;
}

static void identity__who_is_not_root_is_himself(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		_exit(common_user());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: what the daemon is, is looked at once */
		cmocka_unit_test(identity__who_is_not_root_is_himself),
		cmocka_unit_test(identity__groups_are_the_image_s),
		cmocka_unit_test(identity__not_given_is_nothing),
		cmocka_unit_test(identity__a_thread_alone),
		cmocka_unit_test(identity__memory_stays_closed),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
