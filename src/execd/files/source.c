/* SPDX-License-Identifier: Apache-2.0 */
/* source.c - bytes or lines of a file */

#include "src/execd/files/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/files/fault.h"

static enum source_next failed(struct source *s, int r, struct fault *f)
{
	(void)fault_errno(f, r, "read", s->path);
	return SOURCE_FAULT;
}

static enum source_next no_file(struct source *s, mode_t mode, struct fault *f)
{
	(void)fault_set(f, 400, ANSWER_INVALID_FILE,
			"found %s, expected a file: %.600s",
			S_ISDIR(mode)	 ? "a directory"
			: S_ISFIFO(mode) ? "a FIFO"
			: S_ISSOCK(mode) ? "a socket"
					 : "a device",
			s->path);
	return SOURCE_FAULT;
}

/* Opening a device may do things: it is looked at before, and again behind,
 * because it may be another thing by then. */
static enum source_next source_open(struct source *s, struct fault *f)
{
	struct stat st;

	if (stat(s->path, &st))
		return failed(s, errno, f);
	if (!S_ISREG(st.st_mode))
		return no_file(s, st.st_mode, f);
	s->fd = open(s->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (s->fd < 0)
		return failed(s, errno, f);
	s->open = true;
	if (fstat(s->fd, &st))
		return failed(s, errno, f);
	if (!S_ISREG(st.st_mode))
		return no_file(s, st.st_mode, f);

	s->size = (uint64_t)st.st_size;
	(void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	s->line = 1;
	if (s->lines)
		return SOURCE_AGAIN;
	switch (range_parse(s->range_text, s->size, &s->range)) {
	case RANGE_NONE:
		return SOURCE_AGAIN;
	case RANGE_PART:
		s->is_part = true;
		s->at = s->range.first;
		return SOURCE_AGAIN;
	case RANGE_UNSATISFIABLE:
		(void)fault_set(f, 416, ANSWER_UNKNOWN,
				"found the range \"%.*s\", which a file of "
				"%llu bytes does not have",
				(int)MIN(s->range_text.len, 64),
				s->range_text.ptr, (unsigned long long)s->size);
		return SOURCE_FAULT;
	}
	abort();
}

/* Up to `want` bytes into the piece; fewer only at the end of the file. How
 * many, or -errno. */
static ssize_t piece_read(struct source *s, size_t want)
{
	size_t len = 0;
	ssize_t n = 1;

	if (!s->piece)
		s->piece = must_realloc(NULL, SOURCE_PIECE);
	while (len < want && n > 0) {
		n = pread(s->fd, s->piece + len, want - len,
			  (off_t)(s->at + len));
		if (n < 0 && errno == EINTR)
			n = 1;
		else if (n < 0)
			return -errno;
		else
			len += (size_t)n;
	}
	return (ssize_t)len;
}

/* -- bytes ---------------------------------------------------------------- */

/* The whole of a file of the kernel, or the beginning of one that is long. */
static enum source_next small_next(struct source *s, size_t len)
{
	s->size = len;
	s->size_unknown = len == SOURCE_PIECE;
	s->at = len;
	s->told = span_of(s->piece, len);
	s->ended = !s->size_unknown;
	return SOURCE_TOLD;
}

static enum source_next bytes_next(struct source *s, struct fault *f)
{
	uint64_t end = s->is_part ? s->range.last + 1 : s->size;
	bool first = !s->at && !s->is_part;
	size_t want = SOURCE_PIECE;
	ssize_t n;

	if (!s->size_unknown && !(first && !s->size))
		want = (size_t)MIN((uint64_t)want, end - s->at);
	n = piece_read(s, want);
	if (n < 0)
		return failed(s, (int)n, f);
	if (first && (!s->size || (size_t)n < want))
		return small_next(s, (size_t)n);
	if ((size_t)n < want && !s->size_unknown) {
		(void)fault_set(f, 500, ANSWER_RUNTIME_ERROR,
				"the file became shorter while it was read: "
				"%.600s",
				s->path);
		return SOURCE_FAULT;
	}
	s->at += (size_t)n;
	s->told = span_of(s->piece, (size_t)n);
	s->ended = s->size_unknown ? (size_t)n < want : s->at == end;
	return SOURCE_TOLD;
}

/* -- lines ---------------------------------------------------------------- */

/* Bytes of s up to and with the end of its n-th line end, or all; *n is what is
 * left to be found. */
static size_t lines_skip(struct span s, uint64_t *n)
{
	const char *at = s.ptr, *end = s.ptr + s.len, *hit;

	while (*n && at < end) {
		hit = memchr(at, '\n', (size_t)(end - at));
		at = hit ? hit + 1 : end;
		*n -= hit != NULL;
	}
	return (size_t)(at - s.ptr);
}

static enum source_next lines_next(struct source *s, struct fault *f)
{
	uint64_t skip = s->line_first - MIN(s->line, s->line_first), left;
	struct span bytes;
	ssize_t n;

	n = piece_read(s, SOURCE_PIECE);
	if (n < 0)
		return failed(s, (int)n, f);
	s->at += (size_t)n;
	s->ended = n < SOURCE_PIECE;
	bytes = span_of(s->piece, (size_t)n);
	left = skip;
	bytes = span_from(bytes, lines_skip(bytes, &left));
	s->line += skip - left;
	if (left && !s->ended)
		return SOURCE_AGAIN;
	s->told = span_of(bytes.ptr, 0);
	if (left)
		return SOURCE_TOLD; /* there are not so many lines */

	left = s->line_count;
	s->told = span_of(bytes.ptr, lines_skip(bytes, &left));
	s->line_count = left;
	s->ended = s->ended || !left;
	return SOURCE_TOLD;
}

/* ------------------------------------------------------------------------- */

enum source_next source_next(struct source *s, struct fault *f)
{
	enum source_next next;

	if (!s->open) {
		next = source_open(s, f);
		if (next == SOURCE_FAULT)
			return next;
	}
	return s->lines ? lines_next(s, f) : bytes_next(s, f);
}

void source_drop(struct source *s)
{
	free(s->piece);
	s->piece = NULL;
}

void source_fini(struct source *s)
{
	source_drop(s);
	if (s->open)
		s->fd = fd_close(s->fd);
	s->open = false;
}
