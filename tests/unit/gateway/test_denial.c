/* SPDX-License-Identifier: Apache-2.0 */
/* test_denial.c - refusals are whole HTTP responses whatever was asked for */

#include "tests/unit/gateway/fixture.h"

#include "gateway/session/denial.h"
#include "gateway/session/h1_emit.h"
#include "gateway/session/leg.h"
#include "src/text/json.h"
#include "src/wire/h1.h"

enum { ROOM = 16 * 1024 }; /* what the session gives it */

struct answer {
	struct buf bytes;
	struct h1_response head;
	struct json *body;
	size_t head_len;
};

/* The response as an HTTP/1.1 client gets it. 0 or -errno. */
static int denial_bytes(const struct audit *audit, bool close, bool head_only,
			struct buf *out)
{
	CLEANUP(buf_fini) struct buf body = BUF_INIT(DENIAL_BODY_BYTES);
	const struct h1_reply how = { .close = close };
	char length[DENIAL_LENGTH_SIZE];
	struct request req = { 0 };
	struct response response;
	int r;

	r = denial_compose(audit, SPAN_NONE, &body, length, &response);
	if (r)
		return r;
	assert_int_equal(response.status, audit->status);
	assert_int_equal(response.content, CONTENT_LENGTH);
	assert_int_equal(response.length, buf_len(&body));
	r = h1_emit_response(&req, &response, &how, out);
	return r || head_only ? r : buf_put(out, buf_peek(&body));
}

static void answer_open(struct answer *a, const struct audit *audit, bool close,
			bool head_only)
{
	struct h1_scan scan = { 0 };
	struct span bytes, body;
	int len;

	*a = (struct answer){ .bytes = BUF_INIT(ROOM) };
	assert_int_equal(denial_bytes(audit, close, head_only, &a->bytes), 0);
	bytes = buf_peek(&a->bytes);
	len = h1_scan(&scan, bytes, ROOM);
	assert_true(len > 0);
	a->head_len = (size_t)len;
	assert_int_equal(
		h1_parse_response(span_of(bytes.ptr, a->head_len),
				  head_only ? SPAN("HEAD") : SPAN("GET"),
				  &a->head),
		H1_OK);
	body = span_from(bytes, a->head_len);
	if (head_only) {
		assert_int_equal(body.len, 0);
		return;
	}
	assert_int_equal(a->head.body, H1_BODY_LENGTH);
	assert_int_equal(a->head.length, body.len);
	assert_int_equal(json_parse(body, &a->body, NULL), 0);
}

static void answer_close(struct answer *a)
{
	a->body = json_free(a->body);
	buf_fini(&a->bytes);
}

static void assert_text(const struct answer *a, const char *name,
			const char *expected)
{
	assert_span(json_text(json_find(a->body, name)), expected);
}

static void assert_field(const struct answer *a, const char *name,
			 const char *expected)
{
	const struct header *h =
		headers_find_name(&a->head.headers, span_str(name));

	assert_non_null(h);
	assert_span(h->value, expected);
}

static struct audit denied(struct span text)
{
	return (struct audit){
		.reason = AUDIT_REASON_POLICY,
		.status = 403,
		.sandbox = text,
		.host = text,
		.port = 443,
		.method = text,
		.policy = text,
		.rule = text,
		.binding = text,
		.detail = text,
	};
}

static void denial__says_what_and_why(void **state)
{
	struct audit audit = denied(SPAN("x"));
	struct answer a;

	(void)state;
	audit.host = SPAN("evil.example");
	answer_open(&a, &audit, false, false);
	assert_int_equal(a.head.status, 403);
	assert_true(a.head.keep_alive);
	assert_field(&a, "Sallyport-Denied", "policy");
	assert_field(&a, "Content-Type", "application/json");
	assert_field(&a, "Cache-Control", "no-store");
	assert_text(&a, "error", "denied");
	assert_text(&a, "reason", "policy");
	assert_text(&a, "host", "evil.example");
	assert_text(&a, "message", "x evil.example:443 was refused: x");
	assert_non_null(json_find(a.body, "hint"));
	answer_close(&a);
}

/* One sentence: what was asked for, and which rule or what else was in the way.
 */
static void denial__is_one_sentence(void **state)
{
	static const struct {
		struct audit audit;
		const char *says;
	} rows[] = {
		{ { .reason = AUDIT_REASON_POLICY,
		    .status = 403,
		    .method = SPAN_INIT("GET"),
		    .host = SPAN_INIT("a.example"),
		    .port = 80,
		    .detail = SPAN_INIT("denied by rule 2 of policy p (deny "
					"a.example, p.yaml:4)") },
		  "GET a.example:80 was refused: denied by rule 2 of policy p "
		  "(deny a.example, p.yaml:4)" },
		{ { .reason = AUDIT_REASON_NO_NAME,
		    .status = 502,
		    .method = SPAN_INIT("CONNECT"),
		    .host = SPAN_INIT("b.example"),
		    .port = 443 },
		  "CONNECT b.example:443 failed: the name does not resolve" },
		{ { .reason = AUDIT_REASON_MISDIRECTED,
		    .status = 421,
		    .detail = SPAN_INIT("it says c.example") },
		  "the request was refused: the request names another host "
		  "than "
		  "its connection, it says c.example" },
	};
	struct answer a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		answer_open(&a, &rows[i].audit, false, false);
		assert_text(&a, "message", rows[i].says);
		answer_close(&a);
	}
}

static void denial__is_text_for_who_wants_text(void **state)
{
	static const struct {
		struct span accept;
		bool text;
	} rows[] = {
		{ SPAN_INIT(""), false },
		{ SPAN_INIT("*/*"), false },
		{ SPAN_INIT("application/json, text/plain, */*"), false },
		{ SPAN_INIT("application/vnd.x+json, text/html;q=0.1"), false },
		{ SPAN_INIT("image/png"), false },
		{ SPAN_INIT("text/plain"), true },
		{ SPAN_INIT("Text/HTML,application/xhtml+xml,*/*;q=0.8"),
		  true },
	};
	CLEANUP(buf_fini) struct buf body = BUF_INIT(DENIAL_BODY_BYTES);
	struct audit audit = denied(SPAN("x\r\n\x1b[2J"));
	char length[DENIAL_LENGTH_SIZE];
	struct response response;
	const struct header *type;
	struct span text;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&body);
		assert_int_equal(denial_compose(&audit, rows[i].accept, &body,
						length, &response),
				 0);
		type = headers_find(&response.headers, HEADER_CONTENT_TYPE);
		text = buf_peek(&body);
		if (!rows[i].text) {
			assert_span(type->value, "application/json");
			assert_int_equal(text.ptr[0], '{');
			continue;
		}
		assert_span(type->value, "text/plain; charset=utf-8");
		/* a line, and one that says what to do; nothing else ends one
		 */
		assert_true(span_starts(text, SPAN("x")));
		assert_int_equal(span_find(text, '\r'), text.len);
		assert_int_equal(span_find(text, '\x1b'), text.len);
		(void)span_cut(&text, '\n');
		assert_true(span_starts(text, SPAN("ask the operator")));
		(void)span_cut(&text, '\n');
		assert_int_equal(text.len, 0);
	}
}

static void denial__closes_when_told(void **state)
{
	struct audit audit = denied(SPAN("x"));
	struct answer a;

	(void)state;
	answer_open(&a, &audit, true, false);
	assert_false(a.head.keep_alive);
	assert_field(&a, "Connection", "close");
	answer_close(&a);
}

static void denial__to_head_has_no_body(void **state)
{
	struct audit audit = denied(SPAN("x"));
	struct answer head, get;

	(void)state;
	answer_open(&head, &audit, false, true);
	answer_open(&get, &audit, false, false);
	/* the same head, Content-Length included */
	assert_int_equal(head.head_len, get.head_len);
	assert_memory_equal(buf_peek(&head.bytes).ptr, buf_peek(&get.bytes).ptr,
			    head.head_len);
	answer_close(&head);
	answer_close(&get);
}

static void denial__is_json_whatever_was_sent(void **state)
{
	static const struct span texts[] = {
		SPAN_INIT("\"},{\"x\":\""),
		SPAN_INIT("\r\nSet-Cookie: a=b\r\n\r\n"),
		SPAN_INIT("\0\x01\x1f\x7f\xff\xfe"),
		SPAN_INIT("\xc3\x28\xe2\x82"),
		SPAN_INIT("<script>alert(1)</script>"),
	};
	struct answer a;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(texts); i++) {
		struct audit audit = denied(texts[i]);

		answer_open(&a, &audit, false, false);
		assert_int_equal(a.head.headers.count, 4);
		answer_close(&a);
	}
}

/* Whatever its length: an answer, not silence. */
static void denial__fits_whatever_was_sent(void **state)
{
	static const char fills[] = { 'a', '\1', '"', '\xff' };
	char *text = must_alloc(64 * 1024);
	struct answer a;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(fills); i++) {
		struct audit audit = denied(span_of(text, 64 * 1024));

		memset(text, fills[i], 64 * 1024);
		answer_open(&a, &audit, true, false);
		assert_non_null(json_find(a.body, "detail"));
		answer_close(&a);
	}
	free(text);
}

static void denial__every_reason_and_status(void **state)
{
	static const uint16_t statuses[] = { 400, 403, 405, 408, 421,
					     431, 500, 502, 504, 418 };
	struct audit audit = { 0 };
	struct answer a;
	size_t i;
	int reason;

	(void)state;
	for (reason = 0; reason < AUDIT_REASON_NUM; reason++)
		for (i = 0; i < ARRAY_LEN(statuses); i++) {
			audit.reason = (enum audit_reason)reason;
			audit.status = statuses[i];
			answer_open(&a, &audit, i % 2, false);
			assert_int_equal(a.head.status, statuses[i]);
			assert_text(&a, "error",
				    statuses[i] >= 500 ? "failed" : "denied");
			answer_close(&a);
		}
}

static void denial__says_when_there_is_no_room(void **state)
{
	struct audit audit = denied(SPAN("x"));
	char length[DENIAL_LENGTH_SIZE];
	struct response response;
	size_t room;

	(void)state;
	for (room = 0; room < 128; room++) {
		CLEANUP(buf_fini) struct buf out = BUF_INIT(room);

		assert_true(denial_bytes(&audit, false, false, &out) < 0);
		buf_clear(&out);
		assert_true(denial_compose(&audit, SPAN_NONE, &out, length,
					   &response) < 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(denial__says_what_and_why),
		cmocka_unit_test(denial__is_one_sentence),
		cmocka_unit_test(denial__is_text_for_who_wants_text),
		cmocka_unit_test(denial__closes_when_told),
		cmocka_unit_test(denial__to_head_has_no_body),
		cmocka_unit_test(denial__is_json_whatever_was_sent),
		cmocka_unit_test(denial__fits_whatever_was_sent),
		cmocka_unit_test(denial__every_reason_and_status),
		cmocka_unit_test(denial__says_when_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
