/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - what a process of an isolated session may not do any more */
#pragma once

#include "src/base/attrib.h"

/* Before the user is changed: capabilities that can never come back. What stays
 * is what root needs to deal with files and processes of other users. 0 or
 * -errno. */
WUNRES int confine_bounds(void);
/* Last of all: the same for this process, no new privileges, no core files, and
 * a filter that refuses (EPERM) system calls by which a process changes
 * namespaces, mounts, looks into others or loads code into the kernel. 0 or
 * -errno. */
WUNRES int confine_self(void);
