/* SPDX-License-Identifier: Apache-2.0 */
/* test_audit.c - whatever the facts are, a record is one line of JSON */

#include "tests/unit/gateway/fixture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gateway/audit/bounded.h"
#include "src/text/json.h"

enum { RANDOM_RECORDS = 3000, HUGE_BYTES = 1200 * 1024 };

struct desk {
	struct loop *loop;
	struct audit_log *log;
	int fd;
	struct buf text; /* what was written, after desk_read() */
};

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	log_set_level(LOG_ERROR);
	d->fd = memfd_create("audit", MFD_CLOEXEC);
	must(d->fd >= 0);
	must(!loop_new(&d->loop));
	d->log = audit_log_new(d->loop);
	audit_log_set_fd(d->log, d->fd);
	buf_init(&d->text, 64 * 1024 * 1024);
	*state = d;
	return 0;
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	d->log = audit_log_free(d->log);
	d->loop = loop_free(d->loop);
	(void)fd_close(d->fd);
	buf_fini(&d->text);
	free(d);
	return 0;
}

static void fd_read(int fd, struct buf *text)
{
	struct stat st;
	char *room;

	must(!fstat(fd, &st));
	buf_clear(text);
	must(!buf_reserve(text, (size_t)st.st_size, &room));
	must(pread(fd, room, (size_t)st.st_size, 0) == st.st_size);
	buf_commit(text, (size_t)st.st_size);
}

/* Number of lines; each must be one JSON object. */
static unsigned desk_read(struct desk *d)
{
	struct span rest, line;
	unsigned count = 0;

	audit_log_flush(d->log);
	fd_read(d->fd, &d->text);
	rest = buf_peek(&d->text);
	assert_true(!rest.len || rest.ptr[rest.len - 1] == '\n');
	while (rest.len) {
		CLEANUP_JSON struct json *j = NULL;
		struct diag diag = { 0 };

		line = span_cut(&rest, '\n');
		if (json_parse(line, &j, &diag))
			fail_msg("%s in %.*s", diag.msg, SPAN_FMT(line));
		assert_int_equal(json_kind(j), JSON_KIND_OBJECT);
		count++;
	}
	return count;
}

/* Every field that can be set is. */
static struct audit full(struct span text)
{
	return (struct audit){
		.kind = AUDIT_HTTP,
		.start_us = clock_us(),
		.sandbox = text,
		.client = addr_of("10.1.2.3", 4000),
		.original = addr_of("2001:db8::1", 443),
		.scheme = "https",
		.host = text,
		.port = 443,
		.address = addr_of("192.0.2.1", 443),
		.tls_version = "TLSv1.3",
		.origin_tls_version = "TLSv1.2",
		.inspected = true,
		.resumed = true,
		.origin_resumed = true,
		.origin_reused = true,
		.reason = AUDIT_REASON_POLICY,
		.verdict_source = "rule",
		.policy = text,
		.rule = text,
		.rule_file = text,
		.rule_line = UINT32_MAX,
		.generation = INT64_MAX,
		.detail = text,
		.method = text,
		.path = text,
		.binding = text,
		.revision = INT64_MAX,
		.injected = true,
		.status = 403,
		.request_bytes = INT64_MAX,
		.response_bytes = INT64_MAX,
		.decided_us = 1,
		.connected_us = 2,
		.first_byte_us = 3,
		.redactions = 4,
	};
}

static void audit__every_text_is_escaped(void **state)
{
	static const struct span texts[] = {
		SPAN_INIT("plain"),
		SPAN_INIT("\"quoted\"\\"),
		SPAN_INIT("line\nfeed\r\n{\"verdict\":\"allow\"}"),
		SPAN_INIT("\0nul\0"),
		SPAN_INIT("\x01\x1f\x7f\x80\xff"),
		SPAN_INIT("\xc3\x28\xf0\x9f\x92"),     /* cut UTF-8 */
		SPAN_INIT("\xed\xa0\x80\xc0\xaf"),     /* surrogate, overlong */
		SPAN_INIT("\xe2\x80\xa8\xe2\x80\xa9"), /* U+2028, U+2029 */
		SPAN_INIT("</script>&'"),
	};
	struct desk *d = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts); i++) {
		struct audit a = full(texts[i]);

		audit_emit(d->log, &a);
	}
	assert_int_equal(desk_read(d), ARRAY_LEN(texts));
}

static void audit__texts_arrive_as_they_were(void **state)
{
	CLEANUP_JSON struct json *j = NULL;
	struct desk *d = *state;
	struct audit a = full(SPAN("a\"\\\n\t\x01\xc3\xa4"));
	static const char *const keys[] = { "sandbox", "host",	 "policy",
					    "rule",    "detail", "ruleFile",
					    "method",  "path",	 "binding" };
	uint64_t number;
	size_t i;

	audit_emit(d->log, &a);
	assert_int_equal(desk_read(d), 1);
	assert_int_equal(json_parse(buf_peek(&d->text), &j, NULL), 0);
	for (i = 0; i < ARRAY_LEN(keys); i++)
		assert_span(json_text(json_find(j, keys[i])),
			    "a\"\\\n\t\x01\xc3\xa4");
	assert_span(json_text(json_find(j, "verdict")), "deny");
	assert_span(json_text(json_find(j, "reason")), "policy");
	assert_span(json_text(json_find(j, "client")), "10.1.2.3:4000");
	assert_span(json_text(json_find(j, "original")), "[2001:db8::1]:443");
	assert_span(json_text(json_find(j, "address")), "192.0.2.1:443");
	assert_true(json_u64(json_find(j, "status"), &number));
	assert_int_equal(number, 403);
	assert_true(json_bool(json_find(j, "injected")));
}

static void audit__a_bare_record_denies(void **state)
{
	CLEANUP_JSON struct json *j = NULL;
	struct desk *d = *state;
	struct audit a = { 0 };

	audit_emit(d->log, &a);
	assert_int_equal(desk_read(d), 1);
	assert_int_equal(json_parse(buf_peek(&d->text), &j, NULL), 0);
	assert_span(json_text(json_find(j, "verdict")), "deny");
	assert_null(json_find(j, "reason"));
	assert_null(json_find(j, "client"));
	assert_null(json_find(j, "binding"));
	assert_null(json_find(j, "injected"));
}

static void audit__random_bytes_stay_one_line(void **state)
{
	struct desk *d = *state;
	char bytes[300];
	uint32_t random = 7;
	unsigned i;
	size_t k;

	for (i = 0; i < RANDOM_RECORDS; i++) {
		struct audit a;

		for (k = 0; k < sizeof(bytes); k++) {
			random = random * 1103515245u + 12345u;
			bytes[k] = (char)(random >> 16);
		}
		a = full(span_of(bytes, random % sizeof(bytes)));
		a.kind = i % AUDIT_KIND_NUM;
		a.reason = i % AUDIT_REASON_NUM;
		audit_emit(d->log, &a);
	}
	assert_int_equal(desk_read(d), RANDOM_RECORDS);
}

static void audit__what_does_not_fit_is_not_there(void **state)
{
	char *huge = must_alloc(HUGE_BYTES);
	struct desk *d = *state;
	struct audit small = full(SPAN("small")), a;

	memset(huge, 'h', HUGE_BYTES);
	log_set_level(LOG_ERROR);
	audit_emit(d->log, &small);
	a = full(span_of(huge, 100 * 1024)); /* large, and fits */
	audit_emit(d->log, &a);
	a = full(SPAN("late"));
	a.path = span_of(huge, HUGE_BYTES);
	audit_emit(d->log, &small);
	audit_emit(d->log, &a);
	audit_emit(d->log, &small);
	assert_int_equal(desk_read(d), 4);
	assert_null(
		memmem(buf_peek(&d->text).ptr, buf_len(&d->text), "late", 4));
	free(huge);
}

/* Runs with stderr in a file, whose size says whether anything was logged. */
static off_t stderr_swap(int *saved)
{
	off_t size;

	if (*saved < 0) {
		*saved = dup(2);
		int fd = memfd_create("stderr", MFD_CLOEXEC);

		must(dup2(fd, 2) == 2);
		(void)fd_close(fd);
		return 0;
	}
	size = lseek(2, 0, SEEK_END);
	must(dup2(*saved, 2) == 2);
	*saved = fd_close(*saved);
	return size;
}

/* A pipe that takes exactly one page. */
static void narrow_pipe(int fds[2])
{
	must(!pipe2(fds, O_CLOEXEC | O_NONBLOCK));
	must(fcntl(fds[1], F_SETPIPE_SZ, 4096) >= 0);
}

static off_t desk_written(const struct desk *d)
{
	struct stat st;

	must(!fstat(d->fd, &st));
	return st.st_size;
}

static void audit__what_is_allowed_waits_for_company(void **state)
{
	struct desk *d = *state;
	struct audit a = full(SPAN("x"));
	uint64_t from_ms;

	a.allowed = true;
	audit_emit(d->log, &a);
	from_ms = clock_ms();
	audit_log_settle(d->log);
	audit_emit(d->log, &a);
	audit_log_settle(d->log);
	assert_int_equal(desk_written(d), 0);
	while (!desk_written(d) && clock_ms() < from_ms + 10 * 1000)
		loop_run_once(d->loop, true);
	assert_true(clock_ms() >= from_ms + AUDIT_WAIT_MS - 1);
	assert_int_equal(desk_read(d), 2);
}

static void audit__what_is_refused_does_not_wait(void **state)
{
	struct desk *d = *state;
	struct audit a = full(SPAN("x"));
	off_t before;

	a.allowed = true;
	audit_emit(d->log, &a);
	a.allowed = false;
	audit_emit(d->log, &a);
	assert_int_equal(desk_written(d), 0);
	audit_log_settle(d->log);
	before = desk_written(d);
	assert_true(before > 0);

	/* the next may wait again */
	a.allowed = true;
	audit_emit(d->log, &a);
	audit_log_settle(d->log);
	assert_int_equal(desk_written(d), before);
	assert_int_equal(desk_read(d), 3);
}

/* A burst is written in large pieces, and their memory is not for ever. */
static void audit__a_burst_leaves_no_memory(void **state)
{
	struct desk *d = *state;
	struct audit a = full(SPAN("x"));
	unsigned count = 0;

	a.allowed = true;
	do {
		audit_emit(d->log, &a);
		count++;
	} while (!desk_written(d) && count < 100000);
	assert_true(desk_written(d) > 256 * 1024);
	assert_true(audit_log_memory(d->log) > 256 * 1024);
	audit_emit(d->log, &a);
	audit_log_flush(d->log);
	assert_true(audit_log_memory(d->log) < 64 * 1024);
	audit_emit(d->log, &a);
	assert_int_equal(desk_read(d), count + 2);
}

static void audit__a_loss_is_told_once(void **state)
{
	struct desk *d = *state;
	struct audit a = full(SPAN("x"));
	int saved = -1, i;
	off_t once;

	audit_log_set_fd(d->log, -1);
	(void)stderr_swap(&saved);
	audit_emit(d->log, &a);
	audit_log_flush(d->log);
	once = lseek(2, 0, SEEK_END);
	for (i = 0; i < 5; i++) {
		audit_emit(d->log, &a);
		audit_log_flush(d->log);
	}
	assert_int_equal(stderr_swap(&saved), once);
	assert_true(once > 0);

	audit_log_set_fd(d->log, d->fd);
	audit_emit(d->log, &a);
	assert_int_equal(desk_read(d), 1);
}

static void audit__a_record_too_large_is_told(void **state)
{
	char *huge = must_alloc(HUGE_BYTES);
	struct desk *d = *state;
	struct audit a = full(span_of(huge, HUGE_BYTES));
	int saved = -1;

	(void)stderr_swap(&saved);
	audit_emit(d->log, &a);
	assert_true(stderr_swap(&saved) > 0);
	free(huge);
}

static void audit__half_a_line_is_ended(void **state)
{
	struct desk *d = *state;
	struct audit a = full(SPAN("half"));
	char bytes[8192];
	struct span rest, line;
	int pipes[2], saved = -1;
	unsigned whole = 0;
	ssize_t n;

	narrow_pipe(pipes);
	audit_log_set_fd(d->log, pipes[1]);
	(void)stderr_swap(&saved);
	for (n = 0; n < 12; n++)
		audit_emit(d->log, &a); /* more than a page */
	audit_log_flush(d->log);
	assert_true(stderr_swap(&saved) > 0);
	n = read(pipes[0], bytes, sizeof(bytes));
	assert_int_equal(n, 4096);
	assert_int_not_equal(bytes[n - 1], '\n');

	audit_emit(d->log, &a);
	audit_log_flush(d->log);
	n = read(pipes[0], bytes, sizeof(bytes));
	assert_true(n > 1);
	assert_int_equal(bytes[0], '\n');
	for (rest = span_of(bytes + 1, (size_t)n - 1); rest.len; whole++) {
		CLEANUP_JSON struct json *j = NULL;

		line = span_cut(&rest, '\n');
		assert_int_equal(json_parse(line, &j, NULL), 0);
	}
	assert_int_equal(whole, 1);
	audit_log_set_fd(d->log, -1);
	(void)fd_close(pipes[0]);
	(void)fd_close(pipes[1]);
}

static void audit__goes_to_the_new_file_from_now_on(void **state)
{
	struct desk *d = *state;
	int second = memfd_create("second", MFD_CLOEXEC), first = d->fd;
	struct audit a = full(SPAN("first"));

	audit_emit(d->log, &a);
	audit_log_set_fd(d->log, second);
	a = full(SPAN("second"));
	audit_emit(d->log, &a);
	assert_int_equal(desk_read(d), 1);
	assert_non_null(
		memmem(buf_peek(&d->text).ptr, buf_len(&d->text), "first", 5));
	d->fd = second;
	assert_int_equal(desk_read(d), 1);
	assert_non_null(
		memmem(buf_peek(&d->text).ptr, buf_len(&d->text), "second", 6));
	audit_log_set_fd(d->log, -1);
	(void)fd_close(first);
}

static void audit__every_reason_has_a_name_and_a_sentence(void **state)
{
	int i;

	(void)state;
	assert_string_equal(audit_reason_name(AUDIT_REASON_NONE), "");
	for (i = 1; i < AUDIT_REASON_NUM; i++) {
		assert_true(*audit_reason_name((enum audit_reason)i));
		assert_true(*audit_reason_text((enum audit_reason)i));
	}
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

/* -- bounded ---------------------------------------------------------------
 */

static bool desk_has(struct desk *d, const char *text)
{
	struct span all = buf_peek(&d->text);

	return memmem(all.ptr, all.len, text, strlen(text)) != NULL;
}

static void bounded__some_are_written_and_the_rest_is_summed(void **state)
{
	struct audit a = { .kind = AUDIT_CONNECT,
			   .sandbox = SPAN("s"),
			   .reason = AUDIT_REASON_LIMIT };
	struct desk *d = *state;
	struct audit_bound *b;
	unsigned i;

	b = audit_bound_new(d->loop, d->log);
	for (i = 0; i < BOUNDED_FLOOD_RECORDS + 5; i++)
		audit_bound_emit(b, BOUNDED_FLOOD, &a);
	a.kind = AUDIT_DNS;
	audit_bound_emit(b, BOUNDED_FLOOD, &a);
	audit_bound_emit(b, BOUNDED_FLOOD, &a);
	assert_int_equal(desk_read(d), BOUNDED_FLOOD_RECORDS);
	assert_false(desk_has(d, "alike"));

	/* a second later: a sum of each kind, then it begins anew */
	usleep((BOUNDED_MS + 50) * 1000);
	loop_run_once(d->loop, false);
	assert_int_equal(desk_read(d), BOUNDED_FLOOD_RECORDS + 2);
	assert_true(desk_has(d, "\"alike\":5"));
	assert_true(desk_has(d, "\"alike\":2"));
	audit_bound_emit(b, BOUNDED_FLOOD, &a);
	assert_int_equal(desk_read(d), BOUNDED_FLOOD_RECORDS + 3);

	/* the end keeps nothing back */
	for (i = 0; i < BOUNDED_FLOOD_RECORDS + 6; i++)
		audit_bound_emit(b, BOUNDED_FLOOD, &a);
	(void)audit_bound_free(b);
	assert_int_equal(desk_read(d), BOUNDED_FLOOD_RECORDS + 3 + 9 + 1);
	assert_true(desk_has(d, "\"alike\":7"));
	assert_null(audit_bound_free(NULL));
}

/* A flood leaves room for denials, one reason does not count for another, and
 * what nobody could count for in the end is counted all the same. */
static void bounded__sums_are_of_a_kind_and_reason(void **state)
{
	struct audit a = { .kind = AUDIT_HTTP,
			   .sandbox = SPAN("s"),
			   .reason = AUDIT_REASON_POLICY };
	struct desk *d = *state;
	struct audit_bound *b;
	unsigned i;

	b = audit_bound_new(d->loop, d->log);
	for (i = 0; i < BOUNDED_FLOOD_RECORDS + 3; i++)
		audit_bound_emit(b, BOUNDED_FLOOD, &a);
	for (i = 0; i < BOUNDED_DENIAL_RECORDS + 20; i++)
		audit_bound_emit(b, BOUNDED_DENIAL, &a);
	assert_int_equal(desk_read(d),
			 BOUNDED_FLOOD_RECORDS + BOUNDED_DENIAL_RECORDS);
	a.reason = AUDIT_REASON_MALFORMED;
	for (i = 0; i < 7; i++)
		audit_bound_emit(b, BOUNDED_DENIAL, &a);
	a.kind = AUDIT_DNS;
	for (i = 0; i < 30; i++) {
		a.reason = (enum audit_reason)(AUDIT_REASON_NONE + 1 + i);
		audit_bound_emit(b, BOUNDED_DENIAL, &a);
	}
	(void)audit_bound_free(b);
	assert_int_equal(desk_read(d),
			 BOUNDED_FLOOD_RECORDS + BOUNDED_DENIAL_RECORDS + 16);
	assert_true(desk_has(d, "\"alike\":23"));
	assert_true(desk_has(d, "\"alike\":7"));
	assert_true(desk_has(d, "\"alike\":17")); /* 30, less 13 of their own */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(audit__every_text_is_escaped),
		DESK_TEST(audit__texts_arrive_as_they_were),
		DESK_TEST(audit__a_bare_record_denies),
		DESK_TEST(audit__random_bytes_stay_one_line),
		DESK_TEST(audit__what_does_not_fit_is_not_there),
		DESK_TEST(audit__what_is_allowed_waits_for_company),
		DESK_TEST(audit__what_is_refused_does_not_wait),
		DESK_TEST(audit__a_burst_leaves_no_memory),
		DESK_TEST(audit__a_loss_is_told_once),
		DESK_TEST(audit__a_record_too_large_is_told),
		DESK_TEST(audit__half_a_line_is_ended),
		DESK_TEST(audit__goes_to_the_new_file_from_now_on),
		DESK_TEST(bounded__some_are_written_and_the_rest_is_summed),
		DESK_TEST(bounded__sums_are_of_a_kind_and_reason),
		cmocka_unit_test(audit__every_reason_has_a_name_and_a_sentence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
