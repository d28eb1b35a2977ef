/* SPDX-License-Identifier: Apache-2.0 */
/* test_h1_response.c - response heads, and where their bodies end */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "src/base/attrib.h"
#include "src/wire/h1.h"

static struct h1_response resp;

/* As in test_h1_request.c: an exact copy, freed by the next call. */
static enum h1_error parse(struct span head, const char *method)
{
	static char *copy;

	free(copy);
	copy = malloc(head.len ? head.len : 1);
	if (!copy)
		abort();
	memcpy(copy, head.ptr, head.len);
	return h1_parse_response(span_of(copy, head.len), span_str(method),
				 &resp);
}

#define OK200 "HTTP/1.1 200 OK\r\n"
#define LEN5  "Content-Length: 5\r\n"
#define CHUNK "Transfer-Encoding: chunked\r\n"
#define CLOSE "Connection: close\r\n"
#define END   "\r\n"

static const struct good {
	const char *head, *method;
	uint16_t status;
	enum h1_body body;
	uint64_t length;
	bool keep_alive;
} good[] = {
	{ OK200 LEN5 END, "GET", 200, H1_BODY_LENGTH, 5, true },
	{ OK200 "Content-Length: 0\r\n\r\n", "GET", 200, H1_BODY_LENGTH, 0,
	  true },
	{ OK200 CHUNK END, "GET", 200, H1_BODY_CHUNKED, 0, true },
	{ OK200 LEN5 CLOSE END, "GET", 200, H1_BODY_LENGTH, 5, false },
	{ OK200 END, "GET", 200, H1_BODY_CLOSE, 0, false },
	{ OK200 "Connection: keep-alive\r\n\r\n", "GET", 200, H1_BODY_CLOSE, 0,
	  false },
	{ "HTTP/1.0 200 OK\r\n" LEN5 END, "GET", 200, H1_BODY_LENGTH, 5,
	  false },
	{ "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n" LEN5 END, "GET", 200,
	  H1_BODY_LENGTH, 5, true },
	/* HEAD, 204 and 304 have none, whatever they announce */
	{ OK200 LEN5 END, "HEAD", 200, H1_BODY_NONE, 0, true },
	{ OK200 CHUNK END, "HEAD", 200, H1_BODY_NONE, 0, true },
	{ OK200 END, "HEAD", 200, H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 204 No Content\r\n\r\n", "GET", 204, H1_BODY_NONE, 0,
	  true },
	{ "HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n", "GET", 204,
	  H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 204 x\r\n" LEN5 END, "GET", 204, H1_BODY_NONE, 0, false },
	{ "HTTP/1.1 204 x\r\n" CHUNK END, "GET", 204, H1_BODY_NONE, 0, false },
	{ "HTTP/1.1 304 x\r\n" LEN5 END, "GET", 304, H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 304 x\r\n" CHUNK END, "GET", 304, H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 100 Continue\r\n\r\n", "POST", 100, H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", "GET", 103,
	  H1_BODY_NONE, 0, true },
	{ "HTTP/1.1 100 x\r\n" LEN5 END, "POST", 100, H1_BODY_NONE, 0, false },
	/* tunnels */
	{ "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "GET", 101,
	  H1_BODY_TUNNEL, 0, false },
	{ "HTTP/1.1 200 Established\r\n\r\n", "CONNECT", 200, H1_BODY_TUNNEL, 0,
	  false },
	{ "HTTP/1.1 299 x\r\n" LEN5 END, "CONNECT", 299, H1_BODY_TUNNEL, 0,
	  false },
	{ "HTTP/1.1 407 x\r\n" LEN5 END, "CONNECT", 407, H1_BODY_LENGTH, 5,
	  true },
	/* status lines */
	{ "HTTP/1.1 200\r\n" LEN5 END, "GET", 200, H1_BODY_LENGTH, 5, true },
	{ "HTTP/1.1 200 \r\n" LEN5 END, "GET", 200, H1_BODY_LENGTH, 5, true },
	{ "HTTP/1.1 999 x\ty \xe9\r\n" LEN5 END, "GET", 999, H1_BODY_LENGTH, 5,
	  true },
};

static void response__good(void **state)
{
	const struct good *row;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		row = &good[i];
		if (parse(span_str(row->head), row->method) != H1_OK)
			fail_msg("refused: %s", row->head);
		if (resp.body != row->body ||
		    resp.keep_alive != row->keep_alive)
			fail_msg("body %d, keep alive %d: %s %s", resp.body,
				 resp.keep_alive, row->method, row->head);
		assert_int_equal(resp.status, row->status);
		assert_int_equal(resp.length, row->length);
	}
}

static void response__reason(void **state)
{
	(void)state;
	assert_int_equal(parse(SPAN("HTTP/1.0 404 Not  Found \r\n\r\n"), "GET"),
			 H1_OK);
	assert_true(span_eq(resp.reason, SPAN("Not  Found ")));
	assert_int_equal(resp.minor, 0);
	assert_int_equal(parse(SPAN("HTTP/1.1 404\r\n\r\n"), "GET"), H1_OK);
	assert_int_equal(resp.reason.len, 0);
	assert_int_equal(resp.minor, 1);
}

static void response__every_truncation_is_refused(void **state)
{
	struct span head;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		head = span_str(good[i].head);
		for (len = 0; len < head.len; len++)
			assert_int_not_equal(
				parse(span_of(head.ptr, len), good[i].method),
				H1_OK);
	}
}

static const struct {
	struct span head;
	enum h1_error error;
} refused[] = {
	{ SPAN_INIT(""), H1_E_INCOMPLETE },
	{ SPAN_INIT("\r\n" OK200 END), H1_E_START_LINE },
	{ SPAN_INIT("HTTP/1.1\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT("HTTP/1.1 20\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT("HTTP/1.1  200 OK\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1\t200 OK\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT(" HTTP/1.1 200 OK\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT("http/1.1 200 OK\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT("ICY 200 OK....\r\n\r\n"), H1_E_START_LINE },
	{ SPAN_INIT("HTTP/2.0 200 OK\r\n\r\n"), H1_E_VERSION },
	{ SPAN_INIT("HTTP/1.1 099 OK\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1 2x0 OK\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1 -20 OK\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1 2000\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1 200\tOK\r\n\r\n"), H1_E_STATUS },
	{ SPAN_INIT("HTTP/1.1 200 O\0K\r\n\r\n"), H1_E_NUL },
	{ SPAN_INIT("HTTP/1.1 200 OK\nX: y\r\n\r\n"), H1_E_BARE_LF },
	{ SPAN_INIT("HTTP/1.1 200 OK\rX: y\r\n\r\n"), H1_E_BARE_CR },
	{ SPAN_INIT(OK200 "X: y\r\n z\r\n\r\n"), H1_E_FOLD },
	{ SPAN_INIT(OK200 "X : y\r\n\r\n"), H1_E_SPACE_COLON },
	{ SPAN_INIT(OK200 LEN5 LEN5 END), H1_E_LENGTH_REPEATED },
	{ SPAN_INIT(OK200 LEN5 CHUNK END), H1_E_LENGTH_AND_CODING },
	{ SPAN_INIT(OK200 "Content-Length: 5,5\r\n\r\n"), H1_E_LENGTH },
	{ SPAN_INIT(OK200 "Transfer-Encoding: gzip, chunked\r\n\r\n"),
	  H1_E_CODING },
	{ SPAN_INIT("HTTP/1.0 200 OK\r\n" CHUNK END), H1_E_CODING_VERSION },
	{ SPAN_INIT(OK200 LEN5 END "HTTP/1.1 200 OK\r\n\r\n"),
	  H1_E_START_LINE },
};

static void response__refused(void **state)
{
	enum h1_error error;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(refused); i++) {
		error = parse(refused[i].head, "GET");
		if (error != refused[i].error)
			fail_msg("%s: %s", refused[i].head.ptr,
				 h1_error_text(error));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(response__good),
		cmocka_unit_test(response__reason),
		cmocka_unit_test(response__every_truncation_is_refused),
		cmocka_unit_test(response__refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
