/* SPDX-License-Identifier: Apache-2.0 */
/* replace.c - search in pieces, write what comes of it
 *
 * How it works: a window on the file. What is found in it is written as the new
 * text; of what is behind the last find, all but the last bytes (one less than
 * the text has) can be written, because nothing can begin there any more; they
 * stay in the window, and the next piece is read behind them. A first round
 * only looks for the first find.
 */

#include "src/execd/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/path.h"
#include "src/execd/files/save.h"

enum {
	PIECE_BYTES = 256 * 1024,
	STEP_BYTES = 4 * 1024 * 1024, /* written in one step */
	OUT_BYTES = 64 * 1024,	      /* small pieces are written together */
};

enum phase { OPEN, LOOK, WRITE, PUT, OVER };

struct replacement {
	enum phase phase;
	char path[PATH_BYTES];
	struct span old, new;
	int fd;
	struct stat before;
	char *window;	 /* PIECE_BYTES and old.len */
	size_t have, at; /* bytes in it; those done with */
	bool read_all;
	struct buf out;
	struct save save;
	uint64_t count;
};

struct replacement *replacement_new(const char *path, struct span old,
				    struct span new)
{
	struct replacement *x = must_alloc(sizeof(*x));

	(void)span_copy(span_str(path), x->path, sizeof(x->path));
	x->old = old;
	x->new = new;
	x->fd = -1;
	x->window = must_realloc(NULL, PIECE_BYTES + old.len);
	buf_init(&x->out, OUT_BYTES);
	save_init(&x->save);
	return x;
}

struct replacement *replacement_free(struct replacement *x)
{
	if (!x)
		return NULL;
	save_fini(&x->save);
	buf_fini(&x->out);
	(void)fd_close(x->fd);
	free(x->window);
	free(x);
	return NULL;
}

uint64_t replacement_count(const struct replacement *x)
{
	return x->count;
}

static int file_open(struct replacement *x, struct fault *f)
{
	if (stat(x->path, &x->before))
		return fault_errno(f, errno, "read", x->path);
	if (S_ISREG(x->before.st_mode))
		x->fd = open(x->path,
			     O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	else
		return fault_set(f, 400, ANSWER_INVALID_FILE,
				 "found no file but something else: %.600s",
				 x->path);
	if (x->fd < 0 || fstat(x->fd, &x->before))
		return fault_errno(f, errno, "read", x->path);
	x->phase = LOOK;
	return 0;
}

/* More of the file behind what is in the window, which was done with up to
 * .at. */
static int window_fill(struct replacement *x, struct fault *f)
{
	ssize_t n;

	memmove(x->window, x->window + x->at, x->have - x->at);
	x->have -= x->at;
	x->at = 0;
	n = read(x->fd, x->window + x->have, PIECE_BYTES);
	if (n < 0)
		return errno == EINTR ? 0
				      : fault_errno(f, errno, "read", x->path);
	x->have += (size_t)n;
	x->read_all = !n;
	return 0;
}

static const char *window_find(const struct replacement *x)
{
	return memmem(x->window + x->at, x->have - x->at, x->old.ptr,
		      x->old.len);
}

/* Where the bytes end that no find can begin in. */
static size_t window_sure(const struct replacement *x)
{
	size_t keep = x->read_all ? 0 : x->old.len - 1;

	return x->have - MIN(keep, x->have - x->at);
}

/* Is there anything to do at all? */
static int look(struct replacement *x, struct fault *f)
{
	if (window_fill(x, f))
		return -EINVAL;
	if (!window_find(x)) {
		x->at = window_sure(x);
		x->phase = x->read_all ? OVER : LOOK;
		return 0;
	}
	x->have = x->at = 0;
	x->read_all = false;
	x->phase = WRITE;
	if (lseek(x->fd, 0, SEEK_SET) < 0)
		return fault_errno(f, errno, "read", x->path);
	return save_open(&x->save, x->path, &PERMISSION_NONE, f);
}

static int out_flush(struct replacement *x, struct fault *f)
{
	struct span bytes = buf_peek(&x->out);
	int r;

	r = save_write(&x->save, &bytes, f);
	buf_clear(&x->out);
	return r;
}

static int out_put(struct replacement *x, struct span bytes, struct fault *f)
{
	if (!buf_put(&x->out, bytes))
		return 0;
	if (out_flush(x, f))
		return -EINVAL;
	return buf_put(&x->out, bytes) ? save_write(&x->save, &bytes, f) : 0;
}

/* Everything in the window that is sure, but not more than a step's worth. */
static int write_some(struct replacement *x, struct fault *f)
{
	const char *hit;
	struct span plain;
	size_t wrote = 0;
	int r = 0;

	while (!r && wrote < STEP_BYTES) {
		hit = window_find(x);
		plain = span_of(
			x->window + x->at,
			(hit ? (size_t)(hit - x->window) : window_sure(x)) -
				x->at);
		x->at += plain.len;
		wrote += plain.len + x->new.len;
		r = out_put(x, plain, f);
		if (r || !hit)
			break;
		x->at += x->old.len;
		x->count++;
		r = out_put(x, x->new, f);
	}
	return r;
}

static int write_step(struct replacement *x, struct fault *f)
{
	if (x->have - x->at < x->old.len && !x->read_all && window_fill(x, f))
		return -EINVAL;
	if (write_some(x, f))
		return -EINVAL;
	if (!x->read_all || x->at < x->have)
		return 0;
	x->phase = PUT;
	return out_flush(x, f) ? -EINVAL : save_close(&x->save, f);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino &&
	       a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec &&
	       a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static int put(struct replacement *x, struct fault *f)
{
	struct stat now;
	int r;

	/* not while it is being copied into: then we are who changes it */
	if (!x->save.copied &&
	    (stat(x->path, &now) || !is_same(&now, &x->before)))
		return fault_set(f, 500, ANSWER_RUNTIME_ERROR,
				 "the file was changed by somebody else while "
				 "it was rewritten: %.600s",
				 x->path);
	r = save_commit(&x->save, f);
	if (!r)
		x->phase = OVER;
	return MIN(r, 0);
}

bool replacement_step(struct replacement *x, struct fault *f)
{
	int r = 0;

	switch (x->phase) {
	case OPEN:
		r = file_open(x, f);
		break;
	case LOOK:
		r = look(x, f);
		break;
	case WRITE:
		r = write_step(x, f);
		break;
	case PUT:
		r = put(x, f);
		break;
	case OVER:
		break;
	}
	return !r && x->phase != OVER;
}
