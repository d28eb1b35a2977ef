/* SPDX-License-Identifier: Apache-2.0 */
/* runtime_rig.h - the whole control role (rig.h) with a Docker daemon that is a
 * thread for each connection and knows one container
 *
 * Requests are counted; one of them can be refused, done and not answered, or
 * be the one at which the daemon goes.
 * The container's process is in a network namespace of its own behind a bridge,
 * so that its port is really found.
 */
#pragma once

#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>

#include "src/control/lifecycle/endpoint.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/runtime.h"
#include "tests/unit/control/rig.h"

enum { SKIPPED = 77, STEPS_MOST = 64, PORT = 8099 };

/* What becomes of the request at .fail_at. */
enum how {
	HOW_REFUSED, /* zero */
	HOW_UNKNOWN,
	HOW_CONFLICTS,
	HOW_NUM_ALIVE, /* from here on the daemon is lost */
	HOW_DYING = HOW_NUM_ALIVE,
	HOW_REPLACED,
	HOW_KILLING, /* of the look: the container has ended */
	HOW_DONE,    /* and not answered, by one that ends */
	HOW_RESET,
	HOW_MID_HEAD,
	HOW_MID_BODY,
	HOW_SILENT,
	HOW_GONE,
	HOW_NUM,
};

static struct {
	enum how how;
	char path[64], id[64], container[16], network[4096];
	unsigned containers; /* made so far: no two have the same id */
	pthread_mutex_t lock;
	pthread_cond_t released;
	pid_t guest;
	bool has_container, has_helper;
	unsigned requests, fail_at, hold_at;
	bool spares_removals;	    /* they are not counted either */
	const char *says, *version; /* of the refusal, of the API */
	bool is_gone;		    /* nor serves the connections that it has */
	bool is_holding;	    /* the request was done and waits */
	unsigned removed, placed, images_removed;
	const char *user; /* of the image */
	bool has_volume, volumes_fail;
	bool is_paused, has_ended;
	bool network_races; /* another one makes it at the same moment */
	bool holds_list;    /* its answers are written, and wait */
	bool tells_nothing; /* of events: the answer ends at once */
	int events_fd;	    /* of who follows them, or -1 */
} engine = { .events_fd = -1 };

/* -- the daemon ----------------------------------------------------------- */

RIG void say(int fd, unsigned status, const char *body)
{
	char text[8192];
	int len = snprintf(text, sizeof(text),
			   "HTTP/1.1 %u X\r\nContent-Type: application/json"
			   "\r\nContent-Length: %zu\r\n\r\n%s",
			   status, status == 204 ? 0 : strlen(body), body);

	(void)!send(fd, text, (size_t)len, MSG_NOSIGNAL);
}

RIG void say_events(int fd)
{
	static const char head[] =
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
		"Transfer-Encoding: chunked\r\n\r\n";
	bool tells;
	char byte;

	/* who asked may have gone meanwhile */
	if (recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
		return;
	pthread_mutex_lock(&engine.lock);
	tells = !engine.tells_nothing;
	if (tells)
		engine.events_fd = fd;
	pthread_mutex_unlock(&engine.lock);
	(void)!send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL);
	if (!tells)
		return;
	(void)!recv(fd, &byte, 1, 0); /* until the client goes */
	pthread_mutex_lock(&engine.lock);
	if (engine.events_fd == fd)
		engine.events_fd = -1;
	pthread_mutex_unlock(&engine.lock);
}

/* Events are asked for before the list, but on another connection. */
RIG bool engine_tells(void)
{
	bool tells;

	pthread_mutex_lock(&engine.lock);
	tells = engine.events_fd >= 0;
	pthread_mutex_unlock(&engine.lock);
	return tells;
}

/* What is told is from before. */
RIG void list_wait(void)
{
	while (engine.holds_list) {
		engine.is_holding = true;
		pthread_cond_wait(&engine.released, &engine.lock);
	}
	engine.is_holding = false;
}

/* The container by which the kit's volume is filled. */
RIG bool is_of_helper(const char *path)
{
	return strstr(path, "sallyport-kit") || strstr(path, "/k1");
}

RIG void list_emit(char *text, size_t size)
{
	static const char one[] = "%s{\"Id\":\"%s\",\"State\":\"%s\","
				  "\"Labels\":{\"opensandbox.io/id\":\"%s\"}}";
	int at = snprintf(text, size, "[");

	if (engine.has_container)
		at += snprintf(
			text + at, size - (size_t)at, one, "", engine.container,
			engine.is_paused ? "paused" : "running", engine.id);
	if (engine.has_helper)
		at += snprintf(text + at, size - (size_t)at, one,
			       engine.has_container ? "," : "", "k1", "created",
			       "kit");
	snprintf(text + at, size - (size_t)at, "]");
}

/* By its id or its name; what is asked late of an earlier one is not. */
RIG bool is_its_path(const char *path)
{
	struct span name = span_from(span_str(path),
				     (size_t)(strstr(path, "/containers/") +
					      strlen("/containers/") - path));

	name.len = strcspn(name.ptr, "/?");
	return span_eq(name, span_str(engine.container)) ||
	       (span_starts(name, SPAN("sandbox-")) &&
		span_eq(span_from(name, strlen("sandbox-")),
			span_str(engine.id)));
}

RIG void answer_container(int fd, const char *method, const char *path,
			  char *body, size_t size)
{
	const char *name = strstr(path, "name=sandbox-");

	if (is_of_helper(path)) {
		engine.has_helper = strcmp(method, "DELETE") != 0;
		say(fd, engine.has_helper ? 201 : 204, "{\"Id\":\"k1\"}");
	} else if (name && engine.has_container &&
		   span_starts(span_str(name + 13), span_str(engine.id))) {
		say(fd, 409, "{\"message\":\"the name is in use\"}");
	} else if (name) {
		engine.has_container = true;
		snprintf(engine.id, sizeof(engine.id), "%.36s", name + 13);
		snprintf(engine.container, sizeof(engine.container), "c%u",
			 ++engine.containers);
		snprintf(body, size, "{\"Id\":\"%s\"}", engine.container);
		say(fd, 201, body);
	} else if (strstr(path, "/json?all")) {
		list_emit(body, size);
		list_wait();
		say(fd, 200, body);
	} else if (!engine.has_container || !is_its_path(path)) {
		say(fd, 404, "{\"message\":\"no such container\"}");
	} else if (!strcmp(method, "DELETE")) {
		engine.has_container = false;
		engine.removed++;
		say(fd, 204, "");
	} else if (engine.has_ended && strstr(path, "pause")) {
		say(fd, 409, "{\"message\":\"container c is not running\"}");
	} else if ((strstr(path, "/pause") && engine.is_paused) ||
		   (strstr(path, "/unpause") && !engine.is_paused)) {
		say(fd, 409, "{\"message\":\"it is so already\"}");
	} else if (strstr(path, "/pause") || strstr(path, "/unpause")) {
		engine.is_paused = !!strstr(path, "/pause");
		say(fd, 204, "");
	} else if (!strcmp(method, "PUT")) {
		engine.placed++;
		say(fd, 200, "");
	} else if (strstr(path, "/start") && !engine.network[0]) {
		say(fd, 404, "{\"message\":\"network sallyport not found\"}");
	} else if (strstr(path, "/start")) {
		say(fd, 204, "");
	} else {
		snprintf(body, size,
			 "{\"State\":{\"Running\":%s,\"Paused\":%s,\"Pid\":"
			 "%d}}",
			 engine.has_ended ? "false" : "true",
			 engine.is_paused ? "true" : "false", engine.guest);
		say(fd, 200, body);
	}
}

RIG void answer_volume(int fd, const char *method, const char *path, char *body,
		       size_t size)
{
	if (engine.volumes_fail) {
		say(fd, 500, "{\"message\":\"no volumes today\"}");
	} else if (strstr(path, "/volumes/create")) {
		engine.has_volume = true;
		say(fd, 201, "{}");
	} else if (!engine.has_volume) {
		say(fd, 404, "{\"message\":\"no such volume\"}");
	} else if (!strcmp(method, "DELETE")) {
		engine.has_volume = false;
		say(fd, 204, "");
	} else {
		snprintf(body, size,
			 "{\"Name\":\"vol\",\"Labels\":{\"opensandbox.io/id\":"
			 "\"%s\"}}",
			 engine.id);
		say(fd, 200, body);
	}
}

RIG void answer(int fd, const char *method, const char *path, char *body,
		size_t size)
{
	bool taken;

	if (strstr(path, "/version")) {
		snprintf(body, size,
			 "{\"ApiVersion\":\"%s\",\"MinAPIVersion\":\"1.12\"}",
			 engine.version ? engine.version : "1.41");
		say(fd, 200, body);
	} else if (strstr(path, "/networks/create")) {
		taken = engine.network[0] || engine.network_races;
		snprintf(engine.network, sizeof(engine.network), "%s", body);
		say(fd, taken ? 409 : 201,
		    taken ? "{\"message\":\"it exists\"}" : "{\"Id\":\"n1\"}");
	} else if (strstr(path, "/networks/")) {
		say(fd, engine.network[0] ? 200 : 404, engine.network);
	} else if (strstr(path, "/volumes/create") && strstr(body, "-kit")) {
		say(fd, 201, "{\"Mountpoint\":\"/vol/kit\"}");
	} else if (strstr(path, "/containers/")) {
		answer_container(fd, method, path, body, size);
	} else if (strstr(path, "/volumes/")) {
		answer_volume(fd, method, path, body, size);
	} else if (strstr(path, "/images/")) {
		engine.images_removed += !strcmp(method, "DELETE");
		snprintf(body, size, "{\"Config\":{\"User\":\"%s\"}}",
			 engine.user ? engine.user : "");
		say(fd, 200, body);
	} else {
		say(fd, 404, "{\"message\":\"page not found\"}");
	}
}

/* Only what belongs to a sandbox counts, and what its creation cannot do
 * without. */
RIG bool is_counted(const char *method, const char *path)
{
	return (strstr(path, "/containers/") && !strstr(path, "json?all") &&
		(strcmp(method, "DELETE") != 0 || !is_of_helper(path))) ||
	       (strstr(path, "/images/") && !strstr(path, "/images/json")) ||
	       strstr(path, "/volumes/create");
}

/* No more connections: it is on its way down, or not there. */
RIG void engine_close(bool closes)
{
	char aside[80];

	engine.is_gone &= closes;
	snprintf(aside, sizeof(aside), "%s.aside", engine.path);
	(void)!rename(closes ? engine.path : aside,
		      closes ? aside : engine.path);
}

/* As a process that ends breaks them. */
RIG void engine_break_events(void)
{
	if (engine.events_fd >= 0)
		shutdown(engine.events_fd, SHUT_RDWR);
}

RIG void say_broken(int fd, const char *text)
{
	(void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* False: the connection ends. */
RIG bool answer_badly(int fd, const char *method, const char *path, char *body,
		      size_t size)
{
	switch (engine.how) {
	case HOW_UNKNOWN:
		say(fd, 404, "{\"message\":\"injected\"}");
		return true;
	case HOW_CONFLICTS:
		say(fd, 409, "{\"message\":\"injected\"}");
		return true;
	case HOW_DYING:
		engine_close(true);
		break;
	case HOW_REPLACED:
		engine_break_events();
		break;
	case HOW_KILLING:
		engine_close(true);
		say(fd, 200,
		    "{\"Config\":{},\"Mountpoint\":\"/"
		    "v\",\"Id\":\"c\",\"State\""
		    ":{\"Running\":false,\"Pid\":0,\"ExitCode\":137}}");
		return true;
	case HOW_MID_HEAD:
		say_broken(fd, "HTTP/1.1 500 Internal Server Er");
		return false;
	case HOW_MID_BODY:
		say_broken(fd, "HTTP/1.1 500 X\r\nContent-Type: "
			       "application/json\r\nContent-Length: 99\r\n"
			       "\r\n{\"message\":\"inj");
		return false;
	case HOW_SILENT:
		engine.is_holding = true;
		while (engine.is_holding)
			pthread_cond_wait(&engine.released, &engine.lock);
		return false;
	case HOW_GONE:
		engine.is_gone = true;
		engine_close(true);
		engine_break_events();
		return false;
	case HOW_DONE:
		answer(-1, method, path, body, size);
		engine_break_events();
		return false;
	case HOW_RESET:
		return false;
	default:
		break;
	}
	snprintf(body, size, "{\"message\":\"%s\"}",
		 engine.says ? engine.says : "injected");
	say(fd, 500, body);
	return true;
}

/* False: the connection ends. */
RIG bool serve(int fd, const char *method, const char *path, char *body,
	       size_t size)
{
	bool counted = is_counted(method, path), goes_on = true;
	unsigned number;

	if (strstr(path, "/events")) {
		say_events(fd);
		return false;
	}
	pthread_mutex_lock(&engine.lock);
	if (engine.spares_removals && !strcmp(method, "DELETE"))
		counted = false;
	number = counted ? ++engine.requests : 0;
	if (engine.is_gone) {
		pthread_mutex_unlock(&engine.lock);
		return false;
	}
	if (number && number == engine.fail_at) {
		goes_on = answer_badly(fd, method, path, body, size);
	} else if (number && number == engine.hold_at) {
		/* done, but nobody hears of it before they are gone */
		engine.is_holding = true;
		while (engine.is_holding)
			pthread_cond_wait(&engine.released, &engine.lock);
		answer(fd, method, path, body, size);
		goes_on = false;
	} else {
		answer(fd, method, path, body, size);
	}
	pthread_mutex_unlock(&engine.lock);
	return goes_on;
}

RIG void *client_serve(void *ctx)
{
	const size_t size = 8 * 1024 * 1024;
	char *text = must_alloc(size), method[16], path[1024], *end;
	int fd = (int)(intptr_t)ctx;
	size_t len = 0, total = 0;
	const char *field;
	ssize_t n;

	while ((n = recv(fd, text + len, size - 1 - len, 0)) > 0) {
		len += (size_t)n;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
		if (!end)
			continue;
		field = strstr(text, "Content-Length: ");
		total = (size_t)(end + 4 - text) +
			(field && field < end ? strtoul(field + 16, NULL, 10)
					      : 0);
		if (len < total)
			continue;
		assert_int_equal(sscanf(text, "%15s %1023s", method, path), 2);
		if (!serve(fd, method, path, end + 4, 4096))
			break;
		len = 0;
	}
	close(fd);
	free(text);
	return NULL;
}

RIG void *engine_serve(void *ctx)
{
	int listener = (int)(intptr_t)ctx, fd;
	pthread_t thread;

	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		must(!pthread_create(&thread, NULL, client_serve,
				     (void *)(intptr_t)fd));
		pthread_detach(thread);
	}
	return NULL;
}

RIG void engine_start(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	pthread_t thread;

	snprintf(engine.path, sizeof(engine.path), "/tmp/runtime-test-%d.sock",
		 getpid());
	strcpy(at.sun_path, engine.path);
	must(!bind(fd, (struct sockaddr *)&at, sizeof(at)) && !listen(fd, 64));
	must(!pthread_mutex_init(&engine.lock, NULL));
	must(!pthread_cond_init(&engine.released, NULL));
	must(!pthread_create(&thread, NULL, engine_serve,
			     (void *)(intptr_t)fd));
	pthread_detach(thread);
}

RIG void engine_reset(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.requests = engine.fail_at = engine.hold_at = 0;
	engine.removed = engine.placed = 0;
	engine.how = HOW_REFUSED;
	engine.spares_removals = false;
	engine.says = NULL;
	engine.user = "";
	pthread_mutex_unlock(&engine.lock);
}

/* -- the role ------------------------------------------------------------- */

RIG void configure(struct rig *rig)
{
	struct diag d = { 0 };
	char text[2048];

	config_free(rig->config);
	snprintf(text, sizeof(text),
		 "{\"stateDir\":\"%s\",\"runDir\":\"%s\",\"policyDir\":"
		 "\"%s/policies\",\"auditFile\":\"%s/audit.jsonl\",\"user\":"
		 "\"\",\"dns\":{\"upstreams\":[\"192.0.2.53\"],\"hostsFile\":"
		 "\"\"},\"lifecycle\":{\"listen\":\"127.0.0.1:%d\",\"insecure\""
		 ":true,\"dockerSocket\":\"%s\",\"execd\":\"/bin/true\","
		 "\"subnet4\":\"10.77.0.0/28\"}}",
		 rig->folder, rig->folder, rig->folder, rig->folder, PORT,
		 engine.path);
	if (config_parse(span_str(text), &rig->config, &d))
		fail_msg("%s", d.msg);
}

RIG bool is_connected(const struct rig *rig)
{
	return rig->control->loaded && rig->control->lifecycle &&
	       rig->control->lifecycle->runtime->is_ready;
}

RIG void role_start(struct rig *rig)
{
	struct addr at = { 0 };

	pthread_mutex_lock(&engine.lock);
	engine.events_fd = -1;
	pthread_mutex_unlock(&engine.lock);
	rig_control_start(rig);
	assert_true(addr_parse_port(SPAN("127.0.0.1"), PORT, &at));
	assert_int_equal(
		httpd_listen_tcp(rig->control->lifecycle->httpd, &at, NULL), 0);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, is_connected(rig) && engine_tells());
}

RIG void role_stop(struct rig *rig)
{
	rig_control_stop(rig);
	rig_vault_down(rig);
	rig_gateway_down(rig);
	rig_turn(rig);
}

RIG int set_up(void **state)
{
	rig_bare(state);
	configure(*state);
	log_set_level(LOG_ERROR);
	engine_reset();
	role_start(*state);
	return 0;
}

/* -- asking --------------------------------------------------------------- */

RIG int ask(const char *method, const char *path, const char *body)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[2048];
	int len = snprintf(text, sizeof(text),
			   "%s %s HTTP/1.1\r\nHost: x\r\nContent-Length: %zu"
			   "\r\n\r\n%s",
			   method, path, strlen(body), body);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(send(fd, text, (size_t)len, MSG_NOSIGNAL), len);
	return fd;
}

/* 0: not yet. */
RIG unsigned status_of(int fd, char text[4096])
{
	unsigned status = 0;
	ssize_t n = recv(fd, text, 4095, MSG_DONTWAIT);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	assert_int_equal(sscanf(text, "HTTP/1.1 %u", &status), 1);
	return status;
}

RIG unsigned call(struct rig *rig, const char *method, const char *path,
		  const char *body, char text[4096])
{
	int fd = ask(method, path, body);
	unsigned status = 0;

	RIG_UNTIL(rig, status || (status = status_of(fd, text)));
	close(fd);
	return status;
}

#define BODY                                                                \
	"{\"image\":{\"uri\":\"i:1\"},\"entrypoint\":[\"x\"],"              \
	"\"resourceLimits\":{},\"networkPolicy\":{\"egress\":[{\"action\":" \
	"\"allow\",\"target\":\"a.test\"}]}}"

RIG unsigned records(const struct rig *rig)
{
	unsigned count = 0;

	list_for_each(it, &rig->vault.records) count++;
	return count;
}

RIG bool nothing_is_left(struct rig *rig)
{
	bool has_any;

	pthread_mutex_lock(&engine.lock);
	has_any = engine.has_container || engine.has_helper;
	pthread_mutex_unlock(&engine.lock);
	return !has_any && !records(rig) && !rig->lock_count &&
	       !map_count(&rig->control->lifecycle->boxes.by_id) &&
	       !map_count(&rig->control->sandboxes.by_id) &&
	       !rig->control->policies.api_count &&
	       !rig->gateway.sandbox_count &&
	       rig->gateway.policy_count == 1; /* the overlay */
}

RIG void engine_let_go(void)
{
	pthread_mutex_lock(&engine.lock);
	engine.is_holding = false;
	pthread_cond_broadcast(&engine.released);
	pthread_mutex_unlock(&engine.lock);
}

RIG bool engine_holds(void)
{
	bool holds;

	pthread_mutex_lock(&engine.lock);
	holds = engine.is_holding;
	pthread_mutex_unlock(&engine.lock);
	return holds;
}

/* -- the namespace -------------------------------------------------------- */

/* In the place of execd. Nobody takes what comes: that it comes is enough. */
RIG void guest_listen(void)
{
	const struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_port = htons(ENDPOINT_EXECD_PORT),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(!bind(fd, (const struct sockaddr *)&at, sizeof(at)) &&
	     !listen(fd, 64));
}

RIG pid_t guest_new(void)
{
	int ready[2];
	char byte = 0;
	pid_t pid;

	must(!pipe(ready));
	pid = fork();
	must(pid >= 0);
	if (!pid) {
		must(!unshare(CLONE_NEWNET));
		guest_listen();
		must(write(ready[1], &byte, 1) == 1);
		for (;;)
			pause();
	}
	must(read(ready[0], &byte, 1) == 1);
	close(ready[0]);
	close(ready[1]);
	return pid;
}

RIG int group_set_up(void **state)
{
	char command[512];

	(void)state;
	must(!unshare(CLONE_NEWNET));
	engine.guest = guest_new();
	snprintf(command, sizeof(command),
		 "ip link set lo up && ip link add sp-docker0 type bridge && "
		 "ip link add vt0 type veth peer name e0 netns %d && "
		 "ip link set vt0 master sp-docker0 up && "
		 "ip link set sp-docker0 up && "
		 "ip addr add 10.77.0.1/28 dev sp-docker0",
		 engine.guest);
	must(!system(command));
	/* it is every sandbox, one after another */
	snprintf(command, sizeof(command),
		 "nsenter -t %d -n sh -ec 'ip link set lo up; ip link set e0 "
		 "up; ip addr add 10.77.0.2/28 dev e0; for at in 2/31 4/30 "
		 "8/29; do ip route add local 10.77.0.$at dev lo; done'",
		 engine.guest);
	must(!system(command));
	engine_start();
	return 0;
}

RIG int group_tear_down(void **state)
{
	(void)state;
	kill(engine.guest, SIGKILL);
	waitpid(engine.guest, NULL, 0);
	unlink(engine.path);
	return 0;
}
