/* SPDX-License-Identifier: Apache-2.0 */
/* save.h - new content for a path, of which nobody ever sees a half
 *
 * It is written to a file without a name beside the target (or one with a
 * hidden name, where the file system knows none without), gets the old one's
 * mode and owner, and is then renamed over it. So a full disk, a client that
 * leaves and a daemon that is killed lose nothing, and a reader sees the old
 * or the new. Links are followed: what they lead to is replaced.
 *
 * Where that cannot be, the new content is written into the old file once all
 * of it is there: the target is mounted over (EBUSY), has other hard links,
 * belongs to somebody whom we cannot give the new one to, or its directory is
 * not ours to write. Room for it is claimed beforehand where the file system
 * can. Devices and FIFOs are written as the content comes.
 *
 * Everything here may block, but for a FIFO that nobody reads.
 */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "src/base/attrib.h"
#include "src/base/span.h"
#include "src/execd/files/permission.h"

struct fault;
struct identity;

enum save_kind {
	SAVE_NONE,   /* zero: not begun, or over */
	SAVE_RENAME, /* .fd, or .temp is beside the target */
	SAVE_COPY,   /* .fd or .temp is to be copied into the target */
	SAVE_DIRECT, /* .fd is the target */
};

enum { SAVE_WAIT = 1, SAVE_MORE = 1 };

struct save {
	enum save_kind kind;
	int fd;		/* -1: closed, what it wrote has a name */
	char *target;	/* links followed */
	char *temp;	/* NULL: has no name */
	bool exclusive; /* may not replace anything */
	bool existed;
	struct stat old;
	struct permission permission;
	uint64_t copied;	   /* of SAVE_COPY */
	const struct identity *as; /* who it is done as; borrowed */
};

void save_init(struct save *s);
/* Makes the directories above it. p: what the new file gets; what it does not
 * say is the old file's, or by umask. 0; -errno with f set. */
WUNRES int save_open(struct save *s, const char *path,
		     const struct permission *p, struct fault *f);
/* Takes bytes off *in: all of them (0), or some and SAVE_WAIT: a FIFO is full
 * now. -errno with f set. */
WUNRES int save_write(struct save *s, struct span *in, struct fault *f);
/* There is no more: it gets mode and owner. */
WUNRES int save_close(struct save *s, struct fault *f);
/* It will be long until the commit: closes the descriptor if it can, for which
 * the file gets its hidden name now. */
WUNRES int save_shelve(struct save *s, struct fault *f);
/* Puts it in place. 0; SAVE_MORE: call again; -errno with f set, and the old
 * file is what it was (but for one that was being copied into). */
WUNRES int save_commit(struct save *s, struct fault *f);
/* Leaves nothing behind, removing it as who made it. Fine at any time. */
void save_fini(struct save *s);
