/* SPDX-License-Identifier: Apache-2.0 */
/* test_lifecycle_api.c - the lifecycle API's routes, asked of a whole control
 * role beside a fake Docker daemon
 *
 * Sandboxes are there from the beginning, as records of the vault; what it
 * takes to make one is for scenes with a real daemon.
 */

#include "tests/unit/control/fake_docker.h"

#include <openssl/sha.h>

#include "certs/signed_route.h"
#include "src/control/lifecycle/lifecycle.h"
#include "src/control/lifecycle/runtime.h"

#define KEY	"0123456789abcdefghij"
#define WITH	"OPEN-SANDBOX-API-KEY: " KEY "\r\n"
#define ONE	"11111111-1111-4111-8111-111111111111"
#define TWO	"22222222-2222-4222-8222-222222222222"
#define NOBODY	"33333333-3333-4333-8333-333333333333"
#define SECURED "44444444-4444-4444-8444-444444444444"

static void configure(struct rig *rig, char *dst, size_t size)
{
	snprintf(dst, size,
		 ",\"sandboxInterfaces\":[\"sp-*\"],\"lifecycle\":{\"listen\":"
		 "\"127.0.0.1:8080\",\"apiKeyFile\":\"%s/api.key\","
		 "\"dockerSocket\":\"%s/docker.sock\",\"execd\":\"%s/execd\","
		 "\"maxTimeoutS\":86400},\"ingress\":{\"listen\":"
		 "\"0.0.0.0:8081\",\"keysFile\":\"%s/route.keys\"}",
		 rig->folder, rig->folder, rig->folder, rig->folder);
}

static void configure_runtime(struct rig *rig, char *dst, size_t size)
{
	snprintf(dst, size,
		 ",\"lifecycle\":{\"listen\":\"127.0.0.1:8080\",\"insecure\":"
		 "true,\"dockerSocket\":\"%s/docker.sock\",\"execd\":"
		 "\"%s/execd\",\"runtime\":\"runsc\"}",
		 rig->folder, rig->folder);
}

static void configure_insecure(struct rig *rig, char *dst, size_t size)
{
	snprintf(dst, size,
		 ",\"lifecycle\":{\"listen\":\"127.0.0.1:8080\",\"insecure\":"
		 "true,\"dockerSocket\":\"%s/docker.sock\",\"execd\":"
		 "\"%s/execd\"}",
		 rig->folder, rig->folder);
}

/* -- sandboxes that are there ---------------------------------------------- */

static void record_put(struct rig *rig, enum record_kind kind, const char *id,
		       const char *text)
{
	struct fake_record *r = must_alloc(sizeof(*r));

	strcpy(r->head.scope, VAULT_SCOPE_CONTROL);
	strcpy(r->head.name, id);
	r->head.kind = kind;
	r->head.found = 1;
	r->len = strlen(text);
	r->value = must_alloc(r->len + 1);
	memcpy(r->value, text, r->len);
	list_init(&r->link);
	list_push(&rig->vault.pending, &r->link);
	fake_apply(&rig->vault, r);
}

static void box_put(struct rig *rig, const char *id, unsigned host,
		    const char *state, const char *more)
{
	char text[2048], item[512];
	size_t at;

	snprintf(text, sizeof(text),
		 "{\"id\":\"%s\",\"container\":\"c%u\",\"state\":\"%s\","
		 "\"reason\":\"CONTAINER_RUNNING\",\"message\":\"It runs.\","
		 "\"createdMs\":%u000,\"changedMs\":%u500,\"image\":\"busybox\""
		 ",\"entrypoint\":[\"sh\"],\"v4\":\"10.231.0.%u\",\"v6\":"
		 "\"fd5a:11:9047::%x\",\"execdToken\":\"exec-%u\","
		 "\"egressToken\":\"egress-%u\"%s}",
		 id, host, state, host, host, host, host, host, host, more);
	record_put(rig, RECORD_BOX, id, text);
	snprintf(item, sizeof(item),
		 "%s{\"Id\":\"c%u\",\"State\":\"%s\",\"Status\":\"Up\","
		 "\"Labels\":{\"opensandbox.io/id\":\"%s\"}}]",
		 strlen(engine.containers) > 2 ? "," : "", host,
		 strcmp(state, "Paused") ? "running" : "paused", id);
	at = strlen(engine.containers) - 1;
	snprintf(engine.containers + at, sizeof(engine.containers) - at, "%s",
		 item);
}

/* 2100-01-01 */
#define LATER "\"expiresMs\":4102444800000"

static void control_up(struct rig *rig)
{
	struct lifecycle_secrets secrets;
	struct diag d = { 0 };
	struct lifecycle *l;

	rig_control_start(rig);
	l = rig->control->lifecycle;
	assert_non_null(l);
	lifecycle_secrets_init(&secrets);
	if (lifecycle_secrets_load(rig->config, &secrets, &d))
		fail_msg("%s", d.msg);
	lifecycle_give_secrets(l, &secrets);
	assert_int_equal(httpd_listen_unix(l->httpd,
					   rig_path(rig, "lifecycle.sock"),
					   0666),
			 0);
}

static int set_up(void **state)
{
	struct rig *rig;

	rig_configure_more =
		rig_configure_more ? rig_configure_more : configure;
	rig_bare(state);
	rig = *state;
	log_set_level((enum log_level) - 1);
	engine_start(rig->folder);
	rig_write(rig, "execd", "a program");
	rig_write(rig, "api.key", KEY "\n");
	rig_write(rig, "route.keys", "k=AAECAwQFBgcICQoLDA0ODw==\n");
	(void)chmod(rig_path(rig, "api.key"), 0600);
	(void)chmod(rig_path(rig, "route.keys"), 0600);
	box_put(rig, ONE, 2, "Running",
		"," LATER ",\"hasPolicy\":true,\"metadata\":{\"team\":\"web\","
		"\"a.io/b\":\"1\"}");
	record_put(rig, RECORD_SANDBOX, ONE,
		   "{\"id\":\"" ONE "\",\"addresses\":[\"10.231.0.2\"],"
		   "\"labels\":{\"team\":\"web\",\"a.io/b\":\"1\"}}");
	box_put(rig, TWO, 3, "Paused", "");
	box_put(rig, SECURED, 4, "Running",
		"," LATER ",\"secureToken\":\"secure-4\",\"renewExtendS\":600");
	control_up(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded && rig->gateway.syncs);
	RIG_UNTIL(rig, engine_was_asked("GET /v1.41/containers/json") ||
			       engine_was_asked("GET /v1.41/info"));
	rig_turns(rig, 20);
	return 0;
}

static int set_up_runtime(void **state)
{
	rig_configure_more = configure_runtime;
	set_up(state);
	rig_configure_more = NULL;
	return 0;
}

static int set_up_insecure(void **state)
{
	rig_configure_more = configure_insecure;
	set_up(state);
	rig_configure_more = NULL;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	rig->control = control_free(rig->control);
	engine_stop();
	return rig_tear_down(state);
}

/* -- the client ------------------------------------------------------------ */

/* The answer lives until the next one. */
static const struct call *ask_as(struct rig *rig, const char *headers,
				 const char *method, const char *path,
				 const char *body)
{
	static struct call *last;

	if (last)
		last = call_free(last);
	last = call_start_at(rig, rig_path(rig, "lifecycle.sock"), method, path,
			     headers, body);
	RIG_UNTIL(rig, call_poll(rig, last));
	if (!strstr(path, "/proxy/") && strcmp(method, "OPTIONS"))
		api_note("lifecycle-replies", method, path, last);
	if (last->status >= 400) {
		assert_non_null(json_text(json_find(last->json, "code")).ptr);
		assert_non_null(
			json_text(json_find(last->json, "message")).ptr);
		assert_int_equal(json_count(last->json), 2);
	}
	return last;
}

static const struct call *ask(struct rig *rig, const char *method,
			      const char *path, const char *body)
{
	return ask_as(rig, WITH, method, path, body);
}

/* -- who may ask ----------------------------------------------------------- */

static void key__is_needed(void **state)
{
	struct rig *rig = *state;
	const struct call *c;
	unsigned i;

	assert_call(ask_as(rig, "", "GET", "/v1/sandboxes", NULL), 401,
		    "\"MISSING_API_KEY\"");
	assert_call(ask_as(rig, "OPEN-SANDBOX-API-KEY: \r\n", "GET",
			   "/sandboxes", NULL),
		    401, "\"MISSING_API_KEY\"");
	assert_call(ask_as(rig, "OPEN-SANDBOX-API-KEY: " KEY "x\r\n", "GET",
			   "/sandboxes", NULL),
		    401, "\"INVALID_API_KEY\"");
	assert_call(ask_as(rig, "open-sandbox-api-key: " KEY "\r\n", "GET",
			   "/sandboxes", NULL),
		    200, "\"items\"");
	/* who may not ask does not learn which paths there are */
	assert_call(ask_as(rig, "", "GET", "/v1/nothing", NULL), 401,
		    "\"MISSING_API_KEY\"");
	assert_call(ask(rig, "GET", "/v1/nothing", NULL), 404, "NOT_FOUND");
	assert_call(ask(rig, "PUT", "/sandboxes", NULL), 405, NULL);
	assert_call(ask_as(rig, "", "GET", "/health", NULL), 200,
		    "{\"status\":\"healthy\"}");
	/* what there is, for who asks without a key; the second time as kept */
	for (i = 0; i < 2; i++) {
		c = ask_as(rig, "", "GET",
			   i ? "/v1/openapi.json" : "/openapi.json", NULL);
		assert_call(c, 200, "\"operationId\":\"createSandbox\"");
		assert_true(span_eq(json_text(json_find(c->json, "openapi")),
				    SPAN("3.1.0")));
		assert_in_range(json_count(json_find(c->json, "paths")), 15,
				100);
	}
}

static void key__that_nobody_asked_for_is_ignored(void **state)
{
	struct rig *rig = *state;

	assert_call(ask_as(rig, "", "GET", "/v1/sandboxes", NULL), 200,
		    "\"items\"");
	assert_call(ask_as(rig, "OPEN-SANDBOX-API-KEY: e2e-test\r\n", "GET",
			   "/v1/sandboxes", NULL),
		    200, "\"items\"");
	/* no ingress: this listener passes requests on */
	assert_call(ask_as(rig, "", "GET",
			   "/v1/sandboxes/" ONE "/endpoints/8000", NULL),
		    200, "{\"endpoint\":\"x/sandboxes/" ONE "/proxy/8000\"}");
}

static void key__files_are_checked(void **state)
{
	static const char *const bad[] = { "", "short\n",
					   "a key with spaces in it\n" };
	struct lifecycle_secrets s;
	struct rig *rig = *state;
	struct diag d;
	size_t i;

	for (i = 0; i < ARRAY_LEN(bad); i++) {
		d = (struct diag){ 0 };
		rig_write(rig, "api.key", bad[i]);
		lifecycle_secrets_init(&s);
		assert_int_not_equal(
			lifecycle_secrets_load(rig->config, &s, &d), 0);
		assert_non_null(strstr(d.msg, "api.key"));
		assert_false(lifecycle_key_is(&s, SPAN("")));
		lifecycle_secrets_fini(&s);
	}
	d = (struct diag){ 0 };
	unlink(rig_path(rig, "api.key"));
	lifecycle_secrets_init(&s);
	assert_int_not_equal(lifecycle_secrets_load(rig->config, &s, &d), 0);
	lifecycle_secrets_fini(&s);
}

static void cors__any_origin_may_ask(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	c = ask_as(rig,
		   "Origin: https://a.example\r\n"
		   "Access-Control-Request-Method: PATCH\r\n"
		   "Access-Control-Request-Headers: open-sandbox-api-key\r\n",
		   "OPTIONS", "/v1/sandboxes/" ONE "/metadata", NULL);
	assert_call(c, 200, NULL);
	assert_non_null(strstr(c->text, "Access-Control-Allow-Origin: *\r\n"));
	assert_non_null(strstr(c->text, "PATCH"));
	assert_non_null(strstr(c->text, "Access-Control-Allow-Headers: "
					"open-sandbox-api-key\r\n"));
	/* refusals too: a page is to see why */
	c = ask_as(rig, "Origin: https://a.example\r\n", "GET", "/sandboxes",
		   NULL);
	assert_call(c, 401, NULL);
	assert_non_null(strstr(c->text, "Access-Control-Allow-Origin: *\r\n"));
	c = ask(rig, "GET", "/sandboxes", NULL);
	assert_null(strstr(c->text, "Access-Control"));
}

static void request_id__is_the_clients(void **state)
{
	struct rig *rig = *state;

	assert_non_null(strstr(ask_as(rig, "X-Request-ID: abc-1\r\n", "GET",
				      "/v1/sandboxes", NULL)
				       ->text,
			       "X-Request-ID: abc-1\r\n"));
}

/* -- looking --------------------------------------------------------------- */

static void sandbox__is_shown_without_tokens(void **state)
{
	struct rig *rig = *state;
	const struct call *c = ask(rig, "GET", "/v1/sandboxes/" ONE, NULL);

	assert_call(c, 200,
		    "{\"id\":\"" ONE "\",\"status\":{\"state\":\"Running\","
		    "\"reason\":\"CONTAINER_RUNNING\"");
	assert_call(c, 200,
		    "\"metadata\":{\"a.io/b\":\"1\",\"team\":\"web\"},"
		    "\"image\":{\"uri\":\"busybox\"},\"entrypoint\":[\"sh\"],"
		    "\"expiresAt\":\"2100-01-01T00:00:00.000Z\"");
	assert_null(strstr(c->body, "exec-2"));
	assert_null(strstr(c->body, "egress-2"));
	assert_call(ask(rig, "GET", "/sandboxes/" NOBODY, NULL), 404,
		    "DOCKER::SANDBOX_NOT_FOUND");
}

static void sandboxes__are_listed(void **state)
{
	struct rig *rig = *state;
	const struct call *c = ask(rig, "GET", "/v1/sandboxes", NULL);

	assert_call(c, 200,
		    "\"totalItems\":3,\"totalPages\":1,"
		    "\"hasNextPage\":false}");
	/* newest first */
	assert_true(strstr(c->body, SECURED) < strstr(c->body, TWO));
	assert_call(
		ask(rig, "GET", "/sandboxes?state=paused&state=failed", NULL),
		200, "\"totalItems\":1");
	assert_call(ask(rig, "GET", "/sandboxes?state=odd", NULL), 200,
		    "\"items\":[]");
	assert_call(ask(rig, "GET",
			"/sandboxes?metadata=team%3Dweb%26a.io%252Fb%3D1",
			NULL),
		    200, "\"totalItems\":1");
	assert_call(ask(rig, "GET", "/sandboxes?page=2&pageSize=2", NULL), 200,
		    "\"page\":2,\"pageSize\":2,\"totalItems\":3,"
		    "\"totalPages\":2,\"hasNextPage\":false");
	assert_call(ask(rig, "GET", "/sandboxes?metadata=team", NULL), 400,
		    "INVALID_METADATA_FORMAT");
}

/* -- changing -------------------------------------------------------------- */

static void metadata__is_patched(void **state)
{
	struct rig *rig = *state;
	struct call *c;

	assert_call(ask(rig, "PATCH", "/v1/sandboxes/" ONE "/metadata",
			"{\"env\":\"stage\",\"team\":null,\"none\":null}"),
		    200, "\"metadata\":{\"a.io/b\":\"1\",\"env\":\"stage\"}");
	/* it is stored */
	assert_non_null(strstr(
		fake_value(&rig->vault, VAULT_SCOPE_CONTROL, RECORD_BOX, ONE),
		"\"env\":\"stage\""));
	/* policies choose by it */
	c = call_start(rig, "GET", "/v1/sandboxes/" ONE, NULL);
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_call(c, 200,
		    "\"addresses\":[\"10.231.0.2\"],\"labels\":{\"a.io/b\":"
		    "\"1\",\"env\":\"stage\"}");
	call_free(c);
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata",
			"{\"opensandbox.io/id\":\"x\"}"),
		    400, "SANDBOX::INVALID_METADATA_LABEL");
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata",
			"{\"opensandbox.io/id\":null}"),
		    400, "SANDBOX::INVALID_METADATA_LABEL");
	assert_call(
		ask(rig, "PATCH", "/sandboxes/" ONE "/metadata", "{\"a\":1}"),
		400, "expected a string or null");
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata", "[]"), 400,
		    "expected an object");
	assert_call(ask(rig, "PATCH", "/sandboxes/" NOBODY "/metadata", "{}"),
		    404, "DOCKER::SANDBOX_NOT_FOUND");
}

/* As many names as the registry has room for, as long as they may be. */
static void metadata__has_bounds(void **state)
{
	struct rig *rig = *state;
	char long_name[512], body[4096];
	size_t at;
	unsigned i;

	memset(long_name, 'a', sizeof(long_name));
	for (i = 63; i < 253; i += 64)
		long_name[i] = '.';
	long_name[253] = '/';
	long_name[254 + 63] = '\0';
	snprintf(body, sizeof(body), "{\"%s\":\"v\"}", long_name);
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata", body), 200,
		    long_name);
	/* two were there */
	at = (size_t)snprintf(body, sizeof(body), "{\"team\":null");
	for (i = 0; i < 63; i++)
		at += (size_t)snprintf(body + at, sizeof(body) - at,
				       ",\"n%u\":\"v\"", i);
	snprintf(body + at, sizeof(body) - at, "}");
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata", body), 400,
		    "\"metadata: 65 names, at most 64\"");
	snprintf(body + at, sizeof(body) - at, ",\"a.io/b\":null}");
	assert_call(ask(rig, "PATCH", "/sandboxes/" ONE "/metadata", body), 200,
		    "\"n62\"");
	snprintf(body + at, sizeof(body) - at, ",\"n63\":\"\",\"n64\":\"\"}");
	memcpy(strstr(body, "null"), "\"me\"", 4);
	at = (size_t)snprintf(long_name, sizeof(long_name), "%s",
			      "{\"image\":{\"uri\":\"b\"},\"entrypoint\":["
			      "\"a\"],\"resourceLimits\":{},\"metadata\":");
	memmove(body + at, body, strlen(body) + 1);
	memcpy(body, long_name, at);
	strcat(body, "}");
	assert_call(ask(rig, "POST", "/sandboxes", body), 400,
		    "\"metadata: 66 names, at most 64\"");
	assert_false(engine_was_asked("POST /v1.41/containers/create"));
}

static void expiry__is_renewed(void **state)
{
	struct rig *rig = *state;
	char at[CLOCK_TEXT_SIZE], body[128], reply[128];

	clock_text(clock_wall_ms() + 3600 * 1000, at, sizeof(at));
	snprintf(body, sizeof(body), "{\"expiresAt\":\"%s\"}", at);
	snprintf(reply, sizeof(reply), "{\"expiresAt\":\"%s\"}", at);
	assert_call(ask(rig, "POST", "/v1/sandboxes/" ONE "/renew-expiration",
			body),
		    200, reply);
	assert_call(ask(rig, "GET", "/v1/sandboxes/" ONE, NULL), 200, at);
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/renew-expiration",
			"{\"expiresAt\":\"2020-01-01T00:00:00Z\"}"),
		    400, "DOCKER::INVALID_EXPIRATION");
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/renew-expiration",
			"{\"expiresAt\":\"2099-01-01T00:00:00+01:00\"}"),
		    400, "more than 86400 s ahead");
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/renew-expiration",
			"{\"expiresAt\":\"tomorrow\"}"),
		    400, "expiresAt");
	assert_call(
		ask(rig, "POST", "/sandboxes/" ONE "/renew-expiration", NULL),
		400, "no JSON");
	/* manual cleanup */
	assert_call(
		ask(rig, "POST", "/sandboxes/" TWO "/renew-expiration", body),
		409, "DOCKER::INVALID_EXPIRATION");
}

/* Said by the gateway; never to an earlier time. */
static void expiry__is_renewed_by_access(void **state)
{
	struct msg_scope used = { .scope = SECURED };
	struct rig *rig = *state;
	const struct box *b;
	uint64_t soon = clock_wall_ms() + 120 * 1000;
	char at[CLOCK_TEXT_SIZE], body[128];

	assert_int_equal(chan_send(rig->gateway.chan, MSG_GATEWAY_ACCESSED, 0,
				   &used, sizeof(used), SPAN_NONE, NULL, 0),
			 0);
	rig_turns(rig, 20);
	assert_call(ask(rig, "GET", "/sandboxes/" SECURED, NULL), 200,
		    "\"expiresAt\":\"2100-01-01T00:00:00.000Z\"");
	clock_text(soon, at, sizeof(at));
	snprintf(body, sizeof(body), "{\"expiresAt\":\"%s\"}", at);
	assert_call(ask(rig, "POST", "/sandboxes/" SECURED "/renew-expiration",
			body),
		    200, at);
	assert_int_equal(chan_send(rig->gateway.chan, MSG_GATEWAY_ACCESSED, 0,
				   &used, sizeof(used), SPAN_NONE, NULL, 0),
			 0);
	b = boxes_find(&rig->control->lifecycle->boxes, SPAN(SECURED));
	RIG_UNTIL(rig, (b = boxes_find(&rig->control->lifecycle->boxes,
				       SPAN(SECURED)))
				       ->expires_ms >= soon + 470 * 1000);
	assert_true(b->expires_ms <= clock_wall_ms() + 600 * 1000);
}

static void pause__and_resume(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	c = ask(rig, "POST", "/v1/sandboxes/" ONE "/pause", NULL);
	assert_call(c, 202, NULL);
	assert_string_equal(c->body, "");
	assert_non_null(strstr(c->text, "Content-Length: 0\r\n"));
	assert_true(engine_was_asked("POST /v1.41/containers/c2/pause"));
	assert_call(ask(rig, "GET", "/sandboxes/" ONE, NULL), 200,
		    "\"state\":\"Paused\"");
	/* nobody gets in meanwhile */
	RIG_UNTIL(rig, !fake_inside(&rig->gateway, ONE)->addr_count);
	assert_int_equal(fake_inside(&rig->gateway, ONE)->shut,
			 INGRESS_SHUT_PAUSED);
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/pause", NULL), 409,
		    "DOCKER::SANDBOX_NOT_RUNNING");
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/resume", NULL), 202,
		    NULL);
	RIG_UNTIL(rig, fake_inside(&rig->gateway, ONE)->addr_count == 2);
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/resume", NULL), 409,
		    "DOCKER::SANDBOX_NOT_PAUSED");
	assert_call(ask(rig, "POST", "/sandboxes/" NOBODY "/resume", NULL), 404,
		    "DOCKER::SANDBOX_NOT_FOUND");
}

static void sandbox__is_removed(void **state)
{
	struct rig *rig = *state;

	assert_non_null(fake_inside(&rig->gateway, ONE));
	assert_call(ask(rig, "DELETE", "/v1/sandboxes/" ONE, NULL), 204, NULL);
	assert_true(engine_was_asked("DELETE /v1.41/containers/sandbox-" ONE));
	assert_null(
		fake_value(&rig->vault, VAULT_SCOPE_CONTROL, RECORD_BOX, ONE));
	RIG_UNTIL(rig, !fake_inside(&rig->gateway, ONE));
	assert_call(ask(rig, "DELETE", "/sandboxes/" ONE, NULL), 404,
		    "DOCKER::SANDBOX_NOT_FOUND");
}

static void create__is_checked_first(void **state)
{
	struct rig *rig = *state;

	assert_call(ask(rig, "POST", "/v1/sandboxes", "{}"), 400, "image");
	assert_call(ask(rig, "POST", "/v1/sandboxes",
			"{\"image\":{\"uri\":\"b\"},\"entrypoint\":[\"a\"],"
			"\"timeout\":86401,\"resourceLimits\":{}}"),
		    400, "timeout");
	assert_call(ask(rig, "POST", "/sandboxes",
			"{\"snapshotId\":\"" NOBODY "\",\"timeout\":60,"
			"\"resourceLimits\":{}}"),
		    404, "SNAPSHOT::NOT_FOUND");
}

/* The daemon here serves API 1.44, the last without, and the volume is one of
 * another driver. */
static void create__of_a_folder_of_a_volume_needs_its_daemon(void **state)
{
	struct rig *rig = *state;

	assert_call(ask(rig, "POST", "/v1/sandboxes",
			"{\"image\":{\"uri\":\"b\"},\"entrypoint\":[\"a\"],"
			"\"resourceLimits\":{},\"volumes\":[{\"name\":\"a\","
			"\"mountPath\":\"/a\",\"subPath\":\"x\",\"pvc\":{"
			"\"claimName\":\"data\"}}]}"),
		    400, "VOLUME::PVC_SUBPATH_UNSUPPORTED_DRIVER");
	assert_false(engine_was_asked("POST /v1.41/containers/create"));
	assert_true(engine_was_asked("GET /v1.41/volumes/data"));
	assert_false(engine_was_asked("POST /v1.45/containers/create"));
}

/* Containers are not begun with a runtime that the daemon has not. */
static void create__needs_the_runtime(void **state)
{
	struct rig *rig = *state;

	RIG_UNTIL(rig, strstr(rig->control->lifecycle->runtime->why, "runsc"));
	assert_call(ask_as(rig, "", "POST", "/v1/sandboxes",
			   "{\"image\":{\"uri\":\"b\"},\"entrypoint\":[\"a\"],"
			   "\"resourceLimits\":{}}"),
		    503,
		    "the Docker daemon has no runtime \\\"runsc\\\" "
		    "(lifecycle.runtime); it has");
	assert_false(engine_was_asked("POST"));
}

/* -- endpoints ------------------------------------------------------------- */

static void endpoint__of_each_port(void **state)
{
	struct rig *rig = *state;

	assert_call(
		ask(rig, "GET", "/v1/sandboxes/" ONE "/endpoints/44772", NULL),
		200,
		"{\"endpoint\":\"x:8081/sandboxes/" ONE
		"/proxy/44772\",\"headers\":{\"X-EXECD-ACCESS-TOKEN\":"
		"\"exec-2\"}}");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE
			"/endpoints/18080?use_server_proxy=true",
			NULL),
		    200, "\"OPENSANDBOX-EGRESS-AUTH\":\"egress-2\"");
	assert_call(
		ask(rig, "GET", "/sandboxes/" SECURED "/endpoints/80", NULL),
		200, "\"OpenSandbox-Secure-Access\":\"secure-4\"");
	assert_call(ask(rig, "GET", "/sandboxes/" ONE "/endpoints/0", NULL),
		    400, "DOCKER::INVALID_PORT");
	assert_call(ask(rig, "GET", "/sandboxes/" ONE "/endpoints/65536", NULL),
		    400, "DOCKER::INVALID_PORT");
	assert_call(ask(rig, "GET", "/sandboxes/" NOBODY "/endpoints/1", NULL),
		    404, "DOCKER::SANDBOX_NOT_FOUND");
}

static void endpoint__that_expires_is_signed(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	c = ask(rig, "GET",
		"/sandboxes/" SECURED "/endpoints/80?expires=4102444800", NULL);
	assert_call(c, 200, "{\"endpoint\":\"x:8081/" SECURED "/80/");
	assert_null(strstr(c->body, "headers"));
	assert_call(ask(rig, "GET",
			"/sandboxes/" SECURED
			"/endpoints/80?expires=4102444800&use_server_proxy="
			"true",
			NULL),
		    400, "SANDBOX::INVALID_PARAMETER");
	assert_call(ask(rig, "GET",
			"/sandboxes/" SECURED "/endpoints/80?expires=1", NULL),
		    400, "a time to come");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE "/endpoints/80?expires=4102444800",
			NULL),
		    400, "SANDBOX::API_NOT_SUPPORTED");
}

/* -- what the gateway knows ------------------------------------------------ */

static void inside__is_told(void **state)
{
	unsigned char hash[MSG_HASH_SIZE];
	struct rig *rig = *state;
	const struct msg_ingress *in = fake_inside(&rig->gateway, SECURED);

	assert_non_null(in);
	assert_int_equal(in->addr_count, 2);
	assert_true(in->has_execd_token && in->is_secured && in->renews);
	SHA256((const unsigned char *)"exec-4", 6, hash);
	assert_memory_equal(in->execd_token, hash, sizeof(hash));
	SHA256((const unsigned char *)"secure-4", 8, hash);
	assert_memory_equal(in->secure_token, hash, sizeof(hash));
	assert_int_equal(fake_inside(&rig->gateway, TWO)->addr_count, 0);
	assert_false(fake_inside(&rig->gateway, ONE)->is_secured);
	assert_string_equal(buf_peek(&rig->gateway.keys).ptr,
			    "k=AAECAwQFBgcICQoLDA0ODw==\n");
	/* a new gateway is told everything */
	rig_gateway_down(rig);
	rig_turns(rig, 5);
	rig_gateway_up(rig);
	RIG_UNTIL(rig, fake_inside(&rig->gateway, ONE) &&
			       fake_inside(&rig->gateway, SECURED));
}

/* -- the way to a port ----------------------------------------------------- */

static size_t gateway_read(struct rig *rig, char *dst, size_t size,
			   const char *until)
{
	size_t len = 0;
	ssize_t n;

	dst[0] = '\0';
	RIG_UNTIL(rig, rig->gateway.client_fd > 0);
	while (!strstr(dst, until)) {
		rig_turn(rig);
		n = recv(rig->gateway.client_fd, dst + len, size - 1 - len,
			 MSG_DONTWAIT);
		assert_true(n > 0 || (n < 0 && errno == EAGAIN));
		len += n > 0 ? (size_t)n : 0;
		dst[len] = '\0';
	}
	return len;
}

static void proxy__hands_the_connection_over(void **state)
{
	static const char reply[] = "HTTP/1.1 200 OK\r\nX-Request-ID: theirs"
				    "\r\nContent-Length: 2\r\nConnection: close"
				    "\r\n\r\nhi";
	struct rig *rig = *state;
	struct call *c;
	char text[4096];

	c = call_start_at(rig, rig_path(rig, "lifecycle.sock"), "POST",
			  "/v1/sandboxes/" ONE "/proxy/8000/a%2Fb?q=1",
			  WITH "X-Other: yes\r\n", "body bytes");
	gateway_read(rig, text, sizeof(text), "body bytes");
	assert_non_null(strstr(text, "POST /v1/sandboxes/" ONE
				     "/proxy/8000/a%2Fb?q=1 HTTP/1.1\r\n"));
	assert_non_null(strstr(text, "X-Other: yes\r\n"));
	assert_non_null(strstr(text, "Content-Length: 10\r\n"));
	assert_non_null(strstr(text, "Connection: close\r\n"));
	/* the API's key stays here */
	assert_null(strstr(text, KEY));
	assert_int_equal(send(rig->gateway.client_fd, reply, sizeof(reply) - 1,
			      MSG_NOSIGNAL),
			 sizeof(reply) - 1);
	close(rig->gateway.client_fd);
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_int_equal(c->status, 200);
	assert_string_equal(c->body, "hi");
	RIG_UNTIL(rig, !rig->control->lifecycle->proxy_count);
	call_free(c);
}

static void proxy__passes_an_upgrade(void **state)
{
	struct rig *rig = *state;
	struct call *c;
	char text[4096];

	c = call_start_at(rig, rig_path(rig, "lifecycle.sock"), "GET",
			  "/sandboxes/" ONE "/proxy/80/ws",
			  "Connection: Upgrade\r\nUpgrade: websocket\r\n"
			  "Expect: 100-continue\r\n",
			  NULL);
	gateway_read(rig, text, sizeof(text), "\r\n\r\n");
	assert_non_null(strstr(text, "Connection: Upgrade\r\n"));
	assert_non_null(strstr(text, "Upgrade: websocket\r\n"));
	assert_null(strstr(text, "close"));
	call_free(c);
	close(rig->gateway.client_fd);
	RIG_UNTIL(rig, !rig->control->lifecycle->proxy_count);
}

static void proxy__needs_a_gateway(void **state)
{
	struct rig *rig = *state;

	rig_gateway_down(rig);
	rig_turns(rig, 5);
	assert_call(ask_as(rig, "", "GET", "/sandboxes/" ONE "/proxy/80", NULL),
		    502, "GATEWAY_UNAVAILABLE");
}

/* A client that goes takes the gateway's end with it. */
static void proxy__ends_with_the_client(void **state)
{
	struct rig *rig = *state;
	struct call *c;
	char text[4096];

	c = call_start_at(rig, rig_path(rig, "lifecycle.sock"), "GET",
			  "/sandboxes/" ONE "/proxy/80", "", NULL);
	gateway_read(rig, text, sizeof(text), "\r\n\r\n");
	call_free(c);
	RIG_UNTIL(rig,
		  recv(rig->gateway.client_fd, text, 1, MSG_DONTWAIT) == 0);
	close(rig->gateway.client_fd);
	RIG_UNTIL(rig, !rig->control->lifecycle->proxy_count);
}

/* -- snapshots ------------------------------------------------------------- */

static void snapshot_id(const struct call *c, char dst[BOX_ID_SIZE])
{
	assert_true(span_copy(json_text(json_find(c->json, "id")), dst,
			      BOX_ID_SIZE));
}

static const char *state_of(struct rig *rig, const char *id)
{
	static char state[32];
	const struct call *c;
	char path[128];

	snprintf(path, sizeof(path), "/v1/snapshots/%s", id);
	c = ask(rig, "GET", path, NULL);
	(void)span_copy(
		json_text(json_find(json_find(c->json, "status"), "state")),
		state, sizeof(state));
	return state;
}

static void snapshot__is_made_and_removed(void **state)
{
	char id[BOX_ID_SIZE], path[128], body[256];
	struct rig *rig = *state;
	const struct call *c;

	engine_let_commit(false);
	c = ask(rig, "POST", "/v1/sandboxes/" ONE "/snapshots",
		"{\"name\":\"first\"}");
	assert_call(c, 202,
		    "\"status\":{\"state\":\"Creating\",\"reason\":"
		    "\"snapshot_accepted\",\"message\":\"Snapshot "
		    "creation accepted.\"");
	snapshot_id(c, id);
	snprintf(path, sizeof(path), "Location: /v1/snapshots/%s\r\n", id);
	assert_non_null(strstr(c->text, path));
	assert_string_equal(state_of(rig, id), "Creating");
	snprintf(path, sizeof(path), "/v1/snapshots/%s", id);
	assert_call(ask(rig, "DELETE", path, NULL), 409,
		    "SNAPSHOT::INVALID_STATE");
	snprintf(body, sizeof(body),
		 "{\"snapshotId\":\"%s\",\"timeout\":60,\"resourceLimits\":{}}",
		 id);
	assert_call(ask(rig, "POST", "/sandboxes", body), 409,
		    "SNAPSHOT::NOT_READY");
	engine_let_commit(true);
	RIG_UNTIL(rig, !strcmp(state_of(rig, id), "Ready"));
	c = ask(rig, "GET", path, NULL);
	assert_call(c, 200,
		    "\"name\":\"first\",\"status\":{\"state\":"
		    "\"Ready\",\"lastTransitionAt\"");
	assert_call(ask(rig, "GET",
			"/snapshots?sandboxId=" ONE "&state=ready&pageSize=7",
			NULL),
		    200, "\"pageSize\":7,\"totalItems\":1");
	engine.image_is_used = true;
	assert_call(ask(rig, "DELETE", path, NULL), 409,
		    "SNAPSHOT::DELETE_CONFLICT");
	assert_string_equal(state_of(rig, id), "Ready");
	engine.image_is_used = false;
	assert_call(ask(rig, "DELETE", path, NULL), 204, NULL);
	assert_call(ask(rig, "GET", path, NULL), 404, "SNAPSHOT::NOT_FOUND");
	assert_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
			       RECORD_SNAPSHOT, id));
	assert_call(ask(rig, "DELETE", path, NULL), 404, "SNAPSHOT::NOT_FOUND");
}

static void snapshot__that_fails_says_so(void **state)
{
	struct rig *rig = *state;
	char id[BOX_ID_SIZE];

	strcpy(engine.commit_reply, "{\"message\":\"no space left\"}");
	snapshot_id(ask(rig, "POST", "/sandboxes/" TWO "/snapshots", NULL), id);
	RIG_UNTIL(rig, !strcmp(state_of(rig, id), "Failed"));
	assert_call(ask(rig, "GET", "/snapshots?state=failed", NULL), 200,
		    "no space left");
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/snapshots",
			"{\"name\":\"\"}"),
		    400, "name");
	assert_call(ask(rig, "POST", "/sandboxes/" ONE "/snapshots", "7"), 400,
		    "JSON object");
	assert_call(ask(rig, "POST", "/sandboxes/" NOBODY "/snapshots", NULL),
		    404, "DOCKER::SANDBOX_NOT_FOUND");
}

/* What an earlier control process was at when it ended. */
static void snapshot__left_behind(void **state)
{
	struct rig *rig = *state;

	record_put(rig, RECORD_SNAPSHOT, "s1",
		   "{\"id\":\"s1\",\"sandboxId\":\"" ONE "\",\"name\":\"\","
		   "\"state\":\"Creating\",\"message\":\"\",\"createdMs\":1,"
		   "\"changedMs\":1}");
	record_put(rig, RECORD_SNAPSHOT, "s2",
		   "{\"id\":\"s2\",\"sandboxId\":\"" ONE "\",\"name\":\"\","
		   "\"state\":\"Deleting\",\"message\":\"\",\"createdMs\":1,"
		   "\"changedMs\":1}");
	rig_vault_down(rig);
	rig_turns(rig, 5);
	rig_vault_up(rig);
	RIG_UNTIL(rig, !strcmp(state_of(rig, "s1"), "Failed"));
	RIG_UNTIL(rig, !fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
				   RECORD_SNAPSHOT, "s2"));
	assert_true(engine_was_asked(
		"DELETE /v1.41/images/opensandbox-snapshots:s2"));
}

/* -- diagnostics ----------------------------------------------------------- */

static void diagnostics__as_text(void **state)
{
	struct rig *rig = *state;
	const struct call *c;

	c = ask(rig, "GET", "/v1/sandboxes/" ONE "/diagnostics/logs?tail=7",
		NULL);
	assert_call(c, 200, NULL);
	assert_string_equal(c->body, "hello\noops\n");
	assert_non_null(strstr(c->text, "Deprecation: true\r\n"));
	assert_non_null(strstr(c->text, "Content-Type: text/plain"));
	assert_true(engine_was_asked("tail=7&since=0"));
	c = ask(rig, "GET", "/sandboxes/" ONE "/diagnostics/inspect", NULL);
	assert_call(c, 200, "Container state: running\n");
	assert_null(strstr(c->body, "do-not-show"));
	assert_null(strstr(c->body, "exec-2"));
	c = ask(rig, "GET", "/sandboxes/" ONE "/diagnostics/events", NULL);
	assert_call(c, 200,
		    "2026-01-02T03:04:05.678Z container Normal Started");
	assert_null(strstr(c->body, "Exited"));
	c = ask(rig, "GET",
		"/sandboxes/" ONE "/diagnostics/summary?event_limit=1", NULL);
	assert_call(c, 200, "== logs ==\nhello\noops\n");
	assert_call(c, 200, "== events ==\n2026-01-02");
}

static void diagnostics__as_a_descriptor(void **state)
{
	struct rig *rig = *state;

	assert_call(ask(rig, "GET",
			"/v1/sandboxes/" ONE
			"/diagnostics/logs?scope=container&since=10m",
			NULL),
		    200,
		    "{\"sandboxId\":\"" ONE "\",\"kind\":\"logs\",\"scope\":"
		    "\"container\",\"delivery\":\"inline\",\"contentType\":"
		    "\"text/plain; charset=utf-8\",\"content\":\"hello\\noops"
		    "\\n\",\"contentLength\":11,\"truncated\":false}");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE "/diagnostics/events?scope=runtime",
			NULL),
		    200, "\"kind\":\"events\"");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE "/diagnostics/logs?scope=odd", NULL),
		    501, "DIAGNOSTICS_NOT_IMPLEMENTED");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE "/diagnostics/logs?tail=10001", NULL),
		    400, "tail");
	assert_call(ask(rig, "GET",
			"/sandboxes/" ONE "/diagnostics/logs?since=x", NULL),
		    400, "since");
	assert_call(ask(rig, "GET", "/sandboxes/" NOBODY "/diagnostics/events",
			NULL),
		    404, "DOCKER::SANDBOX_NOT_FOUND");
}

/* -- what there is not ----------------------------------------------------- */

static void pools__are_none(void **state)
{
	static const char *const asked[][2] = {
		{ "GET", "/v1/pools" },	     { "POST", "/v1/pools" },
		{ "GET", "/v1/pools/a" },    { "PUT", "/v1/pools/a" },
		{ "DELETE", "/v1/pools/a" },
	};
	struct rig *rig = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(asked); i++)
		assert_call(ask(rig, asked[i][0], asked[i][1], NULL), 501,
			    "KUBERNETES::POOL_NOT_SUPPORTED");
}

static void drain__waits_for_both_servers(void **state)
{
	const struct msg_drain drain = { .grace_ms = 4000 };
	struct rig *rig = *state;
	struct call *c;

	engine_let_commit(false);
	rig->vault.hold = true;
	c = call_start_at(rig, rig_path(rig, "lifecycle.sock"), "POST",
			  "/v1/sandboxes/" ONE "/snapshots", WITH, NULL);
	RIG_UNTIL(rig, rig->vault.held);
	rig_tell(rig, MSG_SUPERVISOR_DRAIN, &drain, -1);
	rig_turns(rig, 50);
	assert_int_equal(rig->control->draining, 1);
	/* nobody new comes in, who waits is answered */
	fake_vault_go_on(&rig->vault);
	rig->vault.hold = false;
	RIG_UNTIL(rig, call_poll(rig, c));
	assert_int_equal(c->status, 202);
	RIG_UNTIL(rig, !rig->control->draining);
	assert_int_equal(rig->control->exit_status, EXIT_SUCCESS);
	call_free(c);
	engine_let_commit(true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(create__needs_the_runtime,
						set_up_runtime, tear_down),
		TEST(key__is_needed),
		cmocka_unit_test_setup_teardown(
			key__that_nobody_asked_for_is_ignored, set_up_insecure,
			tear_down),
		TEST(key__files_are_checked),
		TEST(cors__any_origin_may_ask),
		TEST(request_id__is_the_clients),
		TEST(sandbox__is_shown_without_tokens),
		TEST(sandboxes__are_listed),
		TEST(metadata__is_patched),
		TEST(metadata__has_bounds),
		TEST(expiry__is_renewed),
		TEST(expiry__is_renewed_by_access),
		TEST(pause__and_resume),
		TEST(sandbox__is_removed),
		TEST(create__is_checked_first),
		TEST(create__of_a_folder_of_a_volume_needs_its_daemon),
		TEST(endpoint__of_each_port),
		TEST(endpoint__that_expires_is_signed),
		TEST(inside__is_told),
		TEST(proxy__hands_the_connection_over),
		TEST(proxy__passes_an_upgrade),
		TEST(proxy__needs_a_gateway),
		TEST(proxy__ends_with_the_client),
		TEST(snapshot__is_made_and_removed),
		TEST(snapshot__that_fails_says_so),
		TEST(snapshot__left_behind),
		TEST(diagnostics__as_text),
		TEST(diagnostics__as_a_descriptor),
		TEST(pools__are_none),
		TEST(drain__waits_for_both_servers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
