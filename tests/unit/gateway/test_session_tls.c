/* SPDX-License-Identifier: Apache-2.0 */
/* test_session_tls.c - TLS of sandboxes: opened with a leaf, passed, refused */

#include "tests/unit/gateway/fake_origin.h"

#include <openssl/err.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gateway/session/session.h"

#define ANSWER                                                      \
	"HTTP/1.1 200 OK\r\nX-Echo: t0ken\r\nContent-Length: 4\r\n" \
	"\r\npong"
#define RULE(rest)    "  - {action: allow, ports: [1-65535], target: " rest "}\n"
#define POLICY(rules) "policies:\n- name: p\n  egress:\n" rules

static const char binding[] =
	"{\"revision\":1,\"bindings\":[{\"name\":\"key\",\"match\":{"
	"\"hosts\":[\"a.example\"],\"ports\":[%u]},"
	"\"auth\":{\"type\":\"bearer\",\"credential\":\"tok\"}}]}";

struct desk {
	struct world *world;
	struct worker *worker;
	struct fake_origin origin;
	SSL_CTX *ctx; /* of the sandbox; trusts the node's CA */
	SSL *ssl;
	SSL_SESSION *session;
	int far, audit;
	unsigned long why; /* the alert */
	char got[4096], record[8192];
};

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct desk *d = SSL_get_app_data(ssl);

	SSL_SESSION_free(d->session);
	d->session = session;
	return 1;
}

static void keep_leaf(struct desk *d, const char *name)
{
	X509 *leaf = fake_leaf(&d->origin, name);

	leaf_cache_put(d->world->gateway.leaf_cache, SPAN("s"), span_str(name),
		       leaf, clock_wall_ms());
	X509_free(leaf);
}

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));
	struct names *n = names_new();

	d->world = world_new();
	d->worker = &d->world->worker;
	world_policy(d->world, 1,
		     POLICY(RULE("a.example") RULE("127.0.0.0/8")));
	(void)world_sandbox(d->world, "s", "10.9.0.1");
	(void)world_sandbox(d->world, "t", "10.9.0.2");
	name_add(n, NAME_HOSTS, "a.example", "127.0.0.1");
	world_names(d->world, n);
	fake_origin_open(&d->origin, d->world, d->world->ca);
	d->origin.reply = ANSWER;
	keep_leaf(d, "a.example");
	d->far = -1;
	d->audit = memfd_create("audit", MFD_CLOEXEC);
	audit_log_set_fd(d->worker->audit_log, d->audit);
	d->ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set1_cert_store(d->ctx, d->world->store);
	SSL_CTX_set_session_cache_mode(
		d->ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(d->ctx, on_session);
	*state = d;
	return 0;
}

static void hang_up(struct desk *d)
{
	if (d->ssl)
		SSL_set_shutdown(d->ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(d->ssl);
	d->ssl = NULL;
	d->far = fd_close(d->far);
	world_settle(d->world);
	ERR_clear_error();
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	hang_up(d);
	fake_origin_close(&d->origin);
	world_settle(d->world);
	SSL_SESSION_free(d->session);
	SSL_CTX_free(d->ctx);
	world_free(d->world);
	(void)fd_close(d->audit);
	free(d);
	return 0;
}

static void bind_key(struct desk *d)
{
	char json[512];

	(void)snprintf(json, sizeof(json), binding,
		       (unsigned)d->origin.address.port);
	world_bindings(d->world, "", json, "t0ken");
}

/* A connection of sandbox `from`; sni NULL: none. */
static void dial(struct desk *d, const char *from, const char *sni)
{
	struct addr client = addr_of(from, 1000);
	int fds[2];

	hang_up(d);
	must(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			 fds));
	d->far = fds[1];
	session_new(d->worker, fds[0], &client, &d->origin.address, "sp-1");
	d->ssl = SSL_new(d->ctx);
	SSL_set_app_data(d->ssl, d);
	SSL_set_connect_state(d->ssl);
	must(SSL_set_fd(d->ssl, d->far));
	if (sni)
		must(SSL_set_tlsext_host_name(d->ssl, sni));
}

/* SSL_do_handshake() or SSL_read() until it says something. */
static int pump(struct desk *d, bool read)
{
	uint64_t end_ms = clock_ms() + WORLD_PATIENCE_MS;
	int n, error;

	do {
		world_turn(d->world);
		ERR_clear_error();
		n = read ? SSL_read(d->ssl, d->got, sizeof(d->got) - 1)
			 : SSL_do_handshake(d->ssl);
		if (n > 0)
			return n;
		error = SSL_get_error(d->ssl, n);
	} while (error == SSL_ERROR_WANT_READ && clock_ms() < end_ms);
	d->why = ERR_peek_error();
	ERR_clear_error();
	return n;
}

static bool shaken(struct desk *d)
{
	return pump(d, false) == 1;
}

static const char *ask(struct desk *d, const char *text)
{
	int n;

	must(SSL_write(d->ssl, text, (int)strlen(text)) == (int)strlen(text));
	n = pump(d, true);
	d->got[MAX(n, 0)] = '\0';
	return d->got;
}

/* Everything audited so far, newest included. */
static const char *records(struct desk *d)
{
	struct stat st;
	ssize_t n;

	world_settle(d->world);
	audit_log_flush(d->worker->audit_log);
	must(!fstat(d->audit, &st));
	n = pread(d->audit, d->record, sizeof(d->record) - 1,
		  MAX(0, st.st_size - (off_t)sizeof(d->record) + 1));
	d->record[MAX(n, 0)] = '\0';
	return d->record;
}

static bool heard(const struct desk *d, const char *text)
{
	return memmem(buf_peek(&d->origin.heard).ptr, buf_len(&d->origin.heard),
		      text, strlen(text)) != NULL;
}

/* -- opened -----------------------------------------------------------------
 */

static void tls__is_opened_to_inject(void **state)
{
	struct desk *d = *state;

	bind_key(d);
	dial(d, "10.9.0.1", "a.example");
	must(SSL_set1_host(d->ssl, "a.example"));
	SSL_set_verify(d->ssl, SSL_VERIFY_PEER, NULL);
	assert_true(shaken(d));
	assert_non_null(strstr(ask(d, "GET /x HTTP/1.1\r\nHost: a.example\r\n"
				      "Authorization: mine\r\n\r\n"),
			       "X-Echo: [REDACTED]"));
	assert_null(strstr(d->got, "t0ken"));
	assert_true(heard(d, "Authorization: Bearer t0ken\r\n\r\n"));
	assert_false(heard(d, "mine"));
	assert_string_equal(d->origin.sni, "a.example");
	assert_non_null(strstr(records(d), "\"inspected\":true"));
	assert_non_null(strstr(d->record, "\"injected\":true"));
	assert_non_null(strstr(d->record, "\"originTls\":\"TLSv1.3\""));
	assert_null(strstr(d->record, "t0ken"));
}

/* The leak that everybody else had: B's secret on a connection to A. */
static void tls__host_must_be_the_sni(void **state)
{
	static const char *const others[] = { "b.example", "a.example:1",
					      "127.0.0.1", "x.a.example" };
	struct names *n = names_new();
	struct desk *d = *state;
	char text[128];
	size_t i;

	world_policy(d->world, 1, POLICY(RULE("a.example") RULE("b.example")));
	name_add(n, NAME_PIN, "a.example", "127.0.0.1");
	world_names(d->world, n);
	bind_key(d);
	for (i = 0; i < ARRAY_LEN(others); i++) {
		dial(d, "10.9.0.1", "a.example");
		assert_true(shaken(d));
		(void)snprintf(text, sizeof(text),
			       "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", others[i]);
		assert_non_null(strstr(ask(d, text), "HTTP/1.1 421 "));
	}
	assert_int_equal(d->origin.count, 0);
}

static void tls__an_unproved_origin_gets_nothing(void **state)
{
	struct desk *d = *state;

	bind_key(d);
	d->origin.name = "b.example";
	dial(d, "10.9.0.1", "a.example");
	assert_true(shaken(d));
	assert_non_null(strstr(ask(d, "GET /x HTTP/1.1\r\n"
				      "Host: a.example\r\n\r\n"),
			       "HTTP/1.1 502 "));
	assert_non_null(strstr(records(d), "\"reason\":\"origin_tls\""));
	assert_int_equal(buf_len(&d->origin.heard), 0);
}

static void tls__tickets_are_a_sandbox_s_own(void **state)
{
	static const struct {
		const char *from;
		bool resumes;
	} rows[] = { { "10.9.0.1", true }, { "10.9.0.2", false } };
	struct desk *d = *state;
	SSL_SESSION *kept;
	size_t i;

	bind_key(d);
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		dial(d, "10.9.0.1", "a.example");
		assert_true(shaken(d));
		(void)ask(d, "GET / HTTP/1.1\r\nHost: a.example\r\n\r\n");
		kept = take_ptr(d->session);
		assert_non_null(kept);
		dial(d, rows[i].from, "a.example");
		must(SSL_set_session(d->ssl, kept));
		SSL_SESSION_free(kept);
		assert_true(shaken(d));
		assert_int_equal(SSL_session_reused(d->ssl), rows[i].resumes);
	}
	assert_int_equal(d->worker->counters[COUNTER_handshakes_resumed], 1);
}

/* -- passed, and refused ----------------------------------------------------
 */

static void tls__passes_unopened_without_a_reason(void **state)
{
	struct desk *d = *state;
	X509 *cert, *leaf;

	dial(d, "10.9.0.1", "a.example");
	assert_true(shaken(d));
	cert = SSL_get1_peer_certificate(d->ssl);
	leaf = leaf_cache_get(d->world->gateway.leaf_cache, SPAN("a.example"),
			      clock_wall_ms());
	assert_int_not_equal(X509_cmp(cert, leaf), 0); /* the origin's own */
	X509_free(cert);
	X509_free(leaf);
	assert_non_null(strstr(ask(d, "hello"), "X-Echo: t0ken"));
	hang_up(d);
	fake_origin_hang_up(&d->origin);
	assert_non_null(strstr(records(d), "\"kind\":\"tunnel\""));
	assert_null(strstr(d->record, "\"inspected\":true"));
	assert_int_equal(d->worker->counters[COUNTER_handshakes], 0);
}

static void tls__is_opened_when_a_rule_looks_inside(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1,
		     POLICY("  - {action: allow, target: a.example, "
			    "ports: [1-65535], methods: [GET]}\n"
			    "  - {action: allow, target: 127.0.0.0/8, "
			    "ports: [1-65535], methods: [GET]}\n"));
	dial(d, "10.9.0.1", "a.example");
	assert_true(shaken(d));
	assert_non_null(strstr(ask(d, "PUT / HTTP/1.1\r\nHost: a.example\r\n"
				      "Content-Length: 0\r\n\r\n"),
			       "HTTP/1.1 403 "));
	assert_non_null(strstr(ask(d, "GET / HTTP/1.1\r\n"
				      "Host: a.example\r\n\r\n"),
			       "HTTP/1.1 200 "));
}

static void tls__a_denied_name_is_an_alert(void **state)
{
	struct desk *d = *state;

	world_policy(d->world, 1, POLICY(RULE("a.example")));
	dial(d, "10.9.0.1", "evil.example");
	assert_false(shaken(d));
	assert_int_equal(ERR_GET_REASON(d->why),
			 SSL_R_TLSV1_ALERT_ACCESS_DENIED);
	assert_non_null(strstr(records(d), "\"reason\":\"policy\""));
	dial(d, "10.9.0.1", NULL); /* by address: not allowed either */
	assert_false(shaken(d));
	assert_int_equal(ERR_GET_REASON(d->why),
			 SSL_R_TLSV1_ALERT_ACCESS_DENIED);
	/* a private address under an allowed name */
	dial(d, "10.9.0.1", "a.example");
	assert_false(shaken(d));
	assert_non_null(
		strstr(records(d), "\"reason\":\"no_allowed_address\""));
	assert_int_equal(d->origin.count, 0);
	assert_int_equal(d->worker->counters[COUNTER_leaves_minted], 0);
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(tls__is_opened_to_inject),
		DESK_TEST(tls__host_must_be_the_sni),
		DESK_TEST(tls__an_unproved_origin_gets_nothing),
		DESK_TEST(tls__tickets_are_a_sandbox_s_own),
		DESK_TEST(tls__passes_unopened_without_a_reason),
		DESK_TEST(tls__is_opened_when_a_rule_looks_inside),
		DESK_TEST(tls__a_denied_name_is_an_alert),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
