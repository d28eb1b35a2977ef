/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - ask an HTTPS origin for things; count, check and time the answers
 *
 * How it works: one thread, one epoll, edge-triggered. A connection is shaken,
 * asked and read, and then does what the mode says:
 *
 *   keep   asks again on the same connection, at once
 *   paced  rests until a request is due; its time counts from when it was due
 *   close  closes, and a new connection takes its place
 *   idle   asks once, rests for the whole time, asks once more
 *   wait   a new attempt every few ms until one succeeds; tells when that was
 *   h2     keep, on STREAMS streams of each connection (load_h2.c)
 *   events one answer without an end; each event in it counts as an exchange,
 *          whose time began at the stamp that it carries
 *
 * Modes that run for a time warm up first. "begin" is printed before measuring
 * begins and "end" after it, and each waits for a line in reply, so that
 * whoever started us can look at the gateway at just these moments. Then one
 * line of key=value tells the figures.
 *
 * An exchange counts when its status is 200 and its whole body came; it counts
 * as injected when the origin says x-inj: 1, which it says only of requests
 * that carried the expected credential. Everything else is an error.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "src/base/clock.h"
#include "src/base/err.h"
#include "tests/bench/load.h"

enum {
	CONNS_MAX = 16384,
	STREAMS_MAX = 1000,
	OPENING_MAX = 32, /* connections of "idle" that come up at once */
	/* After a refusal, and while nothing is answered. More attempts would
	 * be a load of their own to a gateway that is slow to start. */
	WAIT_SOON_US = 2000,
	WAIT_LATER_US = 50 * 1000,
	WAIT_CONNS = 100,
	WAIT_GIVE_UP_US = 20 * 1000 * 1000,
	STALL_S = 60,
	EVENTS = 256,
};

static const char *const mode_names[] = {
	[MODE_KEEP] = "keep",	  [MODE_PACED] = "paced",
	[MODE_CLOSE] = "close",	  [MODE_IDLE] = "idle",
	[MODE_WAIT] = "wait",	  [MODE_H2] = "h2",
	[MODE_EVENTS] = "events",
};
_Static_assert(ARRAY_LEN(mode_names) == MODE_NUM, "a name per mode");

/* -- modes ----------------------------------------------------------------- */

/* Whoever reads looks now; without anybody we go on at once. */
static void look(const char *when)
{
	char line[8];

	puts(when);
	(void)fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
}

static void load_begin(struct load *l)
{
	look("begin");
	l->tally = (struct tally){ 0 };
	l->measuring = true;
	l->begin_us = l->due_us = clock_us();
	l->end_us = l->begin_us + (uint64_t)(l->plan->seconds * 1e6);
}

static void load_end(struct load *l)
{
	uint64_t took_us = clock_us() - l->begin_us;

	look("end");
	l->over = true;
	tally_print(&l->tally, took_us);
}

/* Warm, then measured. */
static void step_timed(struct load *l, uint64_t now_us)
{
	if (now_us < l->end_us || l->up_count < l->plan->conns)
		return;
	if (l->measuring)
		load_end(l);
	else
		load_begin(l);
}

static void step_counted(struct load *l)
{
	if (l->tally.exchanges + l->tally.errors >= l->plan->count)
		load_end(l);
}

/* What is due is asked, late if nothing rests: the next one is due anyway. */
static void step_paced(struct load *l, uint64_t now_us)
{
	uint64_t step_us = 1000000 / l->plan->rate;
	struct conn *c;

	while (l->due_us <= now_us &&
	       (c = list_first(&l->resting, struct conn, link))) {
		c->begun_us = l->due_us;
		l->due_us += step_us;
		conn_ask(c);
	}
}

static void step_idle(struct load *l, uint64_t now_us)
{
	const struct plan *p = l->plan;
	struct conn *c;

	if (!l->measuring) {
		while (l->begun < p->conns &&
		       l->begun - l->resting_count < OPENING_MAX)
			conn_open(&l->conns[l->begun]);
		if (l->resting_count == p->conns)
			load_begin(l);
		return;
	}
	if (now_us < l->end_us)
		return;
	if (l->tally.exchanges + l->tally.errors >= p->conns) {
		load_end(l);
		return;
	}
	while (l->begun < 2ull * p->conns &&
	       (c = list_first(&l->resting, struct conn, link))) {
		l->begun++;
		c->begun_us = clock_us();
		conn_ask(c);
	}
}

static void step_wait(struct load *l, uint64_t now_us)
{
	struct conn *last = &l->conns[(l->begun + WAIT_CONNS - 1) % WAIT_CONNS];
	struct conn *c = &l->conns[l->begun % WAIT_CONNS];
	bool refused = last->state == CONN_NONE;

	if (now_us < l->due_us + (refused ? 0 : WAIT_LATER_US))
		return;
	l->due_us = now_us + WAIT_SOON_US;
	if (now_us > l->begin_us + WAIT_GIVE_UP_US) {
		(void)fprintf(stderr, "nothing serves\n");
		exit(1);
	}
	conn_close(c);
	conn_open(c);
}

static void load_step(struct load *l)
{
	uint64_t now_us = clock_us();

	switch (l->plan->mode) {
	case MODE_WAIT:
		step_wait(l, now_us);
		return;
	case MODE_IDLE:
		step_idle(l, now_us);
		return;
	case MODE_PACED:
		step_paced(l, now_us);
		break;
	case MODE_KEEP:
	case MODE_CLOSE:
	case MODE_H2:
	case MODE_EVENTS:
	case MODE_NUM:
		break;
	}
	if (l->plan->count)
		step_counted(l);
	else
		step_timed(l, now_us);
}

/* -- the loop -------------------------------------------------------------- */

/* Until something is due, at the latest. */
static struct timespec load_patience(const struct load *l)
{
	uint64_t now_us = clock_us(), us = 10000;

	if (l->plan->mode == MODE_PACED || l->plan->mode == MODE_WAIT)
		us = l->due_us > now_us ? MIN(us, l->due_us - now_us) : 1000;
	return (struct timespec){ .tv_nsec = (long)us * 1000 };
}

static void load_run(struct load *l)
{
	struct epoll_event events[EVENTS];
	struct timespec patience;
	int i, n;

	while (!l->over) {
		patience = load_patience(l);
		n = epoll_pwait2(l->epoll, events, EVENTS, &patience, NULL);
		for (i = 0; i < n; i++)
			conn_run(events[i].data.ptr);
		if (!l->over)
			load_step(l);
	}
	if (l->plan->mode == MODE_WAIT)
		printf("ready_us=%" PRIu64 "\n", clock_us());
}

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct conn *c = SSL_get_app_data(ssl);

	SSL_SESSION_free(c->load->session);
	c->load->session = session;
	return 1; /* the reference is ours now */
}

static void load_init(struct load *l, const struct plan *p)
{
	unsigned i;

	l->plan = p;
	list_init(&l->resting);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->ctx = SSL_CTX_new(TLS_client_method());
	must(l->epoll >= 0 && l->ctx);
	if (SSL_CTX_load_verify_locations(l->ctx, p->ca, NULL) != 1) {
		(void)fprintf(stderr, "%s: no certificates\n", p->ca);
		exit(1);
	}
	if (p->mode == MODE_H2)
		must(SSL_CTX_set_alpn_protos(
			     l->ctx, (const unsigned char *)"\2h2", 3) == 0);
	SSL_CTX_set_verify(l->ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_read_ahead(l->ctx, 1);
	SSL_CTX_set_mode(l->ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
					 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_default_read_buffer_len(l->ctx, READ_BYTES);
	SSL_CTX_set_session_cache_mode(
		l->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	if (p->resume)
		SSL_CTX_sess_set_new_cb(l->ctx, on_session);
	l->conns = must_alloc(p->conns * sizeof(*l->conns));
	for (i = 0; i < p->conns; i++)
		conn_init(&l->conns[i], l);
	l->begin_us = l->due_us = clock_us();
	l->end_us = l->begin_us + (uint64_t)(p->warm_s * 1e6);
}

static void load_start(struct load *l)
{
	const struct plan *p = l->plan;
	unsigned i;

	if (p->mode == MODE_IDLE || p->mode == MODE_WAIT)
		return; /* connections come one after another */
	if (p->count)
		load_begin(l);
	for (i = 0; i < p->conns && (!p->count || l->begun < p->count); i++)
		conn_open(&l->conns[i]);
}

/* -- the command line ------------------------------------------------------ */

static NORETURN void usage(void)
{
	(void)fprintf(stderr,
		      "usage: sallyport-load -a ADDRESS -C CA-FILE -H HOST "
		      "[-m keep|paced|close|idle|wait|h2|events]\n"
		      "  [-c CONNECTIONS] [-s SECONDS] [-w WARM-UP] [-n COUNT] "
		      "[-r RATE] [-k STREAMS] [-N HOSTS] [-u PATH] [-b BYTES] "
		      "[-t TOKEN] [-R]\n"
		      "  HOST may hold %%u, which becomes the host's number "
		      "below HOSTS; -R resumes TLS sessions;\n"
		      "  -b: each request is a POST of so many bytes\n");
	exit(2);
}

static enum mode mode_of(const char *name)
{
	unsigned i;

	for (i = 0; i < MODE_NUM; i++)
		if (strcmp(mode_names[i], name) == 0)
			return (enum mode)i;
	usage();
}

static void plan_take(struct plan *p, int option, const char *value)
{
	switch (option) {
	case 'a':
		p->address = value;
		return;
	case 'C':
		p->ca = value;
		return;
	case 'H':
		p->host = value;
		return;
	case 'm':
		p->mode = mode_of(value);
		return;
	case 'c':
		p->conns = (unsigned)strtoul(value, NULL, 10);
		return;
	case 's':
		p->seconds = strtod(value, NULL);
		return;
	case 'w':
		p->warm_s = strtod(value, NULL);
		return;
	case 'n':
		p->count = strtoull(value, NULL, 10);
		return;
	case 'r':
		p->rate = (unsigned)strtoul(value, NULL, 10);
		return;
	case 'k':
		p->streams = (unsigned)strtoul(value, NULL, 10);
		return;
	case 'N':
		p->hosts = (unsigned)strtoul(value, NULL, 10);
		return;
	case 'u':
		p->path = value;
		return;
	case 'b':
		p->upload = strtoull(value, NULL, 10);
		return;
	case 't':
		p->token = value;
		return;
	case 'R':
		p->resume = true;
		return;
	default:
		usage();
	}
}

int main(int argc, char **argv)
{
	static struct load load;
	struct plan plan = { .path = "/1k",
			     .port = 443,
			     .hosts = 1,
			     .conns = 1,
			     .streams = 1,
			     .seconds = 2.0,
			     .warm_s = 0.5,
			     .rate = 400 };
	int option;

	while ((option = getopt(argc, argv, "a:C:H:m:c:s:w:n:r:k:N:u:b:t:R")) !=
	       -1)
		plan_take(&plan, option, optarg);
	if (plan.mode == MODE_WAIT)
		plan.conns = WAIT_CONNS;
	if (!plan.address || !plan.ca || !plan.host || !plan.hosts ||
	    !plan.conns || plan.conns > CONNS_MAX || !plan.rate ||
	    !plan.streams || plan.streams > STREAMS_MAX || optind != argc)
		usage();
	(void)signal(SIGPIPE, SIG_IGN);
	/* An answer that never comes ends us, and whoever started us sees it.
	 */
	(void)alarm((unsigned)(plan.seconds + plan.warm_s) + STALL_S);
	load_init(&load, &plan);
	load_start(&load);
	load_run(&load);
	return 0;
}
