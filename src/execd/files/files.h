/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - files and directories of clients (contract 5.6)
 *
 * Handlers run in the loop and only read what was asked; the work is done by
 * workers.h. Whole answers are a struct job; listings, downloads and uploads
 * are streams with machines of their own, which stand in .live so that the end
 * of the daemon finds them.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/list.h"

struct execd;
struct files;
struct workers;

struct files {
	struct execd *execd;
	struct workers *workers;
	struct list live;
};

/* Something that has a request and waits for its client. */
struct files_live {
	struct list link;
	/* The daemon ends: end the request and free yourself. */
	void (*stop)(struct files_live *l);
};

WUNRES int files_new(struct execd *e, struct files **ret);
/* Ends every request of it; where a file system does not answer, nothing is
 * freed and the process has to end. NULL is fine. */
struct files *files_free(struct files *f);
