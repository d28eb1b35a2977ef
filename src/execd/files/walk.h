/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h - what is in a tree, one thing after the other, never through a link
 *
 * A walk goes by file descriptors: each directory is opened by its name in the
 * one above, and only if it is a directory at that moment. Whoever swaps one
 * for a symbolic link meanwhile finds that the walk does not follow. At most
 * WALK_OPEN_MAX directories are open at once, however deep the tree: those
 * above are found again by "..", and only when they are still the ones they
 * were. Blocking; one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct walk;

enum {
	WALK_OPEN_MAX = 32,
	WALK_BYTES_MAX = 64 * 1024 * 1024, /* of names held at once */
};

enum walk_order {
	/* A directory, then what is in it; names in the order of their bytes.
	 * All names of a directory are held. What cannot be read is left out.
	 */
	WALK_SORTED,
	/* As the kernel has them, a batch of names at a time; each directory
	 * once more behind what is in it. For removing. */
	WALK_REMOVING,
};

struct walk_entry {
	int dir_fd;	  /* the directory that it is in, and */
	const char *name; /* its name there */
	struct span path; /* of the whole, beginning with the root's */
	bool is_directory;
	bool leaving;	/* WALK_REMOVING: everything in it was told */
	unsigned depth; /* of what is in the root: 1 */
};

/* Walks what is in the directory; takes fd (open for reading). path: what its
 * entries' paths begin with. depth: how deep, 0 = no bound. */
struct walk *walk_new(int fd, struct span path, enum walk_order order,
		      unsigned depth);
struct walk *walk_free(struct walk *w);
/* 1: *ret is the next entry, borrowed until the next call; 0: the end; -errno:
 * the walk is over (-ENOMEM: too many names), walk_path() says where. */
WUNRES int walk_next(struct walk *w, struct walk_entry *ret);
/* WALK_REMOVING: what was just told is a directory, or the one that was left
 * has new things in it: the walk goes into it. */
void walk_again(struct walk *w);
struct span walk_path(const struct walk *w);
