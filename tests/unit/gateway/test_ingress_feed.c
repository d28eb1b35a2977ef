/* SPDX-License-Identifier: Apache-2.0 */
/* test_ingress_feed.c - the ingress between control and a worker: clients that
 * control had, connections and news for control */

#include "tests/unit/gateway/roles.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/ingress/ingress_box.h"

enum { TEXT_MAX = 4096 };

static struct msg_ingress box(const char *id, bool renews)
{
	struct msg_ingress body = { .addr_count = 1, .renews = renews };
	struct addr at = addr_of("127.0.0.1", 0);

	must(span_copy(span_str(id), body.id, sizeof(body.id)));
	memcpy(body.addrs[0], at.ip, sizeof(at.ip));
	return body;
}

/* The client's end of a connection that control had. */
static int client_new(struct roles *r)
{
	struct msg_ingress_client body = { .port = 4000, .tls = 1 };
	struct addr peer = addr_of("192.0.2.7", 0);
	int fds[2];

	memcpy(body.peer, peer.ip, sizeof(body.peer));
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
			 fds));
	must(!chan_send_now(r->control, MSG_CONTROL_INGRESS_CLIENT, 0, &body,
			    sizeof(body), SPAN_NONE, &fds[1], 1));
	(void)fd_close(fds[1]);
	return fds[0];
}

static void ask(int fd, const char *text)
{
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

/* What came so far; *ret_end: and no more will. */
static const char *got(struct roles *r, int fd, bool *ret_end)
{
	static char text[TEXT_MAX];
	size_t len = 0;
	ssize_t n = -1;
	int i;

	for (i = 0; i < 50 && n; i++) {
		world_settle(r->world);
		n = read(fd, text + len, sizeof(text) - 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	text[len] = '\0';
	if (ret_end)
		*ret_end = !n;
	return text;
}

static void ingress__a_client_that_control_had(void **state)
{
	struct roles *r = *state;
	int fd = client_new(r);
	bool end;
	const char *text;

	ask(fd, "GET /status.ok HTTP/1.1\r\nHost: x\r\n\r\n"
		"GET /status.ok HTTP/1.1\r\nHost: x\r\n\r\n");
	text = got(r, fd, &end);
	assert_non_null(strstr(text, "HTTP/1.1 200"));
	assert_non_null(strstr(text, "Connection: close"));
	/* the second one was for control, for all we know */
	assert_null(strstr(text + 10, "HTTP/1.1 200"));
	assert_true(end);
	(void)fd_close(fd);
}

static void ingress__boxes_come_and_go(void **state)
{
	struct msg_ingress body = box("s-1", false);
	struct roles *r = *state;
	const char *words[] = { "404", "503", "404" };
	unsigned i;
	int fd;

	body.addr_count = 0;
	for (i = 0; i < ARRAY_LEN(words); i++) {
		if (i)
			say(r->control,
			    i == 1 ? MSG_CONTROL_INGRESS
				   : MSG_CONTROL_INGRESS_DROP,
			    0, &body, SPAN_NONE);
		fd = client_new(r);
		ask(fd, "GET /s-1/80/ HTTP/1.1\r\nHost: x\r\n\r\n");
		assert_non_null(strstr(got(r, fd, NULL), words[i]));
		(void)fd_close(fd);
	}
}

/* What a new control does not say again is forgotten with its first SYNC. */
static void ingress__what_is_not_said_again(void **state)
{
	struct msg_ingress one = box("s-1", false), two = box("s-2", false);
	struct roles *r = *state;
	int fd;

	one.addr_count = two.addr_count = 0;
	say(r->control, MSG_CONTROL_INGRESS, 0, &one, SPAN_NONE);
	say(r->control, MSG_CONTROL_INGRESS, 0, &two, SPAN_NONE);
	world_settle(r->world);
	r->world->gateway.renewed = true;
	parcel_send(parcel_new(&r->world->gateway, PARCEL_RENEW));
	say(r->control, MSG_CONTROL_INGRESS, 0, &two, SPAN_NONE);
	say_sync(r, 5);
	hear_synced(r, 5);
	fd = client_new(r);
	ask(fd, "GET /s-1/80/ HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(got(r, fd, NULL), "HTTP/1.1 404"));
	(void)fd_close(fd);
	fd = client_new(r);
	ask(fd, "GET /s-2/80/ HTTP/1.1\r\nHost: x\r\n\r\n");
	assert_non_null(strstr(got(r, fd, NULL), "HTTP/1.1 503"));
	(void)fd_close(fd);
}

/* The connection that control is handed. */
static int hear_egress(struct roles *r, struct msg_ingress_client *ret)
{
	struct chan_msg m;
	struct span tail;
	const void *body;

	assert_true(is_said(r, r->control));
	must(!chan_recv_now(r->control, r->bytes, sizeof(r->bytes), &m));
	assert_int_equal(m.type, MSG_GATEWAY_EGRESS_CLIENT);
	assert_int_equal(m.fd_count, 1);
	body = msg_body(m.type, m.payload, &tail);
	assert_non_null(body);
	memcpy(ret, body, sizeof(*ret));
	return m.fds[0];
}

static void ingress__the_egress_api(void **state)
{
	static const char reply[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
	struct msg_ingress body = box("s-1", true);
	struct msg_ingress_client who;
	struct roles *r = *state;
	struct addr peer = addr_of("192.0.2.7", 0);
	const struct msg_scope *scope;
	int fd, theirs, i;
	const char *text;

	say(r->control, MSG_CONTROL_INGRESS, 0, &body, SPAN_NONE);
	for (i = 0; i < 2; i++) {
		fd = client_new(r);
		ask(fd, "GET /sandboxes/s-1/proxy/18080/policy HTTP/1.1\r\n"
			"Host: x\r\nOPENSANDBOX-EGRESS-AUTH: t\r\n"
			"X-Sallyport-Sandbox: s-2\r\n\r\n");
		world_settle(r->world);
		theirs = hear_egress(r, &who);
		assert_string_equal(who.id, "s-1");
		assert_memory_equal(who.peer, peer.ip, sizeof(who.peer));
		assert_int_equal(who.tls, 1);
		text = got(r, theirs, NULL);
		assert_non_null(strstr(text, "GET /policy HTTP/1.1\r\n"));
		assert_non_null(strstr(text, "X-Sallyport-Sandbox: s-1\r\n"));
		assert_null(strstr(text, "s-2"));
		assert_non_null(strstr(text, "OPENSANDBOX-EGRESS-AUTH: t\r\n"));
		ask(theirs, reply);
		assert_non_null(strstr(got(r, fd, NULL), "\r\n\r\nhi"));
		(void)fd_close(theirs);
		(void)fd_close(fd);
		/* told of once, though it was used twice */
		if (!i) {
			scope = hear(r, r->control, MSG_GATEWAY_ACCESSED, NULL,
				     NULL);
			assert_string_equal(scope->scope, "s-1");
		}
	}
	assert_false(is_said(r, r->control));
}

static void ingress__keys_that_are_none_accuse(void **state)
{
	struct msg_scope body = { .size = 3 };
	struct roles *r = *state;

	say_text(r->control, MSG_CONTROL_INGRESS_KEYS, &body, SPAN("a=b"));
	hear_accused(r, ROLE_CONTROL);
}

#define ROLES_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, roles_set_up, roles_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROLES_TEST(ingress__a_client_that_control_had),
		ROLES_TEST(ingress__boxes_come_and_go),
		ROLES_TEST(ingress__what_is_not_said_again),
		ROLES_TEST(ingress__the_egress_api),
		ROLES_TEST(ingress__keys_that_are_none_accuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
