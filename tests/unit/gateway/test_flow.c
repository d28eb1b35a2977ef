/* SPDX-License-Identifier: Apache-2.0 */
/* test_flow.c - an exchange on two scripted legs, whatever they say and when */

#include "tests/unit/gateway/fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/pipeline/decide.h"
#include "gateway/session/session.h"
#include "policy/binding.h"
#include "src/text/json.h"
#include "tests/unit/gateway/fake_leg.h"
#include "tests/unit/gateway/redact_kit.h"

static const char policy_text[] =
	"policies:\n- name: p\n  defaultAction: allow\n";

static const char get[] = "GET /a?b HTTP/1.1\r\nHost: a.example\r\n\r\n";
static const char post[] = "POST /a HTTP/1.1\r\nHost: a.example\r\n"
			   "Transfer-Encoding: chunked\r\n\r\n";

static const struct response ok = { .status = 200, .content = CONTENT_UNKNOWN };
static const struct response hints = { .status = 103 };
static const struct response switching = { .status = 101,
					   .content = CONTENT_TUNNEL };

struct desk {
	struct world *world;
	struct session session;
	struct fake_leg front, back;
	struct exchange *x;
	struct secret *secret;
	int audit_fd, listener;
	struct addr listens;
	struct buf records;
	struct json *record; /* the only one, once asserted */
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct session *s = &d->session;

	d->world = world_new();
	world_policy(d->world, 1, policy_text);
	d->audit_fd = memfd_create("audit", MFD_CLOEXEC);
	must(d->audit_fd >= 0);
	audit_log_set_fd(d->world->worker.audit_log, d->audit_fd);
	s->worker = &d->world->worker;
	s->sandbox = world_sandbox(d->world, "s", "10.0.0.1");
	s->audit.sandbox = span_str(s->sandbox->id);
	arena_init(&s->arena, 64 * 1024);
	fake_init(&d->front, &d->back, true);
	fake_init(&d->back, &d->front, false);
	d->listener = -1;
	buf_init(&d->records, 1024 * 1024);
	*state = d;
	return 0;
}

/* Has the exchange ended? One that was retried has another back. */
static bool desk_is_over(const struct desk *d)
{
	return d->front.finished || d->front.broke;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	if (d->x && !desk_is_over(d))
		exchange_abandon(d->x, AUDIT_REASON_NONE);
	audit_log_set_fd(d->world->worker.audit_log, -1);
	d->record = json_free(d->record);
	buf_fini(&d->records);
	(void)fd_close(d->audit_fd);
	(void)fd_close(d->listener);
	d->secret = secret_free(d->secret);
	arena_fini(&d->session.arena);
	world_free(d->world);
	fake_fini(&d->front);
	fake_fini(&d->back);
	free(d);
	return 0;
}

/* The head was sent to the back; bodies are due. */
static void begin(struct desk *d, const char *head)
{
	struct exchange *x = exchange_new(&d->session, &d->front.leg);
	struct span copy = arena_dup(&x->arena, span_str(head));

	d->x = x;
	must(h1_parse_request(copy, &x->head) == H1_OK);
	x->request.worker = d->session.worker;
	x->request.sandbox = d->session.sandbox;
	x->request.arena = &x->arena;
	x->request.audit = &x->audit;
	x->request.method = x->head.method;
	x->request.target = x->head.path;
	x->request.headers = &x->head.headers;
	x->audit.allowed = true;
	x->audit.method = x->head.method;
	d->front.leg.exchange = d->back.leg.exchange = x;
	x->back = &d->back.leg;
	exchange_move(x, EXCHANGE_FLOW);
}

static void inject(struct desk *d, const char *value)
{
	struct request *req = &d->x->request;

	must(!secret_dup(span_str(value), &d->secret));
	req->injections[0].name = SPAN("Authorization");
	req->injections[0].secret = d->secret;
	req->injection_count = 1;
	d->x->audit.injected = true;
}

/* Forgets where it was flushed. */
static void drop_bars(struct buf *said)
{
	struct buf clean = BUF_INIT(said->max);
	struct span rest = buf_peek(said);

	while (rest.len)
		must(!buf_put(&clean, span_cut(&rest, '|')));
	buf_fini(said);
	*said = clean;
}

static void assert_said(const struct fake_leg *f, const char *expected)
{
	assert_span(buf_peek(&f->said), expected);
}

static void run_until_over(struct desk *d)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (!desk_is_over(d) && clock_ms() < end_ms)
		world_turn(d->world);
}

/* -- audit ----------------------------------------------------------------- */

static void records_read(struct desk *d)
{
	struct stat st;
	char *room;

	audit_log_flush(d->world->worker.audit_log);
	must(!fstat(d->audit_fd, &st));
	buf_clear(&d->records);
	must(!buf_reserve(&d->records, (size_t)st.st_size, &room));
	must(pread(d->audit_fd, room, (size_t)st.st_size, 0) == st.st_size);
	buf_commit(&d->records, (size_t)st.st_size);
}

static void assert_no_record(struct desk *d)
{
	records_read(d);
	assert_int_equal(buf_len(&d->records), 0);
	assert_false(desk_is_over(d));
}

static void assert_text(struct desk *d, const char *key, const char *expected)
{
	assert_span(json_text(json_find(d->record, key)), expected);
}

static void assert_number(struct desk *d, const char *key, uint64_t expected)
{
	uint64_t found = 0;

	(void)json_u64(json_find(d->record, key), &found);
	assert_int_equal(found, expected);
}

/* Exactly one record, with this reason ("": none), status and bytes. */
static void assert_record(struct desk *d, const char *reason, unsigned status,
			  uint64_t up, uint64_t down)
{
	struct span rest, line;

	assert_true(desk_is_over(d));
	assert_true(d->back.released);
	records_read(d);
	rest = buf_peek(&d->records);
	line = span_cut(&rest, '\n');
	assert_int_equal(rest.len, 0);
	d->record = json_free(d->record);
	assert_int_equal(json_parse(line, &d->record, NULL), 0);
	assert_text(d, "reason", reason);
	assert_number(d, "status", status);
	assert_number(d, "bytesOut", up);
	assert_number(d, "bytesIn", down);
	assert_int_equal(d->world->worker.counters[COUNTER_exchanges], 1);
}

static void assert_kept(struct desk *d, bool front, bool back)
{
	assert_true(d->front.finished);
	assert_int_equal(d->front.kept, front);
	assert_int_equal(d->back.kept, back);
}

/* -- from end to end ------------------------------------------------------- */

static void flow__passes_both_bodies(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "up");
	fake_piece(&d->front, "load");
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "down");
	fake_piece(&d->back, "load!");
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->back, "upload<end>|");
	/* a small answer is one write, head and body and end */
	assert_said(&d->front, "<200>download!<end>|");
	assert_record(d, "", 200, 6, 9);
	assert_text(d, "kind", "http");
	assert_kept(d, true, true);
}

/* Nothing may come, for as long as it likes, between any two steps. */
static void flow__waits_for_what_is_missing(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	flow_run(d->x);
	assert_int_equal(d->front.wanted, LEG_READ);
	assert_int_equal(d->back.wanted, LEG_READ);
	fake_piece(&d->front, "up");
	flow_run(d->x);
	assert_said(&d->back, "up|");
	assert_int_equal(d->front.wanted, LEG_READ);
	fake_end(&d->front);
	flow_run(d->x);
	assert_said(&d->back, "up|<end>|");
	assert_int_equal(d->front.wanted, 0);
	assert_int_equal(d->back.wanted, LEG_READ);
	fake_head(&d->back, &ok);
	flow_run(d->x);
	assert_said(&d->front, "<200>|"); /* a head does not wait for a body */
	fake_piece(&d->back, "down");
	flow_run(d->x);
	assert_said(&d->front, "<200>|down|");
	assert_int_equal(d->back.wanted, LEG_READ);
	assert_no_record(d);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->front, "<200>|down|<end>|");
	assert_record(d, "", 200, 2, 4);
	assert_kept(d, true, true);
}

static void flow__does_nothing_before_its_time(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	d->x->state = EXCHANGE_ORIGIN;
	fake_end(&d->front);
	flow_run(d->x);
	assert_int_equal(d->front.calls + d->back.calls, 0);
	d->x->state = EXCHANGE_FLOW;
}

static void flow__puts_off_the_deadline_when_something_moves(void **state)
{
	struct desk *d = *state;
	uint64_t due_ms;

	begin(d, post);
	flow_run(d->x);
	assert_int_equal(d->x->timer.due_ms, 0); /* exchange.c starts it */
	fake_piece(&d->front, "x");
	flow_run(d->x);
	due_ms = d->x->timer.due_ms;
	assert_true(due_ms > 0);
	d->x->timer.due_ms--;
	flow_run(d->x);
	assert_int_equal(d->x->timer.due_ms, due_ms - 1);
}

enum { LONG_TURN_MS = 40, TOTAL_MS = 100 };

static void begin_late_in_a_turn(void *ctx)
{
	struct desk *d = ctx;

	usleep(LONG_TURN_MS * 1000);
	begin(d, get);
	flow_deadline(d->x);
}

/* Timers go by the start of a turn. One that begins late in a long one and is
 * ended in time, by them, had still time left by the clock: and the audit
 * record said that the origin was slow. */
static void flow__that_lasted_too_long_says_so_after_a_long_turn(void **state)
{
	struct desk *d = *state;

	d->world->config.total_ms = TOTAL_MS;
	loop_post(d->world->worker.loop, begin_late_in_a_turn, d);
	run_until_over(d);
	assert_record(d, "too_long", 504, 0, 0);
}

/* -- back-pressure --------------------------------------------------------- */

static void upload__is_as_fast_as_the_origin(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "0123456789");
	fake_end(&d->front);
	d->back.room = 4;
	flow_run(d->x);
	assert_said(&d->back, "0123|");
	assert_int_equal(d->front.wanted, 0);
	assert_int_equal(d->back.wanted, LEG_READ | LEG_WRITE);
	flow_run(d->x); /* an idle call changes nothing */
	assert_said(&d->back, "0123|");
	d->back.room = 5;
	flow_run(d->x);
	assert_said(&d->back, "0123|45678|");
	d->back.room = 1;
	flow_run(d->x);
	/* the end needs no room, but there has to be some to look for it */
	assert_said(&d->back, "0123|45678|9|");
	assert_int_equal(d->back.wanted, LEG_READ | LEG_WRITE);
	d->back.room = 1;
	flow_run(d->x);
	assert_said(&d->back, "0123|45678|9|<end>|");
	assert_int_equal(d->back.wanted, LEG_READ);
	assert_int_equal(d->x->upload_bytes, 10);
}

static void download__is_as_fast_as_the_client(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "0123456789");
	fake_end(&d->back);
	d->front.room = 0;
	flow_run(d->x);
	assert_said(&d->front, "");
	assert_int_equal(d->front.wanted, LEG_WRITE);
	assert_int_equal(d->back.wanted, 0);
	d->front.room = 4;
	flow_run(d->x);
	assert_said(&d->front, "<200>0123|");
	assert_int_equal(d->front.wanted, LEG_WRITE);
	assert_int_equal(d->back.wanted, 0);
	d->front.room = 6;
	flow_run(d->x);
	assert_said(&d->front, "<200>0123|456789|");
	assert_no_record(d);
	d->front.room = 1;
	flow_run(d->x);
	assert_said(&d->front, "<200>0123|456789|<end>|");
	assert_record(d, "", 200, 0, 10);
}

/* A slow reader holds back its own writer and nobody else. */
static void pressure__of_one_side_does_not_stop_the_other(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "upload");
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "download");
	d->front.room = 0;
	flow_run(d->x);
	assert_said(&d->back, "upload<end>|");
	assert_said(&d->front, "");
	d->front.room = FAKE_ROOM;
	flow_run(d->x);
	assert_said(&d->front, "<200>download|");
}

static void pressure__of_both_sides(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	d->front.endless = d->back.endless = 1000;
	fake_head(&d->back, &ok);
	d->front.room = 2500;
	d->back.room = 1500;
	flow_run(d->x);
	assert_int_equal(d->x->upload_bytes, 1500);
	assert_int_equal(d->x->download_bytes, 2500);
	assert_int_equal(d->front.wanted, LEG_WRITE);
	assert_int_equal(d->back.wanted, LEG_WRITE);
	assert_no_record(d);
}

/* Framing takes room too: what a leg says of its room counts, piece by piece.
 */
static int write_with_framing(struct leg *leg, struct span content)
{
	struct fake_leg *f = fake_of(leg);
	int r = fake_write(leg, content);

	f->room -= MIN(f->room, 99u);
	return r;
}

static void pressure__counts_the_framing(void **state)
{
	struct desk *d = *state;
	static struct leg_ops front, back;

	front = *d->front.leg.ops;
	back = *d->back.leg.ops;
	front.write = back.write = write_with_framing;
	d->front.leg.ops = &front;
	d->back.leg.ops = &back;
	begin(d, post);
	d->front.endless = d->back.endless = 1;
	fake_head(&d->back, &ok);
	d->front.room = 1000;
	d->back.room = 500;
	flow_run(d->x);
	assert_int_equal(d->x->download_bytes, 10);
	assert_int_equal(d->x->upload_bytes, 5);
	exchange_abandon(d->x, AUDIT_REASON_NONE);
	d->x = NULL;
}

/* Two endless bodies: the other sessions of the loop have their turn, and this
 * one another right after. */
static void rounds__are_bounded(void **state)
{
	struct desk *d = *state;
	uint64_t up, down;

	begin(d, post);
	d->front.endless = d->back.endless = 16 * 1024;
	d->front.room_is_endless = d->back.room_is_endless = true;
	fake_head(&d->back, &ok);
	flow_run(d->x);
	up = d->x->upload_bytes;
	down = d->x->download_bytes;
	assert_true(up >= FAKE_ROOM && up <= 64 * FAKE_ROOM);
	assert_true(down >= FAKE_ROOM && down <= 64 * FAKE_ROOM);
	/* legs may hold more that no event of theirs will tell of */
	assert_int_equal(d->front.wanted, LEG_READ | LEG_WRITE);
	assert_int_equal(d->back.wanted, LEG_READ | LEG_WRITE);
	assert_no_record(d);
	flow_run(d->x);
	assert_true(d->x->upload_bytes >= 2 * up);
	assert_true(d->x->download_bytes >= 2 * down);
}

static void rounds__bound_interim_heads_too(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	d->back.endless_head = &hints;
	flow_run(d->x); /* the fake fails when it is asked for ever */
	assert_false(d->x->answered);
	assert_true(d->back.wants > 0);
	assert_true(d->front.wanted & LEG_WRITE);
	assert_no_record(d);
}

/* -- heads ----------------------------------------------------------------- */

static void interim__heads_pass_before_the_answer(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_head(&d->back, &hints);
	flow_run(d->x);
	assert_said(&d->front, "<103>|");
	assert_false(d->x->answered);
	assert_true(d->x->audit.first_byte_us > 0);
	fake_piece(&d->front, "x");
	fake_end(&d->front);
	fake_head(&d->back, &(struct response){ .status = 100 });
	fake_head(&d->back, &hints);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "y");
	fake_end(&d->back);
	flow_run(d->x);
	/* none of them waits for the next */
	assert_said(&d->front, "<103>|<100>|<103>|<200>y<end>|");
	assert_said(&d->back, "x<end>|");
	assert_record(d, "", 200, 1, 1);
}

static void interim__is_not_an_answer(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	fake_head(&d->back, &hints);
	(void)fake_break(&d->back, "gone");
	flow_run(d->x);
	assert_true(span_starts(buf_peek(&d->front.said), SPAN("<103>")));
	assert_non_null(memmem(buf_peek(&d->front.said).ptr,
			       buf_len(&d->front.said), "<502>{", 6));
	assert_record(d, "origin_failed", 502, 0, 0);
	assert_kept(d, true, false);
}

/* The rest of the request is neither awaited nor read: both connections end. */
static void answer__may_be_early(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "part");
	fake_head(&d->back, &(struct response){ .status = 413 });
	fake_piece(&d->back, "no");
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->back, "part|");
	assert_said(&d->front, "<413>no<end>|");
	assert_record(d, "", 413, 4, 2);
	assert_false(d->back.kept);
	assert_true(d->front.finished); /* the front knows that it was early */
}

/* While an early answer is under way the upload goes on. */
static void answer__does_not_stop_the_upload(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_head(&d->back, &ok);
	flow_run(d->x);
	assert_said(&d->front, "<200>|");
	fake_piece(&d->front, "late");
	flow_run(d->x);
	assert_said(&d->back, "late|");
	fake_end(&d->front);
	fake_piece(&d->back, "down");
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->back, "late|<end>|");
	assert_record(d, "", 200, 4, 4);
	assert_kept(d, true, true);
}

static void head__that_does_not_fit_is_not_passed(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	d->front.fail_respond = -ENOBUFS;
	flow_run(d->x);
	assert_said(&d->front, "");
	assert_record(d, "origin_failed", d->front.broke ? 200 : 502, 0, 0);
	assert_text(d, "detail", "its head does not fit");
	assert_false(d->front.finished && d->front.kept);
	assert_false(d->back.kept);
}

/* -- bodies that are redacted ---------------------------------------------- */

static const struct binding redacting = { .redact_body = true };

static void redact(struct desk *d, struct kit *k)
{
	kit_add(k, "", SPAN("s3cret-value"));
	kit_build(k);
	d->x->request.binding = &redacting;
	d->x->request.automaton = k->automaton;
}

/* What was held back comes out at once, more than there is room for, in the
 * middle and at the end: it waits, and nobody writes more than there is room
 * for (fake_leg.h looks after that). */
static void body__that_was_held_back_waits_for_room(void **state)
{
	struct desk *d = *state;
	struct kit k = { 0 };
	unsigned turns;

	begin(d, get);
	redact(d, &k);
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "abcd s3c");
	fake_piece(&d->back, "ret-no, s3cret-value");
	fake_piece(&d->back, " and s3cret-valu");
	fake_end(&d->back);
	for (turns = 0; !desk_is_over(d) && turns < 100; turns++) {
		d->front.room = 3;
		flow_run(d->x);
	}
	assert_in_range(turns, 44 / 3, 30);
	drop_bars(&d->front.said);
	assert_said(&d->front, "<200>abcd s3cret-no, [REDACTED]** and "
			       "s3cret-valu<end>");
	assert_record(d, "", 200, 0, 44);
	assert_number(d, "redactions", 1);
	kit_fini(&k);
}

/* -- trailers -------------------------------------------------------------- */

static const struct headers fields = {
	.count = 3,
	.items = { { .name = SPAN_INIT("A"), .value = SPAN_INIT("1") },
		   { .name = SPAN_INIT("B"),
		     .value = SPAN_INIT("s3cret and s3cret") },
		   { .name = SPAN_INIT("C") } },
};

static void trailers__pass_both_ways(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	d->front.trailers = d->back.trailers = &fields;
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->back, "<end A=1,B=s3cret and s3cret,C=>|");
	assert_said(&d->front, "<200><end A=1,B=s3cret and s3cret,C=>|");
	assert_record(d, "", 200, 0, 0);
	assert_number(d, "redactions", 0);
}

static void trailers__of_the_origin_are_redacted(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	inject(d, "s3cret");
	d->front.trailers = d->back.trailers = &fields;
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_end(&d->back);
	flow_run(d->x);
	/* the client's own are its own business */
	assert_said(&d->back, "<end A=1,B=s3cret and s3cret,C=>|");
	assert_said(&d->front,
		    "<200><end A=1,B=[REDACTED] and [REDACTED],C=>|");
	assert_record(d, "", 200, 0, 0);
	assert_number(d, "redactions", 2);
}

/* Rather none than one with a credential in it. */
static void trailers__that_cannot_be_redacted_do_not_pass(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	inject(d, "s3cret");
	while (arena_alloc(&d->x->arena, 1024))
		;
	d->back.trailers = &fields;
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->front, "<200><end>|");
	assert_record(d, "", 200, 0, 0);
}

/* -- tunnels --------------------------------------------------------------- */

static void tunnel_open(struct desk *d)
{
	begin(d, "GET /ws HTTP/1.1\r\nHost: a.example\r\n"
		 "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	fake_end(&d->front);
	flow_run(d->x);
	assert_said(&d->back, "<end>|");
	/* after the answer the front begins anew */
	d->front.at = d->front.step_count = 0;
	d->back.ended = false;
	fake_head(&d->back, &switching);
	flow_run(d->x);
	assert_said(&d->front, "<101>|");
	assert_int_equal(d->x->state, EXCHANGE_TUNNEL);
	assert_int_equal(d->front.wanted, LEG_READ);
	assert_int_equal(d->back.wanted, LEG_READ);
	buf_clear(&d->front.said);
	buf_clear(&d->back.said);
}

static void tunnel__passes_bytes_both_ways(void **state)
{
	struct desk *d = *state;

	tunnel_open(d);
	fake_piece(&d->front, "ping");
	fake_piece(&d->back, "pong!");
	flow_run(d->x);
	assert_said(&d->back, "ping|");
	assert_said(&d->front, "pong!|");
	assert_no_record(d);
	fake_end(&d->front);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->back, "ping|<end>|");
	assert_said(&d->front, "pong!|<end>|");
	assert_record(d, "", 101, 4, 5);
	assert_text(d, "kind", "tunnel");
}

/* Each side may end while the other goes on. */
static void tunnel__the_client_may_end_first(void **state)
{
	struct desk *d = *state;

	tunnel_open(d);
	fake_piece(&d->front, "q");
	fake_end(&d->front);
	flow_run(d->x);
	assert_said(&d->back, "q<end>|");
	assert_int_equal(d->front.wanted, 0);
	assert_int_equal(d->back.wanted, LEG_READ);
	assert_no_record(d);
	fake_piece(&d->back, "answer");
	flow_run(d->x);
	assert_said(&d->front, "answer|");
	assert_no_record(d);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->front, "answer|<end>|");
	assert_record(d, "", 101, 1, 6);
}

static void tunnel__the_origin_may_end_first(void **state)
{
	struct desk *d = *state;

	tunnel_open(d);
	fake_piece(&d->back, "bye");
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->front, "bye<end>|");
	assert_int_equal(d->front.wanted, LEG_READ);
	assert_int_equal(d->back.wanted, 0);
	assert_no_record(d);
	fake_piece(&d->front, "still");
	flow_run(d->x);
	assert_said(&d->back, "still|");
	assert_no_record(d);
	fake_end(&d->front);
	flow_run(d->x);
	assert_said(&d->back, "still|<end>|");
	assert_record(d, "", 101, 5, 3);
}

static void tunnel__has_back_pressure(void **state)
{
	struct desk *d = *state;

	tunnel_open(d);
	d->front.endless = d->back.endless = 100;
	d->front.room = 150;
	d->back.room = 250;
	flow_run(d->x);
	assert_int_equal(d->x->upload_bytes, 250);
	assert_int_equal(d->x->download_bytes, 150);
	assert_int_equal(d->front.wanted, LEG_WRITE);
	assert_int_equal(d->back.wanted, LEG_WRITE);
}

static void tunnel__breaks_with_either_side(void **state)
{
	struct desk *d = *state;

	tunnel_open(d);
	fake_piece(&d->back, "some");
	(void)fake_break(&d->back, "reset");
	flow_run(d->x);
	assert_true(d->front.broke);
	assert_record(d, "origin_failed", 101, 0, 4);
	assert_text(d, "detail", "reset");

	(void)desk_close(state);
	(void)desk_open(state);
	d = *state;
	tunnel_open(d);
	fake_piece(&d->front, "some");
	(void)fake_break(&d->front, "reset");
	flow_run(d->x);
	assert_true(d->front.broke);
	assert_record(d, "client_aborted", 101, 4, 0);
}

/* -- legs that break ------------------------------------------------------- */

static void client__that_leaves_is_not_answered(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "abc");
	(void)fake_break(&d->front, "it left");
	flow_run(d->x);
	assert_said(&d->front, "");
	assert_true(d->front.broke);
	assert_record(d, "client_aborted", 0, 3, 0);
	assert_text(d, "detail", "it left");
	assert_false(d->back.kept);
}

static void client__that_leaves_while_it_waits_is_noticed(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	flow_run(d->x);
	assert_no_record(d);
	d->front.ahead = LEG_BROKEN;
	flow_run(d->x);
	assert_true(d->front.broke);
	assert_record(d, "client_aborted", 0, 0, 0);
	assert_text(d, "detail", "it left");
}

static void client__that_only_ends_is_answered(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	d->front.ahead = LEG_END;
	flow_run(d->x);
	assert_no_record(d);
	fake_head(&d->back, &ok);
	fake_end(&d->back);
	flow_run(d->x);
	assert_said(&d->front, "<200><end>|");
	assert_record(d, "", 200, 0, 0);
}

static void client__ahead_is_not_asked_during_the_upload(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	d->front.ahead = LEG_BROKEN;
	fake_piece(&d->front, "x");
	flow_run(d->x);
	assert_no_record(d);
}

static void client__that_breaks_the_protocol_is_told(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_piece(&d->front, "abc");
	fake_break(&d->front, "nonsense")->malformed = true;
	flow_run(d->x);
	assert_true(span_starts(buf_peek(&d->front.said), SPAN("<400>{")));
	assert_true(span_ends(buf_peek(&d->front.said), SPAN("}\n<end>|")));
	assert_record(d, "malformed", 400, 3, 0);
	assert_text(d, "verdict", "deny");
	assert_text(d, "detail", "nonsense");
	assert_false(d->back.kept);
	/* the origin must not take what it got for whole */
	assert_said(&d->back, "abc");
}

static void client__that_breaks_the_protocol_late_is_cut(void **state)
{
	struct desk *d = *state;

	begin(d, post);
	fake_head(&d->back, &ok);
	flow_run(d->x);
	fake_break(&d->front, "nonsense")->malformed = true;
	flow_run(d->x);
	assert_said(&d->front, "<200>|");
	assert_true(d->front.broke);
	assert_record(d, "malformed", 200, 0, 0);
}

static void client__that_takes_no_more(void **state)
{
	struct desk *d = *state;
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (i) {
			(void)desk_close(state);
			(void)desk_open(state);
			d = *state;
		}
		begin(d, get);
		fake_end(&d->front);
		fake_head(&d->back, &ok);
		if (i != 1)
			fake_piece(&d->back, "abc");
		if (i)
			fake_end(&d->back);
		if (i == 0)
			d->front.fail_write = -EPIPE;
		else if (i == 1)
			d->front.fail_end = -EPIPE;
		else
			d->front.fail_flush = -EPIPE;
		flow_run(d->x);
		assert_true(d->front.broke);
		assert_record(d, "client_aborted", 200, 0, i == 1 ? 0 : 3);
		assert_false(d->back.kept);
	}
}

/* Its answer may still come; then neither connection is used again. */
static void origin__that_takes_no_more_may_answer(void **state)
{
	struct desk *d = *state;
	unsigned i;

	for (i = 0; i < 3; i++) {
		if (i) {
			(void)desk_close(state);
			(void)desk_open(state);
			d = *state;
		}
		begin(d, post);
		fake_piece(&d->front, "abc");
		fake_end(&d->front);
		if (i == 0)
			d->back.fail_write = -EPIPE;
		else if (i == 1)
			d->back.fail_end = -EPIPE;
		else
			d->back.fail_flush = -EPIPE;
		flow_run(d->x);
		assert_no_record(d);
		assert_true(d->x->upload_broken);
		assert_int_equal(d->front.wanted, 0);
		assert_int_equal(d->back.wanted, LEG_READ);
		fake_head(&d->back, &ok);
		fake_piece(&d->back, "why");
		fake_end(&d->back);
		flow_run(d->x);
		assert_said(&d->front, "<200>why<end>|");
		assert_record(d, "", 200, 3, 3);
		assert_kept(d, false, false);
	}
}

static void origin__that_breaks_before_its_answer_is_told_of(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	(void)fake_break(&d->back, "it broke");
	flow_run(d->x);
	assert_true(span_starts(buf_peek(&d->front.said), SPAN("<502>{")));
	assert_record(d, "origin_failed", 502, 0, 0);
	assert_text(d, "verdict", "allow");
	assert_text(d, "detail", "it broke");
	assert_kept(d, true, false);
}

static void origin__need_not_say_why(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	fake_end(&d->back); /* instead of a head */
	flow_run(d->x);
	assert_true(span_starts(buf_peek(&d->front.said), SPAN("<502>{")));
	assert_record(d, "origin_failed", 502, 0, 0);
}

/* A body that broke off must look so. */
static void origin__that_breaks_in_its_body_breaks_the_client(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_piece(&d->back, "half");
	(void)fake_break(&d->back, "it broke");
	flow_run(d->x);
	assert_null(memmem(buf_peek(&d->front.said).ptr,
			   buf_len(&d->front.said), "<end", 4));
	assert_true(d->front.broke);
	assert_record(d, "origin_failed", 200, 0, 4);
	assert_false(d->back.kept);
}

static void refusal__of_head_has_no_body(void **state)
{
	struct desk *d = *state;

	begin(d, "HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	fake_end(&d->front);
	(void)fake_break(&d->back, "it broke");
	flow_run(d->x);
	assert_said(&d->front, "<502><end>|");
	assert_record(d, "origin_failed", 502, 0, 0);
}

/* A front that takes no refusal is not kept. */
static void refusal__that_cannot_be_said(void **state)
{
	struct desk *d = *state;

	begin(d, get);
	fake_end(&d->front);
	(void)fake_break(&d->back, "it broke");
	d->front.fail_respond = -EPIPE;
	flow_run(d->x);
	assert_said(&d->front, "");
	assert_record(d, "origin_failed", 502, 0, 0);
	assert_kept(d, false, false);
}

/* -- a kept connection that was stale -------------------------------------- */

/* Where a second try goes to. */
static void listen_at(struct desk *d)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct session *s = &d->session;
	socklen_t len = sizeof(a);
	struct verdict v;

	d->listener =
		socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	must(d->listener >= 0);
	must(!bind(d->listener, (struct sockaddr *)&a, sizeof(a)));
	must(!listen(d->listener, 4));
	must(!getsockname(d->listener, (struct sockaddr *)&a, &len));
	d->listens = addr_of("127.0.0.1", ntohs(a.sin_port));
	s->destination =
		proved(SCHEME_HTTP, "a.example", d->listens, ADDRESS_PIN);
	s->grant = decide_connect(s->worker, s->sandbox, &s->destination, NULL,
				  &s->arena, &v);
	must(s->grant != NULL);
}

/* The back closes without a word. Reused: what it served before. */
static void go_silent(struct desk *d, const char *head, bool reused)
{
	listen_at(d);
	begin(d, head);
	d->x->request.grant = d->session.grant;
	d->x->reused = reused;
	fake_end(&d->front);
	flow_run(d->x);
	fake_break(&d->back, "it closed")->silent = true;
	flow_run(d->x);
}

/* The one connection that was made, and what came by it. */
static int hear(struct desk *d, char *text, size_t size)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	ssize_t n = -1;
	int fd = -1;

	while (n <= 0 && clock_ms() < end_ms) {
		world_turn(d->world);
		if (fd < 0)
			fd = accept4(d->listener, NULL, NULL,
				     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd >= 0)
			n = read(fd, text, size - 1);
	}
	assert_true(n > 0);
	text[n] = '\0';
	return fd;
}

static void assert_not_heard(struct desk *d)
{
	world_settle(d->world);
	assert_int_equal(accept(d->listener, NULL, NULL), -1);
}

static void retry__is_made_once_on_a_new_connection(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\n"
				     "Content-Length: 5\r\n\r\nagain";
	struct desk *d = *state;
	char text[1024];
	int fd;

	go_silent(d, get, true);
	assert_said(&d->front, "");
	assert_true(d->back.released);
	assert_false(d->back.kept);
	assert_no_record(d);
	fd = hear(d, text, sizeof(text));
	assert_string_equal(text, get);
	must(write(fd, answer, strlen(answer)) == (ssize_t)strlen(answer));
	run_until_over(d);
	assert_said(&d->front, "<200>again<end>|");
	assert_record(d, "", 200, 0, 5);
	assert_false(json_bool(json_find(d->record, "originReused")));
	assert_true(d->front.kept);
	(void)fd_close(fd);
}

static void retry__is_not_made_twice(void **state)
{
	struct desk *d = *state;
	char text[1024];
	int fd;

	go_silent(d, get, true);
	fd = hear(d, text, sizeof(text));
	d->x->reused = true; /* even so */
	(void)fd_close(fd);
	run_until_over(d);
	assert_true(span_starts(buf_peek(&d->front.said), SPAN("<502>{")));
	assert_record(d, "origin_failed", 502, 0, 0);
	assert_not_heard(d);
}

static void retry__is_for_what_is_safe_to_repeat(void **state)
{
	static const struct {
		const char *head;
		bool reused, may;
	} cases[] = {
		{ get, true, true },
		{ get, false, false },
		{ post, true, false },
		{ "POST / HTTP/1.1\r\nHost: a\r\n\r\n", true, false },
		{ "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n", true, false },
		{ "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", true, true },
		{ "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", true, true },
		{ "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
		  true, true },
		{ "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n",
		  true, false },
		{ "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
		  "Upgrade: websocket\r\n\r\n",
		  true, false },
	};
	struct desk *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		char text[1024];

		go_silent(d, cases[i].head, cases[i].reused);
		if (cases[i].may) {
			assert_no_record(d);
			(void)fd_close(hear(d, text, sizeof(text)));
			run_until_over(d);
		} else {
			assert_not_heard(d);
		}
		assert_record(d, "origin_failed", 502, 0, 0);
		(void)desk_close(state);
		(void)desk_open(state);
		d = *state;
	}
}

static void retry__is_not_made_when_the_origin_spoke(void **state)
{
	struct desk *d = *state;

	listen_at(d);
	begin(d, get);
	d->x->request.grant = d->session.grant;
	d->x->reused = true;
	fake_end(&d->front);
	(void)fake_break(&d->back, "half a head"); /* not silent */
	flow_run(d->x);
	assert_not_heard(d);
	assert_record(d, "origin_failed", 502, 0, 0);
}

static void retry__is_not_made_after_the_answer(void **state)
{
	struct desk *d = *state;

	listen_at(d);
	begin(d, get);
	d->x->request.grant = d->session.grant;
	d->x->reused = true;
	fake_end(&d->front);
	fake_head(&d->back, &ok);
	fake_break(&d->back, "gone")->silent = true;
	flow_run(d->x);
	assert_not_heard(d);
	assert_true(d->front.broke);
	assert_record(d, "origin_failed", 200, 0, 0);
}

/* An interim answer is one: the origin has begun. */
static void retry__is_not_made_after_an_interim_answer(void **state)
{
	static const char interim[] = "HTTP/1.1 103 Early Hints\r\n\r\n";
	struct desk *d = *state;
	char text[1024];
	int fd;

	go_silent(d, get, true);
	fd = hear(d, text, sizeof(text));
	d->x->reused = true; /* as if this were the first try */
	d->x->retries = 0;
	must(write(fd, interim, strlen(interim)) == (ssize_t)strlen(interim));
	(void)fd_close(fd);
	run_until_over(d);
	assert_true(
		span_starts(buf_peek(&d->front.said), SPAN("<103>|<502>{")));
	assert_record(d, "origin_failed", 502, 0, 0);
	assert_not_heard(d);
}

/* All that came in one read is passed on, in more turns than one. */
static void origin__may_give_many_hints_at_once(void **state)
{
	CLEANUP(buf_fini) struct buf said = BUF_INIT(64 * 1024);
	CLEANUP(buf_fini) struct buf expected = BUF_INIT(64 * 1024);
	struct desk *d = *state;
	char text[1024];
	int fd, i;

	go_silent(d, get, true);
	fd = hear(d, text, sizeof(text));
	for (i = 0; i < 100; i++) {
		must(!buf_put_str(&said, "HTTP/1.1 103 Early Hints\r\n\r\n"));
		must(!buf_put_str(&expected, "<103>|"));
	}
	must(!buf_put_str(&said, "HTTP/1.1 200 OK\r\n"
				 "Content-Length: 2\r\n\r\nok"));
	must(!buf_put_str(&expected, "<200>ok<end>|"));
	must(write(fd, buf_peek(&said).ptr, buf_len(&said)) ==
	     (ssize_t)buf_len(&said));
	for (i = 0; i < 1000 && !desk_is_over(d); i++) {
		world_turn(d->world);
		if (d->front.wanted & LEG_WRITE && !desk_is_over(d))
			flow_run(d->x); /* it can be written to */
	}
	assert_true(span_eq(buf_peek(&d->front.said), buf_peek(&expected)));
	assert_record(d, "", 200, 0, 2);
	(void)fd_close(fd);
}

static void assert_no_echo(struct desk *d)
{
	world_settle(d->world);
	assert_null(memmem(d->session.worker->scratch_back,
			   WORKER_SCRATCH_BYTES, "s3cret", 6));
}

/* Heads and trailers may echo a credential, and come in parts: between turns
 * none of it is in memory that others read into. */
static void origin__leaves_no_echo_in_the_scratch(void **state)
{
	static const char *const parts[] = {
		"HTTP/1.1 103 Early\r\nX-A: s3cret\r\n\r\nHTTP/1.1 200 OK\r\n",
		"X-Echo: s3cret\r\nX-Half: s3c",
		"ret\r\nTransfer-Encoding: chunked\r\n\r\n",
		"5\r\nhello\r\n0\r\nX-Sum: s3cret\r\n",
		"X-More: s3cret\r\n",
		"\r\n",
	};
	struct desk *d = *state;
	char text[1024];
	size_t i;
	int fd;

	listen_at(d);
	begin(d, get);
	inject(d, "s3cret");
	d->x->request.grant = d->session.grant;
	d->x->reused = true;
	fake_end(&d->front);
	flow_run(d->x);
	fake_break(&d->back, "it closed")->silent = true;
	flow_run(d->x);
	fd = hear(d, text, sizeof(text));
	assert_non_null(strstr(text, "Authorization: s3cret\r\n"));
	assert_null(memmem(d->session.worker->assembly, WORKER_SCRATCH_BYTES,
			   "s3cret", 6));
	for (i = 0; i < ARRAY_LEN(parts); i++) {
		must(write(fd, parts[i], strlen(parts[i])) ==
		     (ssize_t)strlen(parts[i]));
		assert_no_echo(d);
	}
	assert_said(&d->front, "<103>|<200>|hello|<end X-Sum=[REDACTED],"
			       "X-More=[REDACTED]>|");
	assert_record(d, "", 200, 0, 5);
	(void)fd_close(fd);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(flow__passes_both_bodies),
		DESK_TEST(flow__waits_for_what_is_missing),
		DESK_TEST(flow__does_nothing_before_its_time),
		DESK_TEST(flow__puts_off_the_deadline_when_something_moves),
		DESK_TEST(flow__that_lasted_too_long_says_so_after_a_long_turn),
		DESK_TEST(upload__is_as_fast_as_the_origin),
		DESK_TEST(download__is_as_fast_as_the_client),
		DESK_TEST(pressure__of_one_side_does_not_stop_the_other),
		DESK_TEST(pressure__of_both_sides),
		DESK_TEST(pressure__counts_the_framing),
		DESK_TEST(rounds__are_bounded),
		DESK_TEST(rounds__bound_interim_heads_too),
		DESK_TEST(interim__heads_pass_before_the_answer),
		DESK_TEST(interim__is_not_an_answer),
		DESK_TEST(answer__may_be_early),
		DESK_TEST(answer__does_not_stop_the_upload),
		DESK_TEST(head__that_does_not_fit_is_not_passed),
		DESK_TEST(body__that_was_held_back_waits_for_room),
		DESK_TEST(trailers__pass_both_ways),
		DESK_TEST(trailers__of_the_origin_are_redacted),
		DESK_TEST(trailers__that_cannot_be_redacted_do_not_pass),
		DESK_TEST(tunnel__passes_bytes_both_ways),
		DESK_TEST(tunnel__the_client_may_end_first),
		DESK_TEST(tunnel__the_origin_may_end_first),
		DESK_TEST(tunnel__has_back_pressure),
		DESK_TEST(tunnel__breaks_with_either_side),
		DESK_TEST(client__that_leaves_is_not_answered),
		DESK_TEST(client__that_leaves_while_it_waits_is_noticed),
		DESK_TEST(client__that_only_ends_is_answered),
		DESK_TEST(client__ahead_is_not_asked_during_the_upload),
		DESK_TEST(client__that_breaks_the_protocol_is_told),
		DESK_TEST(client__that_breaks_the_protocol_late_is_cut),
		DESK_TEST(client__that_takes_no_more),
		DESK_TEST(origin__that_takes_no_more_may_answer),
		DESK_TEST(origin__that_breaks_before_its_answer_is_told_of),
		DESK_TEST(origin__need_not_say_why),
		DESK_TEST(origin__that_breaks_in_its_body_breaks_the_client),
		DESK_TEST(refusal__of_head_has_no_body),
		DESK_TEST(refusal__that_cannot_be_said),
		DESK_TEST(retry__is_made_once_on_a_new_connection),
		DESK_TEST(retry__is_not_made_twice),
		DESK_TEST(retry__is_for_what_is_safe_to_repeat),
		DESK_TEST(retry__is_not_made_when_the_origin_spoke),
		DESK_TEST(retry__is_not_made_after_the_answer),
		DESK_TEST(retry__is_not_made_after_an_interim_answer),
		DESK_TEST(origin__may_give_many_hints_at_once),
		DESK_TEST(origin__leaves_no_echo_in_the_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
