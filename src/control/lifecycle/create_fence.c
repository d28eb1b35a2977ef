/* SPDX-License-Identifier: Apache-2.0 */
/* create_fence.c - the steps of a creation that make its fence
 *
 * Before there is a container: the policy, and the registry entry, locked to
 * the bridge. As soon as Docker has plugged the container in: the same entry,
 * locked to its port.
 */

#include <errno.h>
#include <stdio.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/control/changes.h"
#include "src/control/control.h"
#include "src/control/docker/docker.h"
#include "src/control/egress/net_policy_change.h"
#include "src/control/lifecycle/creation.h"
#include "src/control/lifecycle/port.h"
#include "src/role/config.h"
#include "src/text/json.h"

enum { TEXT_BYTES = 1024 * 1024, EXIT_POLLS = 100, EXIT_POLL_MS = 20 };

/* Said for each sandbox: denied is what its owner did not expect. */
static void default_policy_check(const struct control *c, const char *id)
{
	const char *name = c->config->lifecycle_default_policy;

	if (name[0] && !policies_find(&c->policies, span_str(name)))
		log_warn("sandbox %s was created without a networkPolicy, and "
			 "there is no policy \"%s\" (lifecycle.defaultPolicy)",
			 id, name);
}

void step_policy(struct creation *c)
{
	if (!c->q->policy) {
		default_policy_check(c->lifecycle->control, c->id);
		creation_next(c);
		return;
	}
	c->is_bound = true;
	net_policy_change_put(c->lifecycle->control, span_str(c->id),
			      take_ptr(c->q->policy), creation_changed, c);
}

/* -- the registry entry --------------------------------------------------- */

static void put_address(struct json_out *o, const struct addr *a)
{
	char text[ADDR_TEXT_SIZE];

	json_put_str(o, NULL, addr_text(a, text, sizeof(text)));
}

/* Metadata are labels of the registry: policies may choose by them. */
static void put_labels(struct json_out *o, const struct box *b)
{
	size_t cursor = 0;
	struct span name;
	const char *value;

	json_open_object(o, "labels");
	while ((value = map_next(&b->metadata, &cursor, &name))) {
		json_put_name(o, name);
		json_put_str(o, NULL, value);
	}
	json_close(o);
}

static int entry_emit(struct buf *out, const struct box *b, const char *port,
		      const char *default_policy)
{
	struct json_out o;
	char mac[MAC_TEXT_SIZE];

	json_start(&o, out);
	json_open_object(&o, NULL);
	json_put_str(&o, "id", b->id);
	json_put_str(&o, "interface", CONFIG_BRIDGE);
	if (port)
		json_put_str(&o, "port", port);
	json_put_str(&o, "mac", mac_text(b->mac, mac));
	json_open_array(&o, "addresses");
	put_address(&o, &b->v4);
	put_address(&o, &b->v6);
	json_close(&o);
	put_labels(&o, b);
	if (!b->has_policy && default_policy[0])
		json_put_str(&o, "defaultPolicy", default_policy);
	json_close(&o);
	return json_done(&o);
}

static void entry_put(struct creation *c, const char *port)
{
	struct buf text = BUF_INIT(TEXT_BYTES);
	struct diag d = { 0 };
	struct sandbox *s;

	if (entry_emit(
		    &text, c->q->box, port,
		    c->lifecycle->control->config->lifecycle_default_policy) ||
	    sandbox_parse(buf_peek(&text), SPAN_NONE, &s, &d)) {
		creation_fail(c, 500, "DOCKER::SANDBOX_START_FAILED",
			      "the sandbox could not be registered: %s", d.msg);
	} else {
		c->is_bound = true;
		sandbox_change_put(c->lifecycle->control, s, creation_changed,
				   c);
	}
	buf_fini(&text);
}

void step_register(struct creation *c)
{
	entry_put(c, NULL);
}

/* -- its port ------------------------------------------------------------- */

static void on_started(void *ctx, const struct docker_answer *a)
{
	const struct json *state = json_find(a->json, "State");
	char port[MSG_IFACE_SIZE];
	struct creation *c = ctx;
	uint64_t pid = 0, status = 0;
	int r;

	if (!creation_goes_on(c))
		return;
	if (!docker_is_ok(a)) {
		creation_fail(c, runtime_status_of(a),
			      "DOCKER::SANDBOX_START_FAILED", "%s", a->message);
		return;
	}
	(void)json_u64(json_find(state, "ExitCode"), &status);
	if (!json_bool(json_find(state, "Running")) ||
	    !json_u64(json_find(state, "Pid"), &pid) || !pid ||
	    pid > INT32_MAX) {
		creation_exited(c, (int)MIN(status, (uint64_t)255));
		return;
	}
	c->pid = (pid_t)pid;
	r = port_find(c->pid, CONFIG_BRIDGE, port);
	if (r == -ESRCH && c->port_polls++ < EXIT_POLLS) {
		/* Docker will hear of its end, on a busy node a little later */
		c->on_time = step_port;
		timer_start(&c->timer, EXIT_POLL_MS);
	} else if (r == -ESRCH) {
		creation_fail(c, 500, "DOCKER::SANDBOX_START_FAILED",
			      "its container exited at once");
	} else if (r) {
		creation_fail(c, 500, "DOCKER::SANDBOX_START_FAILED",
			      "the port of " CONFIG_BRIDGE " that leads to it "
			      "was not found: %s",
			      err_text(r));
	} else {
		entry_put(c, port);
	}
}

/* Also again, when it ended between Docker's answer and our look. */
void step_port(struct creation *c)
{
	creation_ask(c, "GET", SPAN_NONE, on_started, "/containers/%s/json",
		     c->container);
}
