/* SPDX-License-Identifier: Apache-2.0 */
/* err.h - the error grammar of the whole project, and assertions
 *
 * A function that can fail returns int:
 *   0	 fine
 *   > 0 a documented condition of that one function (X_E_...); the direct
 *	 caller handles it and never passes it on
 *   < 0 -errno: fatal for the smallest thing around; passed on untouched
 *
 * err_origin(-E) where a fatal error is born, err_trace(r) where it passes
 * by: both print file:line to the debug log, so it arrives with its path.
 */
#pragma once

#include "src/base/attrib.h"

#define err_origin(r) err_note((r), "born", __FILE__, __LINE__)
#define err_trace(r)  err_note((r), "passed", __FILE__, __LINE__)

/* Returns r. Prints only when the log level is debug. */
int err_note(int r, const char *what, const char *file, int line);

/* Thread-safe text of an errno value (positive or negative). Static storage. */
const char *err_text(int r);

/* Always on. A role that is confused stops; the supervisor starts a new one. */
#define must(cond)                                              \
	do {                                                    \
		if (UNLIKELY(!(cond)))                          \
			must_failed(#cond, __FILE__, __LINE__); \
	} while (0)

NORETURN void must_failed(const char *cond, const char *file, int line);

/* malloc family that aborts: for set-up and for sizes no client chooses. */
void *must_alloc(size_t size); /* zeroed */
void *must_realloc(void *p, size_t size);
char *must_strdup(const char *s);
