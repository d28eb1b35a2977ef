/* SPDX-License-Identifier: Apache-2.0 */
/* upload_http.c - POST /files/upload: a body on its way to a thread
 *
 * How it works: two buffers. The loop fills one while a thread works off the
 * other; when both are full the body is paused, and TCP makes the client wait.
 * After a fault the rest of the body is read and dropped (a client that is
 * still sending would rather lose the connection than read why), up to
 * DROP_MAX; then the reason is answered.
 */

#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/execd/execd.h"
#include "src/execd/files/fault.h"
#include "src/execd/files/files.h"
#include "src/execd/files/upload.h"
#include "src/execd/files/workers.h"
#include "src/io/loop.h"

enum {
	FULL_BYTES = 512 * 1024,
	PIECE_BYTES_MAX = 256 * 1024,
	DROP_MAX = 1024 * 1024 * 1024,
	RETRY_MS = 20,
	WAIT_MAX_MS = 30 * 1000, /* for a FIFO that nobody reads */
};

struct transfer {
	struct files_live live;
	struct work work;
	struct files *files;
	struct httpd_request *request;
	struct timer retry;
	uint64_t waiting_since_ms; /* for a FIFO; 0: it does not */

	/* the thread's, while it works */
	struct upload *upload;
	struct buf feed;
	struct span rest;   /* of .feed, to be told */
	bool finish;	    /* there is no more behind it */
	bool waits, placed; /* what came of it */
	struct fault fault;

	/* the loop's */
	struct buf fill;
	bool working, paused, ended, cut;
	uint64_t dropped;
};

/* -- on a thread ---------------------------------------------------------- */

static enum work_next transfer_step(struct work *w)
{
	struct transfer *t = container_of(w, struct transfer, work);
	uint64_t until = clock_ms() + WORK_SLICE_MS;
	size_t before = t->rest.len + upload_pending(t->upload);
	int r;

	t->waits = false;
	r = upload_feed(t->upload, &t->rest, &t->fault);
	if (r == UPLOAD_WAIT) {
		t->waits = true;
		/* some of it went: the wait begins anew */
		if (t->rest.len + upload_pending(t->upload) != before)
			t->waiting_since_ms = 0;
		return WORK_DONE;
	}
	while (!r && t->finish && !t->placed) {
		r = upload_finish(t->upload, &t->fault);
		t->placed = !r;
		if (r <= 0)
			break;
		r = 0;
		if (clock_ms() >= until)
			return WORK_AGAIN;
	}
	return WORK_DONE;
}

/* -- in the loop ---------------------------------------------------------- */

static void transfer_free(struct transfer *t)
{
	timer_stop(&t->retry);
	list_remove(&t->live.link);
	t->upload = upload_free(t->upload);
	buf_fini(&t->feed);
	buf_fini(&t->fill);
	free(t);
}

static void transfer_answer(struct transfer *t)
{
	struct httpd_request *r = t->request;

	if (t->placed && !fault_is_set(&t->fault))
		answer_ok(r);
	else
		fault_answer(&t->fault, r);
	transfer_free(t);
}

/* What is there goes to a thread. */
static void transfer_go_on(struct transfer *t)
{
	struct buf swapped = t->feed;

	if (!t->rest.len && !t->waits) {
		t->feed = t->fill;
		t->fill = swapped;
		buf_clear(&t->fill);
		t->rest = buf_peek(&t->feed);
	}
	t->finish = t->ended && !buf_len(&t->fill);
	t->working = true;
	workers_give(t->files->workers, &t->work);
}

/* Nobody works: what next? */
static void transfer_settle(struct transfer *t)
{
	bool drops;

	if (t->cut)
		(void)fault_set(&t->fault, 400, ANSWER_INVALID_FILE,
				"the body ended before the closing boundary");
	if (fault_is_set(&t->fault)) {
		if (t->ended || t->cut || t->dropped > DROP_MAX) {
			transfer_answer(t);
			return;
		}
	} else if (t->placed) {
		transfer_answer(t);
		return;
	} else if (t->waits) {
		timer_start(&t->retry, RETRY_MS);
	} else if (buf_len(&t->fill) || t->ended) {
		transfer_go_on(t);
	}
	/* a thread may be setting the fault already */
	drops = !t->working && fault_is_set(&t->fault);
	if (t->paused && (drops || buf_len(&t->fill) < FULL_BYTES)) {
		t->paused = false;
		httpd_body_resume(t->request);
	}
}

static void on_retry(struct timer *timer)
{
	struct transfer *t = container_of(timer, struct transfer, retry);
	uint64_t now = loop_now_ms(t->files->execd->loop);

	if (!t->waiting_since_ms)
		t->waiting_since_ms = now;
	if (now - t->waiting_since_ms < WAIT_MAX_MS && !t->cut) {
		transfer_go_on(t);
		return;
	}
	(void)fault_set(&t->fault, 500, ANSWER_RUNTIME_ERROR,
			"nobody read at the other end of the file for %d s",
			WAIT_MAX_MS / 1000);
	t->waits = false;
	transfer_settle(t);
}

static void transfer_done(struct work *w)
{
	struct transfer *t = container_of(w, struct transfer, work);

	t->working = false;
	if (!t->waits)
		t->waiting_since_ms = 0;
	if (workers_are_ending(t->files->workers))
		return; /* stopped with all that live */
	transfer_settle(t);
}

static void transfer_stop(struct files_live *live)
{
	struct transfer *t = container_of(live, struct transfer, live);

	(void)fault_set(&t->fault, 503, ANSWER_RUNTIME_ERROR,
			"the daemon is ending");
	transfer_answer(t);
}

static void on_piece(void *user, struct httpd_request *r, enum httpd_piece kind,
		     struct span bytes)
{
	struct transfer *t = user;

	switch (kind) {
	case HTTPD_PIECE:
		if (!t->working && fault_is_set(&t->fault)) {
			t->dropped += bytes.len;
			break;
		}
		must(!buf_put(&t->fill, bytes));
		if (buf_len(&t->fill) >= FULL_BYTES) {
			t->paused = true;
			httpd_body_pause(r);
		}
		break;
	case HTTPD_PIECE_END:
		t->ended = true;
		break;
	case HTTPD_PIECE_CUT:
		t->cut = true;
		break;
	}
	if (!t->working && !t->retry.due_ms)
		transfer_settle(t);
	/* t may be freed */
}

void files_upload(void *ctx, struct httpd_request *r)
{
	struct span type = httpd_header(r, SPAN("Content-Type"));
	struct fault fault = { 0 };
	struct execd *e = ctx;
	struct upload *upload = upload_new(type, &fault);
	struct transfer *t;

	if (!upload) {
		fault_answer(&fault, r);
		return;
	}
	t = must_alloc(sizeof(*t));
	list_init(&t->live.link);
	list_init(&t->work.link);
	timer_init(&t->retry, e->loop, on_retry);
	t->live.stop = transfer_stop;
	t->work.step = transfer_step;
	t->work.done = transfer_done;
	identity_of(r, &t->work.as);
	t->files = e->files;
	t->request = r;
	t->upload = upload;
	buf_init(&t->feed, FULL_BYTES + PIECE_BYTES_MAX);
	buf_init(&t->fill, FULL_BYTES + PIECE_BYTES_MAX);
	list_push(&e->files->live, &t->live.link);
	httpd_set_user(r, t);
	httpd_body_read(r, on_piece);
}
