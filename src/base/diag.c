/* SPDX-License-Identifier: Apache-2.0 */
/* diag.c - errors for people, and the nearest word to a misspelt one */

#include "src/base/diag.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int diag_set(struct diag *d, unsigned line, unsigned col, const char *fmt, ...)
{
	va_list args;

	if (!d || diag_is_set(d))
		return -EINVAL;
	d->line = line;
	d->col = col;
	va_start(args, fmt);
	(void)vsnprintf(d->msg, sizeof(d->msg), fmt, args);
	va_end(args);
	return -EINVAL;
}

const char *diag_text(const struct diag *d, char *dst, size_t size)
{
	int at = 0;

	if (size)
		dst[0] = '\0';
	if (d->file[0])
		at = snprintf(dst, size, "%s:", d->file);
	if (d->line && (size_t)at < size)
		at += snprintf(dst + at, size - (size_t)at, "%u:", d->line);
	if (d->line && d->col && (size_t)at < size)
		at += snprintf(dst + at, size - (size_t)at, "%u:", d->col);
	if ((size_t)at < size)
		(void)snprintf(dst + at, size - (size_t)at, "%s%s",
			       at ? " " : "", d->msg);
	return dst;
}

enum { WORD_MAX = 32 };

/* Levenshtein distance of two short words, case folded; large when long. */
static unsigned word_distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1], diagonal, above;
	size_t la = strlen(a), lb = strlen(b), i, j;

	if (la > WORD_MAX || lb > WORD_MAX)
		return UINT_MAX;
	for (j = 0; j <= lb; j++)
		row[j] = (unsigned)j;
	for (i = 1; i <= la; i++) {
		diagonal = row[0];
		row[0] = (unsigned)i;
		for (j = 1; j <= lb; j++) {
			above = row[j];
			row[j] = diagonal +
				 ((a[i - 1] | 0x20) != (b[j - 1] | 0x20));
			row[j] = MIN(row[j], above + 1);
			row[j] = MIN(row[j], row[j - 1] + 1);
			diagonal = above;
		}
	}
	return row[lb];
}

const char *diag_suggest(const char *typed, const char *const *words)
{
	unsigned best = 1 + (unsigned)strlen(typed) / 3, distance;
	const char *found = NULL;

	for (; *words; words++) {
		distance = word_distance(typed, *words);
		if (distance <= best) {
			best = distance - (distance > 0);
			found = *words;
		}
	}
	return found;
}
