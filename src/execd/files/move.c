/* SPDX-License-Identifier: Apache-2.0 */
/* move.c - POST /files/mv: [{src, dest}]
 *
 * A rename that replaces nothing, as one step of the kernel. Onto another file
 * system a file is copied beside the destination and put in place; a tree is
 * not, because half of one is worse than an error.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/execd.h"
#include "src/execd/files/job.h"
#include "src/execd/files/make.h"
#include "src/execd/files/path.h"
#include "src/execd/files/permission.h"
#include "src/execd/files/save.h"
#include "src/text/json.h"

enum { COPY_BYTES = 256 * 1024 };

/* A file on its way to another file system. */
struct crossing {
	int from_fd;
	bool written;
	struct stat st;
	struct save save;
	char *piece;
};

struct moving {
	struct job job;
	struct json *body;
	size_t next;
	bool checked;
	char src[PATH_BYTES], dest[PATH_BYTES];
	struct crossing *crossing; /* of the pair at hand */
};

/* -- what was asked ------------------------------------------------------- */

static int name_expand(const struct json *item, const char *member,
		       char dst[PATH_BYTES], struct diag *d)
{
	struct span text = SPAN("");
	int r;

	r = json_get_text(item, "item", member, &text, d);
	return r < 0 ? r : path_expand(text, dst, d);
}

static bool item_read(struct moving *x, size_t index)
{
	const struct json *item = json_item(x->body, index);
	const char *member = "src";
	struct diag d = { 0 };
	int r;

	r = json_want(item, JSON_KIND_OBJECT, "item", &d);
	if (!r)
		r = name_expand(item, "src", x->src, &d);
	if (!r) {
		member = "dest";
		r = name_expand(item, "dest", x->dest, &d);
	}
	if (r)
		(void)fault_set(&x->job.fault, 400, ANSWER_INVALID_REQUEST_BODY,
				"[%zu]: %s: %s", index, member, d.msg);
	return !r;
}

static void check_all(struct moving *x)
{
	size_t i;

	for (i = 0; i < json_count(x->body); i++)
		if (!item_read(x, i))
			return;
}

/* -- onto another file system --------------------------------------------- */

static struct crossing *crossing_free(struct crossing *c)
{
	if (!c)
		return NULL;
	save_fini(&c->save);
	(void)fd_close(c->from_fd);
	free(c->piece);
	free(c);
	return NULL;
}

static struct crossing *crossing_new(struct moving *x)
{
	struct crossing *c = must_alloc(sizeof(*c));
	struct fault *f = &x->job.fault;
	struct permission same;

	save_init(&c->save);
	c->save.exclusive = true;
	c->piece = must_realloc(NULL, COPY_BYTES);
	c->from_fd = open(x->src, O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
					  O_NOCTTY | O_CLOEXEC);
	if (c->from_fd < 0 || fstat(c->from_fd, &c->st)) {
		(void)fault_errno(f, errno, "move", x->src);
		return crossing_free(c);
	}
	if (!S_ISREG(c->st.st_mode)) {
		(void)fault_set(f, 500, ANSWER_RUNTIME_ERROR,
				"found no file, and only files are moved to "
				"another file system: %.600s",
				x->src);
		return crossing_free(c);
	}
	same = (struct permission){
		.has_mode = true,
		.mode = c->st.st_mode & 07777,
		.uid = geteuid() ? (uid_t)-1 : c->st.st_uid,
		.gid = geteuid() ? (gid_t)-1 : c->st.st_gid,
	};
	if (save_open(&c->save, x->dest, &same, f))
		return crossing_free(c);
	return c;
}

/* One piece. 0: there is more; 1: all is there; -errno with f set. */
static int crossing_copy(struct crossing *c, const char *src, struct fault *f)
{
	struct span bytes;
	ssize_t n;

	n = read(c->from_fd, c->piece, COPY_BYTES);
	if (n < 0)
		return errno == EINTR ? 0 : fault_errno(f, errno, "read", src);
	bytes = span_of(c->piece, (size_t)n);
	return n ? save_write(&c->save, &bytes, f) : 1;
}

static int crossing_put(struct moving *x, struct crossing *c)
{
	const struct timespec times[2] = { c->st.st_atim, c->st.st_mtim };
	int r;

	(void)futimens(c->save.fd, times);
	r = save_close(&c->save, &x->job.fault);
	if (!r)
		r = save_commit(&c->save, &x->job.fault);
	if (!r && unlink(x->src))
		r = fault_errno(&x->job.fault, errno, "remove", x->src);
	return r;
}

/* False: the pair is done, or the fault is set. */
static bool crossing_step(struct moving *x)
{
	int r;

	r = crossing_copy(x->crossing, x->src, &x->job.fault);
	if (!r)
		return true;
	if (r > 0)
		(void)!crossing_put(x, x->crossing);
	x->crossing = crossing_free(x->crossing);
	return false;
}

/* -- renames -------------------------------------------------------------- */

/* Where the kernel or the file system knows no such rename, it is two steps. */
static int rename_new(const char *src, const char *dest)
{
	struct stat st;

	if (!renameat2(AT_FDCWD, src, AT_FDCWD, dest, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (!lstat(dest, &st))
		return -EEXIST;
	return rename(src, dest) ? -errno : 0;
}

/* False: the fault is set. */
static bool move_one(struct moving *x)
{
	struct fault *f = &x->job.fault;
	struct stat st;
	int r;

	if (lstat(x->src, &st)) {
		(void)fault_errno(f, errno, "move", x->src);
		return false;
	}
	if (make_parents(x->dest, NULL, f))
		return false;
	r = rename_new(x->src, x->dest);
	if (r == -EXDEV && !lstat(x->dest, &st))
		r = -EEXIST;
	if (r == -EXDEV) {
		x->crossing = crossing_new(x);
		return x->crossing;
	}
	if (r == -EEXIST)
		(void)fault_set(f, 500, ANSWER_RUNTIME_ERROR,
				"the destination exists already: %.600s",
				x->dest);
	else if (r)
		(void)fault_set(f, fault_status(r), ANSWER_RUNTIME_ERROR,
				"could not move %.400s to %.400s: %s", x->src,
				x->dest, fault_reason(r));
	return !r;
}

static bool moving_run(struct job *j)
{
	struct moving *x = container_of(j, struct moving, job);

	if (!x->checked) {
		check_all(x);
		x->checked = true;
		return !fault_is_set(&j->fault);
	}
	if (x->crossing)
		return crossing_step(x) || !fault_is_set(&j->fault);
	if (x->next == json_count(x->body))
		return false;
	return item_read(x, x->next++) && move_one(x);
}

static void moving_free(struct job *j)
{
	struct moving *x = container_of(j, struct moving, job);

	x->crossing = crossing_free(x->crossing);
	x->body = json_free(x->body);
	free(x);
}

void files_move(void *ctx, struct httpd_request *r)
{
	struct json *body = answer_body_array(r);
	struct moving *x;

	if (!body)
		return;
	x = must_alloc(sizeof(*x));
	x->body = body;
	x->job.run = moving_run;
	x->job.free = moving_free;
	job_start(ctx, r, &x->job);
}
