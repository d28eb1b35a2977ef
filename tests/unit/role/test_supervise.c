/* SPDX-License-Identifier: Apache-2.0 */
/* test_supervise.c - roles are started, connected, restarted and ended
 *
 * How it works: this program is also the roles. Started as
 * "sallyport-gateway" and so on it plays what the configuration text says
 * ("vault=die"), and the gateway writes what it sees to the audit file, which
 * is a pipe that the test reads.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "src/base/attrib.h"
#include "src/base/clock.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/io/chan.h"
#include "src/io/loop.h"
#include "src/role/listeners.h"
#include "src/role/role.h"
#include "src/role/spawn.h"
#include "src/role/supervise.h"

/* --- a role that plays --- */

enum { PEERS_MAX = 16, HELLO = MSG_ROLE_GET_CA, ROLES_FINE = MSG_CONTROL_SYNC };

static struct {
	enum role role;
	const char *part;
	int audit;
	unsigned listeners;
	struct pollfd fds[PEERS_MAX]; /* 0: the supervisor */
	enum role peers[PEERS_MAX];
	nfds_t count;
} actor = { .audit = -1, .fds = { { .fd = 3, .events = POLLIN } }, .count = 1 };

static const struct msg_none nothing;

static void say(int fd, uint16_t type, uint32_t serial, const void *body,
		size_t len)
{
	if (chan_send_now(fd, type, serial, body, len, SPAN_NONE, NULL, 0))
		_exit(8);
}

static void note(const char *what, enum role peer)
{
	if (actor.audit >= 0)
		(void)dprintf(actor.audit, "%s %s\n", what, role_name(peer));
}

static void ready(void)
{
	const struct msg_roles question = { 0 };
	const struct msg_peer vault = { ROLE_VAULT };

	if (!strcmp(actor.part, "rude"))
		say(3, MSG_GATEWAY_SIGN, 1, &(struct msg_sign){ 0 },
		    sizeof(struct msg_sign));
	say(3, MSG_ROLE_READY, 0, &nothing, sizeof(nothing));
	if (!strcmp(actor.part, "ask"))
		say(3, MSG_CONTROL_ROLES, 7, &question, sizeof(question));
	if (!strcmp(actor.part, "accuse"))
		say(3, MSG_ROLE_ACCUSE, 0, &vault, sizeof(vault));
}

static void meet(const struct msg_peer *peer, struct chan_msg *m)
{
	if (m->fd_count != 1 || actor.count == PEERS_MAX)
		_exit(7);
	actor.peers[actor.count] = (enum role)peer->role;
	actor.fds[actor.count++] = (struct pollfd){ m->fds[0], POLLIN, 0 };
	note("peer", (enum role)peer->role);
	if (peer->role == ROLE_GATEWAY)
		say(m->fds[0], HELLO, 0, &nothing, sizeof(nothing));
	m->fds[0] = -1;
}

static void check_roles(const struct msg_roles *r, uint32_t serial)
{
	nfds_t i;

	if (serial != 7 || !r->table_ok || r->queue != QUEUE_XTABLES ||
	    r->roles[ROLE_CONTROL].pid != (uint32_t)getpid() ||
	    r->roles[ROLE_SUPERVISOR].pid != (uint32_t)getppid() ||
	    !r->roles[ROLE_CONTROL].ready || !r->roles[ROLE_CONTROL].since_ms)
		_exit(6);
	for (i = 1; i < actor.count; i++)
		if (actor.peers[i] == ROLE_GATEWAY)
			say(actor.fds[i].fd, ROLES_FINE, 0, &nothing,
			    sizeof(nothing));
}

/* Of the gateway its number is told, of others that they have one. */
static void certificate_take(const struct msg_certificate *body,
			     const struct chan_msg *m)
{
	char text[2][8] = { "", "" };
	nfds_t i;

	if (m->fd_count != 2 || read(m->fds[0], text[0], 7) != 4 ||
	    read(m->fds[1], text[1], 7) != 3 || strcmp(text[0], "cert") ||
	    strcmp(text[1], "key"))
		_exit(9);
	if (actor.audit >= 0)
		(void)dprintf(actor.audit, "certificate %u\n", body->of);
	for (i = 1; i < actor.count; i++)
		if (actor.peers[i] == ROLE_GATEWAY)
			say(actor.fds[i].fd, MSG_SUPERVISOR_CERTIFICATE, 0,
			    body, sizeof(*body));
}

static void obey(struct chan_msg *m)
{
	struct span tail;
	const void *body = msg_body(m->type, m->payload, &tail);

	if (!body)
		_exit(5);
	switch (m->type) {
	case MSG_SUPERVISOR_PEER:
		meet(body, m);
		break;
	case MSG_SUPERVISOR_AUDIT:
		(void)fd_close(actor.audit);
		actor.audit = m->fds[0];
		m->fds[0] = -1;
		break;
	case MSG_SUPERVISOR_LISTENER:
		actor.listeners++;
		break;
	case MSG_SUPERVISOR_START:
		(void)dprintf(actor.audit, "start %u\n", actor.listeners);
		ready();
		break;
	case MSG_SUPERVISOR_RELOAD:
		for (nfds_t i = 1; i < actor.count; i++)
			if (actor.peers[i] == ROLE_GATEWAY)
				say(actor.fds[i].fd, MSG_SUPERVISOR_RELOAD, 0,
				    &nothing, sizeof(nothing));
		break;
	case MSG_SUPERVISOR_CERTIFICATE:
		certificate_take(body, m);
		break;
	case MSG_SUPERVISOR_DRAIN:
		if (!strcmp(actor.part, "deaf"))
			break;
		(void)close(3); /* before the end: still an orderly one */
		(void)usleep(20000);
		_exit(0);
	case MSG_CONTROL_ROLES:
		check_roles(body, m->serial);
		break;
	default:
		_exit(4);
	}
}

static void hear(enum role peer, uint16_t type)
{
	if (type == HELLO)
		note("hello", peer);
	else if (type == ROLES_FINE)
		note("roles", peer);
	else if (type == MSG_SUPERVISOR_RELOAD)
		note("reload", peer);
	else if (type == MSG_SUPERVISOR_CERTIFICATE)
		note("certificate", peer);
}

static void actor_turn(nfds_t i)
{
	static _Alignas(MSG_ALIGN) char bytes[CHAN_MESSAGE_MAX];
	struct chan_msg m;
	unsigned fd;

	if (chan_recv_now(actor.fds[i].fd, bytes, sizeof(bytes), &m)) {
		if (i == 0 && strcmp(actor.part, "deaf") != 0)
			_exit(0);
		actor.fds[i].events = 0;
		actor.fds[i].fd = -1;
		return;
	}
	if (i == 0)
		obey(&m);
	else
		hear(actor.peers[i], m.type);
	for (fd = 0; fd < m.fd_count; fd++)
		(void)fd_close(m.fds[fd]);
}

/* "gateway=serve vault=serve control=ask" in the configuration's place. */
static const char *part_of(const char *role)
{
	static char text[256];
	char *word, *next = text;
	size_t len = strlen(role);

	if (pread(ROLE_FD_CONFIG, text, sizeof(text) - 1, 0) <= 0)
		_exit(3);
	while ((word = strsep(&next, " ")))
		if (!strncmp(word, role, len) && word[len] == '=')
			return word + len + 1;
	return "serve";
}

/* Nothing of the supervisor's; the gateway is told how to keep free memory. */
static bool environment_is_ours(enum role role)
{
	if (role != ROLE_GATEWAY)
		return !environ || !environ[0];
	return environ && environ[0] && !environ[1] &&
	       !strncmp(environ[0], "GLIBC_TUNABLES=", 15);
}

static void act(enum role role)
{
	nfds_t i;

	actor.role = role;
	actor.part = part_of(role_name(role));
	if (fcntl(5, F_GETFD) >= 0 || !environment_is_ours(role))
		_exit(2); /* more than two descriptors, or a foreign variable */
	if (!strcmp(actor.part, "die"))
		_exit(1);
	if (role != ROLE_GATEWAY)
		ready();
	for (;;) {
		if (poll(actor.fds, actor.count, -1) < 0)
			_exit(9);
		for (i = 0; i < actor.count; i++)
			if (actor.fds[i].revents)
				actor_turn(i);
	}
}

/* --- the test --- */

static struct {
	struct loop *loop;
	struct supervise *roles;
	struct listeners listeners;
	int audit[2], config_fd;
	char seen[8192]; /* all that the gateways wrote */
	bool serving, ended, failed;
} t;

static void on_rules_asked(void *ctx, struct msg_roles *ret)
{
	(void)ctx;
	ret->table_ok = true;
	ret->queue = QUEUE_XTABLES;
}

static void on_serving(void *ctx)
{
	(void)ctx;
	t.serving = true;
}

static void on_ended(void *ctx, bool failed)
{
	(void)ctx;
	t.ended = true;
	t.failed = failed;
}

static void audit_read(void)
{
	size_t len = strlen(t.seen);
	ssize_t n = read(t.audit[0], t.seen + len, sizeof(t.seen) - 1 - len);

	if (n > 0)
		t.seen[len + (size_t)n] = '\0';
}

static unsigned seen(const char *line)
{
	const char *at = t.seen;
	unsigned count = 0;

	for (; (at = strstr(at, line)); at++)
		count++;
	return count;
}

/* Turns the loop until the expression holds, at most eight seconds. */
#define until(expr)                                               \
	do {                                                      \
		uint64_t until_end = clock_ms() + 8000;           \
		while (!(expr) && clock_ms() < until_end) {       \
			loop_run_once(t.loop, false);             \
			audit_read();                             \
			(void)usleep(500);                        \
		}                                                 \
		if (!(expr))                                      \
			fail_msg("never: " #expr "\n%s", t.seen); \
	} while (0)

static void begin(const char *parts, uint32_t grace_ms)
{
	static char self[4096];
	struct supervise_setup setup = {
		.grace_ms = grace_ms,
		.rules = on_rules_asked,
		.serving = on_serving,
		.ended = on_ended,
		.listeners = &t.listeners,
	};
	static struct listener_fd items[3];
	unsigned i;

	memset(&t, 0, sizeof(t));
	for (i = 0; i < ARRAY_LEN(items); i++)
		items[i] = (struct listener_fd){
			{ LISTENER_TCP, AF_INET, i },
			open("/dev/null", O_RDONLY | O_CLOEXEC),
		};
	t.listeners = (struct listeners){ items, ARRAY_LEN(items) };
	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	for (i = ROLE_GATEWAY; i < ROLE_NUM; i++)
		setup.programs[i] = self;
	assert_int_equal(pipe2(t.audit, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(loop_new(&t.loop), 0);
	t.config_fd = chan_memfd(span_str(parts));
	assert_true(t.config_fd >= 0);
	setup.loop = t.loop;
	setup.config_fd = t.config_fd;
	assert_int_equal(supervise_new(&setup, t.audit[1], &t.roles), 0);
}

static void end(void)
{
	unsigned i;

	supervise_free(t.roles);
	loop_free(t.loop);
	for (i = 0; i < t.listeners.count; i++)
		(void)close(t.listeners.items[i].fd);
	(void)close(t.audit[0]);
	(void)close(t.audit[1]);
	(void)close(t.config_fd);
}

static void supervise__connects_all(void **state)
{
	(void)state;
	begin("control=ask ", 1000);
	until(t.serving);
	until(seen("hello vault\n") && seen("hello control\n") &&
	      seen("roles control\n"));
	assert_int_equal(seen("start 3\n"), 1);
	assert_int_equal(seen("peer "), 3);
	supervise_drain(t.roles);
	until(t.ended);
	assert_false(t.failed);
	assert_int_equal(supervise_pid(t.roles, ROLE_VAULT), 0);
	end();
}

static void supervise__restarts_gateway(void **state)
{
	int pid;

	(void)state;
	begin("all=serve", 1000);
	until(t.serving && seen("hello control\n") && seen("hello vault\n"));
	pid = supervise_pid(t.roles, ROLE_GATEWAY);
	assert_int_equal(kill(pid, SIGKILL), 0);
	until(seen("start 3\n") == 2 && seen("hello control\n") == 2 &&
	      seen("hello vault\n") == 2);
	assert_int_not_equal(supervise_pid(t.roles, ROLE_GATEWAY), pid);
	end();
}

static void supervise__restarts_vault_and_control(void **state)
{
	(void)state;
	begin("all=serve", 1000);
	until(t.serving && seen("hello control\n") && seen("hello vault\n"));
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_VAULT), SIGKILL), 0);
	until(seen("peer vault\n") == 2 && seen("hello vault\n") == 2);
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_CONTROL), SIGTERM),
			 0);
	until(seen("peer control\n") == 2 && seen("hello control\n") == 2);
	assert_int_equal(seen("start 3\n"), 1);
	/* all at once */
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_VAULT), SIGKILL), 0);
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_CONTROL), SIGKILL),
			 0);
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_GATEWAY), SIGKILL),
			 0);
	until(seen("start 3\n") == 2 && seen("hello vault\n") == 3 &&
	      seen("hello control\n") == 3);
	assert_false(t.ended);
	end();
}

/* A role that dies again and again comes back ever more slowly. */
static void supervise__backs_off(void **state)
{
	uint64_t began;
	int i;

	(void)state;
	begin("all=serve", 1000);
	until(t.serving);
	began = clock_ms();
	for (i = 0; i < 4; i++) {
		until(supervise_pid(t.roles, ROLE_VAULT));
		assert_int_equal(
			kill(supervise_pid(t.roles, ROLE_VAULT), SIGKILL), 0);
		until(!supervise_pid(t.roles, ROLE_VAULT));
	}
	until(supervise_pid(t.roles, ROLE_VAULT));
	/* at once, 100, 200, 400 ms (a timer may be 1/64 early) */
	assert_in_range(clock_ms() - began, 650, 3000);
	end();
}

static void supervise__gives_up_at_the_start(void **state)
{
	(void)state;
	begin("vault=die", 1000);
	until(t.ended);
	assert_true(t.failed);
	assert_false(t.serving);
	end();
}

static void supervise__kills_the_rude(void **state)
{
	(void)state;
	begin("control=rude", 1000);
	until(t.ended);
	assert_true(t.failed);
	end();
}

static void supervise__kills_the_accused(void **state)
{
	int pid;

	(void)state;
	begin("gateway=accuse", 1000);
	pid = supervise_pid(t.roles, ROLE_VAULT);
	until(supervise_pid(t.roles, ROLE_VAULT) &&
	      supervise_pid(t.roles, ROLE_VAULT) != pid);
	end();
}

static void supervise__kills_the_deaf(void **state)
{
	uint64_t began;

	(void)state;
	begin("gateway=deaf vault=deaf", 50);
	until(t.serving);
	began = clock_ms();
	supervise_drain(t.roles);
	until(t.ended);
	assert_false(t.failed);
	assert_in_range(clock_ms() - began, 900, 5000);
	end();
}

static void supervise__second_drain_kills(void **state)
{
	(void)state;
	begin("gateway=deaf", 60000);
	until(t.serving);
	supervise_drain(t.roles);
	supervise_drain(t.roles);
	until(t.ended);
	end();
}

static void certificates_send(enum certificate_of of)
{
	int certificate[2], key[2];

	assert_int_equal(pipe2(certificate, O_CLOEXEC), 0);
	assert_int_equal(pipe2(key, O_CLOEXEC), 0);
	assert_int_equal(write(certificate[1], "cert", 4), 4);
	assert_int_equal(write(key[1], "key", 3), 3);
	supervise_renew(t.roles, of, (const int[]){ certificate[0], key[0] });
	(void)close(certificate[0]);
	(void)close(certificate[1]);
	(void)close(key[0]);
	(void)close(key[1]);
}

static void supervise__reload_and_audit(void **state)
{
	int fds[2];

	(void)state;
	begin("all=serve", 1000);
	until(t.serving && seen("hello control\n"));
	supervise_reload(t.roles);
	until(seen("reload control\n"));
	certificates_send(CERTIFICATE_LIFECYCLE);
	until(seen("certificate control\n"));
	certificates_send(CERTIFICATE_INGRESS);
	until(seen("certificate 3\n"));
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	assert_int_equal(supervise_set_audit(t.roles, fds[1]), 0);
	/* a restarted gateway has the new file from the start */
	assert_int_equal(kill(supervise_pid(t.roles, ROLE_GATEWAY), SIGKILL),
			 0);
	(void)close(t.audit[0]);
	(void)close(t.audit[1]);
	memcpy(t.audit, fds, sizeof(fds));
	t.seen[0] = '\0';
	until(seen("start 3\n") && seen("hello control\n"));
	end();
}

static void supervise__missing_program(void **state)
{
	struct spawned spawned;

	(void)state;
	assert_int_equal(
		spawn_role(ROLE_VAULT, "/no/such/program", 0, 0, &spawned),
		-ENOENT);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(supervise__connects_all),
		cmocka_unit_test(supervise__restarts_gateway),
		cmocka_unit_test(supervise__restarts_vault_and_control),
		cmocka_unit_test(supervise__backs_off),
		cmocka_unit_test(supervise__gives_up_at_the_start),
		cmocka_unit_test(supervise__kills_the_rude),
		cmocka_unit_test(supervise__kills_the_accused),
		cmocka_unit_test(supervise__kills_the_deaf),
		cmocka_unit_test(supervise__second_drain_kills),
		cmocka_unit_test(supervise__reload_and_audit),
		cmocka_unit_test(supervise__missing_program),
	};
	enum role role;

	for (role = ROLE_GATEWAY; argc == 1 && role < ROLE_NUM; role++)
		if (!strcmp(argv[0], spawn_program(role)))
			act(role);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
