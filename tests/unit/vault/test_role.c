/* SPDX-License-Identifier: Apache-2.0 */
/* test_role.c - the vault's own process, confined, spoken to as the others do
 *
 * rooms: io role
 */

#include "tests/unit/vault/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/base/fd.h"
#include "src/io/chan.h"
#include "src/role/msg.h"
#include "src/role/role.h"
#include "src/role/spawn.h"

#define PROGRAM BUILD_DIR "/bin/sallyport-vault"

enum { PATIENCE_S = 30 };

/* A vault process and our ends of its channels. */
struct process {
	struct fixture *f;
	pid_t pid;
	int supervisor, gateway, control;
	uint32_t serial;
	_Alignas(16) char buffer[CHAN_MESSAGE_MAX];
	struct chan_msg got; /* the last message received */
};

static int config_fd(const struct process *p)
{
	struct config *config = NULL;
	struct diag d = { 0 };
	char text[512];
	int len, fd;

	len = snprintf(text, sizeof(text),
		       "{\"stateDir\":\"%s\",\"runDir\":\"%s\","
		       "\"user\":\"nobody\",\"logLevel\":\"warn\","
		       "\"vault\":{\"keyFile\":\"%s\"}}",
		       p->f->dir, p->f->dir, p->f->key_file);
	if (config_parse(span_of(text, (size_t)len), &config, &d))
		fail_msg("%s", d.msg);
	fd = spawn_config(config);
	config_free(config);
	return fd;
}

static void process_start(struct process *p)
{
	struct spawned spawned;
	int fds[2], config = config_fd(p);

	assert_true(config >= 0);
	assert_int_equal(chan_pair(fds), 0);
	assert_int_equal(
		spawn_role(ROLE_VAULT, PROGRAM, fds[1], config, &spawned), 0);
	close(config);
	close(fds[1]);
	close(spawned.pidfd);
	p->pid = spawned.pid;
	p->supervisor = fds[0];
}

static int process_end(struct process *p)
{
	int status;

	p->gateway = fd_close(p->gateway);
	p->control = fd_close(p->control);
	p->supervisor = fd_close(p->supervisor);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	p->pid = 0;
	return status;
}

/* The body of the message that must come, of this type. */
static const void *expect(struct process *p, int fd, uint16_t type,
			  struct span *ret_tail)
{
	const void *body;

	assert_int_equal(
		chan_recv_now(fd, p->buffer, sizeof(p->buffer), &p->got), 0);
	assert_int_equal(p->got.type, type);
	body = msg_body(type, p->got.payload, ret_tail);
	assert_non_null(body);
	return body;
}

static void tell(struct process *p, int fd, uint16_t type, const void *body,
		 struct span tail)
{
	assert_int_equal(chan_send_now(fd, type, ++p->serial, body,
				       msg_body_size(type), tail, NULL, 0),
			 0);
}

static int peer_give(struct process *p, enum role role)
{
	const struct msg_peer body = { .role = role };
	int fds[2];

	assert_int_equal(chan_pair(fds), 0);
	assert_int_equal(chan_send_now(p->supervisor, MSG_SUPERVISOR_PEER, 0,
				       &body, sizeof(body), SPAN_NONE, &fds[1],
				       1),
			 0);
	close(fds[1]);
	return fds[0];
}

static void process_ready(struct process *p)
{
	struct span tail;

	process_start(p);
	(void)expect(p, p->supervisor, MSG_ROLE_READY, &tail);
	p->gateway = peer_give(p, ROLE_GATEWAY);
	p->control = peer_give(p, ROLE_CONTROL);
}

static const struct msg_result *expect_result(struct process *p, int fd,
					      uint16_t type)
{
	struct span tail;
	const struct msg_result *m = expect(p, fd, type, &tail);

	assert_int_equal(p->got.serial, p->serial);
	if (m->status)
		fail_msg("%s", m->text);
	return m;
}

static void commit_one(struct process *p, uint32_t kind, const char *name,
		       struct span value)
{
	const struct msg_begin begin = { .scope = "box",
					 .expected_revision = -1 };
	const struct msg_none none = { 0 };
	struct msg_record record = { .kind = kind, .scope = "box" };

	assert_true(
		span_copy(span_str(name), record.name, sizeof(record.name)));
	tell(p, p->control, MSG_CONTROL_BEGIN, &begin, SPAN_NONE);
	tell(p, p->control, MSG_CONTROL_PUT, &record, value);
	tell(p, p->control, MSG_CONTROL_COMMIT, &none, SPAN_NONE);
	(void)expect_result(p, p->control, MSG_VAULT_RESULT);
}

/* What every installation does, under the filter; then it dies and returns. */
static void role__serves_confined_and_survives_a_kill(void **state)
{
	struct process *p = *state;
	struct msg_maintain maintain = { .verb = MAINTAIN_ROTATE_DEK };
	const struct msg_credential lease = { .scope = "box", .name = "one" };
	static char big[MSG_TAIL_MAX];
	char name[16];
	struct span tail;
	int i;

	process_ready(p);
	commit_one(p, RECORD_CREDENTIAL, "one", SPAN("the-value"));
	commit_one(p, RECORD_BINDING, "b",
		   SPAN("{\"auth\":{\"credential\":\"one\"}}"));
	memset(big, 'x', sizeof(big));
	for (i = 0; i < 300; i++) { /* past the first size of the map */
		(void)snprintf(name, sizeof(name), "p%d", i);
		commit_one(p, RECORD_POLICY, name, span_of(big, sizeof(big)));
	}
	tell(p, p->control, MSG_CONTROL_MAINTAIN, &maintain, SPAN_NONE);
	(void)expect_result(p, p->control, MSG_VAULT_RESULT);
	maintain.verb = MAINTAIN_VERIFY;
	tell(p, p->control, MSG_CONTROL_MAINTAIN, &maintain, SPAN_NONE);
	(void)expect_result(p, p->control, MSG_VAULT_RESULT);

	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_true(WIFSIGNALED(process_end(p)));
	process_ready(p);
	tell(p, p->gateway, MSG_GATEWAY_LEASE, &lease, SPAN_NONE);
	(void)expect(p, p->gateway, MSG_VAULT_LEASE, &tail);
	assert_true(span_eq(tail, SPAN("the-value")));
	assert_int_equal(process_end(p), 0); /* the supervisor went */
}

static void role__ends_when_told(void **state)
{
	const struct msg_drain drain = { 0 };
	struct process *p = *state;
	int status;

	process_ready(p);
	tell(p, p->supervisor, MSG_SUPERVISOR_DRAIN, &drain, SPAN_NONE);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	assert_int_equal(status, 0);
	p->pid = 0;
}

static void role__accuses_who_breaks_the_protocol(void **state)
{
	const struct msg_credential lease = { .scope = "box", .name = "one" };
	const struct msg_none none = { 0 };
	const struct msg_peer *accused;
	struct process *p = *state;
	struct span tail;

	process_ready(p);
	tell(p, p->control, MSG_GATEWAY_LEASE, &lease, SPAN_NONE);
	accused = expect(p, p->supervisor, MSG_ROLE_ACCUSE, &tail);
	assert_int_equal(accused->role, ROLE_CONTROL);
	assert_int_equal(chan_recv_now(p->control, p->buffer, sizeof(p->buffer),
				       &p->got),
			 -EPIPE);
	/* the other one is served on, and a new control too */
	tell(p, p->gateway, MSG_ROLE_GET_CA, &none, SPAN_NONE);
	(void)expect_result(p, p->gateway, MSG_VAULT_CA);
	close(p->control);
	p->control = peer_give(p, ROLE_CONTROL);
	commit_one(p, RECORD_CREDENTIAL, "one", SPAN("x"));
	assert_int_equal(process_end(p), 0);
}

static void role__does_not_start_with_another_key(void **state)
{
	struct process *p = *state;
	int status;

	process_ready(p);
	assert_int_equal(process_end(p), 0);
	file_copy(p->f->other_key_file, p->f->key_file);
	process_start(p);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	p->pid = 0;
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 1);
}

static int process_setup(void **state)
{
	struct process *p = must_alloc(sizeof(*p));

	p->supervisor = p->gateway = p->control = -1;
	if (files_setup((void **)&p->f))
		return -1;
	(void)alarm(PATIENCE_S);
	*state = p;
	return 0;
}

static int process_teardown(void **state)
{
	struct process *p = *state;
	struct fixture *f = p->f;

	(void)alarm(0);
	if (p->pid > 0)
		(void)kill(p->pid, SIGKILL);
	if (p->pid > 0)
		(void)process_end(p);
	p->gateway = fd_close(p->gateway);
	p->control = fd_close(p->control);
	p->supervisor = fd_close(p->supervisor);
	free(p);
	return vault_teardown((void **)&f);
}

int main(void)
{
#define CASE(test)                                                   \
	cmocka_unit_test_setup_teardown(role__##test, process_setup, \
					process_teardown)
	const struct CMUnitTest tests[] = {
		CASE(serves_confined_and_survives_a_kill),
		CASE(ends_when_told),
		CASE(accuses_who_breaks_the_protocol),
		CASE(does_not_start_with_another_key),
	};

	if (access(PROGRAM, X_OK) != 0 || geteuid() != 0)
		return 77; /* not built, or no rights to give up */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
