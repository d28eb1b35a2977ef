/* SPDX-License-Identifier: Apache-2.0 */
/* test_silence.c - who owes something may be silent for so long, and no longer
 *
 * The clock is ours: clock.h's functions are defined here, so that half an hour
 * passes between two turns of the loop.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

#include "tests/unit/httpd/rig.h"

enum { SECOND = 1000, MINUTE = 60 * SECOND };

static uint64_t skew_ms;

uint64_t clock_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000 +
	       skew_ms * 1000;
}

uint64_t clock_ms(void)
{
	return clock_us() / 1000;
}

uint64_t clock_wall_ms(void)
{
	return clock_ms();
}

void clock_text(uint64_t wall_ms, char *dst, size_t size)
{
	snprintf(dst, size, "%llu", (unsigned long long)wall_ms);
}

struct fixture {
	struct rig rig;
	struct httpd_request *request;
	unsigned pieces, ends, cuts, gone, rooms;
	bool pause;
};

static void on_piece(void *user, struct httpd_request *r, enum httpd_piece kind,
		     struct span bytes)
{
	struct fixture *f = user;

	(void)bytes;
	if (kind == HTTPD_PIECE) {
		f->pieces++;
		if (f->pause)
			httpd_body_pause(r);
		return;
	}
	*(kind == HTTPD_PIECE_END ? &f->ends : &f->cuts) += 1;
	f->request = NULL;
	if (kind == HTTPD_PIECE_END)
		httpd_reply_ok(r);
	else
		httpd_reply_error(r, 408, "CUT", "the body was cut");
}

static void on_upload(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	httpd_set_user(r, f);
	httpd_body_read(r, on_piece);
}

static void on_gone(void *user, struct httpd_request *r)
{
	struct fixture *f = user;

	f->gone++;
	f->request = NULL;
	httpd_stream_end(r);
}

static void on_room(void *user, struct httpd_request *r)
{
	struct fixture *f = user;

	(void)r;
	f->rooms++;
}

static void on_stream(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;

	f->request = r;
	httpd_set_user(r, f);
	httpd_stream_start(r, 200, "text/plain", on_gone);
	if (span_eq(httpd_query(r, "room"), SPAN("1")))
		httpd_stream_on_room(r, on_room);
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	(void)r;
	return 0;
}

static const struct httpd_route routes[] = {
	{ "POST", "/up", HTTPD_AUTH_REQUIRED, on_upload, HTTPD_BODY_STREAMED },
	{ "GET", "/stream", HTTPD_AUTH_REQUIRED, on_stream },
};

static int set_up(void **state)
{
	static const struct httpd_ops ops = { .authorise = on_authorise };
	struct fixture *f = must_alloc(sizeof(*f));

	rig_open(&f->rig, routes, ARRAY_LEN(routes), &ops, f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	rig_close(&f->rig);
	free(f);
	return 0;
}

static void pass(struct fixture *f, uint64_t ms)
{
	skew_ms += ms;
	turns(&f->rig, 4);
}

#define HALF_A_BODY \
	"POST /up HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nabc"

/* -- tests ---------------------------------------------------------------- */

static void silence__of_an_idle_connection(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	while (!httpd_connection_count(f->rig.httpd))
		turn(&f->rig);
	turns(&f->rig, 4);
	pass(f, 55 * SECOND);
	assert_int_equal(httpd_connection_count(f->rig.httpd), 1);
	pass(f, 7 * SECOND);
	assert_int_equal(httpd_connection_count(f->rig.httpd), 0);
	close(fd);
}

static void silence__amid_a_head(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	turns(&f->rig, 4);
	client_send(&f->rig, fd, SPAN("GET /stream HTT"));
	pass(f, 8 * SECOND);
	client_send(&f->rig, fd, SPAN("P")); /* trickling does not help */
	assert_int_equal(httpd_connection_count(f->rig.httpd), 1);
	pass(f, 3 * SECOND);
	assert_has(client_read(&f->rig, fd, NULL), "408 Request Timeout");
	close(fd);
}

static void silence__amid_a_body(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	client_send(&f->rig, fd, SPAN(HALF_A_BODY));
	pass(f, 28 * SECOND);
	client_send(&f->rig, fd, SPAN("d")); /* he is still there */
	pass(f, 28 * SECOND);
	assert_int_equal(f->cuts, 0);
	pass(f, 5 * SECOND);
	assert_int_equal(f->cuts, 1);
	assert_has(client_read(&f->rig, fd, NULL), "408 Request Timeout");
	close(fd);
}

/* It is the handler who is silent then. */
static void silence__of_a_body_that_is_paused(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	f->pause = true;
	client_send(&f->rig, fd, SPAN(HALF_A_BODY));
	assert_int_equal(f->pieces, 1);
	pass(f, 30 * MINUTE);
	assert_int_equal(f->cuts, 0);
	assert_int_equal(httpd_connection_count(f->rig.httpd), 1);

	/* then it is the client again */
	f->pause = false;
	httpd_body_resume(f->request);
	turns(&f->rig, 4);
	pass(f, 28 * SECOND);
	assert_int_equal(f->cuts, 0);
	client_send(&f->rig, fd, SPAN("def"));
	assert_has(client_read(&f->rig, fd, "\r\n\r\n"), "200 OK");
	assert_int_equal(f->ends, 1);
	close(fd);
}

static void silence__of_a_body_that_was_resumed(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	f->pause = true;
	client_send(&f->rig, fd, SPAN(HALF_A_BODY));
	pass(f, MINUTE);
	httpd_body_resume(f->request);
	turns(&f->rig, 4);
	pass(f, 31 * SECOND);
	assert_int_equal(f->cuts, 1);
	close(fd);
}

/* A handler that works has all the time it wants. */
static void silence__of_a_reply(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	client_send(&f->rig, fd,
		    SPAN("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	pass(f, 30 * MINUTE);
	assert_int_equal(f->gone, 0);
	assert_int_equal(httpd_stream_write(f->request, SPAN("late")), 0);
	assert_has(client_read(&f->rig, fd, "late"), "200 OK");
	close(fd);
}

static void fill(struct fixture *f)
{
	static char piece[64 * 1024];
	int r;

	do {
		r = httpd_stream_write(f->request,
				       span_of(piece, sizeof(piece)));
		turn(&f->rig);
	} while (!r);
	assert_int_equal(r, -EAGAIN);
}

/* Who does not read is given up, and words to him do not prolong it. */
static void silence__of_a_reader(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);

	client_send(&f->rig, fd,
		    SPAN("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"));
	fill(f);
	pass(f, 20 * SECOND);
	assert_int_equal(httpd_stream_write(f->request, SPAN("x")), -EAGAIN);
	pass(f, 12 * SECOND);
	for (int i = 0; i < 1000 && !f->gone; i++) {
		usleep(100);
		turn(&f->rig);
	}
	assert_int_equal(f->gone, 1);
	close(fd);
}

static void silence__of_a_reader_that_is_waited_for(void **state)
{
	struct fixture *f = *state;
	int fd = client_open(&f->rig);
	char scratch[64 * 1024];
	unsigned rooms;

	client_send(&f->rig, fd,
		    SPAN("GET /stream?room=1 HTTP/1.1\r\nHost: x\r\n\r\n"));
	assert_int_equal(f->rooms, 1);
	fill(f);
	rooms = f->rooms;
	pass(f, 30 * MINUTE);
	assert_int_equal(f->gone, 0);
	for (int i = 0; i < 200 && f->rooms == rooms; i++) {
		(void)!recv(fd, scratch, sizeof(scratch), 0);
		turn(&f->rig);
	}
	assert_int_equal(f->rooms, rooms + 1);
	httpd_stream_end(f->request);
	close(fd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(silence__of_an_idle_connection),
		TEST(silence__amid_a_head),
		TEST(silence__amid_a_body),
		TEST(silence__of_a_body_that_is_paused),
		TEST(silence__of_a_body_that_was_resumed),
		TEST(silence__of_a_reply),
		TEST(silence__of_a_reader),
		TEST(silence__of_a_reader_that_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
