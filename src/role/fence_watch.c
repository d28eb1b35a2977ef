/* SPDX-License-Identifier: Apache-2.0 */
/* fence_watch.c - hears of every change of our table and undoes it
 *
 * How it works: the kernel tells the nftables multicast group about each
 * change; what names our table, or that of iptables while its rule brings
 * packets to the queue, sets a timer, and the timer compares what nft
 * prints with what it printed after the installation. Different: install
 * again and say so. So `nft flush ruleset` opens nothing for longer than a few
 * milliseconds. A storm of changes is answered at most every CHECK_GAP_MS, and
 * a lost notification (ENOBUFS) counts as a change.
 *
 * Routing has no such alarm worth its noise: it is put back every TICK_MS,
 * which costs four requests that are answered "exists already". Every
 * FULL_TICKS ticks the table is compared without any alarm.
 */

#include "src/role/fence_watch.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/loop.h"
#include "src/role/config.h"
#include "src/role/fence.h"
#include "src/role/fence_queue.h"
#include "src/role/nfnl_news.h"

enum {
	TABLE_BYTES_MAX = 1024 * 1024,
	CHECK_DELAY_MS = 5, /* the other changes of the same transaction */
	CHECK_GAP_MS = 200,
	TICK_MS = 2000,
	FULL_TICKS = 15,
};

struct fence_watch {
	const struct config *config;
	struct loop *loop;
	struct watch watch;
	struct timer check, tick;
	struct buf installed; /* as nft printed it */
	uint64_t checked_ms;
	unsigned ticks;
	int fd;
	struct fence_rules rules;
	bool is_ok;
};

/* Our own changes are made by nft, somebody else to the notifications, so every
 * one is heeded. */
static enum nfnl_news news_read(const struct fence_watch *f)
{
	const bool by_rule = f->rules.queue == QUEUE_XTABLES;
	const struct nfnl_interest in = {
		.tables = { "sallyport", by_rule ? "mangle" : NULL },
	};

	return nfnl_news_read(f->fd, &in);
}

static void check_soon(struct fence_watch *f)
{
	uint64_t now = loop_now_ms(f->loop),
		 next = f->checked_ms + CHECK_GAP_MS;

	if (f->check.due_ms)
		return;
	timer_start(&f->check,
		    f->checked_ms && next > now ? next - now : CHECK_DELAY_MS);
}

static void on_event(struct watch *w, unsigned ready)
{
	struct fence_watch *f = container_of(w, struct fence_watch, watch);

	switch (news_read(f)) {
	case NFNL_NEWS_END:
		watch_spent(w, ready);
		return;
	case NFNL_NEWS_OTHER:
		return;
	case NFNL_NEWS_OURS:
		check_soon(f);
	}
}

static void restore(struct fence_watch *f, const char *what)
{
	int r;

	f->is_ok = false;
	log_error("found %s changed: installing it again", what);
	r = fence_install(f->config, &f->rules);
	if (r)
		return; /* said; the next tick tries again */
	buf_clear(&f->installed);
	f->is_ok = fence_read(&f->installed) == 0;
}

static void table_check(struct fence_watch *f)
{
	struct buf now = BUF_INIT(TABLE_BYTES_MAX);
	int r = fence_read(&now);

	if (r)
		log_error("could not read the table inet sallyport: %s",
			  err_text(r));
	else if (!span_eq(buf_peek(&now), buf_peek(&f->installed)))
		restore(f, "the table " FENCE_TABLE);
	else if (!fence_queue_stands(f->config, f->rules.queue, f->rules.ipv6))
		restore(f, "the iptables rule of the queue");
	else
		f->is_ok = true;
	if (r)
		f->is_ok = false;
	buf_fini(&now);
	f->checked_ms = loop_now_ms(f->loop);
}

static void on_check(struct timer *t)
{
	table_check(container_of(t, struct fence_watch, check));
}

static void on_tick(struct timer *t)
{
	struct fence_watch *f = container_of(t, struct fence_watch, tick);
	int r = fence_route(f->config, f->rules.ipv6);

	if (r)
		log_warn("could not put routing back: %s", err_text(r));
	if (++f->ticks % FULL_TICKS == 0 || !f->is_ok)
		table_check(f);
	if (r)
		f->is_ok = false;
	timer_start(t, TICK_MS);
}

int fence_watch_new(struct loop *loop, const struct config *config,
		    const struct fence_rules *rules, struct fence_watch **ret)
{
	struct fence_watch *f = must_alloc(sizeof(*f));
	int r;

	f->config = config;
	f->loop = loop;
	f->rules = *rules;
	buf_init(&f->installed, TABLE_BYTES_MAX);
	timer_init(&f->check, loop, on_check);
	timer_init(&f->tick, loop, on_tick);
	f->fd = nfnl_news_open();
	r = f->fd < 0 ? f->fd : watch_init(&f->watch, loop, f->fd, on_event);
	if (!r)
		r = fence_read(&f->installed);
	if (!r && !buf_len(&f->installed))
		r = -ENOENT; /* gone already: the caller starts over */
	if (r) {
		fence_watch_free(f);
		return err_trace(r);
	}
	f->is_ok = true;
	watch_want(&f->watch, WATCH_READ);
	timer_start(&f->tick, TICK_MS);
	*ret = f;
	return 0;
}

struct fence_watch *fence_watch_free(struct fence_watch *f)
{
	if (!f)
		return NULL;
	timer_stop(&f->check);
	timer_stop(&f->tick);
	watch_fini(&f->watch);
	(void)fd_close(f->fd);
	buf_fini(&f->installed);
	free(f);
	return NULL;
}

bool fence_watch_is_ok(const struct fence_watch *f)
{
	return f->is_ok;
}

const struct fence_rules *fence_watch_rules(const struct fence_watch *f)
{
	return &f->rules;
}
