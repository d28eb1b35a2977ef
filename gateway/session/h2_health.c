/* SPDX-License-Identifier: Apache-2.0 */
/* h2_health.c - ask a silent connection whether it lives, and end it if not */

#include "gateway/session/h2_health.h"

#include "gateway/session/h2_conn.h"
#include "gateway/worker.h"
#include "src/base/span.h"
#include "src/role/config.h"

enum {
	PINGS_QUICK = 2,
	PINGS_QUICK_IDLE = 1,
	PING_SLOW_MS = 5 * 60 * 1000 + 1000,
};

static const struct config *config_of(const struct h2_health *h)
{
	return h->conn->worker->config;
}

static uint64_t now_ms(const struct h2_health *h)
{
	return loop_now_ms(h->conn->worker->loop);
}

/* When the next PING is due, if nothing happens until then. */
static uint64_t ping_due_ms(const struct h2_health *h)
{
	unsigned quick = h->conn->leg_count ? PINGS_QUICK : PINGS_QUICK_IDLE;
	uint64_t quiet_ms = MAX(h->conn->heard_ms, h->asked_ms);
	uint64_t wait_ms = config_of(h)->h2_ping_ms;

	if (h->pings >= quick)
		wait_ms = MAX(wait_ms, (uint64_t)PING_SLOW_MS);
	return MAX(quiet_ms, h->pinged_ms) + wait_ms;
}

static void ping(struct h2_health *h)
{
	if (h2_ping(h->conn->h2)) {
		h2_conn_lose(h->conn, "no PING could be sent");
		return;
	}
	h2_conn_touch(h->conn);
	h->waiting = true;
	h->pings++;
	h->pinged_ms = now_ms(h);
	h->heard_ms = h->conn->heard_ms;
	timer_start(&h->timer, config_of(h)->h2_ping_timeout_ms);
}

/* Requests move the time of the next PING nearer, and do not touch the timer:
 * so it fires at least at their pace. */
static void look(struct h2_health *h)
{
	uint64_t due_ms, now = now_ms(h);

	if (h->conn->spoke)
		h->pings = 0;
	h->conn->spoke = false;
	due_ms = ping_due_ms(h);
	if (now >= due_ms)
		ping(h);
	else
		timer_start(&h->timer,
			    MIN(due_ms - now, config_of(h)->h2_ping_ms));
}

static void on_timer(struct timer *t)
{
	struct h2_health *h = container_of(t, struct h2_health, timer);

	if (h->conn->failed)
		return;
	if (h->waiting) {
		/* what arrived while the loop was busy counts */
		h2_conn_run(h->conn);
		if (h->conn->heard_ms == h->heard_ms) {
			h2_conn_lose(h->conn, "the origin fell silent");
			return;
		}
		h->waiting = false;
	}
	look(h);
}

void h2_health_start(struct h2_health *h, struct h2_conn *conn)
{
	*h = (struct h2_health){ .conn = conn };
	timer_init(&h->timer, conn->worker->loop, on_timer);
	h->asked_ms = now_ms(h);
	if (config_of(h)->h2_ping_ms)
		timer_start(&h->timer, config_of(h)->h2_ping_ms);
}

void h2_health_stop(struct h2_health *h)
{
	timer_stop(&h->timer);
}

void h2_health_asked(struct h2_health *h)
{
	h->asked_ms = now_ms(h);
}
