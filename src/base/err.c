/* SPDX-License-Identifier: Apache-2.0 */
/* err.c - error notes, assertions, and allocation that must succeed */

#include "src/base/err.h"

#include <stdio.h>
#include <string.h>

#include "src/base/log.h"

int err_note(int r, const char *what, const char *file, int line)
{
	if (r < 0)
		log_debug("error %s (%s) at %s:%d", err_text(r), what, file,
			  line);
	return r;
}

const char *err_text(int r)
{
	const char *text = strerrordesc_np(r < 0 ? -r : r);

	return text ? text : "unknown error";
}

void must_failed(const char *cond, const char *file, int line)
{
	log_error("assertion failed: %s at %s:%d", cond, file, line);
	abort();
}

void *must_alloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	must(p != NULL);
	return p;
}

void *must_realloc(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	must(p != NULL);
	return p;
}

char *must_strdup(const char *s)
{
	char *copy = strdup(s);

	must(copy != NULL);
	return copy;
}
