/* SPDX-License-Identifier: Apache-2.0 */
/* test_host_path.c - paths of the node: links followed, nothing outside */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/control/lifecycle/host_path.h"

static char folder[64];

static const char *in(const char *name, char dst[256])
{
	snprintf(dst, 256, "%s/%s", folder, name);
	return dst;
}

static void sh(const char *script)
{
	char command[1024];

	snprintf(command, sizeof(command), "cd %s && %s", folder, script);
	assert_int_equal(system(command), 0);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/host-path-XXXXXX");
	assert_non_null(mkdtemp(folder));
	sh("mkdir -p ok/a/b elsewhere/secret ok2 && touch ok/file && "
	   "ln -s ../elsewhere ok/out && ln -s a ok/in && ln -s ok door && "
	   "ln -s nowhere ok/dangling");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	sh("rm -r $PWD");
	return 0;
}

/* sub NULL: none. allowed: a name in the folder. */
static int resolve(const char *source, const char *sub, const char *allow,
		   char dst[HOST_PATH_SIZE], struct lifecycle_error *no)
{
	char path[256], allowed[256];
	const char *const all[] = { in(allow, allowed), NULL };
	const struct create_volume v = {
		.kind = VOLUME_HOST,
		.source = span_str(in(source, path)),
		.sub_path = span_str(sub),
	};

	return host_path_resolve(&v, all, dst, no);
}

static void assert_leads(const char *source, const char *sub, const char *allow,
			 const char *want)
{
	char dst[HOST_PATH_SIZE], path[256];
	struct lifecycle_error no = { 0 };

	if (resolve(source, sub, allow, dst, &no))
		fail_msg("%s: %s", source, no.message);
	assert_string_equal(dst, in(want, path));
}

static void assert_refused(const char *source, const char *sub,
			   const char *allow, const char *code)
{
	char dst[HOST_PATH_SIZE];
	struct lifecycle_error no = { 0 };

	if (!resolve(source, sub, allow, dst, &no))
		fail_msg("%s leads to %s", source, dst);
	assert_string_equal(no.code, code);
}

static void what_is_allowed__is_found(void **state)
{
	(void)state;
	assert_leads("ok", NULL, "ok", "ok");
	assert_leads("ok", "a/b", "ok", "ok/a/b");
	assert_leads("ok/in", "b", "ok", "ok/a/b");
	/* what is allowed may be behind a link itself */
	assert_leads("door/a", NULL, "door", "ok/a");
}

static void what_leads_out__is_refused(void **state)
{
	const char *code = "VOLUME::HOST_PATH_NOT_ALLOWED";

	(void)state;
	assert_refused("ok/out", NULL, "ok", code);
	assert_refused("ok", "out/secret", "ok", code);
	assert_refused("ok2", NULL, "ok", code);
	assert_refused("elsewhere", NULL, "ok", code);
	assert_refused("ok", NULL, "missing", code);
	/* nothing is made outside either */
	assert_refused("ok", "out/new", "ok", code);
	assert_int_equal(access("elsewhere/new", F_OK), -1);
}

static void what_is_missing__is_made(void **state)
{
	struct stat st;
	char path[256];

	(void)state;
	assert_leads("ok", "new/deep", "ok", "ok/new/deep");
	assert_int_equal(stat(in("ok/new/deep", path), &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_refused("ok/file", NULL, "ok", "VOLUME::INVALID_HOST_PATH");
	assert_refused("ok", "file/x", "ok", "VOLUME::HOST_PATH_NOT_FOUND");
	/* a link to nowhere is not made into what it names */
	assert_refused("ok", "dangling", "ok", "VOLUME::HOST_PATH_NOT_FOUND");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_allowed__is_found),
		cmocka_unit_test(what_leads_out__is_refused),
		cmocka_unit_test(what_is_missing__is_made),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
