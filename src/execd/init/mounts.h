/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.h - is what is mounted here what was meant to be?
 *
 * A container runtime follows links when it mounts a folder of the node. Who
 * may write there can put one in the place of the folder at the last moment.
 * What was mounted then the kernel tells in /proc/self/mountinfo, and it cannot
 * be changed any more. So we look before anything of the sandbox runs, and if
 * it is another folder nothing ever runs.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

/* The exit status when it is not. */
enum { MOUNTS_EXIT = 121 };

/* The flag, once for each: PATH:FOLDER, the path here and the folder of the
 * node; neither holds a colon. */
#define MOUNTS_FLAG "confirm-mount"

/* Which folder of its file system is mounted at path, in the words of
 * mountinfo (the uppermost, when several are): unescaped, into dst. False:
 * none, or it is too long. */
WUNRES bool mounts_find(struct span mountinfo, struct span path, char *dst,
			size_t size);
/* Is that the folder? Where it lies on another file system than "/" the path in
 * there is the end of the whole one; the last three names must be among it. */
WUNRES bool mounts_is(struct span root, struct span folder);
/* Looks at each flag in front of "--". Ends the process, with a sentence on the
 * log, if one is not as it says. */
void mounts_confirm(char **argv);
