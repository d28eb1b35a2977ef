/* SPDX-License-Identifier: Apache-2.0 */
/* test_remove.c - trees removed while somebody does his worst to them
 *
 * The workload beside the daemon may swap any directory for a link at any
 * moment. Two things are proved here for every round: nothing outside the tree
 * is touched, and the removal ends.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/clock.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/remove.h"
#include "src/execd/files/walk.h"
#include "src/httpd/httpd.h"

enum { ROUNDS_MS = 3000, KEPT = 4 };

static char root[] = "/tmp/test_remove_XXXXXX";
static char tree[128], outside[128];

/* base, a slash, name, and the number when it is not negative. */
static void path_of(char dst[256], const char *base, const char *name, int i)
{
	if (i < 0)
		(void)snprintf(dst, 256, "%s/%s", base, name);
	else
		(void)snprintf(dst, 256, "%s/%s%d", base, name, i);
}

static void make(const char *base, const char *name)
{
	char path[256];

	path_of(path, base, name, -1);
	(void)mkdir(path, 0755);
}

static void touch(const char *base, const char *name, int i)
{
	char path[256];
	int fd;

	path_of(path, base, name, i);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd >= 0)
		(void)close(fd);
}

/* 0, or the status of what went wrong. */
static unsigned remove_all(const char *path)
{
	struct removal *r = removal_new(path);
	struct fault f = { 0 };
	uint64_t end = clock_ms() + 60000;

	while (removal_step(r, &f))
		assert_true(clock_ms() < end);
	r = removal_free(r);
	return f.status;
}

static void tree_make(void)
{
	int i;

	(void)mkdir(tree, 0755);
	make(tree, "a");
	make(tree, "a/b");
	make(tree, "a/b/c");
	for (i = 0; i < 4; i++) {
		touch(tree, "a/f", i);
		touch(tree, "a/b/f", i);
		touch(tree, "a/b/c/f", i);
	}
}

static int setup(void **state)
{
	int i;

	(void)state;
	assert_non_null(mkdtemp(root));
	(void)snprintf(tree, sizeof(tree), "%s/tree", root);
	(void)snprintf(outside, sizeof(outside), "%s/outside", root);
	assert_int_equal(mkdir(outside, 0755), 0);
	make(outside, "c");
	/* names that the tree has too */
	for (i = 0; i < KEPT; i++) {
		touch(outside, "f", i);
		touch(outside, "c/f", i);
	}
	return 0;
}

static unsigned kept(void)
{
	struct stat st;
	unsigned count = 0;
	char path[256];
	int i;

	for (i = 0; i < KEPT; i++) {
		(void)snprintf(path, sizeof(path), "%s/f%d", outside, i);
		count += !stat(path, &st);
		(void)snprintf(path, sizeof(path), "%s/c/f%d", outside, i);
		count += !stat(path, &st);
	}
	return count;
}

static int teardown(void **state)
{
	(void)state;
	(void)remove_all(tree);
	return remove_all(root) ? -1 : 0;
}

static void remove__plain(void **state)
{
	char link[160], file[160];
	struct stat st;

	(void)state;
	tree_make();
	(void)snprintf(link, sizeof(link), "%s/a/link", tree);
	(void)snprintf(file, sizeof(file), "%s/file", root);
	assert_int_equal(symlink(outside, link), 0);
	assert_int_equal(remove_all(tree), 0);
	assert_true(lstat(tree, &st) && errno == ENOENT);
	assert_int_equal(remove_all(tree), 0); /* is not there: fine */
	/* a link, a file */
	assert_int_equal(symlink(outside, tree), 0);
	assert_int_equal(remove_all(tree), 0);
	touch(root, "file", -1);
	assert_int_equal(remove_all(file), 0);
	assert_true(lstat(file, &st) && errno == ENOENT);
	assert_int_equal(kept(), 2 * KEPT);
	assert_int_equal(remove_all("/"), 400);
}

/* -- the adversary -------------------------------------------------------- */

static const char *const swapped[] = { "a", "a/b", "a/b/c" };

/* Every directory of the tree becomes a link behind every step there is. */
static void remove__swapped_behind_every_step(void **state)
{
	char at[256], link[256];
	struct removal *r;
	unsigned steps, which, i;
	struct fault f;
	bool more;

	(void)state;
	path_of(link, root, "link", -1);
	for (which = 0; which < ARRAY_LEN(swapped); which++) {
		path_of(at, tree, swapped[which], -1);
		more = true;
		for (steps = 0; more; steps++) {
			tree_make();
			assert_int_equal(symlink(outside, link), 0);
			f = (struct fault){ 0 };
			r = removal_new(tree);
			for (i = 0; i < steps && more; i++)
				more = removal_step(r, &f);
			(void)renameat2(AT_FDCWD, at, AT_FDCWD, link,
					RENAME_EXCHANGE);
			while (more && removal_step(r, &f))
				;
			r = removal_free(r);
			assert_true(!f.status || f.status == 500);
			assert_int_equal(kept(), 2 * KEPT);
			assert_int_equal(remove_all(link), 0);
			assert_int_equal(remove_all(tree), 0);
		}
		assert_true(steps > 10);
	}
}

static atomic_bool over;

/* Exchanges a directory of the tree with a link to `outside`, back and forth,
 * at each depth. */
static void *swap_run(void *arg)
{
	char at[3][256], link[256], gone[256];
	unsigned i = 0;

	(void)arg;
	(void)snprintf(link, sizeof(link), "%s/link", root);
	for (i = 0; i < 3; i++)
		(void)snprintf(at[i], sizeof(at[i]), "%s/%s", tree, swapped[i]);
	for (i = 0; !atomic_load(&over); i++) {
		/* the directory is still there when its other name was removed
		 * before it came back */
		(void)snprintf(gone, sizeof(gone), "%s/gone%u", root, i);
		if (unlink(link) && errno != ENOENT)
			(void)rename(link, gone);
		(void)!symlink(outside, link);
		(void)renameat2(AT_FDCWD, at[i % 3], AT_FDCWD, link,
				RENAME_EXCHANGE);
		(void)renameat2(AT_FDCWD, at[i % 3], AT_FDCWD, link,
				RENAME_EXCHANGE);
	}
	return NULL;
}

static void remove__raced_by_links(void **state)
{
	uint64_t end = clock_ms() + ROUNDS_MS;
	pthread_t thread;
	unsigned rounds = 0, status;
	char link[160];

	(void)state;
	(void)snprintf(link, sizeof(link), "%s/link", root);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_run, NULL), 0);
	while (clock_ms() < end || rounds < 300) {
		tree_make();
		status = remove_all(tree);
		/* a directory moved away while it was in it ends it */
		assert_true(!status || status == 500);
		assert_int_equal(kept(), 2 * KEPT);
		rounds++;
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("%u rounds\n", rounds);
	(void)remove_all(link);
	assert_int_equal(remove_all(tree), 0);
	assert_int_equal(kept(), 2 * KEPT);
}

/* Makes files as fast as it can where they are being removed. */
static void *fill_run(void *arg)
{
	int i;

	(void)arg;
	for (i = 0; !atomic_load(&over); i = (i + 1) % 1000) {
		make(tree, "a");
		touch(tree, "a/n", i);
	}
	return NULL;
}

static void remove__outruns_or_gives_up(void **state)
{
	pthread_t thread;
	unsigned status;

	(void)state;
	tree_make();
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, fill_run, NULL), 0);
	status = remove_all(tree);
	assert_true(!status || status == 500);
	atomic_store(&over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(remove_all(tree), 0);
}

/* -- walks of readers ----------------------------------------------------- */

static void walk__raced_by_links(void **state)
{
	uint64_t end = clock_ms() + ROUNDS_MS / 3;
	struct walk_entry entry;
	struct walk *w;
	pthread_t thread;
	unsigned steps;
	struct stat st, out;
	int fd;
	int r;

	(void)state;
	tree_make();
	assert_int_equal(stat(outside, &out), 0);
	atomic_store(&over, false);
	assert_int_equal(pthread_create(&thread, NULL, swap_run, NULL), 0);
	while (clock_ms() < end) {
		fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		w = walk_new(fd, span_str(tree), WALK_SORTED, 0);
		for (steps = 0; (r = walk_next(w, &entry)) > 0; steps++) {
			assert_true(steps < 100000);
			assert_int_equal(fstat(entry.dir_fd, &st), 0);
			assert_false(st.st_ino == out.st_ino &&
				     st.st_dev == out.st_dev);
		}
		w = walk_free(w);
	}
	atomic_store(&over, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void walk__order_and_depth(void **state)
{
	static const char *const want[] = { "d", "d/a", "d/b", "d.x", "e" };
	struct walk_entry entry;
	char path[256];
	struct walk *w;
	unsigned depth, i;
	int fd;

	(void)state;
	assert_int_equal(remove_all(tree), 0);
	(void)mkdir(tree, 0755);
	make(tree, "d");
	touch(tree, "d/b", -1);
	touch(tree, "d/a", -1);
	touch(tree, "e", -1);
	touch(tree, "d.x", -1);
	for (depth = 1; depth <= 2; depth++) {
		fd = open(tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		w = walk_new(fd, span_str(tree), WALK_SORTED, depth);
		for (i = 0; i < ARRAY_LEN(want); i++) {
			if (depth == 1 && want[i][1] == '/')
				continue;
			assert_int_equal(walk_next(w, &entry), 1);
			(void)snprintf(path, sizeof(path), "%s/%s", tree,
				       want[i]);
			assert_true(span_eq(entry.path, span_str(path)));
			assert_int_equal(entry.is_directory, i == 0);
		}
		assert_int_equal(walk_next(w, &entry), 0);
		w = walk_free(w);
	}
	assert_int_equal(remove_all(tree), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(remove__plain),
		cmocka_unit_test(remove__swapped_behind_every_step),
		cmocka_unit_test(remove__raced_by_links),
		cmocka_unit_test(remove__outruns_or_gives_up),
		cmocka_unit_test(walk__raced_by_links),
		cmocka_unit_test(walk__order_and_depth),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
