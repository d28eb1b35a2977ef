/* SPDX-License-Identifier: Apache-2.0 */
/* test_home.c - owners and modes of what the supervisor makes (root only) */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/base/fd.h"
#include "src/role/config.h"
#include "src/role/home.h"
#include "src/role/notify.h"
#include "src/role/privilege.h"
#include "src/role/tool.h"

static char folder[] = "/tmp/role_test_home.XXXXXX";
static const struct privilege_user user = { 12345, 12346 };
static struct config *config;

static const char *path_of(const char *name)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void stat_is(const char *path, uid_t uid, gid_t gid, mode_t mode)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, uid);
	assert_int_equal(st.st_gid, gid);
	assert_int_equal(st.st_mode & 07777, mode);
}

static void home__makes_folders(void **state)
{
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(home_make(config, &user, &d), 0);
	stat_is(config->state_dir, user.uid, user.gid, 0700);
	stat_is(config->run_dir, user.uid, user.gid, 0755);
	stat_is(path_of("log"), 0, user.gid, 0750);
	assert_int_equal(home_make(config, &user, &d), 0);
}

/* What a service manager made is empty and given; what holds something keeps
 * its owner; what belongs to a third account is refused. */
static void home__existing_folders(void **state)
{
	CLEANUP_FD int fd = -1;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(home_make(config, &user, &d), 0);
	assert_int_equal(chown(config->run_dir, 0, 0), 0);
	assert_int_equal(home_make(config, &user, &d), 0);
	stat_is(config->run_dir, user.uid, user.gid, 0755);

	fd = open(path_of("run/file"), O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	assert_int_equal(chown(config->run_dir, 0, 0), 0);
	assert_int_equal(home_make(config, &user, &d), 0);
	stat_is(config->run_dir, 0, 0, 0755);

	assert_int_equal(chown(config->run_dir, 777, 0), 0);
	assert_int_not_equal(home_make(config, &user, &d), 0);
	assert_non_null(strstr(d.msg, "account 777"));
	assert_int_equal(chown(config->run_dir, 0, 0), 0);
}

static void home__audit(void **state)
{
	CLEANUP_FD int fd = -1;
	struct diag d = { 0 };

	(void)state;
	fd = home_open_audit(config, &user, &d);
	assert_true(fd >= 0);
	stat_is(config->audit_file, 0, user.gid, 0640);
	assert_true(fcntl(fd, F_GETFL) & O_APPEND);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

/* Whoever may write the folder must not lead us elsewhere. */
static void home__audit_is_no_link(void **state)
{
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(unlink(config->audit_file), 0);
	assert_int_equal(symlink("/etc/passwd", config->audit_file), 0);
	assert_true(home_open_audit(config, &user, &d) < 0);
	assert_int_equal(unlink(config->audit_file), 0);
	assert_int_equal(mkdir(config->audit_file, 0700), 0);
	d = (struct diag){ 0 };
	assert_true(home_open_audit(config, &user, &d) < 0);
}

static void home__one_at_a_time(void **state)
{
	struct diag d = { 0 };
	int first, second;

	(void)state;
	first = home_lock(config, &d);
	assert_true(first >= 0);
	second = home_lock(config, &d);
	assert_true(second < 0);
	assert_non_null(strstr(d.msg, "another sallyportd"));
	(void)close(first);
	second = home_lock(config, &d);
	assert_true(second >= 0);
	(void)close(second);
}

static void home__read_is_bounded(void **state)
{
	struct buf out = BUF_INIT(1 << 20);
	struct diag d = { 0 };

	(void)state;
	assert_int_not_equal(home_read("/dev/zero", 50000, &out, &d), 0);
	assert_non_null(strstr(d.msg, "too large"));
	buf_fini(&out);
}

static void notify__says_it(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	CLEANUP_FD int fd = -1;
	char said[64] = "";

	(void)state;
	assert_true(span_copy(span_str(path_of("notify")), sa.sun_path,
			      sizeof(sa.sun_path)));
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(setenv("NOTIFY_SOCKET", sa.sun_path, 1), 0);
	notify_manager("READY=1");
	assert_int_equal(recv(fd, said, sizeof(said) - 1, 0), 7);
	assert_string_equal(said, "READY=1");
	assert_int_equal(unsetenv("NOTIFY_SOCKET"), 0);
	notify_manager("READY=1"); /* nobody asked: nothing happens */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(home__makes_folders),
		cmocka_unit_test(home__existing_folders),
		cmocka_unit_test(home__audit),
		cmocka_unit_test(home__audit_is_no_link),
		cmocka_unit_test(home__one_at_a_time),
		cmocka_unit_test(home__read_is_bounded),
		cmocka_unit_test(notify__says_it),
	};
	const char *const sweep[] = { "/bin/rm", "-rf", folder, NULL };
	struct buf text = BUF_INIT(4096);
	struct diag d = { 0 };
	int r;

	if (geteuid() != 0)
		return 77;
	if (!mkdtemp(folder) ||
	    buf_putf(&text,
		     "{\"stateDir\": \"%s/state\", \"runDir\": \"%s/run\", "
		     "\"auditFile\": \"%s/log/audit\"}",
		     folder, folder, folder) ||
	    config_parse(buf_peek(&text), &config, &d))
		return 1;
	r = cmocka_run_group_tests(tests, NULL, NULL);
	buf_clear(&text);
	(void)!tool_run(sweep, SPAN_NONE, &text, 10000);
	buf_fini(&text);
	config_free(config);
	return r;
}
