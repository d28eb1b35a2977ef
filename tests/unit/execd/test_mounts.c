/* SPDX-License-Identifier: Apache-2.0 */
/* test_mounts.c - what is mounted, in the words of the kernel */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/execd/init/mounts.h"

#define LINE(root, point) \
	"36 35 98:0 " root " " point " rw,noatime master:1 - ext4 /dev/x rw\n"

static const char table[] =
	LINE("/", "/") LINE("/var/lib/docker/volumes/v/_data/a",
			    "/data") LINE("/with\\040blank\\134", "/a\\040b")
		LINE("/old", "/twice") LINE("/new", "/twice") LINE(
			"/d//deleted",
			"/gone") "broken\n"
				 "36 35 98:0 /last /last rw - ext4 /dev/x rw";

static void assert_root(const char *path, const char *want)
{
	char root[64];

	if (!mounts_find(span_str(table), span_str(path), root, sizeof(root)))
		fail_msg("%s was not found", path);
	assert_string_equal(root, want);
}

static void mounts__are_found(void **state)
{
	char root[64], small[8];

	(void)state;
	assert_root("/", "/");
	assert_root("/data", "/var/lib/docker/volumes/v/_data/a");
	assert_root("/a b", "/with blank\\");
	assert_root("/twice", "/new"); /* that which lies above */
	assert_root("/last", "/last");
	assert_false(
		mounts_find(span_str(table), SPAN("/dat"), root, sizeof(root)));
	assert_false(
		mounts_find(span_str(table), SPAN(""), root, sizeof(root)) &&
		root[0] == '/');
	assert_false(mounts_find(SPAN(""), SPAN("/"), root, sizeof(root)));
	assert_false(mounts_find(span_str(table), SPAN("/data"), small,
				 sizeof(small)));
}

static void mounts__are_the_folder_or_not(void **state)
{
	static const char folder[] = "/var/lib/docker/volumes/v/_data/a";
	static const struct {
		const char *root;
		bool is;
	} rows[] = {
		{ "/var/lib/docker/volumes/v/_data/a", true },
		/* on a file system of its own */
		{ "/docker/volumes/v/_data/a", true },
		{ "/volumes/v/_data/a", true },
		{ "/v/_data/a", true },
		/* too little to tell it from another */
		{ "/_data/a", false },
		{ "/a", false },
		{ "/", false },
		{ "", false },
		/* elsewhere */
		{ "/etc", false },
		{ "/var/lib/docker/volumes/v/_data", false },
		{ "/var/lib/docker/volumes/v/_data/a/b", false },
		{ "/var/lib/docker/volumes/v/_data/a//deleted", false },
		{ "/x/var/lib/docker/volumes/v/_data/a", false },
		{ "ume/v/_data/a", false },
		{ "/w/_data/a", false },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (mounts_is(span_str(rows[i].root), span_str(folder)) !=
		    rows[i].is)
			fail_msg("%s", rows[i].root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mounts__are_found),
		cmocka_unit_test(mounts__are_the_folder_or_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
