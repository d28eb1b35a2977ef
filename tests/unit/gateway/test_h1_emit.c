/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_emit.c - which fields pass, in what order, and what is ours */

#include "tests/unit/gateway/fixture.h"

#include <errno.h>

#include "gateway/pipeline/decide.h"
#include "gateway/pipeline/grant.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/leg.h"

enum { OUT_BYTES = 64 * 1024 };

static const char policy_text[] =
	"policies:\n- name: p\n  defaultAction: allow\n";

/* A request under way, and a grant as only decide.c makes one. */
struct desk {
	struct world *world;
	struct arena arena;
	struct audit audit;
	struct request req;
	const struct grant *grant;
	struct secret *secrets[3];
	struct buf out;
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct destination to = destination_of(SCHEME_HTTPS, "a.example",
					       addr_of("192.0.2.1", 443));
	struct verdict v;

	d->world = world_new();
	world_policy(d->world, 1, policy_text);
	arena_init(&d->arena, 64 * 1024);
	d->grant = decide_connect(&d->world->worker,
				  world_sandbox(d->world, "s", "10.0.0.1"), &to,
				  NULL, &d->arena, &v);
	assert_non_null(d->grant);
	d->req.audit = &d->audit;
	buf_init(&d->out, OUT_BYTES);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(d->secrets); i++)
		(void)secret_free(d->secrets[i]);
	buf_fini(&d->out);
	arena_fini(&d->arena);
	world_free(d->world);
	free(d);
	return 0;
}

static void inject(struct desk *d, const char *name, const char *prefix,
		   const char *value)
{
	struct injection *in = &d->req.injections[d->req.injection_count];
	struct secret **s = &d->secrets[d->req.injection_count++];

	must(!secret_dup(span_str(value), s));
	in->name = span_str(name);
	in->prefix = span_str(prefix);
	in->secret = *s;
}

static void no_injection(struct desk *d)
{
	unsigned i;

	for (i = 0; i < d->req.injection_count; i++)
		d->secrets[i] = secret_free(d->secrets[i]);
	d->req.injection_count = 0;
}

static void emit_request(struct desk *d, const char *head, const char *expected)
{
	struct h1_request parsed;

	assert_int_equal(h1_parse_request(span_str(head), &parsed), H1_OK);
	d->req.target = parsed.path;
	buf_clear(&d->out);
	assert_int_equal(h1_emit_request(&d->req, &parsed, d->grant, &d->out),
			 0);
	assert_span(buf_peek(&d->out), expected);
}

static void request__keeps_order_and_case(void **state)
{
	emit_request(*state,
		     "GET /a?b=c HTTP/1.1\r\nhOsT: a.example\r\n"
		     "x-z: 1\r\nAccept:  */*  \r\nX-A: 2\r\nx-z: 3\r\n\r\n",
		     "GET /a?b=c HTTP/1.1\r\nhOsT: a.example\r\n"
		     "x-z: 1\r\nAccept: */*\r\nX-A: 2\r\nx-z: 3\r\n\r\n");
}

static void request__drops_what_is_of_this_hop(void **state)
{
	emit_request(*state,
		     "GET / HTTP/1.1\r\nHost: a.example\r\n"
		     "Connection: keep-alive, X-Hop ,x-two\r\n"
		     "X-Hop: 1\r\nX-Stay: 2\r\nX-TWO: 3\r\nx-hop: 4\r\n"
		     "Keep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\n"
		     "Proxy-Connection: x\r\nProxy-Authorization: Basic x\r\n"
		     "HTTP2-Settings: x\r\nX-Last: 6\r\n\r\n",
		     "GET / HTTP/1.1\r\nHost: a.example\r\n"
		     "X-Stay: 2\r\nX-Last: 6\r\n\r\n");
}

static void request__connection_names_no_protected_field(void **state)
{
	static const char *const names[] = { "Host", "Content-Length",
					     "Authorization", "Cookie",
					     "Transfer-Encoding" };
	CLEANUP(buf_fini) struct buf head = BUF_INIT(1024);
	struct h1_request parsed;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(names); i++) {
		buf_clear(&head);
		must(!buf_putf(&head,
			       "GET / HTTP/1.1\r\nHost: a.example\r\n"
			       "Connection: %s\r\n\r\n",
			       names[i]));
		assert_int_equal(h1_parse_request(buf_peek(&head), &parsed),
				 H1_E_CONNECTION);
	}
}

static void request__frames_its_body_anew(void **state)
{
	emit_request(*state,
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Transfer-Encoding: Chunked\r\nTrailer: X-Sum\r\n\r\n",
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Trailer: X-Sum\r\nTransfer-Encoding: chunked\r\n\r\n");
	emit_request(*state,
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n");
}

static void request__absolute_form_gives_the_host(void **state)
{
	emit_request(*state,
		     "GET http://a.example:8080/x?y HTTP/1.1\r\n"
		     "Accept: 1\r\nHost: a.example:8080\r\n\r\n",
		     "GET /x?y HTTP/1.1\r\nHost: a.example:8080\r\n"
		     "Accept: 1\r\n\r\n");
	emit_request(*state, "GET http://a.example HTTP/1.0\r\n\r\n",
		     "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
}

static void request__upgrade_only_when_both_say_so(void **state)
{
	emit_request(*state,
		     "GET /ws HTTP/1.1\r\nHost: a.example\r\n"
		     "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
		     "Sec-WebSocket-Key: x\r\n\r\n",
		     "GET /ws HTTP/1.1\r\nHost: a.example\r\n"
		     "Upgrade: websocket\r\nSec-WebSocket-Key: x\r\n"
		     "Connection: Upgrade\r\n\r\n");
	emit_request(*state,
		     "GET /ws HTTP/1.1\r\nHost: a.example\r\n"
		     "Upgrade: websocket\r\n\r\n",
		     "GET /ws HTTP/1.1\r\nHost: a.example\r\n\r\n");
}

static void request__injection_is_last_and_alone(void **state)
{
	struct desk *d = *state;

	inject(d, "Authorization", "Bearer ", "t0ken");
	inject(d, "X-Api-Key", "", "k3y");
	emit_request(d,
		     "GET / HTTP/1.1\r\nauthorization: mine\r\n"
		     "Host: a.example\r\nX-API-KEY: a\r\nAccept: 1\r\n"
		     "Authorization: Bearer other\r\nx-api-key: b\r\n"
		     "X-Api-Key-2: stays\r\n\r\n",
		     "GET / HTTP/1.1\r\nHost: a.example\r\nAccept: 1\r\n"
		     "X-Api-Key-2: stays\r\n"
		     "Authorization: Bearer t0ken\r\nX-Api-Key: k3y\r\n\r\n");
	/* and chunked with an upgrade: still last */
	emit_request(d,
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Transfer-Encoding: chunked\r\n\r\n",
		     "POST / HTTP/1.1\r\nHost: a.example\r\n"
		     "Transfer-Encoding: chunked\r\n"
		     "Authorization: Bearer t0ken\r\nX-Api-Key: k3y\r\n\r\n");
	no_injection(d);
	emit_request(d,
		     "GET / HTTP/1.1\r\nHost: a.example\r\n"
		     "Authorization: mine\r\n\r\n",
		     "GET / HTTP/1.1\r\nHost: a.example\r\n"
		     "Authorization: mine\r\n\r\n");
}

static void request__says_when_there_is_no_room(void **state)
{
	struct desk *d = *state;
	struct h1_request parsed;
	size_t room;

	inject(d, "Authorization", "Bearer ", "t0ken");
	assert_int_equal(h1_parse_request(SPAN("GET / HTTP/1.1\r\n"
					       "Host: a.example\r\n\r\n"),
					  &parsed),
			 H1_OK);
	d->req.target = parsed.path;
	for (room = 0; room <= 64; room++) {
		CLEANUP(buf_fini) struct buf out = BUF_INIT(room);

		assert_int_equal(
			h1_emit_request(&d->req, &parsed, d->grant, &out),
			room < 64 ? -ENOBUFS : 0);
	}
}

/* -- responses --------------------------------------------------------------
 */

/* What of a head the emitter is given. */
static struct response response_of(const struct h1_response *parsed)
{
	return (struct response){
		.status = parsed->status,
		.reason = parsed->reason,
		.headers = parsed->headers,
	};
}

static void emit_response(struct desk *d, const char *head, struct h1_reply how,
			  const char *expected)
{
	struct h1_response parsed;
	struct response response;

	assert_int_equal(
		h1_parse_response(span_str(head), SPAN("GET"), &parsed), H1_OK);
	response = response_of(&parsed);
	buf_clear(&d->out);
	assert_int_equal(h1_emit_response(&d->req, &response, &how, &d->out),
			 0);
	assert_span(buf_peek(&d->out), expected);
}

static void response__drops_what_is_of_this_hop(void **state)
{
	emit_response(*state,
		      "HTTP/1.1 200 OK\r\nServer: x\r\n"
		      "Connection: X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 2\r\n"
		      "Alt-Svc: h3=\":443\"\r\nUpgrade: h2c\r\n"
		      "Proxy-Authenticate: Basic\r\nSet-Cookie: a\r\n"
		      "set-cookie: b\r\nContent-Length: 3\r\n\r\n",
		      (struct h1_reply){ 0 },
		      "HTTP/1.1 200 OK\r\nServer: x\r\nSet-Cookie: a\r\n"
		      "set-cookie: b\r\nContent-Length: 3\r\n\r\n");
}

static void response__is_framed_for_the_client(void **state)
{
	static const char chunked[] = "HTTP/1.1 200 OK\r\n"
				      "Transfer-Encoding: chunked\r\n\r\n";
	static const char unbounded[] = "HTTP/1.0 200 OK\r\n\r\n";
	struct desk *d = *state;

	emit_response(d, chunked, (struct h1_reply){ .chunked = true },
		      "HTTP/1.1 200 OK\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n");
	emit_response(d, chunked, (struct h1_reply){ .close = true },
		      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
	emit_response(d, unbounded, (struct h1_reply){ .chunked = true },
		      "HTTP/1.1 200 OK\r\n"
		      "Transfer-Encoding: chunked\r\n\r\n");
	emit_response(d, "HTTP/1.1 204 \r\n\r\n",
		      (struct h1_reply){ .keep_old = true },
		      "HTTP/1.1 204 \r\nConnection: keep-alive\r\n\r\n");
	emit_response(d, "HTTP/1.1 100 Continue\r\n\r\n",
		      (struct h1_reply){ .interim = true, .close = true },
		      "HTTP/1.1 100 Continue\r\n\r\n");
	emit_response(d,
		      "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n"
		      "Upgrade: websocket\r\n\r\n",
		      (struct h1_reply){ .upgrade = true, .interim = true },
		      "HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\n"
		      "Connection: Upgrade\r\n\r\n");
}

static void response__is_redacted_when_injected(void **state)
{
	static const char head[] =
		"HTTP/1.1 401 no t0ken here\r\n"
		"WWW-Authenticate: Bearer error=\"t0ken\"\r\n"
		"X-Echo: Bearer t0ken\r\nX-Token: t0kent0ken\r\n"
		"X-Plain: token\r\nContent-Length: 0\r\n\r\n";
	struct desk *d = *state;

	emit_response(d, head, (struct h1_reply){ 0 }, head);
	assert_int_equal(d->audit.redactions, 0);
	inject(d, "Authorization", "Bearer ", "t0ken");
	emit_response(d, head, (struct h1_reply){ 0 },
		      "HTTP/1.1 401 no [REDACTED] here\r\n"
		      "WWW-Authenticate: Bearer error=\"[REDACTED]\"\r\n"
		      "X-Echo: Bearer [REDACTED]\r\n"
		      "X-Token: [REDACTED][REDACTED]\r\n"
		      "X-Plain: token\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(d->audit.redactions, 5);
}

/* Part of a head would be taken for the beginning of what is said instead. */
static void response__says_when_there_is_no_room(void **state)
{
	static const struct span before = SPAN_INIT("before");
	const struct h1_reply how = { 0 };
	struct desk *d = *state;
	struct h1_response parsed;
	struct response response;
	size_t room;

	inject(d, "Authorization", "Bearer ", "t0ken");
	assert_int_equal(h1_parse_response(SPAN("HTTP/1.1 200 OK\r\n"
						"X-Echo: t0ken t0ken\r\n\r\n"),
					   SPAN("GET"), &parsed),
			 H1_OK);
	response = response_of(&parsed);
	for (room = 0; room <= 50; room++) {
		CLEANUP(buf_fini) struct buf out = BUF_INIT(before.len + room);

		must(!buf_put(&out, before));
		assert_int_equal(
			h1_emit_response(&d->req, &response, &how, &out),
			room < 50 ? -ENOBUFS : 0);
		if (room < 50)
			assert_span(buf_peek(&out), "before");
	}
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(request__keeps_order_and_case),
		DESK_TEST(request__drops_what_is_of_this_hop),
		cmocka_unit_test(request__connection_names_no_protected_field),
		DESK_TEST(request__frames_its_body_anew),
		DESK_TEST(request__absolute_form_gives_the_host),
		DESK_TEST(request__upgrade_only_when_both_say_so),
		DESK_TEST(request__injection_is_last_and_alone),
		DESK_TEST(request__says_when_there_is_no_room),
		DESK_TEST(response__drops_what_is_of_this_hop),
		DESK_TEST(response__is_framed_for_the_client),
		DESK_TEST(response__is_redacted_when_injected),
		DESK_TEST(response__says_when_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
