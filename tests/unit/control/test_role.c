/* SPDX-License-Identifier: Apache-2.0 */
/* test_role.c - start, status, tokens, audit, the node's facts, drain, end */

#include <sys/wait.h>

#include "tests/unit/control/rig.h"

#include "src/httpd/client.h"

/* -- start ----------------------------------------------------------------- */

static void start__publishes_only_what_was_read(void **state)
{
	struct rig *rig = *state;

	rig_control_start(rig);
	RIG_UNTIL(rig, rig->ready == 1);
	rig_gateway_up(rig);
	rig_turns(rig, 20);
	assert_int_equal(rig->gateway.messages, 0);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->gateway.syncs == 1);
	assert_string_equal(buf_peek(&rig->gateway.bindings).ptr,
			    "{\"revision\":0,\"bindings\":[]}");
	assert_non_null(fake_policy_at(&rig->gateway, POLICY_ID_OVERLAY));
}

static void start__tells_the_node(void **state)
{
	struct rig *rig = *state;
	const char *text = buf_peek(&rig->gateway.node).ptr;

	assert_non_null(strstr(text, "{\"pins\":{\"pin.example.com\":"
				     "[\"192.0.2.9\"]},\"hosts\":{"
				     "\"host.example.com\":[\"192.0.2.8\"]},"
				     "\"upstreams\":[\"192.0.2.53:53\"],"
				     "\"own\":["));
	assert_non_null(strstr(text, "\"127.0.0.1/32\""));
}

static void start__writes_the_ca(void **state)
{
	struct rig *rig = *state;
	struct stat st;

	RIG_UNTIL(rig, !stat(rig_path(rig, "ca-bundle.pem"), &st));
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(stat(rig_path(rig, "ca.pem"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_call(api(rig, "GET", "/v1/ca", NULL), 200,
		    "-----BEGIN CERTIFICATE-----");
	assert_call(api(rig, "GET", "/v1/ca/bundle", NULL), 200,
		    "-----END CERTIFICATE-----");
}

static void peer__that_breaks_the_protocol_is_accused(void **state)
{
	const struct msg_none none = { 0 };
	struct rig *rig = *state;

	log_set_level(LOG_ERROR);
	assert_int_equal(chan_send(rig->gateway.chan, MSG_VAULT_CA, 1, &none,
				   sizeof(none), SPAN_NONE, NULL, 0),
			 0);
	RIG_UNTIL(rig, rig->accused == 1);
	assert_int_equal(chan_send(rig->vault.chan, MSG_VAULT_RESULT, 999,
				   &none, sizeof(none), SPAN_NONE, NULL, 0),
			 0);
	RIG_UNTIL(rig, rig->accused == 2);
}

/* -- status ---------------------------------------------------------------- */

static void status__puts_everybody_together(void **state)
{
	struct rig *rig = *state;
	const struct call *c = api(rig, "GET", "/v1/status", NULL);
	static const char *const has[] = {
		"\"version\":\"",
		"\"ready\":true",
		"{\"role\":\"vault\",\"pid\":77,\"ready\":false,",
		"\"rulesInstalled\":true",
		"\"flows\":{\"queue\":\"xtables\",\"forwardsIPv4\":true,",
		"\"forwardsIPv6\":false}",
		"\"vault\":{\"up\":true,\"revision\":0,\"credentials\":0,",
		"\"policies\":{\"count\":0,\"generation\":",
		"\"sandboxes\":0",
		"\"gateway\":{\"exchanges\":5}",
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(has); i++)
		assert_call(c, 200, has[i]);
}

static void status__does_not_wait_for_the_dead(void **state)
{
	struct rig *rig = *state;
	uint64_t before = clock_ms();

	rig->roles_mute = true;
	rig_gateway_down(rig);
	rig_vault_down(rig);
	rig_turns(rig, 5);
	assert_call(api(rig, "GET", "/v1/status", NULL), 200,
		    "\"gateway\":null");
	assert_call(api(rig, "GET", "/v1/status", NULL), 200,
		    "\"roles\":[],\"rulesInstalled\":null,\"flows\":{}");
	assert_true(clock_ms() - before < 4900);
}

/* case 49: out of descriptors is not ready. */
static void status__without_descriptors_it_is_not_ready(void **state)
{
	struct rig *rig = *state;

	rig->gateway.exhausted = true;
	assert_call(api(rig, "GET", "/v1/status", NULL), 200,
		    "\"ready\":false");
	rig->gateway.exhausted = false;
	assert_call(api(rig, "GET", "/v1/status", NULL), 200, "\"ready\":true");
}

/* -- who may --------------------------------------------------------------- */

/* A client of another user, as a process of its own. */
static void peer__of_another_user_is_refused(void **state)
{
	struct rig *rig = *state;
	struct httpd_target target = {
		.socket_path = rig->config->admin_socket,
		.timeout_ms = 4000,
	};
	int status = -1;
	pid_t pid;

	if (geteuid())
		skip();
	pid = fork();
	if (!pid) {
		struct buf reply = BUF_INIT(4096);
		unsigned answer = 0;

		if (setgid(65534) || setuid(65534))
			_exit(9);
		if (httpd_client_call(&target, "GET", "/v1/vault", SPAN_NONE,
				      &answer, &reply))
			_exit(8);
		_exit(answer == 403 ? 0 : 1);
	}
	RIG_UNTIL(rig, waitpid(pid, &status, WNOHANG) == pid || status >= 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* One exchange over TCP with a header of authorization. */
static unsigned tcp_status(struct rig *rig, const struct addr *at,
			   const char *header)
{
	struct sockaddr_storage where;
	socklen_t len = addr_to_sockaddr(at, &where);
	int fd = socket(where.ss_family, SOCK_STREAM, 0);
	uint64_t end = clock_ms() + 5000;
	char request[512], text[4096];
	unsigned status = 0;
	ssize_t n;

	assert_int_equal(connect(fd, (struct sockaddr *)&where, len), 0);
	snprintf(request, sizeof(request),
		 "GET /v1/vault HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "%s\r\n",
		 header);
	assert_true(send(fd, request, strlen(request), 0) > 0);
	while (clock_ms() < end && !status) {
		rig_turn(rig);
		n = recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT);
		if (n <= 0)
			continue;
		text[n] = '\0';
		assert_int_equal(sscanf(text, "HTTP/1.1 %u", &status), 1);
	}
	close(fd);
	return status;
}

static void tokens__open_the_door_over_tcp(void **state)
{
	struct rig *rig = *state;
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	const struct call *c;
	char header[256];
	const char *kept;
	struct addr at;
	int fd;

	assert_true(addr_parse(SPAN("127.0.0.1"), &at));
	fd = httpd_bind_tcp(&at);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&bound, &at));
	assert_int_equal(httpd_listen_fd(rig->control->httpd, fd, NULL), 0);

	c = api(rig, "POST", "/v1/tokens", "{\"name\":\"ci\"}");
	assert_call(c, 201, "{\"name\":\"ci\",\"token\":\"sallyport_");
	snprintf(header, sizeof(header), "Authorization: Bearer %s\r\n",
		 json_text(json_find(c->json, "token")).ptr);

	/* what is kept is not the token */
	kept = fake_value(&rig->vault, VAULT_SCOPE_CONTROL, RECORD_TOKEN, "ci");
	assert_non_null(strstr(kept, "\"sha256\""));
	assert_null(strstr(kept, header + strlen("Authorization: Bearer "
						 "sallyport_")));
	assert_call(api(rig, "POST", "/v1/tokens", "{\"name\":\"ci\"}"), 409,
		    NULL);
	c = api(rig, "GET", "/v1/tokens", NULL);
	assert_call(c, 200, "{\"tokens\":[{\"name\":\"ci\",\"created\":\"");
	assert_null(strstr(c->text, "sallyport_"));

	assert_int_equal(tcp_status(rig, &at, ""), 401);
	assert_int_equal(tcp_status(rig, &at, "Authorization: Bearer \r\n"),
			 401);
	assert_int_equal(tcp_status(rig, &at, "Authorization: Basic YTpi\r\n"),
			 401);
	assert_int_equal(tcp_status(rig, &at, header), 200);
	header[strlen(header) - 3] ^= 1;
	assert_int_equal(tcp_status(rig, &at, header), 401);
	header[strlen(header) - 3] ^= 1;

	/* a restart knows it still; a removal ends it */
	control_reload_vault(rig->control);
	RIG_UNTIL(rig, rig->control->loaded);
	assert_int_equal(tcp_status(rig, &at, header), 200);
	assert_call(api(rig, "DELETE", "/v1/tokens/ci", NULL), 204, "");
	assert_int_equal(tcp_status(rig, &at, header), 401);
	assert_call(api(rig, "DELETE", "/v1/tokens/ci", NULL), 404, NULL);
	assert_call(api(rig, "POST", "/v1/tokens", "{}"), 400, NULL);
}

/* -- audit ----------------------------------------------------------------- */

#define RECORD(n, sandbox) "{\"n\":" n ",\"sandbox\":\"" sandbox "\"}\n"

static void audit__is_read_from_its_end(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	assert_call(api(rig, "GET", "/v1/audit/tail", NULL), 200, "");
	rig_write(rig, "audit.jsonl",
		  RECORD("1", "a") RECORD("2", "b") RECORD("3", "a") "{\"n\":");
	c = api(rig, "GET", "/v1/audit/tail", NULL);
	assert_non_null(strstr(c->text, "Content-Type: text/event-stream"));
	assert_call(c, 200, "data: {\"n\":1,\"sandbox\":\"a\"}\n\n");
	assert_call(c, 200, "data: {\"n\":3");
	c = api(rig, "GET", "/v1/audit/tail?lines=2", NULL);
	assert_null(strstr(c->body, "\"n\":1"));
	assert_null(strstr(c->body, "\"n\":2")); /* the unfinished is one */
	assert_call(c, 200, "\"n\":3");
	c = api(rig, "GET", "/v1/audit/tail?sandbox=b", NULL);
	assert_null(strstr(c->body, "\"n\":1"));
	assert_call(c, 200, "\"n\":2");
	assert_call(api(rig, "GET", "/v1/audit/tail?lines=x", NULL), 400, NULL);
}

static void audit_add(struct rig *rig, const char *text)
{
	FILE *file = fopen(rig_path(rig, "audit.jsonl"), "a");

	fputs(text, file);
	fclose(file);
}

static bool tail_has(struct rig *rig, struct call *c, const char *part)
{
	(void)call_poll(rig, c);
	return strstr(c->text, part);
}

static void audit__is_followed_through_rotation(void **state)
{
	struct rig *rig = *state;
	struct call *c;
	char old[128];

	/* the file may come later */
	c = call_start(rig, "GET", "/v1/audit/tail?follow=true&sandbox=a",
		       NULL);
	RIG_UNTIL(rig, tail_has(rig, c, "200 OK"));
	audit_add(rig, RECORD("1", "a") "{\"n\":2,\"sand");
	RIG_UNTIL(rig, tail_has(rig, c, "\"n\":1"));
	audit_add(rig, "box\":\"a\"}\n" RECORD("9", "b"));
	RIG_UNTIL(rig, tail_has(rig, c, "\"n\":2"));

	strcpy(old, rig_path(rig, "audit.jsonl.1"));
	assert_int_equal(rename(rig_path(rig, "audit.jsonl"), old), 0);
	audit_add(rig, RECORD("3", "a"));
	RIG_UNTIL(rig, tail_has(rig, c, "\"n\":3"));
	assert_null(strstr(c->text, "\"n\":9"));

	/* shortened in place */
	rig_write(rig, "audit.jsonl", "");
	rig_turns(rig, 40);
	audit_add(rig, RECORD("4", "a"));
	RIG_UNTIL(rig, tail_has(rig, c, "\"n\":4"));
	assert_int_equal(c->status, 0); /* still there */
	call_free(c);
	rig_turns(rig, 20);
}

/* -- the end --------------------------------------------------------------- */

static void drain__ends_when_everything_is_answered(void **state)
{
	const struct msg_drain drain = { .grace_ms = 4000 };
	struct rig *rig = *state;
	struct call *c, *tail;

	tail = call_start(rig, "GET", "/v1/audit/tail?follow=true", NULL);
	rig->gateway.hold = true;
	c = call_start(rig, "PUT", "/v1/credentials/c",
		       "{\"source\":{\"value\":\"v\"}}");
	RIG_UNTIL(rig, rig->gateway.held_count);
	rig_tell(rig, MSG_SUPERVISOR_DRAIN, &drain, -1);
	rig_turns(rig, 20);
	assert_int_equal(rig->control->exit_status, EXIT_FAILURE);
	fake_synced(&rig->gateway, rig->gateway.held[0]);
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_call(c, 201, NULL);
	RIG_UNTIL(rig, rig->control->exit_status == EXIT_SUCCESS);
	call_free(c);
	call_free(tail);
}

static void end__answers_who_waits(void **state)
{
	struct rig *rig = *state;
	struct call *c[4];
	unsigned i;

	rig->gateway.hold = rig->roles_mute = rig->vault.mute = true;
	c[0] = call_start(rig, "GET", "/v1/status", NULL);
	c[1] = call_start(rig, "PUT", "/v1/credentials/c",
			  "{\"source\":{\"value\":\"v\"}}");
	c[2] = call_start(rig, "PUT", "/v1/credentials/d",
			  "{\"source\":{\"value\":\"v\"}}");
	c[3] = call_start(rig, "GET", "/v1/audit/tail?follow=true", NULL);
	rig_turns(rig, 20);
	rig_control_stop(rig);
	for (i = 0; i < 4; i++)
		call_free(c[i]);
}

#define TEST(name) \
	cmocka_unit_test_setup_teardown(name, rig_set_up, rig_tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			start__publishes_only_what_was_read, rig_bare,
			rig_tear_down),
		TEST(start__tells_the_node),
		TEST(start__writes_the_ca),
		TEST(peer__that_breaks_the_protocol_is_accused),
		TEST(status__puts_everybody_together),
		TEST(status__without_descriptors_it_is_not_ready),
		TEST(status__does_not_wait_for_the_dead),
		TEST(peer__of_another_user_is_refused),
		TEST(tokens__open_the_door_over_tcp),
		TEST(audit__is_read_from_its_end),
		TEST(audit__is_followed_through_rotation),
		TEST(drain__ends_when_everything_is_answered),
		TEST(end__answers_who_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
