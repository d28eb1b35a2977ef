/* SPDX-License-Identifier: Apache-2.0 */
/* listing.c - trees told as arrays: /directories/list and /files/search
 *
 * How it works: a thread walks and writes entries until there is a piece to
 * send; the loop sends it, waits until the client has room, and lets the
 * thread go on. So a listing of any size costs a piece, and the names of the
 * directories that the walk is in. What fits into one piece is answered whole,
 * with its length, and what fails before the first piece as an ordinary error;
 * later only the end of the connection can say so.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/execd/execd.h"
#include "src/execd/files/entry.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/files.h"
#include "src/execd/files/glob.h"
#include "src/execd/files/path.h"
#include "src/execd/files/walk.h"
#include "src/execd/files/workers.h"
#include "src/text/json.h"

enum {
	PIECE_BYTES = 128 * 1024,
	ENTRY_BYTES_MAX = 64 * 1024, /* the longest path, escaped twice */
	DEPTH_MAX = 100000,
};

struct listing {
	struct files_live live;
	struct work work;
	struct files *files;
	struct httpd_request *request;

	/* what was asked */
	char path[PATH_BYTES];
	struct glob *glob; /* NULL: list, else search */
	unsigned depth;

	/* the thread's, while it works */
	struct walk *walk; /* NULL: not begun */
	struct entry_names names;
	struct json_out json;
	struct buf out;
	struct fault fault;
	bool ended; /* the array is closed */

	/* the loop's */
	bool working, started, gone;
};

/* -- on a thread ---------------------------------------------------------- */

static void tell(struct listing *l, int dir_fd, const char *name,
		 struct span path)
{
	struct statx st;

	if (entry_stat(dir_fd, name, &st))
		return; /* gone since it was seen */
	/* a search is for files, whatever the directory said of them */
	if (l->glob && S_ISDIR(st.stx_mode))
		return;
	entry_put(&l->names, &l->json, path, &st);
}

static void listing_end(struct listing *l)
{
	json_close(&l->json);
	must(!json_done(&l->json));
	l->ended = true;
}

static int list_refuse(struct listing *l, int err)
{
	struct statx st;

	if ((err != ENOTDIR && err != ELOOP) ||
	    entry_stat(AT_FDCWD, l->path, &st))
		return fault_errno(&l->fault, err, "list", l->path);
	return fault_set(&l->fault, 400, ANSWER_INVALID_REQUEST_BODY,
			 "found %s, expected a directory: %.600s",
			 S_ISLNK(st.stx_mode) ? "a symbolic link" : "a file",
			 l->path);
}

/* A search that begins at a file looks at that file. */
static int search_file(struct listing *l, int err)
{
	struct statx st;

	if (err != ENOTDIR || entry_stat(AT_FDCWD, l->path, &st))
		return fault_errno(&l->fault, err, "search", l->path);
	if (glob_matches(l->glob, span_str(path_base(l->path))))
		tell(l, AT_FDCWD, l->path, span_str(l->path));
	listing_end(l);
	return 0;
}

/* The root of a search may be a link to a directory, that of a list not. */
static int listing_open(struct listing *l)
{
	int fd = open(l->path, O_RDONLY | O_DIRECTORY | O_NONBLOCK | O_CLOEXEC |
				       (l->glob ? 0 : O_NOFOLLOW));

	json_start(&l->json, &l->out);
	json_open_array(&l->json, NULL);
	if (fd < 0)
		return l->glob ? search_file(l, errno) : list_refuse(l, errno);
	if (!l->glob && !l->depth) {
		(void)fd_close(fd);
		listing_end(l);
		return 0;
	}
	l->walk = walk_new(fd, span_str(l->path), WALK_SORTED, l->depth);
	return 0;
}

static void walk_fault(struct listing *l, int r)
{
	char path[PATH_BYTES] = "";

	(void)span_copy(walk_path(l->walk), path, sizeof(path));
	if (r == -ENOMEM)
		(void)fault_set(&l->fault, 500, ANSWER_RUNTIME_ERROR,
				"found a directory with more than %d MiB of "
				"names: %.600s",
				WALK_BYTES_MAX >> 20, path);
	else
		(void)fault_errno(&l->fault, r, "read", path);
}

/* One entry of the walk. False: nothing more for now. */
static bool listing_next(struct listing *l)
{
	struct walk_entry entry;
	int r;

	r = walk_next(l->walk, &entry);
	if (r < 0) {
		walk_fault(l, r);
		return false;
	}
	if (!r) {
		listing_end(l);
		return false;
	}
	if (!l->glob || (!entry.is_directory &&
			 glob_matches(l->glob, span_str(entry.name))))
		tell(l, entry.dir_fd, entry.name, entry.path);
	return buf_len(&l->out) < PIECE_BYTES;
}

static enum work_next listing_step(struct work *w)
{
	struct listing *l = container_of(w, struct listing, work);
	uint64_t until = clock_ms() + WORK_SLICE_MS;

	if (!l->walk && listing_open(l))
		return WORK_DONE;
	while (!l->ended && listing_next(l))
		if (clock_ms() >= until)
			return WORK_AGAIN;
	return WORK_DONE;
}

/* -- in the loop ---------------------------------------------------------- */

static void listing_free(struct listing *l)
{
	list_remove(&l->live.link);
	(void)walk_free(l->walk);
	(void)glob_free(l->glob);
	buf_fini(&l->out);
	free(l);
}

/* Whatever happened to it, the reply is over. */
static void listing_abort(struct listing *l)
{
	if (!l->started && !fault_is_set(&l->fault))
		(void)fault_set(&l->fault, 503, ANSWER_RUNTIME_ERROR,
				"the daemon is ending");
	if (!l->started)
		fault_answer(&l->fault, l->request);
	else
		httpd_stream_abort(l->request);
	listing_free(l);
}

static void listing_stop(struct files_live *live)
{
	listing_abort(container_of(live, struct listing, live));
}

static void listing_go_on(struct listing *l)
{
	l->working = true;
	workers_give(l->files->workers, &l->work);
}

static void on_room(void *user, struct httpd_request *r)
{
	struct listing *l = user;

	(void)r;
	if (!l->working)
		listing_go_on(l);
}

static void on_gone(void *user, struct httpd_request *r)
{
	struct listing *l = user;

	(void)r;
	l->gone = true;
	if (!l->working)
		listing_abort(l);
	/* l may be freed */
}

static void piece_send(struct listing *l)
{
	int r;

	if (!l->started) {
		l->started = true;
		httpd_stream_start(l->request, 200, "application/json",
				   on_gone);
	}
	r = httpd_stream_write(l->request, buf_peek(&l->out));
	if (r) {
		/* -EPIPE: nobody is there; pieces are sent into room only */
		listing_abort(l);
		return;
	}
	buf_clear(&l->out);
	if (l->ended) {
		httpd_stream_end(l->request);
		listing_free(l);
		return;
	}
	httpd_stream_on_room(l->request, on_room);
}

static void listing_done(struct work *w)
{
	struct listing *l = container_of(w, struct listing, work);

	l->working = false;
	if (fault_is_set(&l->fault) || l->gone ||
	    workers_are_ending(l->files->workers)) {
		listing_abort(l);
	} else if (l->ended && !l->started) {
		answer_json(l->request, 200, &l->out);
		listing_free(l);
	} else {
		piece_send(l);
	}
}

/* Takes glob. depth: of a list. Answers itself when the path is
 * none. */
static void listing_start(struct execd *e, struct httpd_request *r,
			  struct glob *glob, unsigned depth)
{
	struct listing *l = must_alloc(sizeof(*l));
	struct diag d = { 0 };
	int bad;

	list_init(&l->live.link);
	list_init(&l->work.link);
	l->live.stop = listing_stop;
	l->work.step = listing_step;
	l->work.done = listing_done;
	identity_of(r, &l->work.as);
	l->files = e->files;
	l->request = r;
	l->glob = glob;
	l->depth = depth;
	buf_init(&l->out, PIECE_BYTES + ENTRY_BYTES_MAX);
	bad = path_expand_as(&l->work.as, httpd_query(r, "path"), l->path, &d);
	if (bad) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "path: %s",
			     d.msg);
		listing_free(l);
		return;
	}
	list_push(&e->files->live, &l->live.link);
	httpd_set_user(r, l);
	listing_go_on(l);
}

/* -- routes --------------------------------------------------------------- */

static bool has_path(struct httpd_request *r)
{
	if (httpd_query(r, "path").len)
		return true;
	answer_error(r, 400, ANSWER_MISSING_QUERY,
		     "the query parameter \"path\" is missing");
	return false;
}

void files_search(void *ctx, struct httpd_request *r)
{
	struct span pattern = httpd_query(r, "pattern");
	struct glob *glob = NULL;
	struct diag d = { 0 };

	if (!has_path(r))
		return;
	if (glob_new(pattern.len ? pattern : SPAN("**"), &glob, &d)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "pattern: %s",
			     d.msg);
		return;
	}
	listing_start(ctx, r, glob, 0);
}

void directories_list(void *ctx, struct httpd_request *r)
{
	struct span text = httpd_query(r, "depth");
	uint64_t depth = 1;

	if (!has_path(r))
		return;
	if (text.len && !span_parse_u64(text, &depth)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "depth: found \"%.*s\", expected a whole number "
			     "of 0 or more",
			     (int)MIN(text.len, 64), text.ptr);
		return;
	}
	listing_start(ctx, r, NULL, (unsigned)MIN(depth, (uint64_t)DEPTH_MAX));
}
