/* SPDX-License-Identifier: Apache-2.0 */
/* fault.h - why file work failed, on its way from a thread to the answer
 *
 * The first one wins. What is not there is 404 FILE_NOT_FOUND wherever it
 * shows, because clients tell it by that code; everything else that a system
 * call refuses is RUNTIME_ERROR (500, see fault_status) with the reason in words.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/execd/answer.h"

enum { FAULT_TEXT_MAX = 900 };

struct fault {
	unsigned status; /* 0: none */
	enum answer_code code;
	char text[FAULT_TEXT_MAX];
};

static inline bool fault_is_set(const struct fault *f)
{
	return f->status;
}

/* Always -EINVAL, so that a caller can return it. */
int fault_set(struct fault *f, unsigned status, enum answer_code code,
	      const char *fmt, ...) PRINTF(4, 5);
/* "could not <what> <path>: <reason>"; r: an errno value, of either sign.
 * Returns the negative one. */
int fault_errno(struct fault *f, int r, const char *what, const char *path);
/* What a system call refused is 500; what it refuses the user whom the thread
 * works for (identity.h) is 403. */
unsigned fault_status(int r);
/* An errno value, of either sign, in words. */
const char *fault_reason(int r);
/* Ends the request. */
void fault_answer(const struct fault *f, struct httpd_request *r);
