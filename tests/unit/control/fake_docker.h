/* SPDX-License-Identifier: Apache-2.0 */
/* fake_docker.h - as much of a Docker daemon as the lifecycle API's tests need
 *
 * A thread for each connection, since control asks for several things at once.
 * What is answered depends on the path alone; what was asked is remembered.
 */
#pragma once

#include <pthread.h>

#include "tests/unit/control/rig.h"

struct engine {
	char path[128];
	int fd;
	pthread_t thread;
	pthread_mutex_t lock;
	char containers[8192];	/* the list */
	char asked[64 * 1024];	/* "METHOD path\n" of each */
	char commit_reply[256]; /* "" is good */
	bool commit_waits;	/* until it is false */
	bool image_is_used;
	unsigned open;
};

static struct engine engine;

static void engine_say(int fd, unsigned status, const char *type,
		       const char *body, size_t len)
{
	char head[256];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %u X\r\nContent-Type: %s\r\n"
			 "Content-Length: %zu\r\n\r\n",
			 status, type, len);

	(void)!send(fd, head, (size_t)n, MSG_NOSIGNAL);
	(void)!send(fd, body, len, MSG_NOSIGNAL);
}

static void engine_json(int fd, unsigned status, const char *body)
{
	engine_say(fd, status, "application/json", body, strlen(body));
}

static void engine_commit(int fd)
{
	bool waits = true;

	while (waits) {
		pthread_mutex_lock(&engine.lock);
		waits = engine.commit_waits;
		pthread_mutex_unlock(&engine.lock);
		usleep(1000);
	}
	if (engine.commit_reply[0])
		engine_json(fd, 500, engine.commit_reply);
	else
		engine_json(fd, 201, "{\"Id\":\"sha256:1\"}");
}

static void engine_list(int fd)
{
	char list[sizeof(engine.containers)];

	pthread_mutex_lock(&engine.lock);
	strcpy(list, engine.containers);
	pthread_mutex_unlock(&engine.lock);
	engine_json(fd, 200, list);
}

static const char engine_inspected[] =
	"{\"Image\":\"sha256:9\",\"RestartCount\":0,\"Config\":{\"Env\":["
	"\"SECRET=do-not-show\"]},\"State\":{\"Status\":\"running\","
	"\"Running\":true,\"OOMKilled\":false,\"ExitCode\":0,\"Error\":\"\","
	"\"StartedAt\":\"2026-01-02T03:04:05.678901234Z\",\"FinishedAt\":"
	"\"0001-01-01T00:00:00Z\"}}";

static const char engine_logs[] = "\1\0\0\0\0\0\0\6hello\n"
				  "\2\0\0\0\0\0\0\5oops\n";

static void engine_answer(int fd, const char *method, const char *path)
{
	char byte;

	if (strstr(path, "/version")) {
		engine_json(fd, 200,
			    "{\"ApiVersion\":\"1.44\",\"MinAPIVersion\":"
			    "\"1.24\"}");
	} else if (strstr(path, "/events")) {
		(void)!send(fd,
			    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
			    "\r\n",
			    47, MSG_NOSIGNAL);
		(void)recv(fd, &byte, 1, 0);
	} else if (strstr(path, "/volumes/")) {
		engine_json(fd, 200,
			    "{\"Name\":\"data\",\"Driver\":\"nfs\","
			    "\"Mountpoint\":\"/v/data\",\"Options\":null}");
	} else if (strstr(path, "/info")) {
		engine_json(fd, 200,
			    "{\"Runtimes\":{\"runc\":{},\"kata\":{}}}");
	} else if (strstr(path, "/networks/create")) {
		engine_json(fd, 201, "{\"Id\":\"n\"}");
	} else if (strstr(path, "/containers/json")) {
		engine_list(fd);
	} else if (strstr(path, "/commit?")) {
		engine_commit(fd);
	} else if (strstr(path, "/logs?")) {
		engine_say(fd, 200, "application/vnd.docker.raw-stream",
			   engine_logs, sizeof(engine_logs) - 1);
	} else if (strstr(path, "/json")) {
		engine_json(fd, 200, engine_inspected);
	} else if (strstr(path, "/images/") && engine.image_is_used) {
		engine_json(fd, 409, "{\"message\":\"the image is in use\"}");
	} else if (strstr(path, "/images/")) {
		engine_json(fd, 200, "[]");
	} else if (strstr(path, "/pause") || strstr(path, "/unpause") ||
		   !strcmp(method, "DELETE")) {
		(void)!send(fd, "HTTP/1.1 204 X\r\n\r\n", 18, MSG_NOSIGNAL);
	} else {
		engine_json(fd, 404, "{\"message\":\"no such thing\"}");
	}
}

/* The head of a request, its body read over. False: the client has gone. */
static bool engine_read(int fd, char *text, size_t size)
{
	size_t len = 0, total = 0;
	const char *field, *end;
	ssize_t n;

	while (!total || len < total) {
		n = recv(fd, text + len, size - 1 - len, 0);
		if (n <= 0)
			return false;
		len += (size_t)n;
		text[len] = '\0';
		end = strstr(text, "\r\n\r\n");
		if (!end || total)
			continue;
		field = strstr(text, "Content-Length: ");
		total = (size_t)(end + 4 - text) +
			(field && field < end ? strtoul(field + 16, NULL, 10)
					      : 0);
	}
	return true;
}

static void *engine_client_run(void *ctx)
{
	int fd = (int)(intptr_t)ctx;
	static __thread char text[64 * 1024];
	char method[16], path[1024];
	size_t at;

	while (engine_read(fd, text, sizeof(text)) &&
	       sscanf(text, "%15s %1023s", method, path) == 2) {
		pthread_mutex_lock(&engine.lock);
		at = strlen(engine.asked);
		snprintf(engine.asked + at, sizeof(engine.asked) - at,
			 "%s %s\n", method, path);
		pthread_mutex_unlock(&engine.lock);
		engine_answer(fd, method, path);
	}
	close(fd);
	pthread_mutex_lock(&engine.lock);
	engine.open--;
	pthread_mutex_unlock(&engine.lock);
	return NULL;
}

static void *engine_run(void *ctx)
{
	pthread_t thread;
	int fd;

	(void)ctx;
	while ((fd = accept(engine.fd, NULL, NULL)) >= 0) {
		pthread_mutex_lock(&engine.lock);
		engine.open++;
		pthread_mutex_unlock(&engine.lock);
		assert_int_equal(pthread_create(&thread, NULL,
						engine_client_run,
						(void *)(intptr_t)fd),
				 0);
		pthread_detach(thread);
	}
	return NULL;
}

static void engine_start(const char *folder)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };

	memset(&engine, 0, sizeof(engine));
	strcpy(engine.containers, "[]");
	pthread_mutex_init(&engine.lock, NULL);
	snprintf(engine.path, sizeof(engine.path), "%s/docker.sock", folder);
	strcpy(at.sun_path, engine.path);
	engine.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(engine.fd, (struct sockaddr *)&at, sizeof(at)),
			 0);
	assert_int_equal(listen(engine.fd, 64), 0);
	assert_int_equal(pthread_create(&engine.thread, NULL, engine_run, NULL),
			 0);
}

/* After control has gone. */
static void engine_stop(void)
{
	unsigned open = 1, i;

	shutdown(engine.fd, SHUT_RDWR);
	pthread_join(engine.thread, NULL);
	close(engine.fd);
	for (i = 0; open && i < 5000; i++) {
		pthread_mutex_lock(&engine.lock);
		open = engine.open;
		pthread_mutex_unlock(&engine.lock);
		usleep(1000);
	}
	assert_int_equal(open, 0);
}

static bool engine_was_asked(const char *what)
{
	bool was;

	pthread_mutex_lock(&engine.lock);
	was = strstr(engine.asked, what) != NULL;
	pthread_mutex_unlock(&engine.lock);
	return was;
}

static void engine_let_commit(bool go)
{
	pthread_mutex_lock(&engine.lock);
	engine.commit_waits = !go;
	pthread_mutex_unlock(&engine.lock);
}
