/* SPDX-License-Identifier: Apache-2.0 */
/* test_egress_api.c - the egress API of a sandbox, asked of a whole control
 * role as the gateway does it: on sockets that are handed over
 *
 * Answers are compared byte by byte with the contract's examples.
 */

#include "tests/unit/control/rig.h"

#include "src/control/egress/net_policy_change.h"
#include "src/control/egress/vault_scope_change.h"
#include "src/control/lifecycle/lifecycle.h"

#define ONE    "11111111-1111-4111-8111-111111111111"
#define PLAIN  "22222222-2222-4222-8222-222222222222"
#define NOBODY "33333333-3333-4333-8333-333333333333"
#define TOKEN  "egress-token-of-one"
#define SECRET "s3cr3t-value"

#define POLICY                                                            \
	"{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"allow\","  \
	"\"target\":\"*.Example.com\"},{\"action\":\"allow\",\"target\":" \
	"\"api.github.com\"}]}"
#define CREDENTIAL(name) \
	"{\"name\":\"" name "\",\"source\":{\"value\":\"" SECRET "\"}}"
#define BINDING(name, host)                                            \
	"{\"name\":\"" name "\",\"match\":{\"hosts\":[\"" host "\"]}," \
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"c\"}}"
#define SHOWN(name, revision, host)                                       \
	"{\"name\":\"" name "\",\"revision\":" revision                   \
	",\"match\":{\"schemes\":[\"https\"],\"ports\":[443],\"hosts\":[" \
	"\"" host "\"],\"methods\":[\"GET\",\"POST\",\"PUT\",\"PATCH\","  \
	"\"DELETE\"],\"paths\":[\"/*\"]},\"auth\":{\"type\":\"bearer\"}}"

/* -- the far end ----------------------------------------------------------- */

static void configure(struct rig *rig, char *dst, size_t size)
{
	snprintf(dst, size,
		 ",\"sandboxInterfaces\":[\"sp-*\"],\"lifecycle\":{\"listen\":"
		 "\"127.0.0.1:8080\",\"insecure\":true,\"dockerSocket\":"
		 "\"%s/docker.sock\",\"execd\":\"%s/execd\"}",
		 rig->folder, rig->folder);
}

static void record_put(struct rig *rig, enum record_kind kind, const char *name,
		       const char *text)
{
	struct fake_record *r = must_alloc(sizeof(*r));

	strcpy(r->head.scope, VAULT_SCOPE_CONTROL);
	strcpy(r->head.name, name);
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
		    const char *more)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"id\":\"%s\",\"container\":\"c%u\",\"state\":\"Running\","
		 "\"reason\":\"CONTAINER_RUNNING\",\"message\":\"It runs.\","
		 "\"createdMs\":1000,\"changedMs\":1000,\"image\":\"busybox\","
		 "\"entrypoint\":[\"sh\"],\"v4\":\"10.231.0.%u\",\"v6\":"
		 "\"fd5a:11:9047::%x\",\"execdToken\":\"exec\","
		 "\"egressToken\":\"" TOKEN "\"%s}",
		 id, host, host, host, more);
	record_put(rig, RECORD_BOX, id, text);
}

static int set_up(void **state)
{
	struct rig *rig;

	rig_configure_more = configure;
	rig_bare(state);
	rig = *state;
	log_set_level((enum log_level) - 1);
	rig_write(rig, "execd", "a program");
	box_put(rig, ONE, 2, ",\"hasPolicy\":true,\"credentialProxy\":true");
	box_put(rig, PLAIN, 3, ",\"hasPolicy\":true");
	/* in two pieces */
	record_put(rig, RECORD_NET_POLICY, ONE ".00",
		   "{\"defaultAction\":\"deny\",\"egress\":[{\"action\":\"al");
	record_put(rig, RECORD_NET_POLICY, ONE ".01",
		   "low\",\"target\":\"*.Example.com\"}]}");
	record_put(rig, RECORD_NET_POLICY, PLAIN ".00", "null");
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded && rig->gateway.syncs);
	return 0;
}

/* What the gateway passes on, with the headers that it is given. */
static const struct call *ask_with(struct rig *rig, const char *method,
				   const char *path, const char *headers,
				   const char *body)
{
	struct msg_ingress_client client = { .id = ONE };
	size_t len = body ? strlen(body) : 0, size = len + 4096;
	char *request = must_alloc(size);
	static struct call *last;
	ssize_t at = 0, n, total;
	int fds[2];

	if (last)
		last = call_free(last);
	last = must_alloc(sizeof(*last));
	assert_int_equal(socketpair(AF_UNIX,
				    SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
				    0, fds),
			 0);
	assert_int_equal(chan_send(rig->gateway.chan, MSG_GATEWAY_EGRESS_CLIENT,
				   0, &client, sizeof(client), SPAN_NONE,
				   &fds[1], 1),
			 0);
	close(fds[1]);
	last->fd = fds[0];
	total = snprintf(request, size,
			 "%s %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			 "%sContent-Length: %zu\r\n\r\n%s",
			 method, path, headers, len, body ? body : "");
	while (at < total) {
		n = send(last->fd, request + at, (size_t)(total - at),
			 MSG_NOSIGNAL);
		if (n < 0 && errno == EPIPE)
			break; /* refused before its end */
		at += n > 0 ? n : 0;
		rig_turn(rig);
	}
	free(request);
	RIG_UNTIL(rig, call_poll(rig, last));
	api_note("egress-replies", method, path, last);
	assert_null(strstr(last->text, SECRET));
	if (last->status >= 400) {
		assert_non_null(
			strstr(last->text,
			       "Content-Type: text/plain; charset=utf-8\r\n"));
		assert_non_null(
			strstr(last->text, "X-Content-Type-Options: nosniff"));
	}
	return last;
}

#define OF(id, token)                                                         \
	"X-Sallyport-Sandbox: " id "\r\nOPENSANDBOX-EGRESS-AUTH: " token "\r" \
	"\n"

static const struct call *ask(struct rig *rig, const char *method,
			      const char *path, const char *body)
{
	return ask_with(rig, method, path, OF(ONE, TOKEN), body);
}

/* The whole body. */
static void assert_says(const struct call *c, unsigned status, const char *body)
{
	if (c->status != status || strcmp(c->body, body))
		fail_msg("expected %u %s, found %u %s", status, body, c->status,
			 c->body);
}

/* -- who may --------------------------------------------------------------- */

static void token__is_demanded(void **state)
{
	static const struct {
		const char *headers, *body;
		unsigned status;
	} rows[] = {
		{ "", "this sandbox has no network policy\n", 404 },
		{ "X-Sallyport-Sandbox: " ONE "\r\n", "unauthorized\n", 401 },
		{ OF(ONE, ""), "unauthorized\n", 401 },
		{ OF(ONE, TOKEN "x"), "unauthorized\n", 401 },
		{ OF(ONE, "egress-token-of-onf"), "unauthorized\n", 401 },
		{ OF(NOBODY, TOKEN), "this sandbox has no network policy\n",
		  404 },
	};
	static const char *const paths[] = {
		"/policy",
		"/credential-vault",
		"/credential-vault/credentials",
		"/credential-vault/nowhere",
	};
	struct rig *rig = *state;
	size_t i, j;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		for (j = 0; j < ARRAY_LEN(paths); j++)
			assert_says(ask_with(rig, "GET", paths[j],
					     rows[i].headers, NULL),
				    rows[i].status, rows[i].body);
	assert_says(ask_with(rig, "GET", "/healthz", "", NULL), 200, "ok");
	assert_says(ask_with(rig, "GET", "/credential-vault/_active", "", NULL),
		    403, "forbidden\n");
	assert_int_equal(rig->vault.commits, 0);
}

static void methods__and_paths(void **state)
{
	static const struct {
		const char *path, *allow;
	} rows[] = {
		{ "/policy", "Allow: GET, POST, PUT, PATCH, DELETE\r\n" },
		{ "/credential-vault", "Allow: GET, POST, PATCH, DELETE\r\n" },
		{ "/credential-vault/_active", "Allow: GET\r\n" },
		{ "/credential-vault/credentials", "Allow: GET\r\n" },
		{ "/credential-vault/bindings/b", "Allow: GET\r\n" },
	};
	struct rig *rig = *state;
	const struct call *c;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		c = ask(rig, "OPTIONS", rows[i].path, NULL);
		assert_says(c, 405, "method not allowed\n");
		assert_non_null(strstr(c->text, rows[i].allow));
	}
	assert_says(ask(rig, "GET", "/credential-vault/x", NULL), 404,
		    "not found\n");
	assert_says(ask(rig, "GET", "/elsewhere", NULL), 404, "not found\n");
}

/* -- the policy ------------------------------------------------------------ */

static void policy__as_it_was_read(void **state)
{
	struct rig *rig = *state;

	assert_says(ask(rig, "GET", "/policy", NULL), 200,
		    "{\"status\":\"ok\",\"mode\":\"enforcing\","
		    "\"enforcementMode\":\"dns+nft\",\"policy\":{\"egress\":[{"
		    "\"action\":\"allow\",\"target\":\"*.Example.com\"}],"
		    "\"defaultAction\":\"deny\"}}\n");
	assert_says(ask_with(rig, "GET", "/policy", OF(PLAIN, TOKEN), NULL),
		    200,
		    "{\"status\":\"ok\",\"mode\":\"deny_all\","
		    "\"enforcementMode\":\"dns+nft\",\"policy\":{\"egress\":[],"
		    "\"defaultAction\":\"deny\"}}\n");
	assert_non_null(
		policies_find(&rig->control->policies, SPAN("sandbox." ONE)));
}

static void policy__set_and_reset(void **state)
{
	static const struct {
		const char *method, *body, *says;
	} rows[] = {
		{ "POST", POLICY,
		  "{\"status\":\"ok\",\"mode\":\"enforcing\","
		  "\"enforcementMode\":\"dns+nft\"}\n" },
		{ "PUT", "{\"defaultAction\":\"allow\"}",
		  "{\"status\":\"ok\",\"mode\":\"allow_all\","
		  "\"enforcementMode\":\"dns+nft\"}\n" },
		{ "POST", " {} ",
		  "{\"status\":\"ok\",\"mode\":\"deny_all\","
		  "\"enforcementMode\":\"dns+nft\"}\n" },
		{ "POST", "null",
		  "{\"status\":\"ok\",\"mode\":\"deny_all\","
		  "\"enforcementMode\":\"dns+nft\"}\n" },
		{ "POST", " \r\n",
		  "{\"status\":\"ok\",\"mode\":\"deny_all\",\"reason\":"
		  "\"policy reset to default deny-all\"}\n" },
		{ "PUT", "",
		  "{\"status\":\"ok\",\"mode\":\"deny_all\",\"reason\":"
		  "\"policy reset to default deny-all\"}\n" },
	};
	struct rig *rig = *state;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_says(ask(rig, rows[i].method, "/policy", rows[i].body),
			    200, rows[i].says);
	assert_int_equal(rig->vault.commits, ARRAY_LEN(rows));
	assert_string_equal(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
				       RECORD_NET_POLICY, ONE ".00"),
			    "{\"egress\":[],\"defaultAction\":\"deny\"}");
	assert_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
			       RECORD_NET_POLICY, ONE ".01"));
}

static void policy__refuses(void **state)
{
	static const struct {
		const char *method, *body, *says;
	} rows[] = {
		{ "POST", "[]", "invalid policy: expected an object" },
		{ "POST", "{", "invalid policy: " },
		{ "POST", "{\"defaultAction\":\"block\"}",
		  "invalid policy: defaultAction: unsupported action "
		  "\"block\"" },
		{ "POST",
		  "{\"egress\":[{\"action\":\"permit\",\"target\":"
		  "\"a.b\"}]}",
		  "unsupported action \"permit\"" },
		{ "PUT", "{\"egress\":[{\"target\":\" \"}]}",
		  "egress target cannot be empty" },
		{ "POST", "{\"egress\":[{\"target\":\"foo bar\"}]}",
		  "invalid policy: " },
		{ "PATCH", "", "empty body\n" },
		{ "PATCH", "[]", "invalid patch rules: empty array\n" },
		{ "PATCH", "{}", "invalid patch rules: expected an array" },
		{ "PATCH", "[", "invalid patch rules: " },
		{ "PATCH", "[{\"target\":\"https://x\"}]",
		  "invalid merged policy: " },
		{ "DELETE", "", "empty body\n" },
		{ "DELETE", "[]", "invalid delete targets: empty array\n" },
		{ "DELETE", "[5]", "invalid delete targets: " },
		{ "DELETE", "{", "invalid delete targets: " },
	};
	struct rig *rig = *state;
	const struct call *c;
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		c = ask(rig, rows[i].method, "/policy", rows[i].body);
		assert_call(c, 400, rows[i].says);
	}
	assert_int_equal(rig->vault.commits, 0);
}

static void policy__patched_in_front(void **state)
{
	struct rig *rig = *state;

	(void)ask(rig, "POST", "/policy", POLICY);
	assert_says(ask(rig, "PATCH", "/policy",
			"[{\"action\":\"deny\",\"target\":\"API.github.com\"},"
			"{\"action\":\"allow\",\"target\":\"api.github.COM\"},"
			"{\"action\":\"DENY\",\"target\":\"x.example.com\"}]"),
		    200,
		    "{\"status\":\"ok\",\"mode\":\"enforcing\","
		    "\"enforcementMode\":\"dns+nft\"}\n");
	assert_call(ask(rig, "GET", "/policy", NULL), 200,
		    "\"egress\":[{\"action\":\"deny\",\"target\":"
		    "\"API.github.com\"},{\"action\":\"deny\",\"target\":"
		    "\"x.example.com\"},{\"action\":\"allow\",\"target\":"
		    "\"*.Example.com\"}],");
	assert_says(ask(rig, "DELETE", "/policy", "[\"nowhere.com\"]"), 200,
		    "{\"status\":\"ok\",\"mode\":\"enforcing\","
		    "\"enforcementMode\":\"dns+nft\",\"reason\":\"no matching "
		    "targets found\"}\n");
	assert_int_equal(rig->vault.commits, 2);
	assert_says(ask(rig, "DELETE", "/policy",
			"[\"api.github.com\",\"X.EXAMPLE.COM\","
			"\"*.example.com\"]"),
		    200,
		    "{\"status\":\"ok\",\"mode\":\"deny_all\","
		    "\"enforcementMode\":\"dns+nft\"}\n");
}

/* As many rules as there may be, one too many, and the text in pieces. */
static void policy__large(void **state)
{
	static char body[512 * 1024];
	struct rig *rig = *state;
	size_t at = 0, i, n;

	for (n = NET_RULES_MAX; n <= NET_RULES_MAX + 1; n++) {
		at = (size_t)sprintf(body, "{\"egress\":[");
		for (i = 0; i < n; i++)
			at += (size_t)sprintf(
				body + at,
				"%s{\"action\":\"allow\","
				"\"target\":\"h%zu.example.com\"}",
				i ? "," : "", i);
		strcpy(body + at, "]}");
		if (n == NET_RULES_MAX)
			assert_call(ask(rig, "POST", "/policy", body), 200,
				    "enforcing");
	}
	assert_says(ask(rig, "POST", "/policy", body), 413,
		    "egress rule total count 4097 exceeds limit 4096\n");
	assert_says(ask(rig, "PATCH", "/policy",
			"[{\"action\":\"allow\",\"target\":\"one.more.com\"}]"),
		    413, "egress rule total count 4097 exceeds limit 4096\n");
	assert_non_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
				   RECORD_NET_POLICY, ONE ".02"));

	rig_control_stop(rig);
	rig_gateway_down(rig);
	rig_vault_down(rig);
	rig->gateway.syncs = 0;
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded && rig->gateway.syncs);
	assert_int_equal(
		net_policies_find(&rig->control->net_policies, SPAN(ONE))
			->count,
		NET_RULES_MAX);
	(void)ask(rig, "POST", "/policy", "");
	assert_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
			       RECORD_NET_POLICY, ONE ".01"));
}

static void body__too_large(void **state)
{
	static char body[1024 * 1024 + 2];
	struct rig *rig = *state;

	memset(body, ' ', sizeof(body) - 1);
	assert_call(ask(rig, "POST", "/policy", body), 413, "1048576 bytes");
}

/* The admin API shows the policy, and leaves it alone. */
static void policy__is_the_sandboxes_own(void **state)
{
	struct rig *rig = *state;

	assert_call(api(rig, "GET", "/v1/policies/sandbox." ONE, NULL), 200,
		    "sandbox." ONE);
	assert_call(api(rig, "DELETE", "/v1/policies/sandbox." ONE, NULL), 409,
		    "egress API");
	assert_call(api(rig, "PUT", "/v1/policies/sandbox." ONE,
			"{\"sandboxes\":{\"ids\":[\"x\"]}}"),
		    409, "egress API");
}

/* -- the vault ------------------------------------------------------------- */

/* The life of a vault as clients drive it: each step is one revision. */
static void vault__life(void **state)
{
	struct rig *rig = *state;
	const char *path = "/credential-vault";

	assert_says(ask(rig, "GET", path, NULL), 404,
		    "credential vault not found\n");
	assert_says(ask(rig, "PATCH", path, "{}"), 404,
		    "credential vault not found\n");
	assert_says(ask(rig, "DELETE", path, NULL), 404,
		    "credential vault not found\n");
	assert_says(ask(rig, "POST", path, "{}"), 201,
		    "{\"revision\":1,\"credentials\":[],\"bindings\":[]}\n");
	assert_says(ask(rig, "POST", path, "{}"), 409,
		    "credential vault already exists\n");
	assert_says(
		ask(rig, "PATCH", path,
		    "{\"expectedRevision\":1,\"credentials\":{\"add\":"
		    "[" CREDENTIAL("c") "]},\"bindings\":{\"add\":[" BINDING(
			    "b", "a.example.com") "]}}"),
		200,
		"{\"revision\":2,\"credentials\":[{\"name\":\"c\","
		"\"sourceType\":\"inline\",\"revision\":2}],\"bindings\":"
		"[" SHOWN("b", "2", "a.example.com") "]}\n");
	assert_string_equal(
		fake_value(&rig->vault, ONE, RECORD_CREDENTIAL, "c"), SECRET);
	assert_non_null(
		strstr(buf_peek(fake_bindings(&rig->gateway, ONE)).ptr,
		       "{\"revision\":2,\"bindings\":[{\"name\":\"b\","));
	assert_call(ask(rig, "PATCH", path,
			"{\"bindings\":{\"delete\":["
			"\"b\"]}}"),
		    200, "{\"revision\":3,");
	assert_string_equal(buf_peek(fake_bindings(&rig->gateway, ONE)).ptr,
			    "{\"revision\":3,\"bindings\":[]}");
	assert_call(
		ask(rig, "PATCH", path,
		    "{\"credentials\":{\"replace\":[" CREDENTIAL(
			    "c") "]},\"bindings\":{\"add\":[" BINDING("b2",
								      "*."
								      "EXAMPLE."
								      "com.") "]}}"),
		200,
		"{\"revision\":4,\"credentials\":[{\"name\":\"c\","
		"\"sourceType\":\"inline\",\"revision\":4}]");
	assert_says(ask(rig, "GET", "/credential-vault/credentials", NULL), 200,
		    "{\"revision\":4,\"credentials\":[{\"name\":\"c\","
		    "\"sourceType\":\"inline\",\"revision\":4}]}\n");
	assert_says(ask(rig, "GET", "/credential-vault/bindings", NULL), 200,
		    "{\"revision\":4,\"bindings\":[" SHOWN(
			    "b2", "4", "*.example.com") "]}\n");
	assert_says(ask(rig, "GET", "/credential-vault/credentials/c", NULL),
		    200,
		    "{\"name\":\"c\",\"sourceType\":\"inline\","
		    "\"revision\":4}\n");
	assert_says(ask(rig, "GET", "/credential-vault/bindings/b2", NULL), 200,
		    SHOWN("b2", "4", "*.example.com") "\n");
	assert_says(ask(rig, "GET", "/credential-vault/credentials/d", NULL),
		    404, "credential not found\n");
	assert_says(ask(rig, "GET", "/credential-vault/bindings/b", NULL), 404,
		    "binding not found\n");
	assert_call(
		ask(rig, "PATCH", path, "{\"bindings\":{\"delete\":[\"b2\"]}}"),
		200, "{\"revision\":5,");
	assert_says(ask(rig, "PATCH", path,
			"{\"credentials\":{\"delete\":[\"c\"]}}"),
		    200,
		    "{\"revision\":6,\"credentials\":[],\"bindings\":[]}\n");
	assert_says(ask(rig, "DELETE", path, NULL), 204, "");
	assert_says(ask(rig, "GET", path, NULL), 404,
		    "credential vault not found\n");
	assert_call(ask(rig, "POST", path,
			"{\"bindings\":null,\"credentials\":"
			"[]}"),
		    201, "{\"revision\":1,");
}

static void vault__refuses(void **state)
{
	static const struct {
		const char *body, *says;
		unsigned status;
	} rows[] = {
		{ "", "invalid credential vault mutation request: ", 400 },
		{ "[]", "invalid credential vault mutation request: ", 400 },
		{ "{\"credential\":{}}",
		  "invalid credential vault mutation request: ", 400 },
		{ "{\"expectedRevision\":7}",
		  "expectedRevision 7 does not match current revision 1\n",
		  409 },
		{ "{\"credentials\":{\"add\":[" CREDENTIAL("c") "]}}",
		  "credential \"c\" already exists", 400 },
		{ "{\"credentials\":{\"replace\":[" CREDENTIAL("d") "]}}",
		  "does not exist", 400 },
		{ "{\"credentials\":{\"delete\":[\"c\"],\"add\":[" CREDENTIAL(
			  "c") "]}}",
		  "mentioned by multiple operations", 400 },
		{ "{\"credentials\":{\"delete\":[\"c\"]}}",
		  "binding \"b\" references unknown credential \"c\"\n", 400 },
		{ "{\"bindings\":{\"add\":[" BINDING("x",
						     "b.example.com") "]}}",
		  "bindings \"b\" and \"x\" can match the same request\n",
		  400 },
		{ "{\"bindings\":{\"add\":[" BINDING("x",
						     "elsewhere.com") "]}}",
		  "host \"elsewhere.com\" is not covered by an explicit allow "
		  "egress rule\n",
		  400 },
		{ "{\"bindings\":{\"add\":[" BINDING("x", "example.com") "]}}",
		  "is not covered by an explicit allow egress rule\n", 400 },
		{ "{\"bindings\":{\"add\":[{\"name\":\"x\",\"match\":{"
		  "\"hosts\":[\"p.example.com\"],\"ports\":[8443]},\"auth\":{"
		  "\"type\":\"bearer\",\"credential\":\"c\"}}]}}",
		  "port 8443 is not a configured transparent intercept port\n",
		  400 },
	};
	struct rig *rig = *state;
	size_t i;

	assert_int_equal(
		ask(rig, "POST", "/credential-vault",
		    "{\"credentials\":[" CREDENTIAL(
			    "c") "],\"bindings\":[" BINDING("b", "b.example."
								 "com") "]}")
			->status,
		201);
	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_call(
			ask(rig, "PATCH", "/credential-vault", rows[i].body),
			rows[i].status, rows[i].says);
	assert_int_equal(rig->vault.commits, 1);
	assert_call(ask(rig, "GET", "/credential-vault", NULL), 200,
		    "{\"revision\":1,");
	assert_call(ask_with(rig, "POST", "/credential-vault", OF(PLAIN, TOKEN),
			     "{}"),
		    412, "credential vault requires transparent mitmproxy");
}

/* No policy comes to be that would strand a binding. */
static void vault__holds_the_policy(void **state)
{
	static const struct {
		const char *method, *body;
	} rows[] = {
		{ "POST", "" },
		{ "POST", "{}" },
		{ "PUT", "{\"egress\":[{\"action\":\"allow\",\"target\":"
			 "\"other.com\"}]}" },
		{ "PATCH", "[{\"action\":\"deny\",\"target\":"
			   "\"b.example.com\"}]" },
		{ "DELETE", "[\"*.example.com\"]" },
	};
	struct rig *rig = *state;
	size_t i;

	(void)ask(
		rig, "POST", "/credential-vault",
		"{\"credentials\":[" CREDENTIAL("c") "],\"bindings\":[" BINDING(
			"b", "b.example.com") "]}");
	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_call(ask(rig, rows[i].method, "/policy", rows[i].body),
			    400, "credential vault policy validation: ");
	assert_call(ask(rig, "GET", "/policy", NULL), 200, "*.Example.com");
	/* allowed by default, it needs no rule; a denial counts still */
	assert_call(
		ask(rig, "POST", "/policy", "{\"defaultAction\":\"allow\"}"),
		200, "allow_all");
	assert_call(ask(rig, "PATCH", "/policy",
			"[{\"action\":\"deny\",\"target\":\"*.example.com\"}]"),
		    400, "is denied by an egress rule");
	assert_int_equal(ask(rig, "DELETE", "/credential-vault", NULL)->status,
			 204);
	assert_call(ask(rig, "POST", "/policy", ""), 200, "deny_all");
	assert_call(
		ask(rig, "POST", "/credential-vault",
		    "{\"credentials\":[" CREDENTIAL(
			    "c") "],\"bindings\":[" BINDING("b", "b.example."
								 "com") "]}"),
		400,
		"credential bindings require explicit "
		"networkPolicy.egress allow rules\n");
}

/* What was stored is there after a restart, an empty vault too, and the gateway
 * is told again. */
static void vault__outlives_control(void **state)
{
	struct rig *rig = *state;

	(void)ask(
		rig, "POST", "/credential-vault",
		"{\"credentials\":[" CREDENTIAL("c") "],\"bindings\":[" BINDING(
			"b", "b.example.com") "]}");
	rig_control_stop(rig);
	rig_gateway_down(rig);
	rig_vault_down(rig);
	rig->gateway.syncs = 0;
	rig_control_start(rig);
	rig_gateway_up(rig);
	rig_vault_up(rig);
	RIG_UNTIL(rig, rig->control->loaded && rig->gateway.syncs);
	assert_non_null(
		strstr(buf_peek(fake_bindings(&rig->gateway, ONE)).ptr,
		       "{\"revision\":1,\"bindings\":[{\"name\":\"b\","));
	assert_says(ask(rig, "GET", "/credential-vault", NULL), 200,
		    "{\"revision\":1,\"credentials\":[{\"name\":\"c\","
		    "\"sourceType\":\"inline\",\"revision\":1}],\"bindings\":"
		    "[" SHOWN("b", "1", "b.example.com") "]}\n");
}

static unsigned gone_status;

static void on_gone(void *ctx, const struct refusal *why)
{
	(void)ctx;
	gone_status = why->status ? why->status : 1;
}

static void all_of_it__goes_with_the_sandbox(void **state)
{
	struct rig *rig = *state;

	(void)ask(
		rig, "POST", "/credential-vault",
		"{\"credentials\":[" CREDENTIAL("c") "],\"bindings\":[" BINDING(
			"b", "b.example.com") "]}");
	gone_status = 0;
	vault_scope_change_remove(rig->control, SPAN(ONE), on_gone, rig);
	RIG_UNTIL(rig, gone_status);
	assert_int_equal(gone_status, 1);
	assert_null(fake_value(&rig->vault, ONE, RECORD_CREDENTIAL, "c"));
	assert_string_equal(buf_peek(fake_bindings(&rig->gateway, ONE)).ptr,
			    "{\"revision\":0,\"bindings\":[]}");
	/* who has that id next finds nothing */
	assert_says(ask(rig, "GET", "/credential-vault", NULL), 404,
		    "credential vault not found\n");
	assert_call(ask(rig, "POST", "/credential-vault", "{}"), 201,
		    "{\"revision\":1,\"credentials\":[],\"bindings\":[]}");
	gone_status = 0;
	vault_scope_change_remove(rig->control, SPAN(ONE), on_gone, rig);
	RIG_UNTIL(rig, gone_status);
	gone_status = 0;
	net_policy_change_remove(rig->control, SPAN(ONE), on_gone, rig);
	RIG_UNTIL(rig, gone_status);
	assert_int_equal(gone_status, 1);
	assert_null(fake_value(&rig->vault, VAULT_SCOPE_CONTROL,
			       RECORD_NET_POLICY, ONE ".00"));
	assert_null(
		policies_find(&rig->control->policies, SPAN("sandbox." ONE)));
	assert_says(ask(rig, "GET", "/policy", NULL), 404,
		    "this sandbox has no network policy\n");
	gone_status = 0;
	net_policy_change_remove(rig->control, SPAN(ONE), on_gone, rig);
	RIG_UNTIL(rig, gone_status);
	assert_int_equal(gone_status, 404);
}

/* Between the vault's end and the record's nothing comes to be that nobody
 * would remove. */
static void vault__is_not_made_for_a_sandbox_that_goes(void **state)
{
	struct rig *rig = *state;
	struct box *b = boxes_find(&rig->control->lifecycle->boxes, SPAN(ONE));

	box_set_state(b, BOX_STOPPING, "", "It goes.", 1);
	assert_says(ask(rig, "POST", "/credential-vault",
			"{\"credentials\":[" CREDENTIAL("c") "]}"),
		    409, "the sandbox is being removed\n");
	assert_null(fake_value(&rig->vault, ONE, RECORD_CREDENTIAL, "c"));
	box_set_state(b, BOX_RUNNING, "", "It stays.", 2);
	assert_call(ask(rig, "POST", "/credential-vault", "{}"), 201, NULL);
}

/* A change that the vault does not take is told as text. */
static void vault__that_fails_is_text(void **state)
{
	struct rig *rig = *state;

	rig->vault.fail_commit = EIO;
	assert_call(ask(rig, "POST", "/credential-vault", "{}"), 500,
		    "the fake vault refuses\n");
	rig->vault.fail_commit = EIO;
	assert_call(ask(rig, "POST", "/policy", POLICY), 500,
		    "the fake vault refuses\n");
	assert_call(ask(rig, "GET", "/policy", NULL), 200, "*.Example.com");
}

#define IN_RIG(fn) cmocka_unit_test_setup_teardown(fn, set_up, rig_tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		IN_RIG(token__is_demanded),
		IN_RIG(methods__and_paths),
		IN_RIG(policy__as_it_was_read),
		IN_RIG(policy__set_and_reset),
		IN_RIG(policy__refuses),
		IN_RIG(policy__patched_in_front),
		IN_RIG(policy__large),
		IN_RIG(body__too_large),
		IN_RIG(policy__is_the_sandboxes_own),
		IN_RIG(vault__life),
		IN_RIG(vault__refuses),
		IN_RIG(vault__holds_the_policy),
		IN_RIG(vault__outlives_control),
		IN_RIG(all_of_it__goes_with_the_sandbox),
		IN_RIG(vault__is_not_made_for_a_sandbox_that_goes),
		IN_RIG(vault__that_fails_is_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
