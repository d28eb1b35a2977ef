/* SPDX-License-Identifier: Apache-2.0 */
/* test_buf.c - limits, and random work held against a plain array */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/buf.h"

static void buf__limit_is_exact(void **state)
{
	struct buf b = BUF_INIT(10);

	(void)state;
	assert_int_equal(buf_put_str(&b, "0123456789"), 0);
	assert_int_equal(buf_put_str(&b, "x"), -ENOBUFS);
	assert_int_equal(buf_putf(&b, "x"), -ENOBUFS);
	assert_int_equal(buf_put_str(&b, ""), 0);
	assert_true(span_eq(buf_peek(&b), SPAN("0123456789")));
	buf_consume(&b, 4);
	assert_int_equal(buf_put_str(&b, "abcde"), -ENOBUFS);
	assert_int_equal(buf_put_str(&b, "abcd"), 0);
	assert_true(span_eq(buf_peek(&b), SPAN("456789abcd")));
	buf_fini(&b);
}

/* The NUL that vsnprintf writes takes no room. */
static void buf__putf_fits_exactly(void **state)
{
	struct buf b = BUF_INIT(10);

	(void)state;
	assert_int_equal(buf_putf(&b, "%s-%d", "12345", 6789), 0);
	assert_true(span_eq(buf_peek(&b), SPAN("12345-6789")));
	buf_consume(&b, 1);
	assert_int_equal(buf_putf(&b, "%c", '!'), 0);
	assert_true(span_eq(buf_peek(&b), SPAN("2345-6789!")));
	assert_int_equal(buf_putf(&b, "%d", 12), -ENOBUFS);
	assert_true(span_eq(buf_peek(&b), SPAN("2345-6789!")));
	buf_fini(&b);
}

static void buf__reserve_and_commit(void **state)
{
	struct buf b = BUF_INIT(1000);
	char *room;

	(void)state;
	assert_int_equal(buf_reserve(&b, 1001, &room), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, SIZE_MAX, &room), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, 1000, &room), 0);
	memset(room, 'x', 1000);
	buf_commit(&b, 3);
	assert_true(span_eq(buf_peek(&b), SPAN("xxx")));
	assert_int_equal(buf_reserve(&b, 998, &room), -ENOBUFS);
	assert_int_equal(buf_reserve(&b, 997, &room), 0);
	buf_fini(&b);
}

static void buf__empty(void **state)
{
	struct buf b = BUF_INIT(4);
	char *room;

	(void)state;
	assert_int_equal(buf_len(&b), 0);
	assert_non_null(buf_peek(&b).ptr);
	assert_int_equal(buf_reserve(&b, 0, &room), 0);
	buf_consume(&b, 0);
	buf_clear(&b);
	buf_wipe(&b);
	buf_fini(&b);
	buf_fini(NULL);
	buf_wipe(NULL);
	assert_int_equal(buf_put_str(&b, "abcd"), 0);
	buf_clear(&b);
	assert_int_equal(buf_len(&b), 0);
	assert_int_equal(buf_put_str(&b, "efgh"), 0);
	buf_fini(&b);
}

enum { MODEL_MAX = 3000 };

struct model {
	char bytes[MODEL_MAX];
	size_t len;
};

static void random_put(struct buf *b, struct model *m)
{
	char bytes[400];
	size_t len = (size_t)random() % sizeof(bytes), i;
	int r;

	for (i = 0; i < len; i++)
		bytes[i] = (char)('a' + random() % 26);
	if (random() % 2)
		r = buf_put(b, span_of(bytes, len));
	else
		r = buf_putf(b, "%.*s", (int)len, bytes);
	if (m->len + len > MODEL_MAX) {
		assert_int_equal(r, -ENOBUFS);
		return;
	}
	assert_int_equal(r, 0);
	memcpy(m->bytes + m->len, bytes, len);
	m->len += len;
}

static void random_consume(struct buf *b, struct model *m)
{
	size_t len = m->len ? (size_t)random() % (m->len + 1) : 0;

	buf_consume(b, len);
	memmove(m->bytes, m->bytes + len, m->len - len);
	m->len -= len;
}

static void buf__random_against_a_model(void **state)
{
	static struct model m;
	struct buf b = BUF_INIT(MODEL_MAX);
	int round;

	(void)state;
	srandom(2);
	for (round = 0; round < 20000; round++) {
		if (random() % 3)
			random_put(&b, &m);
		else
			random_consume(&b, &m);
		if (random() % 500 == 0) {
			buf_wipe(&b);
			m.len = 0;
		}
		assert_true(span_eq(buf_peek(&b), span_of(m.bytes, m.len)));
		assert_true(b.size <= MODEL_MAX + 1);
	}
	buf_fini(&b);
}

/* A caller that consumes what is not there is confused: the role stops. */
static void buf__consuming_too_much_stops(void **state)
{
	struct buf b = BUF_INIT(4);
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		close(STDERR_FILENO);
		buf_consume(&b, 1);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(buf__limit_is_exact),
		cmocka_unit_test(buf__putf_fits_exactly),
		cmocka_unit_test(buf__reserve_and_commit),
		cmocka_unit_test(buf__empty),
		cmocka_unit_test(buf__random_against_a_model),
		cmocka_unit_test(buf__consuming_too_much_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
