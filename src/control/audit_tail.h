/* SPDX-License-Identifier: Apache-2.0 */
/* audit_tail.h - the audit file as an event stream: its end, then what follows
 *
 * Each record is one event: "data: {...}" and an empty line. The file is read
 * by itself, so records of before a restart are there too; a rotated file is
 * followed to its end and then the new one from its beginning.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct audit_tails;
struct httpd_request;
struct loop;

enum {
	AUDIT_TAILS_MAX = 32,
	AUDIT_LINES_DEFAULT = 100,
	AUDIT_LINES_MAX = 10000,
	AUDIT_LINE_MAX = 64 * 1024, /* longer lines are left out */
};

struct audit_question {
	struct span sandbox; /* empty = all */
	unsigned lines;	     /* begin that many records before the end */
	bool follow;
};

struct audit_tails *audit_tails_new(struct loop *loop, const char *path);
struct audit_tails *audit_tails_free(struct audit_tails *all);
/* Streams the answer to r. */
void audit_tail_start(struct audit_tails *all, const struct audit_question *q,
		      struct httpd_request *r);
