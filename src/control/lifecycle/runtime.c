/* SPDX-License-Identifier: Apache-2.0 */
/* runtime.c - connecting to the Docker daemon, and following what happens there
 */

#include "src/control/lifecycle/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/lifecycle/bridge.h"
#include "src/control/lifecycle/capturing.h"
#include "src/control/lifecycle/container.h"
#include "src/role/config.h"
#include "src/text/json.h"

#define PROGRAM "sallyport-execd"
#define AWAY	"the Docker daemon went away"

enum { RUNTIMES_MAX = 256 };

/* {"type": ["container"], "event": ["commit", "create", "die", "pause",
 *  "unpause"], "label": ["opensandbox.io/id"]} */
#define EVENTS                                                            \
	"/events?filters=%7B%22type%22:%5B%22container%22%5D,%22event%22" \
	":%5B%22commit%22,%22create%22,%22die%22,%22pause%22,%22unpause"  \
	"%22%5D,%22label%22:%5B%22opensandbox.io%2Fid%22%5D%7D"

unsigned runtime_status_of(const struct docker_answer *a)
{
	return a->status < 0 ? 503 : 500;
}

/* -- connecting ----------------------------------------------------------- */

static void connect_end(struct runtime *r, const char *why)
{
	bool was_ready = r->is_ready;

	/* what ended while all was compared may end unseen */
	if (!why && !r->events)
		why = AWAY;
	r->is_connecting = false;
	r->is_ready = !why;
	if (why && strcmp(r->why, why) != 0)
		log_error("no sandboxes can be made: %s", why);
	(void)snprintf(r->why, sizeof(r->why), "%s", why ? why : "");
	if (why)
		timer_start(&r->retry, RUNTIME_RETRY_MS);
	else if (!was_ready)
		log_info("sandboxes are made of containers of the Docker "
			 "daemon at %s",
			 r->lifecycle->control->config->docker_socket);
}

/* What waited for a daemon goes on. */
static void on_reconciled(void *ctx, const char *why)
{
	struct runtime *r = ctx;

	connect_end(r, why);
	if (!r->is_ready)
		return;
	capturing_resume(r->lifecycle);
	capturing_sweep(r->lifecycle);
}

static int exit_status_of(const struct json *actor)
{
	const struct json *text =
		json_find(json_find(actor, "Attributes"), "exitCode");
	uint64_t status;

	if (!span_parse_u64(json_text(text), &status) || status > 255)
		return 255;
	return (int)status;
}

/* Mostly it was us, and the record follows in a moment. But what an earlier
 * life of ours had asked for may be done only now; then all is looked at again.
 */
static void runtime_stirred(struct runtime *r, struct span id,
			    enum box_state state)
{
	const struct box *b = boxes_find(&r->lifecycle->boxes, id);

	if (!b || b->state == state || r->is_stirred)
		return;
	r->is_stirred = true;
	timer_start(&r->retry, RUNTIME_RETRY_MS);
}

/* {"Action": "die", "Actor": {"ID": container,
 *  "Attributes": {"exitCode": "0", label: id}}} */
static bool on_event(void *ctx, struct span line)
{
	struct json *j CLEANUP_JSON = NULL;
	const struct json *actor, *more;
	struct span action, id;
	struct runtime *r = ctx;

	if (json_parse(line, &j, NULL)) {
		log_error("the Docker daemon told of an event in what is no "
			  "JSON");
		return false;
	}
	action = json_text(json_find(j, "Action"));
	actor = json_find(j, "Actor");
	more = json_find(actor, "Attributes");
	id = json_text(json_find(more, CONTAINER_LABEL));
	if (span_eq(action, SPAN("create")))
		reconcile_appeared(r->lifecycle, id,
				   json_text(json_find(actor, "ID")));
	else if (span_eq(action, SPAN("commit")))
		capturing_appeared(r->lifecycle,
				   json_text(json_find(more, "imageRef")));
	else if (span_eq(action, SPAN("pause")))
		runtime_stirred(r, id, BOX_PAUSED);
	else if (span_eq(action, SPAN("unpause")))
		runtime_stirred(r, id, BOX_RUNNING);
	else if (id.len)
		reconcile_ended(r->lifecycle, id, exit_status_of(actor));
	return true;
}

static void on_events_over(void *ctx, const struct docker_answer *a)
{
	struct runtime *r = ctx;

	r->events = NULL;
	if (r->lifecycle->ended)
		return;
	log_warn("the Docker daemon tells of no events any more%s%s",
		 a->message[0] ? ": " : "", a->message);
	r->is_ready = false;
	(void)snprintf(r->why, sizeof(r->why), AWAY);
	timer_start(&r->retry, 1);
}

/* Followed first, looked afterwards: nothing is missed in between. */
static void on_bridge(void *ctx, const char *why)
{
	struct runtime *r = ctx;

	if (r->lifecycle->ended)
		return;
	if (why) {
		connect_end(r, why);
		return;
	}
	if (!r->events)
		r->events = docker_follow(r->lifecycle->docker, EVENTS,
					  on_event, on_events_over, r);
	reconcile(r->lifecycle, on_reconciled, r);
}

/* -- the runtime of containers -------------------------------------------- */

/* containerd's own names of runtimes need no entry; whether there is such a
 * program Docker finds out when it starts the first container. */
#define SHIMS "io.containerd."

static void runtimes_put(const struct json *runtimes, struct buf *out)
{
	void *cursor = NULL;
	struct span name;
	int r = 0;

	while (!r && json_next(runtimes, &cursor, &name))
		r = buf_putf(out, "%s\"%.*s\"", buf_len(out) ? ", " : "",
			     SPAN_FMT(name));
}

static void on_info(void *ctx, const struct docker_answer *a)
{
	struct buf known CLEANUP(buf_fini) = BUF_INIT(RUNTIMES_MAX);
	struct runtime *r = ctx;
	const struct json *runtimes = json_find(a->json, "Runtimes");
	const char *name = r->lifecycle->control->config->docker_runtime;
	char why[sizeof(r->why)];

	if (r->lifecycle->ended)
		return;
	if (!docker_is_ok(a)) {
		connect_end(r, a->message);
		return;
	}
	if (json_find(runtimes, name)) {
		bridge_ensure(r->lifecycle->docker, r->lifecycle->network,
			      on_bridge, r);
		return;
	}
	runtimes_put(runtimes, &known);
	(void)snprintf(why, sizeof(why),
		       "the Docker daemon has no runtime \"%s\" "
		       "(lifecycle.runtime); it has %.*s",
		       name, SPAN_FMT(buf_peek(&known)));
	connect_end(r, why);
}

static void on_met(void *ctx, const struct docker_answer *a)
{
	struct runtime *r = ctx;
	const char *name = r->lifecycle->control->config->docker_runtime;

	if (r->lifecycle->ended)
		return;
	if (!docker_is_ok(a))
		connect_end(r, a->message);
	else if (*name && !span_starts(span_str(name), SPAN(SHIMS)))
		(void)docker_ask(r->lifecycle->docker, "GET", "/info",
				 SPAN_NONE, on_info, r);
	else
		bridge_ensure(r->lifecycle->docker, r->lifecycle->network,
			      on_bridge, r);
}

void runtime_start(struct lifecycle *l)
{
	struct runtime *r = l->runtime;

	if (r->is_connecting || l->ended)
		return;
	timer_stop(&r->retry);
	r->is_stirred = false;
	r->is_connecting = true;
	docker_meet(l->docker, on_met, r);
}

static void on_retry(struct timer *t)
{
	struct runtime *r = container_of(t, struct runtime, retry);

	/* a list that is on its way may be from before */
	if (r->is_connecting) {
		timer_start(t, RUNTIME_RETRY_MS);
		return;
	}
	runtime_start(r->lifecycle);
}

/* -- the program for sandboxes -------------------------------------------- */

/* Beside our own. */
static void program_path(const struct config *config, char *dst, size_t size)
{
	ssize_t n;
	char *slash;

	if (config->execd_program[0]) {
		(void)snprintf(dst, size, "%s", config->execd_program);
		return;
	}
	n = readlink("/proc/self/exe", dst, size - sizeof(PROGRAM));
	dst[n > 0 ? n : 0] = '\0';
	slash = strrchr(dst, '/');
	(void)snprintf(slash ? slash + 1 : dst, sizeof(PROGRAM), "%s", PROGRAM);
}

static int program_read(const char *path, struct buf *out)
{
	int fd CLEANUP_FD = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	size_t got = 0;
	ssize_t n;
	char *at;
	int r;

	if (fd < 0 || fstat(fd, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0)
		return -EINVAL;
	r = buf_reserve(out, (size_t)st.st_size, &at);
	while (!r && got < (size_t)st.st_size) {
		n = read(fd, at + got, (size_t)st.st_size - got);
		if (n <= 0)
			return n ? -errno : -EIO;
		got += (size_t)n;
	}
	if (!r)
		buf_commit(out, got);
	return r;
}

/* -- life ----------------------------------------------------------------- */

int runtime_new(struct lifecycle *l, struct runtime **ret)
{
	struct runtime *r = must_alloc(sizeof(*r));
	char path[4096];
	int error;

	r->lifecycle = l;
	(void)snprintf(r->why, sizeof(r->why),
		       "the Docker daemon was not asked yet");
	list_init(&r->creations);
	list_init(&r->waiting);
	list_init(&r->undoing);
	list_init(&r->returning);
	list_init(&r->removals);
	kit_init(&r->kit, l);
	timer_init(&r->retry, l->control->loop, on_retry);
	expiry_init(r);
	program_path(l->control->config, path, sizeof(path));
	error = program_read(path, &r->kit.execd);
	if (error) {
		log_error("could not read %s, which sandboxes need: %s", path,
			  err_text(error));
		runtime_free(r);
		return error;
	}
	*ret = r;
	return 0;
}

struct runtime *runtime_free(struct runtime *r)
{
	if (!r)
		return NULL;
	creations_free(r);
	removals_free(r);
	timer_stop(&r->retry);
	timer_stop(&r->expiry);
	kit_fini(&r->kit);
	free(r);
	return NULL;
}
