/* SPDX-License-Identifier: Apache-2.0 */
/* test_docker.c - the client of the Docker Engine API against daemons that do
 * what none should
 *
 * The fake engine has a thread for each connection and answers by the path; it
 * serves any number of requests on a connection.
 */

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/err.h"
#include "src/control/docker/docker.h"
#include "src/io/loop.h"
#include "src/text/json.h"

enum { REQUEST_MAX = 4 * 1024 * 1024, PATIENCE_MS = 20 * 1000 };

struct engine {
	char path[64];
	int fd;
	pthread_t thread;
	struct loop *loop;
	struct docker *docker;
	pthread_mutex_t lock;
	unsigned connections, open, busy, most_busy;
	char last[8192]; /* head of the last request, and some of its body */
	size_t last_body;
};

/* -- the daemon ----------------------------------------------------------- */

struct client {
	struct engine *engine;
	int fd;
};

static void say(int fd, const void *bytes, size_t len)
{
	size_t at = 0;
	ssize_t n;

	while (at < len) {
		n = send(fd, (const char *)bytes + at, len - at, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		at += (size_t)n;
	}
}

static void say_text(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

static void say_reply(int fd, unsigned status, const char *type,
		      const char *body)
{
	char head[256];

	snprintf(head, sizeof(head),
		 "HTTP/1.1 %u X\r\nContent-Type: %s\r\nContent-Length: %zu"
		 "\r\n\r\n",
		 status, type, strlen(body));
	say_text(fd, head);
	say_text(fd, body);
}

static void say_json(int fd, unsigned status, const char *body)
{
	say_reply(fd, status, "application/json", body);
}

static void say_chunk(int fd, const char *text)
{
	char head[32];

	snprintf(head, sizeof(head), "%zx\r\n", strlen(text));
	say_text(fd, head);
	say_text(fd, text);
	say_text(fd, "\r\n");
}

static void say_chunked_head(int fd)
{
	say_text(fd, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
		     "Transfer-Encoding: chunked\r\n\r\n");
}

static void answer_huge(int fd)
{
	char *mega = must_alloc(1 << 20);
	unsigned i;

	memset(mega, 'x', 1 << 20);
	say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 67108864\r\n\r\n");
	for (i = 0; i < 64; i++)
		say(fd, mega, 1 << 20);
	free(mega);
}

static void answer_long_head(int fd)
{
	unsigned i;

	say_text(fd, "HTTP/1.1 200 OK\r\n");
	for (i = 0; i < 4000; i++)
		say_text(fd, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaa\r\n");
	say_text(fd, "Content-Length: 0\r\n\r\n");
}

static void answer_events(int fd, bool stays)
{
	char byte;

	say_chunked_head(fd);
	say_chunk(fd, "{\"n\":1}\n{\"n\"");
	usleep(20 * 1000);
	say_chunk(fd, ":2}\r\n\n");
	say_chunk(fd, "{\"n\":3}\n");
	if (stays) /* until the client goes */
		(void)recv(fd, &byte, 1, 0);
	else
		say_text(fd, "0\r\n\r\n");
}

static void answer_pull(int fd, bool good)
{
	say_chunked_head(fd);
	say_chunk(fd, "{\"status\":\"Pulling\"}\n");
	if (good)
		say_chunk(fd, "{\"status\":\"Done\"}\n");
	else
		say_chunk(fd, "{\"error\":\"no such\\nmanifest\"}\n");
	say_text(fd, "0\r\n\r\n");
}

static void answer_slow_pull(int fd)
{
	say_chunked_head(fd);
	say_chunk(fd, "{\"id\":\"a1\",\"status\":\"Wait\\u0007ing\"}\n");
	usleep(300 * 1000);
	say_chunk(fd, "{\"status\":\"Done\"}\n");
	say_text(fd, "0\r\n\r\n");
}

/* True: the connection goes on. */
static bool answer(int fd, const char *path)
{
	if (strstr(path, "/ok")) {
		say_json(fd, 200, "{\"a\":[1,2]}");
	} else if (strstr(path, "/empty")) {
		say_text(fd, "HTTP/1.1 204 No Content\r\n\r\n");
	} else if (strstr(path, "/bad-json")) {
		say_json(fd, 200, "{\"a\":");
	} else if (strstr(path, "/refused")) {
		say_json(fd, 409,
			 "{\"message\":\"the name\\u0007 is taken\\nby x\"}");
	} else if (strstr(path, "/rude")) {
		say_reply(fd, 500, "text/plain", "oops");
	} else if (strstr(path, "/_ping")) {
		usleep(20 * 1000);
		say_reply(fd, 200, "text/plain", "OK");
	} else if (strstr(path, "/huge")) {
		answer_huge(fd);
	} else if (strstr(path, "/long-head")) {
		answer_long_head(fd);
	} else if (strstr(path, "/long-line")) {
		say_chunked_head(fd);
		for (unsigned i = 0; i < 3000; i++)
			say_chunk(fd,
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
				  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	} else if (strstr(path, "/cut-line")) {
		say_chunked_head(fd);
		say_chunk(fd, "{\"n\":1}\n{\"n\"");
		say_text(fd, "0\r\n\r\n");
	} else if (strstr(path, "/cut")) {
		say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
			     "only this");
		return false;
	} else if (strstr(path, "/gone")) {
		return false;
	} else if (strstr(path, "/noise")) {
		say_text(fd, "SSH-2.0-OpenSSH_9.2\r\n");
		return false;
	} else if (strstr(path, "/silent")) {
		usleep(900 * 1000);
	} else if (strstr(path, "/slow")) {
		say_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");
		for (unsigned i = 0; i < 6; i++) {
			usleep(80 * 1000);
			say_text(fd, "s");
		}
	} else if (strstr(path, "/events-end")) {
		answer_events(fd, false);
	} else if (strstr(path, "/events")) {
		answer_events(fd, true);
		return false;
	} else if (strstr(path, "fromImage=bad")) {
		answer_pull(fd, false);
	} else if (strstr(path, "fromImage=slow")) {
		answer_slow_pull(fd);
	} else if (strstr(path, "/images/create")) {
		answer_pull(fd, true);
	} else if (strstr(path, "/version")) {
		say_json(fd, 200,
			 "{\"ApiVersion\":\"1.52\",\"MinAPIVersion\":"
			 "\"1.44\"}");
	} else {
		say_json(fd, 404, "{\"message\":\"page not found\"}");
	}
	return true;
}

/* Reads one request whole. */
static bool request_read(struct client *c, char *text, char path[512])
{
	size_t len = 0, total = 0;
	const char *field;
	char *end = NULL;
	ssize_t n;

	while (!total || len < total) {
		n = recv(c->fd, text + len, REQUEST_MAX - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		end = end ? end : strstr(text, "\r\n\r\n");
		if (!end || total)
			continue;
		field = strstr(text, "Content-Length: ");
		total = (size_t)(end + 4 - text) +
			(field && field < end ? strtoul(field + 16, NULL, 10)
					      : 0);
	}
	pthread_mutex_lock(&c->engine->lock);
	snprintf(c->engine->last, sizeof(c->engine->last), "%s", text);
	c->engine->last_body = (size_t)(text + len - (end + 4));
	pthread_mutex_unlock(&c->engine->lock);
	return sscanf(text, "%*s %511s", path) == 1;
}

static bool client_answer(struct client *c, const char *path)
{
	struct engine *e = c->engine;

	pthread_mutex_lock(&e->lock);
	e->busy++;
	e->most_busy = MAX(e->most_busy, e->busy);
	pthread_mutex_unlock(&e->lock);
	if (strstr(path, "/late"))
		usleep(50 * 1000);
	/* before the client can know and ask again */
	pthread_mutex_lock(&e->lock);
	e->busy--;
	pthread_mutex_unlock(&e->lock);
	return answer(c->fd, path);
}

static void *client_serve(void *ctx)
{
	char *text = must_alloc(REQUEST_MAX);
	struct client *c = ctx;
	char path[512];

	while (request_read(c, text, path) && client_answer(c, path))
		;
	close(c->fd);
	pthread_mutex_lock(&c->engine->lock);
	c->engine->open--;
	pthread_mutex_unlock(&c->engine->lock);
	free(text);
	free(c);
	return NULL;
}

static void *engine_serve(void *ctx)
{
	struct engine *e = ctx;
	struct client *c;
	pthread_t thread;
	int fd;

	while ((fd = accept(e->fd, NULL, NULL)) >= 0) {
		c = must_alloc(sizeof(*c));
		*c = (struct client){ e, fd };
		pthread_mutex_lock(&e->lock);
		e->connections++;
		e->open++;
		pthread_mutex_unlock(&e->lock);
		must(!pthread_create(&thread, NULL, client_serve, c));
		pthread_detach(thread);
	}
	return NULL;
}

static void engine_listen(struct engine *e)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	strcpy(at.sun_path, e->path);
	(void)unlink(e->path);
	e->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(e->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(e->fd, 512), 0);
	assert_int_equal(pthread_create(&e->thread, NULL, engine_serve, e), 0);
}

static void engine_stop(struct engine *e)
{
	(void)shutdown(e->fd, SHUT_RDWR);
	pthread_join(e->thread, NULL);
	close(e->fd);
	(void)unlink(e->path);
}

static int set_up(void **state)
{
	struct engine *e = must_alloc(sizeof(*e));

	snprintf(e->path, sizeof(e->path), "/tmp/docker-test-%d.sock",
		 getpid());
	pthread_mutex_init(&e->lock, NULL);
	engine_listen(e);
	assert_int_equal(loop_new(&e->loop), 0);
	assert_int_equal(docker_new(e->loop, e->path, &e->docker), 0);
	*state = e;
	return 0;
}

static int tear_down(void **state)
{
	struct engine *e = *state;
	unsigned open = 1, i;

	docker_free(e->docker);
	loop_free(e->loop);
	engine_stop(e);
	for (i = 0; open && i < 5000; i++) {
		pthread_mutex_lock(&e->lock);
		open = e->open;
		pthread_mutex_unlock(&e->lock);
		usleep(1000);
	}
	assert_int_equal(open, 0);
	free(e);
	return 0;
}

/* -- asking --------------------------------------------------------------- */

struct result {
	unsigned count; /* how often it was answered */
	int status;
	char message[DOCKER_MESSAGE_SIZE];
	char json[256], body[256];
	size_t body_len;
	char lines[256];
	unsigned line_count, stop_at;
	struct docker *docker;
	struct docker_call *call, *victim;
};

static void on_answer(void *ctx, const struct docker_answer *a)
{
	struct buf text = BUF_INIT(sizeof(((struct result *)0)->json) - 1);
	struct result *r = ctx;

	r->count++;
	r->status = a->status;
	snprintf(r->message, sizeof(r->message), "%s", a->message);
	if (a->json && !json_emit(&text, a->json))
		snprintf(r->json, sizeof(r->json), "%.*s",
			 SPAN_FMT(buf_peek(&text)));
	buf_fini(&text);
	r->body_len = a->body.len;
	snprintf(r->body, sizeof(r->body), "%.*s", (int)MIN(a->body.len, 100),
		 a->body.ptr ? a->body.ptr : "");
}

static bool on_line(void *ctx, struct span line)
{
	struct result *r = ctx;
	size_t at = strlen(r->lines);

	snprintf(r->lines + at, sizeof(r->lines) - at, "%.*s;", SPAN_FMT(line));
	if (r->victim) { /* from inside libcurl */
		docker_cancel(r->victim);
		r->victim = NULL;
	}
	return ++r->line_count != r->stop_at;
}

#define UNTIL(e, condition)                                      \
	do {                                                     \
		uint64_t until_end = clock_ms() + PATIENCE_MS;   \
		while (!(condition) && clock_ms() < until_end) { \
			loop_run_once((e)->loop, false);         \
			usleep(200);                             \
		}                                                \
		assert_true(condition);                          \
	} while (0)

static struct result ask(struct engine *e, const char *method, const char *path,
			 struct span body)
{
	struct result r = { 0 };

	(void)docker_ask(e->docker, method, path, body, on_answer, &r);
	assert_int_equal(r.count, 0); /* never from inside */
	UNTIL(e, r.count);
	assert_int_equal(r.count, 1);
	return r;
}

static struct result get(struct engine *e, const char *path)
{
	return ask(e, "GET", path, SPAN_NONE);
}

/* -- cases ---------------------------------------------------------------- */

static void answers__are_taken(void **state)
{
	struct engine *e = *state;
	struct result r = get(e, "/ok?all=1");

	assert_int_equal(r.status, 200);
	assert_string_equal(r.json, "{\"a\":[1,2]}");
	assert_string_equal(r.message, "");
	assert_non_null(strstr(e->last, "GET /v1.41/ok?all=1 HTTP/1.1\r\n"));
	r = ask(e, "DELETE", "/empty", SPAN_NONE);
	assert_int_equal(r.status, 204);
	assert_non_null(strstr(e->last, "DELETE /v1.41/empty"));
	assert_null(strstr(e->last, "Content-Length"));
	/* one connection is enough */
	assert_int_equal(e->connections, 1);
}

static void refusals__have_a_sentence(void **state)
{
	struct engine *e = *state;
	struct result r = get(e, "/refused");

	assert_int_equal(r.status, 409);
	assert_string_equal(r.message, "the name\\x07 is taken");
	r = get(e, "/rude");
	assert_int_equal(r.status, 500);
	assert_non_null(strstr(r.message, "status 500"));
	r = get(e, "/nothing-here");
	assert_int_equal(r.status, 404);
	assert_string_equal(r.message, "page not found");
}

static void bodies__are_sent(void **state)
{
	struct engine *e = *state;
	char *mega = must_alloc(3 << 20);
	struct docker_request q = {
		.method = "PUT",
		.path = "/ok",
		.type = "application/x-tar",
		.body = span_of(mega, 3 << 20),
		.registry_auth = SPAN("c2VjcmV0"),
	};
	struct result r;

	r = ask(e, "POST", "/ok", SPAN("{\"x\":1}"));
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(e->last, "Content-Type: application/json\r\n"));
	assert_non_null(strstr(e->last, "\r\n\r\n{\"x\":1}"));
	assert_null(strstr(e->last, "X-Registry-Auth"));
	r = ask(e, "POST", "/ok", SPAN_NONE);
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(e->last, "Content-Length: 0\r\n"));

	memset(&r, 0, sizeof(r));
	(void)docker_begin(e->docker, &q, on_answer, &r);
	UNTIL(e, r.count);
	assert_int_equal(r.status, 200);
	assert_int_equal(e->last_body, 3 << 20);
	assert_non_null(strstr(e->last, "application/x-tar\r\n"));
	assert_non_null(strstr(e->last, "X-Registry-Auth: c2VjcmV0\r\n"));
	assert_null(strstr(e->last, "Expect"));
	free(mega);
}

static void answers__that_are_none(void **state)
{
	static const struct {
		const char *path;
		int status;
	} cases[] = {
		{ "/bad-json", -EPROTO },   { "/huge", -ENOBUFS },
		{ "/long-head", -ENOBUFS }, { "/cut", -EPROTO },
		{ "/gone", -ECONNRESET },   { "/noise", -EPROTO },
	};
	struct engine *e = *state;
	struct result r;
	size_t i;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		r = get(e, cases[i].path);
		if (r.status != cases[i].status)
			fail_msg("%s: expected %d, found %d", cases[i].path,
				 cases[i].status, r.status);
		assert_true(r.message[0] != '\0');
		assert_int_equal(r.body_len, 0);
	}
	/* and it goes on */
	assert_int_equal(get(e, "/ok").status, 200);
}

static void silence__is_bounded_and_slowness_is_not(void **state)
{
	struct engine *e = *state;
	struct result r;

	docker_set_silence(e->docker, 250);
	r = get(e, "/silent");
	assert_int_equal(r.status, -ETIMEDOUT);
	r = get(e, "/slow"); /* 480 ms, but never silent */
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body, "ssssss");
}

static void many__wait_for_each_other(void **state)
{
	enum { MANY = 2 * DOCKER_CALLS_MAX };
	struct engine *e = *state;
	struct result *r = must_alloc(MANY * sizeof(*r));
	unsigned i, done = 0;

	for (i = 0; i < MANY; i++)
		(void)docker_ask(e->docker, "GET", "/ok/late", SPAN_NONE,
				 on_answer, &r[i]);
	while (done < MANY) {
		UNTIL(e, r[done].count);
		assert_int_equal(r[done++].status, 200);
	}
	assert_true(e->most_busy > 16);
	assert_true(e->most_busy <= DOCKER_CALLS_MAX);
	free(r);
}

static struct result follow(struct engine *e, const char *path,
			    unsigned stop_at)
{
	struct result r = { .stop_at = stop_at };

	(void)docker_follow(e->docker, path, on_line, on_answer, &r);
	UNTIL(e, r.count);
	return r;
}

static void lines__come_as_they_are_told(void **state)
{
	struct engine *e = *state;
	struct result r;

	docker_set_silence(e->docker, 10); /* it does not count here */
	r = follow(e, "/events-end", 0);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.lines, "{\"n\":1};{\"n\":2};{\"n\":3};");
	/* who has seen enough ends it */
	r = follow(e, "/events", 2);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.lines, "{\"n\":1};{\"n\":2};");
	r = follow(e, "/refused", 0);
	assert_int_equal(r.status, 409);
	assert_int_equal(r.line_count, 0);
	r = follow(e, "/cut-line", 0);
	assert_int_equal(r.status, -EPROTO);
	assert_string_equal(r.lines, "{\"n\":1};");
	r = follow(e, "/long-line", 0);
	assert_int_equal(r.status, -ENOBUFS);
}

static void cancelled__is_answered_no_more(void **state)
{
	struct engine *e = *state;
	struct result r = { 0 }, other = { 0 };
	struct docker_call *call;

	/* before it began, while it runs, from inside libcurl */
	call = docker_ask(e->docker, "GET", "/ok", SPAN_NONE, on_answer, &r);
	docker_cancel(call);
	call = docker_ask(e->docker, "GET", "/silent", SPAN_NONE, on_answer,
			  &r);
	for (unsigned i = 0; i < 20; i++)
		loop_run_once(e->loop, false);
	docker_cancel(call);
	other.victim = docker_ask(e->docker, "GET", "/silent", SPAN_NONE,
				  on_answer, &r);
	(void)docker_follow(e->docker, "/events-end", on_line, on_answer,
			    &other);
	UNTIL(e, other.count);
	assert_int_equal(other.status, 200);
	/* itself, from inside libcurl */
	other = (struct result){ 0 };
	other.victim =
		docker_follow(e->docker, "/events", on_line, on_answer, &r);
	(void)docker_follow(e->docker, "/events", on_line, on_answer, &other);
	UNTIL(e, !other.victim);
	for (unsigned i = 0; i < 100; i++) {
		loop_run_once(e->loop, false);
		usleep(1000);
	}
	assert_int_equal(r.count, 0);
	/* the second one goes on, until all end */
	assert_int_equal(other.count, 0);
	e->docker = docker_free(e->docker);
	assert_int_equal(other.count, 1);
	assert_int_equal(other.status, -ECANCELED);
}

/* From inside libcurl, which finds something of it before it is swept. The one
 * that goes on is answered when all ends. */
static void cancelled__has_not_broken(void **state)
{
	static struct result one, other;
	struct engine *e = *state;
	uint64_t end;

	other.victim = docker_follow(e->docker, "/events/late", on_line,
				     on_answer, &one);
	one.victim = docker_follow(e->docker, "/events/late", on_line,
				   on_answer, &other);
	for (end = clock_ms() + 20; clock_ms() < end; usleep(200))
		loop_run_once(e->loop, false);
	usleep(100 * 1000); /* both speak, nobody listens */
	UNTIL(e, one.line_count || other.line_count);
	for (end = clock_ms() + 20; clock_ms() < end; usleep(200))
		loop_run_once(e->loop, false);
	assert_true(!one.line_count != !other.line_count);
	assert_int_equal(one.count + other.count, 0);
	assert_int_equal(docker_losses(e->docker), 0);
}

static void pulls__end_well_or_say_why(void **state)
{
	struct engine *e = *state;
	struct docker_call *call;
	struct result r = { 0 };

	(void)docker_pull(e->docker, SPAN("reg.example:5000/a b/c"),
			  SPAN("c2VjcmV0"), on_answer, &r);
	UNTIL(e, r.count);
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(e->last, "fromImage=reg.example:5000/a%20b/c"
					"&tag=latest "));
	assert_non_null(strstr(e->last, "X-Registry-Auth: c2VjcmV0\r\n"));
	r = (struct result){ 0 };
	(void)docker_pull(e->docker, SPAN("bad:1"), SPAN_NONE, on_answer, &r);
	UNTIL(e, r.count);
	assert_int_equal(r.status, 502);
	assert_string_equal(r.message, "no such");
	assert_non_null(strstr(e->last, "fromImage=bad:1 "));
	/* silent for as long as it likes, and what was said last is known */
	docker_set_silence(e->docker, 50);
	r = (struct result){ 0 };
	call = docker_pull(e->docker, SPAN("slow:1"), SPAN_NONE, on_answer, &r);
	assert_string_equal(docker_pull_said(call), "");
	UNTIL(e, *docker_pull_said(call));
	assert_string_equal(docker_pull_said(call), "a1: Wait\\x07ing");
	assert_int_equal(r.count, 0);
	UNTIL(e, r.count);
	assert_int_equal(r.status, 200);
	assert_int_equal(docker_losses(e->docker), 0);
	/* given up: nothing stays behind (a sanitizer looks) */
	docker_cancel(
		docker_pull(e->docker, SPAN("x"), SPAN_NONE, on_answer, &r));
}

static void versions__are_agreed_on(void **state)
{
	struct engine *e = *state;
	struct result r = { 0 };

	docker_meet(e->docker, on_answer, &r);
	UNTIL(e, r.count);
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(e->last, "GET /version "));
	(void)get(e, "/ok");
	assert_non_null(strstr(e->last, "GET /v1.44/ok "));
}

static void no_daemon__is_said_and_a_new_one_is_found(void **state)
{
	struct engine *e = *state;
	struct result r;

	assert_int_equal(get(e, "/ok").status, 200);
	engine_stop(e);
	r = get(e, "/gone"); /* the kept connection ends */
	assert_true(r.status < 0);
	r = get(e, "/ok");
	assert_int_equal(r.status, -ENOENT);
	assert_string_equal(r.message, "the Docker daemon is not there");
	engine_listen(e);
	assert_int_equal(get(e, "/ok").status, 200);
}

static bool is_asked_for(struct engine *e, const char *what)
{
	bool is;

	pthread_mutex_lock(&e->lock);
	is = strstr(e->last, what) != NULL;
	pthread_mutex_unlock(&e->lock);
	return is;
}

/* One on its way down serves the connections that it has. */
static void failures__are_of_a_daemon_that_stays(void **state)
{
	struct result r = { 0 }, other = { 0 };
	struct engine *e = *state;

	assert_int_equal(get(e, "/rude").status, 500);
	assert_true(is_asked_for(e, "GET /_ping "));
	assert_int_equal(docker_losses(e->docker), 0);
	engine_stop(e);
	r = get(e, "/refused"); /* no failure of its own */
	assert_int_equal(r.status, 409);
	r = get(e, "/rude");
	assert_int_equal(r.status, -ECONNRESET);
	assert_string_equal(r.message, "the Docker daemon went away");
	assert_int_equal(r.body_len, 0);
	engine_listen(e);
	assert_int_equal(get(e, "/rude").status, 500);
	/* another one answers the knock */
	r = (struct result){ 0 };
	(void)docker_ask(e->docker, "GET", "/rude/late", SPAN_NONE, on_answer,
			 &r);
	(void)docker_follow(e->docker, "/events-end", on_line, on_answer,
			    &other);
	UNTIL(e, r.count && other.count);
	assert_int_equal(other.status, 200);
	assert_int_equal(r.status, -ECONNRESET);
}

static void failures__that_are_doubted_can_be_given_up(void **state)
{
	struct engine *e = *state;
	struct result r = { 0 };
	struct docker_call *call;

	call = docker_ask(e->docker, "GET", "/rude", SPAN_NONE, on_answer, &r);
	UNTIL(e, is_asked_for(e, "GET /_ping "));
	docker_cancel(call);
	(void)get(e, "/ok/late");
	assert_int_equal(r.count, 0);
	(void)docker_ask(e->docker, "GET", "/rude", SPAN_NONE, on_answer, &r);
	UNTIL(e, is_asked_for(e, "GET /_ping "));
	e->docker = docker_free(e->docker);
	assert_int_equal(r.count, 1);
	assert_int_equal(r.status, -ECANCELED);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(answers__are_taken),
		CASE(refusals__have_a_sentence),
		CASE(bodies__are_sent),
		CASE(answers__that_are_none),
		CASE(silence__is_bounded_and_slowness_is_not),
		CASE(many__wait_for_each_other),
		CASE(lines__come_as_they_are_told),
		CASE(cancelled__is_answered_no_more),
		CASE(cancelled__has_not_broken),
		CASE(pulls__end_well_or_say_why),
		CASE(versions__are_agreed_on),
		CASE(no_daemon__is_said_and_a_new_one_is_found),
		CASE(failures__are_of_a_daemon_that_stays),
		CASE(failures__that_are_doubted_can_be_given_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
