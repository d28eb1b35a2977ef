/* SPDX-License-Identifier: Apache-2.0 */
/* test_forward.c - requests on their way to another server and back: framing,
 * trailers, interim replies, and another port where one refuses
 *
 * The test is both ends: a client of the server, and the server behind it, of
 * which it says every byte.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/unit/httpd/rig.h"

#include <netinet/in.h>

#include "src/httpd/forward.h"
#include "src/httpd/forward_head.h"

struct fixture {
	struct rig rig;
	struct forwarder forwarder;
	struct addr first, second; /* .port 0: none */
	bool elsewhere;
	unsigned asked, done;
	struct forward_result result;
	int listener, other; /* of the server behind: of first, of second */
};

static bool drops_secret(const struct header *h)
{
	return span_eq_nocase(h->name, SPAN("X-Secret"));
}

static int put_head(struct buf *out, const struct httpd_request *r,
		    const char *path)
{
	return forward_put_request(out, httpd_head(r),
				   &(struct forward_edit){
					   .path = span_str(path),
					   .host = SPAN("h"),
					   .drops = drops_secret,
				   });
}

static uint16_t on_refused(void *ctx, const struct httpd_request *r,
			   struct buf *head)
{
	struct fixture *f = ctx;

	f->asked++;
	if (!f->elsewhere || put_head(head, r, "/elsewhere"))
		return 0;
	return f->second.port;
}

static void on_done(void *ctx, const struct forward_result *result)
{
	struct fixture *f = ctx;

	f->done++;
	f->result = *result;
}

static void on_request(void *ctx, struct httpd_request *r)
{
	struct fixture *f = ctx;
	struct forward_order order = {
		.addrs = { f->first },
		.addr_count = 1,
		.drops = drops_secret,
		.elsewhere = on_refused,
		.done = on_done,
		.ctx = f,
	};

	buf_init(&order.head, FORWARD_HEAD_MAX);
	assert_int_equal(put_head(&order.head, r, "/inside"), 0);
	forward_begin(&f->forwarder, r, &order);
}

static unsigned anybody(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	(void)r;
	return 0;
}

static const struct httpd_route routes[] = {
	{ "*", "/{rest*}", HTTPD_AUTH_OPEN, on_request, HTTPD_BODY_STREAMED },
};

/* A port of loopback; shut: one on which nobody listens. */
static int port_open(struct addr *at, bool shut)
{
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	int fd;

	assert_true(addr_parse(SPAN("127.0.0.1"), at));
	fd = httpd_bind_tcp(at);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&bound, at));
	if (!shut)
		return fd;
	close(fd);
	return -1;
}

static int set_up(void **state)
{
	static const struct httpd_ops ops = { anybody };
	struct fixture *f = must_alloc(sizeof(*f));

	rig_open(&f->rig, routes, ARRAY_LEN(routes), &ops, f);
	forwarder_init(&f->forwarder, f->rig.loop);
	f->forwarder.prefix = "Test: ";
	f->listener = port_open(&f->first, false);
	f->other = -1;
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	forwarder_fini(&f->forwarder);
	rig_close(&f->rig);
	if (f->listener >= 0)
		close(f->listener);
	if (f->other >= 0)
		close(f->other);
	free(f);
	return 0;
}

/* -- the server behind ----------------------------------------------------- */

static int behind_accept(struct fixture *f, int listener)
{
	uint64_t end = clock_ms() + 5000;
	int fd = -1;

	while (fd < 0 && clock_ms() < end) {
		turn(&f->rig);
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	}
	assert_true(fd >= 0);
	return fd;
}

/* What was sent to it, up to `until`; good until the next client_read(). */
static const char *behind_reads(struct fixture *f, int fd, const char *until)
{
	return client_read(&f->rig, fd, until);
}

static void behind_says(struct fixture *f, int fd, const char *text)
{
	client_send(&f->rig, fd, span_str(text));
}

/* -- framing --------------------------------------------------------------- */

#define POST_CHUNKED \
	"POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"

/* Chunks are taken out of the client's framing and put into ours, trailers
 * behind the last; those that a head may not have are left out. */
static void request__chunks_and_trailers(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;
	const char *text;

	client_send(&f->rig, client,
		    SPAN(POST_CHUNKED "Trailer: X-Sum\r\nX-Secret: 1\r\n\r\n"
				      "3;ext=1\r\nabc\r\n"));
	fd = behind_accept(f, f->listener);
	text = behind_reads(f, fd, "abc\r\n");
	assert_has(text, "POST /inside HTTP/1.1\r\n");
	assert_has(text, "\r\nTrailer: X-Sum\r\n");
	assert_has(text, "\r\nTransfer-Encoding: chunked\r\n");
	assert_has(text, "\r\n\r\n3\r\nabc\r\n");
	assert_lacks(text, "X-Secret");
	client_send(&f->rig, client,
		    SPAN("02\r\nde\r\n0\r\nX-Sum: 5\r\nx-secret: 2\r\n\r\n"));
	assert_string_equal(behind_reads(f, fd, "\r\n\r\n"),
			    "2\r\nde\r\n0\r\nX-Sum: 5\r\n\r\n");
	behind_says(f, fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	assert_has(client_read(&f->rig, client, "\r\n\r\nok"), " 200 OK\r\n");
	assert_int_equal(f->result.request_bytes, 5);
	/* both connections are kept */
	client_send(&f->rig, client,
		    SPAN("GET /y HTTP/1.1\r\nHost: h\r\n\r\n"));
	text = behind_reads(f, fd, "\r\n\r\n");
	assert_has(text, "GET /inside HTTP/1.1\r\n");
	assert_lacks(text, "X-Sum");
	close(fd);
	close(client);
}

/* A trailer may not say what frames or routes a message. */
static void request__trailer_that_frames_is_refused(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;

	client_send(&f->rig, client, SPAN(POST_CHUNKED "\r\n1\r\na\r\n"));
	fd = behind_accept(f, f->listener);
	(void)behind_reads(f, fd, "1\r\na\r\n");
	client_send(&f->rig, client, SPAN("0\r\nContent-Length: 5\r\n\r\n"));
	assert_has(client_read(&f->rig, client, NULL), " 400 ");
	/* it sees that the rest will not come */
	assert_string_equal(behind_reads(f, fd, NULL), "");
	assert_int_equal(f->done, 1);
	close(fd);
	close(client);
}

static void reply__chunks_and_trailers(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;
	const char *text;

	client_send(&f->rig, client,
		    SPAN("GET /x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n"
			 "Connection: TE\r\n\r\n"));
	fd = behind_accept(f, f->listener);
	assert_has(behind_reads(f, fd, "\r\n\r\n"), "\r\nTE: trailers\r\n");
	behind_says(f, fd,
		    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
		    "Trailer: X-Sum\r\n\r\n4\r\nab");
	assert_has(client_read(&f->rig, client, "ab"), "Trailer: X-Sum\r\n");
	/* cut anywhere */
	behind_says(f, fd, "cd\r");
	behind_says(f, fd, "\n0\r\nX-S");
	behind_says(f, fd, "um: 4\r\nX-More:\r\n\r");
	behind_says(f, fd, "\n");
	text = client_read(&f->rig, client, "\r\n\r\n");
	assert_has(text, "cd\r\n0\r\nX-Sum: 4\r\nX-More:\r\n\r\n");
	/* the next one has none of it */
	client_send(&f->rig, client,
		    SPAN("GET /y HTTP/1.1\r\nHost: h\r\n\r\n"));
	assert_lacks(behind_reads(f, fd, "\r\n\r\n"), "TE:");
	behind_says(f, fd,
		    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "1\r\na\r\n0\r\n\r\n");
	assert_has(client_read(&f->rig, client, "0\r\n\r\n"),
		   "\r\n\r\n1\r\na\r\n0\r\n\r\n");
	assert_int_equal(f->done, 2);
	close(fd);
	close(client);
}

/* HTTP/1.0 knows neither chunks nor interim replies. */
static void reply__to_an_old_client(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;
	const char *text;

	client_send(&f->rig, client, SPAN("GET /x HTTP/1.0\r\n\r\n"));
	fd = behind_accept(f, f->listener);
	(void)behind_reads(f, fd, "\r\n\r\n");
	behind_says(f, fd,
		    "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
		    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "1\r\na\r\n0\r\nX-Sum: 1\r\n\r\n");
	text = client_read(&f->rig, client, NULL);
	assert_int_equal(strncmp(text, "HTTP/1.1 200 OK\r\n", 17), 0);
	assert_has(text, "\r\n\r\na");
	assert_lacks(text, "X-Sum");
	assert_lacks(text, "Link");
	close(fd);
	close(client);
}

static void reply__that_breaks_its_chunks_is_cut(void **state)
{
	static const char *const broken[] = {
		"x\r\na\r\n",
		"-1\r\na",
		"2\r\nabc\r\n",
		"1\na\r\n",
		"0\r\nTransfer-Encoding: chunked\r\n\r\n",
	};
	struct fixture *f = *state;
	const char *text;
	int client, fd;
	size_t i;

	for (i = 0; i < ARRAY_LEN(broken); i++) {
		client = client_open(&f->rig);
		client_send(&f->rig, client,
			    SPAN("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
		fd = behind_accept(f, f->listener);
		(void)behind_reads(f, fd, "\r\n\r\n");
		behind_says(f, fd,
			    "HTTP/1.1 200 OK\r\nTransfer-Encoding: "
			    "chunked\r\n\r\n");
		behind_says(f, fd, broken[i]);
		text = client_read(&f->rig, client, NULL);
		assert_lacks(text, "\r\n0\r\n");
		assert_true(f->result.cut);
		assert_int_equal(f->done, i + 1);
		close(fd);
		close(client);
	}
}

/* -- interim replies ------------------------------------------------------- */

static void reply__early_hints(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;
	const char *text;

	client_send(&f->rig, client,
		    SPAN("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
	fd = behind_accept(f, f->listener);
	(void)behind_reads(f, fd, "\r\n\r\n");
	/* "continue" was nothing that the client asked for */
	behind_says(f, fd,
		    "HTTP/1.1 100 Continue\r\n\r\n"
		    "HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n"
		    "Connection: x-hop\r\nX-Hop: 1\r\nLink: </b>\r\n\r\n");
	text = client_read(&f->rig, client, "\r\n\r\n");
	assert_string_equal(text, "HTTP/1.1 103 Early Hints\r\n"
				  "Link: </a>; rel=preload\r\nLink: </b>\r\n"
				  "\r\n");
	assert_int_equal(f->done, 0);
	behind_says(f, fd,
		    "HTTP/1.1 102 Whatever\r\n\r\n"
		    "HTTP/1.1 204 Fine\r\nX-Last: 1\r\n\r\n");
	text = client_read(&f->rig, client, "X-Last");
	assert_int_equal(strncmp(text,
				 "HTTP/1.1 102 Processing\r\n\r\n"
				 "HTTP/1.1 204 Fine\r\n",
				 46),
			 0);
	assert_lacks(text, "Link");
	close(fd);
	close(client);
}

static void reply__too_many_hints(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd, i;

	client_send(&f->rig, client,
		    SPAN("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
	fd = behind_accept(f, f->listener);
	(void)behind_reads(f, fd, "\r\n\r\n");
	for (i = 0; i < 20; i++)
		behind_says(f, fd, "HTTP/1.1 103 Early Hints\r\n\r\n");
	assert_has(client_read(&f->rig, client, "Bad Gateway\n"),
		   " 502 Bad Gateway\r\n");
	assert_int_equal(f->result.status, 502);
	close(fd);
	close(client);
}

/* -- another port ---------------------------------------------------------- */

/* Nobody listens: the request goes to another port, with another head, its body
 * untouched. */
static void order__goes_elsewhere(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;

	close(f->listener);
	f->listener = -1;
	f->other = port_open(&f->second, false);
	f->elsewhere = true;
	client_send(&f->rig, client,
		    SPAN("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n"
			 "\r\nbody"));
	fd = behind_accept(f, f->other);
	assert_has(behind_reads(f, fd, "body"), "POST /elsewhere HTTP/1.1\r\n");
	behind_says(f, fd, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
	assert_has(client_read(&f->rig, client, "\r\n\r\nok"), " 200 OK\r\n");
	assert_int_equal(f->asked, 1);
	assert_int_equal(f->result.error, 0);
	close(fd);
	close(client);
}

/* Once: a port that refuses as well is the end. */
static void order__goes_elsewhere_once(void **state)
{
	struct fixture *f = *state;
	const char *text;

	close(f->listener);
	f->listener = -1;
	text = ask(&f->rig, "GET /x HTTP/1.1\r\n" CLOSE);
	assert_has(text, " 502 Bad Gateway\r\n");
	assert_has(text, "\r\n\r\nTest: Bad Gateway\n");
	assert_int_equal(f->asked, 1);
	assert_int_equal(f->result.error, -ECONNREFUSED);
	f->elsewhere = true;
	(void)port_open(&f->second, true);
	assert_has(ask(&f->rig, "GET /x HTTP/1.1\r\n" CLOSE), " 502 ");
	assert_int_equal(f->asked, 2);
	assert_int_equal(f->done, 2);
}

/* A server that listens and says nothing good is who was asked. */
static void order__stays_where_it_was_taken(void **state)
{
	struct fixture *f = *state;
	int client = client_open(&f->rig), fd;

	f->elsewhere = true;
	f->other = port_open(&f->second, false);
	client_send(&f->rig, client,
		    SPAN("GET /x HTTP/1.1\r\nHost: h\r\n\r\n"));
	fd = behind_accept(f, f->listener);
	(void)behind_reads(f, fd, "\r\n\r\n");
	close(fd);
	assert_has(client_read(&f->rig, client, "Bad Gateway\n"), " 502 ");
	assert_int_equal(f->asked, 0);
	close(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request__chunks_and_trailers),
		TEST(request__trailer_that_frames_is_refused),
		TEST(reply__chunks_and_trailers),
		TEST(reply__to_an_old_client),
		TEST(reply__that_breaks_its_chunks_is_cut),
		TEST(reply__early_hints),
		TEST(reply__too_many_hints),
		TEST(order__goes_elsewhere),
		TEST(order__goes_elsewhere_once),
		TEST(order__stays_where_it_was_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
