/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - GET /metrics and GET /metrics/watch (contract 5.7)
 *
 * One clock for all: every 5 s, and every second while somebody watches, a
 * reading is kept (usage.h). An answer is that reading against now, so it is
 * instant; watchers all get the sample of the same tick. A watcher that does
 * not read misses samples and holds up nobody.
 */

#include "src/execd/metrics/metrics.h"

#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/base/list.h"
#include "src/execd/answer.h"
#include "src/execd/execd.h"
#include "src/execd/metrics/usage.h"
#include "src/io/loop.h"
#include "src/text/json.h"

enum {
	TICK_MS = 5000,
	TICK_WATCHED_MS = 1000,
	SAMPLE_MAX = 1024, /* bytes of JSON */
};

struct metrics {
	struct usage usage;
	struct timer timer;
	struct list watchers;
};

struct watcher {
	struct list link;
	struct metrics *metrics;
	struct httpd_request *request;
};

static void put_decimal(struct json_out *o, const char *name, double value)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "%.2f", value);

	json_put_raw(o, name, span_of(text, (size_t)len));
}

static double mib(uint64_t bytes)
{
	return (double)bytes / (1024 * 1024);
}

/* One sample as JSON. -errno: the kernel says nothing. */
static int sample_put(struct metrics *m, struct buf *to)
{
	struct usage_sample s;
	struct json_out o;
	int r;

	r = usage_take(&m->usage, &s);
	if (r)
		return err_origin(r);
	json_start(&o, to);
	json_open_object(&o, NULL);
	put_decimal(&o, "cpu_count", s.cpu_count);
	put_decimal(&o, "cpu_used_pct", s.cpu_used_pct);
	put_decimal(&o, "mem_total_mib", mib(s.memory_total));
	put_decimal(&o, "mem_used_mib", mib(s.memory_used));
	json_put_u64(&o, "timestamp", clock_wall_ms());
	json_close(&o);
	return json_done(&o);
}

static void answer_none(struct httpd_request *r)
{
	answer_error(r, 500, ANSWER_RUNTIME_ERROR,
		     "neither the cgroup nor /proc/stat and /proc/meminfo can "
		     "be read in this container");
}

void metrics_get(void *ctx, struct httpd_request *r)
{
	struct execd *e = ctx;
	struct buf json CLEANUP(buf_fini) = BUF_INIT(SAMPLE_MAX);

	if (sample_put(e->metrics, &json)) {
		answer_none(r);
		return;
	}
	answer_json(r, 200, &json);
}

/* -- watching ------------------------------------------------------------- */

static void watcher_end(struct watcher *w)
{
	list_remove(&w->link);
	httpd_stream_end(w->request);
	free(w);
}

static void on_gone(void *user, struct httpd_request *r)
{
	(void)r;
	watcher_end(user);
}

/* -EAGAIN: he does not read; he gets the next one. -EPIPE: on_gone comes. */
static void watcher_send(struct watcher *w, const struct buf *sample)
{
	(void)!httpd_stream_write(w->request, buf_peek(sample));
}

static int sample_frame(struct metrics *m, struct buf *frame)
{
	int r = sample_put(m, frame);

	return r ? r : buf_put_str(frame, "\n\n");
}

static void on_tick(struct timer *t)
{
	struct metrics *m = container_of(t, struct metrics, timer);
	struct buf frame CLEANUP(buf_fini) = BUF_INIT(SAMPLE_MAX);
	bool is_watched = !list_is_empty(&m->watchers);

	if (is_watched && !sample_frame(m, &frame))
		list_for_each(it, &m->watchers) watcher_send(
			container_of(it, struct watcher, link), &frame);
	usage_tick(&m->usage);
	timer_start(t, is_watched ? TICK_WATCHED_MS : TICK_MS);
}

void metrics_watch(void *ctx, struct httpd_request *r)
{
	struct buf frame CLEANUP(buf_fini) = BUF_INIT(SAMPLE_MAX);
	struct metrics *m = ((struct execd *)ctx)->metrics;
	struct watcher *w;

	if (sample_frame(m, &frame)) {
		answer_none(r);
		return;
	}
	w = must_alloc(sizeof(*w));
	w->metrics = m;
	w->request = r;
	list_init(&w->link);
	if (list_is_empty(&m->watchers))
		timer_start(&m->timer, TICK_WATCHED_MS);
	list_push(&m->watchers, &w->link);
	httpd_set_user(r, w);
	httpd_set_header(r, "Cache-Control", SPAN("no-cache"));
	httpd_set_header(r, "X-Accel-Buffering", SPAN("no"));
	httpd_stream_start(r, 200, "text/event-stream", on_gone);
	watcher_send(w, &frame);
}

struct metrics *metrics_new(struct execd *e)
{
	struct metrics *m = must_alloc(sizeof(*m));

	list_init(&m->watchers);
	usage_init(&m->usage, "");
	timer_init(&m->timer, e->loop, on_tick);
	timer_start(&m->timer, TICK_MS);
	return m;
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	timer_stop(&m->timer);
	list_for_each(it, &m->watchers)
		watcher_end(container_of(it, struct watcher, link));
	free(m);
	return NULL;
}
