/* SPDX-License-Identifier: Apache-2.0 */
/* download.c - GET /files/download
 *
 * How it works: a thread reads a piece, the loop sends it, and asks for the
 * next when the connection has room. A download that nobody reads therefore
 * holds what httpd holds unsent, and no thread. The head leaves with the first
 * piece: until then a failure is an ordinary error, afterwards the connection
 * is cut, so that no client takes a part for the whole.
 */

#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/disposition.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/files.h"
#include "src/execd/files/source.h"
#include "src/execd/files/workers.h"

enum { DISPOSITION_MAX = 2048, RANGE_TEXT_MAX = 80 };

struct download {
	struct files_live live;
	struct work work;
	struct files *files;
	struct httpd_request *request;

	/* the thread's, while it works */
	struct source source;
	struct fault fault;

	/* the loop's */
	bool working, started, gone;
};

static enum work_next download_step(struct work *w)
{
	struct download *d = container_of(w, struct download, work);
	uint64_t until = clock_ms() + WORK_SLICE_MS;

	while (source_next(&d->source, &d->fault) == SOURCE_AGAIN)
		if (clock_ms() >= until)
			return WORK_AGAIN;
	return WORK_DONE;
}

static void download_free(struct download *d)
{
	list_remove(&d->live.link);
	source_fini(&d->source);
	free(d);
}

static void download_abort(struct download *d)
{
	char text[RANGE_TEXT_MAX];

	(void)fault_set(&d->fault, 503, ANSWER_RUNTIME_ERROR,
			"the daemon is ending");
	if (d->fault.status == 416) {
		(void)snprintf(text, sizeof(text), "bytes */%llu",
			       (unsigned long long)d->source.size);
		httpd_set_header(d->request, "Content-Range", span_str(text));
	}
	if (d->started)
		httpd_stream_abort(d->request);
	else
		fault_answer(&d->fault, d->request);
	download_free(d);
}

static void download_end(struct download *d)
{
	httpd_stream_end(d->request);
	download_free(d);
}

static void download_go_on(struct download *d)
{
	d->working = true;
	workers_give(d->files->workers, &d->work);
}

static void on_room(void *user, struct httpd_request *r)
{
	struct download *d = user;

	(void)r;
	if (!d->working)
		download_go_on(d);
}

static void on_gone(void *user, struct httpd_request *r)
{
	struct download *d = user;

	(void)r;
	d->gone = true;
	if (!d->working)
		download_abort(d);
	/* d may be freed */
}

/* -- the head ------------------------------------------------------------- */

static void name_set(struct download *d)
{
	struct buf text = BUF_INIT(DISPOSITION_MAX);

	if (!disposition_put(&text, span_str(path_base(d->source.path))))
		httpd_set_header(d->request, "Content-Disposition",
				 buf_peek(&text));
	buf_fini(&text);
}

static void head_start(struct download *d)
{
	const struct source *s = &d->source;
	char text[RANGE_TEXT_MAX];
	uint64_t len = s->size;

	d->started = true;
	if (s->lines) {
		httpd_stream_start(d->request, 200, "text/plain", on_gone);
		return;
	}
	name_set(d);
	if (s->size_unknown) {
		httpd_stream_start(d->request, 200, "application/octet-stream",
				   on_gone);
		return;
	}
	httpd_set_header(d->request, "Accept-Ranges", SPAN("bytes"));
	if (s->is_part) {
		len = s->range.last - s->range.first + 1;
		(void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu",
			       (unsigned long long)s->range.first,
			       (unsigned long long)s->range.last,
			       (unsigned long long)s->size);
		httpd_set_header(d->request, "Content-Range", span_str(text));
	}
	httpd_stream_start_sized(d->request, s->is_part ? 206 : 200,
				 "application/octet-stream", len, on_gone);
}

/* -- pieces --------------------------------------------------------------- */

static void piece_send(struct download *d)
{
	struct source *s = &d->source;
	int r;

	if (!d->started && s->lines && s->ended) {
		httpd_reply(d->request, 200, "text/plain", s->told);
		download_free(d);
		return;
	}
	if (!d->started)
		head_start(d);
	if (span_eq(httpd_method(d->request), SPAN("HEAD"))) {
		download_end(d);
		return;
	}
	r = httpd_stream_write(d->request, s->told);
	source_drop(s);
	if (r) {
		download_abort(d); /* nobody is there */
		return;
	}
	if (s->ended) {
		download_end(d);
		return;
	}
	httpd_stream_on_room(d->request, on_room);
}

static void download_done(struct work *w)
{
	struct download *d = container_of(w, struct download, work);

	d->working = false;
	if (fault_is_set(&d->fault) || d->gone ||
	    workers_are_ending(d->files->workers))
		download_abort(d);
	else
		piece_send(d);
	/* d may be freed */
}

static void download_stop(struct files_live *live)
{
	download_abort(container_of(live, struct download, live));
}

/* -- the route ------------------------------------------------------------ */

/* ?offset= and ?limit=: lines. False: answered. Each may be left out. */
static bool window_read(struct httpd_request *r, struct source *s)
{
	struct span offset = httpd_query(r, "offset");
	struct span limit = httpd_query(r, "limit");

	s->line_first = 1;
	s->line_count = UINT64_MAX;
	s->lines = offset.len || limit.len;
	if (!s->lines)
		return true;
	if ((offset.len &&
	     (!span_parse_u64(offset, &s->line_first) || !s->line_first)) ||
	    (limit.len &&
	     (!span_parse_u64(limit, &s->line_count) || !s->line_count))) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "offset and limit: expected whole numbers of 1 or "
			     "more");
		return false;
	}
	if (s->range_text.ptr) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY,
			     "found both a Range header and offset or limit, "
			     "expected one of them");
		return false;
	}
	return true;
}

void files_download(void *ctx, struct httpd_request *r)
{
	struct span path = httpd_query(r, "path");
	struct download *d;
	struct execd *e = ctx;
	struct diag diag = { 0 };

	if (!path.len) {
		answer_error(r, 400, ANSWER_MISSING_QUERY,
			     "the query parameter \"path\" is missing");
		return;
	}
	d = must_alloc(sizeof(*d));
	list_init(&d->live.link);
	list_init(&d->work.link);
	d->live.stop = download_stop;
	d->work.step = download_step;
	d->work.done = download_done;
	identity_of(r, &d->work.as);
	d->files = e->files;
	d->request = r;
	d->source.range_text = httpd_header(r, SPAN("Range"));
	if (!window_read(r, &d->source)) {
		download_free(d);
		return;
	}
	if (path_expand_as(&d->work.as, path, d->source.path, &diag)) {
		answer_error(r, 400, ANSWER_INVALID_REQUEST_BODY, "path: %s",
			     diag.msg);
		download_free(d);
		return;
	}
	list_push(&e->files->live, &d->live.link);
	httpd_set_user(r, d);
	download_go_on(d);
}
