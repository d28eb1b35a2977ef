/* SPDX-License-Identifier: Apache-2.0 */
/* test_session.c - connections of sandboxes, from the first byte to the last */

#include "tests/unit/gateway/fake_origin.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gateway/audit/bounded.h"
#include "gateway/session/session.h"
#include "src/text/json.h"

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong"
#define LOOPBACK_RULE \
	"  - {action: allow, target: 127.0.0.0/8, ports: [1-65535]}\n"
#define A_RULE	      "  - {action: allow, target: a.example, ports: [1-65535]}\n"
#define POLICY(rules) "policies:\n- name: p\n  egress:\n" rules

static const char binding[] =
	"{\"revision\":1,\"bindings\":[{\"name\":\"key\",\"match\":{"
	"\"hosts\":[\"a.example\"],\"schemes\":[\"http\"],\"ports\":[%u]},"
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"tok\"}}]}";

struct desk {
	struct world *world;
	struct worker *worker;
	struct fake_origin origin;
	int far; /* the sandbox's end */
	int audit;
	struct buf got; /* what the sandbox received */
	bool ended;	/* and then the end, or a reset */
	char text[16 * 1024];
};

static void know(struct desk *d, enum name_source source)
{
	struct names *n = names_new();

	name_add(n, source, "a.example", "127.0.0.1");
	world_names(d->world, n);
}

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	d->world = world_new();
	d->worker = &d->world->worker;
	world_policy(d->world, 1, POLICY(A_RULE LOOPBACK_RULE));
	(void)world_sandbox(d->world, "s", "10.9.0.1");
	know(d, NAME_PIN);
	fake_origin_open(&d->origin, d->world, NULL);
	d->origin.reply = ANSWER;
	d->far = -1;
	d->audit = memfd_create("audit", MFD_CLOEXEC);
	audit_log_set_fd(d->worker->audit_log, d->audit);
	buf_init(&d->got, 1024 * 1024);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	(void)fd_close(d->far);
	world_settle(d->world);
	fake_origin_close(&d->origin);
	world_settle(d->world);
	world_free(d->world);
	(void)fd_close(d->audit);
	buf_fini(&d->got);
	free(d);
	return 0;
}

/* A new connection of the sandbox to the origin's address. */
static void dial(struct desk *d, const char *from)
{
	struct addr client = addr_of(from, 1000);
	int fds[2];

	(void)fd_close(d->far);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds));
	d->far = fds[1];
	d->ended = false;
	buf_clear(&d->got);
	session_new(d->worker, fds[0], &client, &d->origin.address, "sp-1");
}

static void hear(struct desk *d)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(d->far, bytes, sizeof(bytes))) > 0)
		must(!buf_put(&d->got, span_of(bytes, (size_t)n)));
	if (n == 0 || errno != EAGAIN)
		d->ended = true;
}

static void say(struct desk *d, const char *text)
{
	buf_clear(&d->got);
	must(write(d->far, text, strlen(text)) == (ssize_t)strlen(text));
}

static bool got(const struct desk *d, const char *text)
{
	return memmem(buf_peek(&d->got).ptr, buf_len(&d->got), text,
		      strlen(text)) != NULL;
}

/* Until the sandbox has received that. */
static void until(struct desk *d, const char *text)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (!got(d, text) && !d->ended && clock_ms() < end_ms) {
		world_turn(d->world);
		hear(d);
	}
	if (!got(d, text))
		fail_msg("\"%s\" is missing in \"%.*s\"", text,
			 SPAN_FMT(buf_peek(&d->got)));
}

static void until_end(struct desk *d)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (!d->ended && clock_ms() < end_ms) {
		world_turn(d->world);
		hear(d);
	}
	assert_true(d->ended);
}

static bool heard(const struct desk *d, const char *text)
{
	return memmem(buf_peek(&d->origin.heard).ptr, buf_len(&d->origin.heard),
		      text, strlen(text)) != NULL;
}

/* The last audit record holds that. */
static void assert_record(struct desk *d, const char *expected)
{
	struct stat st;
	char *from;
	ssize_t n;
	off_t at;

	world_settle(d->world);
	audit_log_flush(d->worker->audit_log);
	must(!fstat(d->audit, &st));
	at = MAX(0, st.st_size - (off_t)sizeof(d->text) + 1);
	n = pread(d->audit, d->text, sizeof(d->text) - 1, at);
	must(n > 1);
	d->text[n - 1] = '\0'; /* instead of the last line feed */
	from = memrchr(d->text, '\n', (size_t)n - 1);
	if (!strstr(from ? from : d->text, expected))
		fail_msg("%s is missing in %s", expected,
			 from ? from : d->text);
}

/* -- HTTP -------------------------------------------------------------------
 */

static void http__one_after_the_other(void **state)
{
	struct desk *d = *state;
	int i;

	dial(d, "10.9.0.1");
	for (i = 0; i < 3; i++) {
		say(d, "GET /x?y HTTP/1.1\r\nHost: a.example\r\n\r\n");
		until(d, "\r\n\r\npong");
		assert_record(d, "\"path\":\"/x\"");
		assert_record(d, "\"verdict\":\"allow\"");
	}
	assert_int_equal(d->origin.count, 1); /* one connection, kept */
	assert_true(heard(d, "GET /x?y HTTP/1.1\r\nHost: a.example\r\n"));
	assert_int_equal(d->worker->counters[COUNTER_exchanges], 3);
}

static void http__many_at_once_in_order(void **state)
{
	struct desk *d = *state;
	char text[64 * 40];
	size_t at = 0, answers = 0, k;
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	int i;

	for (i = 0; i < 40; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at,
				       "GET /%d HTTP/1.1\r\n"
				       "Host: a.example\r\n\r\n",
				       i);
	dial(d, "10.9.0.1");
	say(d, text);
	while (answers < 40 && clock_ms() < end_ms) {
		world_turn(d->world);
		hear(d);
		for (answers = k = 0; k + 4 <= buf_len(&d->got); k++)
			answers +=
				!memcmp(buf_peek(&d->got).ptr + k, "pong", 4);
	}
	assert_int_equal(answers, 40);
	assert_record(d, "\"path\":\"/39\"");
}

static void http__denied_says_why_and_goes_on(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(A_RULE));
	dial(d, "10.9.0.1");
	say(d, "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n");
	until(d, "\"reason\":\"policy\"");
	assert_true(got(d, "HTTP/1.1 403 "));
	assert_true(got(d, "Sallyport-Denied: policy"));
	assert_record(d, "\"verdict\":\"deny\"");
	assert_record(d, "\"host\":\"evil.example\"");
	assert_int_equal(d->origin.count, 0);
	/* the same connection may still ask for what is allowed */
	say(d, "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
	until(d, "HTTP/1.1 403 ");
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	until(d, "pong");
	/* and is that name's from now on */
	world_policy(d->world, 1, POLICY(A_RULE LOOPBACK_RULE));
	world_settle(d->world);
	say(d, "GET / HTTP/1.1\r\nHost: b.example\r\n\r\n");
	until(d, "HTTP/1.1 421 ");
	assert_record(d, "\"reason\":\"misdirected\"");
}

static void http__refuses_what_is_malformed(void **state)
{
	static const struct {
		const char *text, *status;
	} rows[] = {
		{ "GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 " },
		{ "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "GET / HTTP/1.1\r\nHost: a.example\r\n"
		  "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "GET / HTTP/1.1\r\nHost: a.example\r\nBad header: x\r\n\r\n",
		  "HTTP/1.1 400 " },
		{ "CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443"
		  "\r\n\r\n",
		  "HTTP/1.1 405 " },
	};
	struct desk *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		dial(d, "10.9.0.1");
		say(d, rows[i].text);
		until(d, rows[i].status);
	}
	assert_int_equal(d->origin.count, 0);
}

static void http__a_head_too_large_is_431(void **state)
{
	struct desk *d = *state;
	char *fill = must_alloc(8192);
	int i;

	memset(fill, 'x', 8191);
	d->world->config.head_bytes = 16 * 1024;
	dial(d, "10.9.0.1");
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\nX-Fill: ");
	for (i = 0; i < 3; i++) {
		say(d, fill);
		world_settle(d->world);
	}
	until(d, "HTTP/1.1 431 ");
	until_end(d);
	free(fill);
}

static void http__injects_and_redacts(void **state)
{
	struct desk *d = *state;
	char json[512];

	(void)snprintf(json, sizeof(json), binding,
		       (unsigned)d->origin.address.port);
	world_bindings(d->world, "", json, "t0ken");
	d->origin.reply = "HTTP/1.1 200 t0ken\r\nX-Echo: Bearer t0ken\r\n"
			  "Content-Length: 4\r\n\r\npong";
	dial(d, "10.9.0.1");
	say(d, "GET / HTTP/1.1\r\nAuthorization: mine\r\n"
	       "Host: a.example\r\nauthorization: again\r\n\r\n");
	until(d, "pong");
	assert_true(heard(d, "Authorization: Bearer t0ken\r\n\r\n"));
	assert_false(heard(d, "mine") || heard(d, "again"));
	assert_true(got(d, "X-Echo: Bearer [REDACTED]\r\n"));
	assert_false(got(d, "t0ken"));
	assert_record(d, "\"injected\":true");
	assert_record(d, "\"binding\":\"key\"");
	assert_null(strstr(d->text, "t0ken"));

	/* without the pin nothing proves the peer */
	know(d, NAME_HOSTS);
	world_settle(d->world);
	buf_clear(&d->origin.heard);
	dial(d, "10.9.0.1");
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	until(d, "HTTP/1.1 403 ");
	assert_record(d, "\"reason\":\"plaintext_credential\"");
	assert_int_equal(buf_len(&d->origin.heard), 0);
}

/* -- who may come -----------------------------------------------------------
 */

static void session__a_stranger_is_reset(void **state)
{
	struct desk *d = *state;

	dial(d, "10.9.0.77");
	until_end(d);
	assert_int_equal(buf_len(&d->got), 0);
	assert_record(d, "\"reason\":\"unknown_sandbox\"");
	assert_int_equal(d->worker->counters[COUNTER_connections_unknown], 1);
	assert_int_equal(d->worker->counters[COUNTER_connections_open], 0);
}

static void set_limit(struct desk *d, enum quota_kind kind, uint64_t limit)
{
	struct quota *q = quotas_find(d->world->gateway.quotas, SPAN("s"));

	quota_set_limit(q, kind, limit);
	(void)quota_unref(q);
}

/* A flood is refused, and recorded in a few lines that say how large it was. */
static void session__so_many_a_second(void **state)
{
	struct desk *d = *state;
	struct stat st;
	unsigned i;

	set_limit(d, QUOTA_CONNECTS, 5);
	for (i = 0; i < 5; i++) {
		dial(d, "10.9.0.1");
		world_settle(d->world);
		hear(d);
		assert_false(d->ended);
	}
	for (i = 0; i < 200; i++) {
		dial(d, "10.9.0.1");
		hear(d);
		assert_true(d->ended);
	}
	assert_int_equal(d->worker->counters[COUNTER_connections_limited], 200);
	assert_record(d, "\"reason\":\"limit\"");
	must(!fstat(d->audit, &st));
	assert_true(st.st_size < 11 * 300);
	usleep((BOUNDED_MS + 50) * 1000);
	assert_record(d, "\"alike\":190");

	/* others do not notice */
	(void)world_sandbox(d->world, "other", "10.9.0.2");
	dial(d, "10.9.0.2");
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	until(d, "pong");
}

static void session__so_many_at_once(void **state)
{
	struct desk *d = *state;
	int first;

	set_limit(d, QUOTA_CONNECTIONS, 1);
	dial(d, "10.9.0.1");
	first = d->far;
	d->far = -1;
	dial(d, "10.9.0.1");
	until_end(d);
	assert_record(d, "\"reason\":\"limit\"");
	(void)fd_close(first); /* it may be that it only listens */
	world_settle(d->world);
	fake_origin_hang_up(&d->origin);
	world_settle(d->world);
	dial(d, "10.9.0.1");
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	until(d, "pong");
}

/* -- a client that says nothing ---------------------------------------------
 */

static void opening__server_speaks_first(void **state)
{
	struct desk *d = *state;

	d->origin.greeting = "220 welcome";
	d->origin.reply = NULL;
	dial(d, "10.9.0.1");
	until(d, "220 welcome");
	say(d, "EHLO");
	until(d, "pong");
	assert_int_equal(d->origin.count, 1);
	d->far = fd_close(d->far);
	fake_origin_hang_up(&d->origin);
	world_settle(d->world);
	assert_record(d, "\"kind\":\"tunnel\"");
}

/* It may wait for that to greet: no ACK is held back for first bytes of ours. */
static void opening__server_hears_of_it_at_once(void **state)
{
	struct desk *d = *state;
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	const struct session *s;

	dial(d, "10.9.0.1");
	world_turn(d->world);
	s = list_first(&d->worker->sessions, struct session, link);
	assert_non_null(s);
	while (s->state != SESSION_OPENING && clock_ms() < end_ms)
		world_turn(d->world);
	world_settle(d->world);
	assert_int_equal(d->origin.count, 1);
}

/* Until the origin was dialled for it. */
static void until_dialled(struct desk *d)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;

	while (!d->origin.count && clock_ms() < end_ms)
		world_turn(d->world);
	world_settle(d->world);
	assert_int_equal(d->origin.count, 1);
}

static void opening__survives_changes_that_allow_it(void **state)
{
	struct desk *d = *state;
	struct names *n = names_new();
	int i;

	d->origin.reply = NULL;
	dial(d, "10.9.0.1");
	until_dialled(d);
	for (i = 0; i < 10000; i++) {
		facts_put_names(&d->worker->facts, n);
		worker_facts_changed(d->worker);
	}
	(void)names_unref(n);
	say(d, "\1\2\3\n");
	until(d, "pong");
	assert_int_equal(d->origin.count, 1); /* what was dialled serves */
}

static void opening__is_cut_when_it_is_not_allowed_now(void **state)
{
	struct desk *d = *state;

	dial(d, "10.9.0.1");
	until_dialled(d);
	world_policy(d->world, 1, "policies: [{name: p}]\n");
	worker_facts_changed(d->worker);
	until_end(d);
	assert_record(d, "\"reason\":\"cut\"");
}

/* What was dialled is not what a request is sent on. */
static void opening__http_is_decided_by_its_name(void **state)
{
	struct desk *d = *state;

	dial(d, "10.9.0.1");
	until_dialled(d);
	say(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
	until(d, "pong");
	assert_int_equal(d->origin.count, 2);
	assert_record(d, "\"kind\":\"http\"");
}

static void opening__denied_silence_is_refused(void **state)
{
	struct desk *d = *state;
	uint64_t start_ms = clock_ms();

	world_policy(d->world, 1, POLICY(A_RULE));
	dial(d, "10.9.0.1");
	until_end(d);
	assert_true(clock_ms() - start_ms >= 300);
	assert_record(d, "\"reason\":\"policy\"");
	assert_int_equal(d->origin.count, 0);
}

static void opening__text_without_a_line(void **state)
{
	struct desk *d = *state;

	d->origin.reply = NULL;
	dial(d, "10.9.0.1");
	say(d, "PING");
	until(d, "pong");
	assert_true(heard(d, "PING"));
}

static void opening__denied_text_without_a_line(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(A_RULE));
	dial(d, "10.9.0.1");
	say(d, "PING");
	until_end(d);
	assert_record(d, "\"reason\":\"policy\"");
	assert_int_equal(d->origin.count, 0);
}

/* -- what is not opened -----------------------------------------------------
 */

/* A tunnel to the origin's address, through which "pong" came. */
static void tunnel(struct desk *d)
{
	d->origin.reply = NULL;
	dial(d, "10.9.0.1");
	say(d, "\1\2\3 no protocol that we know\n");
	until(d, "pong");
	assert_true(heard(d, "\1\2\3 no protocol"));
}

static void tunnel__passes_bytes(void **state)
{
	struct desk *d = *state;

	tunnel(d);
	say(d, "more");
	until(d, "pong");
	d->far = fd_close(d->far);
	fake_origin_hang_up(&d->origin);
	world_settle(d->world);
	assert_record(d, "\"kind\":\"tunnel\"");
	assert_record(d, "\"verdict\":\"allow\"");
	assert_int_equal(d->worker->counters[COUNTER_spliced], 1);
	assert_int_equal(d->worker->counters[COUNTER_connections_open], 0);
}

static void tunnel__needs_a_rule_without_methods(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1,
		     POLICY("  - {action: allow, target: 127.0.0.0/8, "
			    "ports: [1-65535], methods: [GET]}\n"));
	dial(d, "10.9.0.1");
	say(d, "\1\2\3 not HTTP\n");
	until_end(d);
	assert_record(d, "\"reason\":\"not_tls_or_http\"");
	assert_int_equal(d->origin.count, 0);
}

static void tunnel__survives_changes_that_allow_it(void **state)
{
	struct desk *d = *state;
	struct names *n = names_new();
	int i;

	tunnel(d);
	for (i = 0; i < 10000; i++) {
		facts_put_names(&d->worker->facts, n);
		worker_facts_changed(d->worker);
	}
	(void)names_unref(n);
	say(d, "still");
	until(d, "pong");
}

static void tunnel__is_cut_when_it_is_not_allowed_now(void **state)
{
	static const char *const changes[] = {
		"policies: [{name: p}]\n",
		POLICY("  - {action: deny, target: 127.0.0.1/32}\n" A_RULE
			       LOOPBACK_RULE),
		/* allowed, but not unseen */
		POLICY("  - {action: allow, target: 127.0.0.0/8, "
		       "ports: [1-65535], methods: [GET]}\n"),
		/* by default, which is no rule for a private address */
		"policies: [{name: p, defaultAction: allow}]\n",
	};
	struct desk *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(changes); i++) {
		world_policy(d->world, 1, POLICY(A_RULE LOOPBACK_RULE));
		tunnel(d);
		world_policy(d->world, 1, changes[i]);
		worker_facts_changed(d->worker);
		until_end(d);
		assert_record(d, "\"reason\":\"cut\"");
	}
	world_policy(d->world, 1, POLICY(A_RULE LOOPBACK_RULE));
	tunnel(d);
	facts_drop_sandbox(&d->worker->facts, SPAN("s"));
	worker_facts_changed(d->worker);
	until_end(d);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(http__one_after_the_other),
		DESK_TEST(http__many_at_once_in_order),
		DESK_TEST(http__denied_says_why_and_goes_on),
		DESK_TEST(http__refuses_what_is_malformed),
		DESK_TEST(http__a_head_too_large_is_431),
		DESK_TEST(http__injects_and_redacts),
		DESK_TEST(session__a_stranger_is_reset),
		DESK_TEST(session__so_many_a_second),
		DESK_TEST(session__so_many_at_once),
		DESK_TEST(opening__server_speaks_first),
		DESK_TEST(opening__server_hears_of_it_at_once),
		DESK_TEST(opening__survives_changes_that_allow_it),
		DESK_TEST(opening__is_cut_when_it_is_not_allowed_now),
		DESK_TEST(opening__http_is_decided_by_its_name),
		DESK_TEST(opening__denied_silence_is_refused),
		DESK_TEST(opening__text_without_a_line),
		DESK_TEST(opening__denied_text_without_a_line),
		DESK_TEST(tunnel__passes_bytes),
		DESK_TEST(tunnel__needs_a_rule_without_methods),
		DESK_TEST(tunnel__survives_changes_that_allow_it),
		DESK_TEST(tunnel__is_cut_when_it_is_not_allowed_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
