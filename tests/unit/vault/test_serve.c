/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.c - the vault role's table, without processes or channels
 *
 * rooms: certs role
 */

#include "tests/unit/vault/fixture.h"

#include <openssl/x509.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/leaf_key.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/main/vault_ca.c"
#include "src/main/vault_serve.c"

static struct ca *test_ca;
static struct serve *serve;
static struct serve_reply reply;

static int serve_setup(void **state)
{
	struct fixture *f;

	if (vault_setup(state))
		return -1;
	f = *state;
	if (vault_ca_at(f->v, clock_wall_ms(), &test_ca, &f->d))
		return -1;
	serve = serve_new(f->v, test_ca, SPAN("corp-login"));
	return 0;
}

static int serve_teardown(void **state)
{
	serve = serve_free(serve);
	test_ca = ca_free(test_ca);
	return vault_teardown(state);
}

/* -- messages ------------------------------------------------------------ */

/* Body and tail as a channel hands them out: aligned. */
static enum serve_verdict send_bytes(enum role from, uint16_t type,
				     const void *body, size_t body_len,
				     struct span tail)
{
	char *payload = must_alloc(body_len + tail.len);
	enum serve_verdict verdict;

	memcpy(payload, body, body_len);
	if (tail.len)
		memcpy(payload + body_len, tail.ptr, tail.len);
	verdict = serve_message(serve, from, type,
				span_of(payload, body_len + tail.len), &reply);
	free(payload);
	return verdict;
}

#define SEND(from, type, body, tail) \
	send_bytes((from), (type), (body), sizeof(*(body)), (tail))

static const struct msg_none none;

static void begin(const char *scope, int64_t expected)
{
	struct msg_begin m = { .expected_revision = expected };

	assert_true(span_copy(span_str(scope), m.scope, sizeof(m.scope)));
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_BEGIN, &m, SPAN_NONE),
			 SERVE_SILENT);
}

static enum serve_verdict change(uint16_t type, uint32_t kind, const char *name,
				 struct span value)
{
	struct msg_record m = { .kind = kind };

	assert_true(span_copy(span_str(name), m.name, sizeof(m.name)));
	return SEND(ROLE_CONTROL, type, &m, value);
}

static void put_record(uint32_t kind, const char *name, const char *value)
{
	assert_int_equal(change(MSG_CONTROL_PUT, kind, name, span_str(value)),
			 SERVE_SILENT);
}

/* Commits; the reply's status. */
static int commit(void)
{
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_COMMIT, &none, SPAN_NONE),
		SERVE_REPLY);
	assert_int_equal(reply.type, MSG_VAULT_RESULT);
	return reply.body.result.status;
}

static int ask_lease(const char *scope, const char *name)
{
	struct msg_credential m = { 0 };

	assert_true(span_copy(span_str(scope), m.scope, sizeof(m.scope)));
	assert_true(span_copy(span_str(name), m.name, sizeof(m.name)));
	assert_int_equal(SEND(ROLE_GATEWAY, MSG_GATEWAY_LEASE, &m, SPAN_NONE),
			 SERVE_REPLY);
	assert_int_equal(reply.type, MSG_VAULT_LEASE);
	return reply.body.result.status;
}

/* The record after `name`, or exactly it. Returns .found. */
static uint32_t ask_read(const char *scope, uint32_t kind, const char *name,
			 bool exact)
{
	struct msg_read m = { .kind = kind, .exact = exact };

	serve_done(serve);
	assert_true(span_copy(span_str(scope), m.scope, sizeof(m.scope)));
	assert_true(span_copy(span_str(name), m.name, sizeof(m.name)));
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_READ, &m, SPAN_NONE),
			 SERVE_REPLY);
	assert_int_equal(reply.type, MSG_VAULT_RECORD);
	return reply.body.record.found;
}

/* -- control writes, the gateway leases ---------------------------------- */

static void serve__a_credential_reaches_the_gateway_only(void **state)
{
	(void)state;
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "one", "the-value");
	put_record(RECORD_CREDENTIAL, "two", "unnamed");
	put_record(RECORD_BINDING, "b", "{\"auth\":{\"credential\":\"one\"}}");
	assert_int_equal(commit(), 0);
	assert_int_equal(reply.body.result.revision, 1);

	assert_int_equal(ask_lease("box", "one"), 0);
	assert_true(span_eq(reply.tail, SPAN("the-value")));
	assert_int_equal(reply.body.result.revision, 1);
	serve_done(serve);
	assert_int_equal(ask_lease("box", "two"), EACCES);
	assert_int_equal(reply.tail.len, 0);
	assert_int_equal(ask_lease("other", "one"), EACCES);

	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "", false), 1);
	assert_string_equal(reply.body.record.name, "one");
	assert_int_equal(reply.tail.len, 0);
	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "one", true), 1);
	assert_int_equal(reply.tail.len, 0);
	assert_int_equal(ask_read("*", RECORD_CREDENTIAL, "", false), 1);
	assert_int_equal(reply.tail.len, 0);
	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "two", false), 0);
	assert_int_equal(ask_read("box", RECORD_BINDING, "", false), 1);
	assert_true(span_eq(reply.tail,
			    SPAN("{\"auth\":{\"credential\":\"one\"}}")));
}

static void serve__the_configuration_may_name_one_too(void **state)
{
	(void)state;
	assert_int_not_equal(ask_lease("", "corp-login"), 0); /* not there */
	begin("", -1);
	put_record(RECORD_CREDENTIAL, "corp-login", "user:word");
	put_record(RECORD_CREDENTIAL, "other", "unnamed");
	assert_int_equal(commit(), 0);
	assert_int_equal(ask_lease("", "corp-login"), 0);
	assert_true(span_eq(reply.tail, SPAN("user:word")));
	serve_done(serve);
	assert_int_equal(ask_lease("", "other"), EACCES);

	/* of the node, not of a sandbox */
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "corp-login", "another");
	assert_int_equal(commit(), 0);
	assert_int_equal(ask_lease("box", "corp-login"), EACCES);
}

static void serve__what_is_wrong_with_a_change_is_told_at_commit(void **state)
{
	(void)state;
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "one", "bad\nvalue");
	put_record(RECORD_CREDENTIAL, "two", "good");
	assert_int_equal(commit(), EINVAL);
	assert_non_null(strstr(reply.body.result.text, "line feed"));
	assert_null(strstr(reply.body.result.text, "bad"));
	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "", false), 0);

	begin("box", 3);
	assert_int_equal(commit(), EAGAIN);
	assert_non_null(strstr(reply.body.result.text, "expectedRevision"));
	begin("box", -1);
	assert_int_equal(
		change(MSG_CONTROL_REMOVE, RECORD_CREDENTIAL, "x", SPAN_NONE),
		SERVE_SILENT);
	assert_int_equal(commit(), ENOENT);
	begin("a\nb", -1);
	put_record(RECORD_CREDENTIAL, "one", "x");
	assert_int_equal(commit(), EINVAL);
}

static void serve__a_new_begin_drops_the_old(void **state)
{
	(void)state;
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "one", "x");
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "two", "x");
	assert_int_equal(commit(), 0);
	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "one", true), 0);
	assert_int_equal(ask_read("box", RECORD_CREDENTIAL, "two", true), 1);

	begin("box", -1);
	serve_peer_gone(serve, ROLE_GATEWAY);
	serve_peer_gone(serve, ROLE_CONTROL);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_COMMIT, &none, SPAN_NONE),
		SERVE_ACCUSE);
}

static void serve__a_scope_goes_as_a_whole(void **state)
{
	struct msg_record m = { .scope = "box" };

	(void)state;
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "one", "x");
	assert_int_equal(commit(), 0);
	begin("box", 1);
	assert_int_equal(change(MSG_CONTROL_REMOVE, RECORD_NONE, "", SPAN_NONE),
			 SERVE_SILENT);
	assert_int_equal(commit(), 0);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_REVISION, &m, SPAN_NONE),
		SERVE_REPLY);
	assert_int_equal(reply.body.result.revision, 0);
}

static void serve__reads_through_all_scopes(void **state)
{
	static const char *const scopes[] = { "", "a", "b" };
	struct msg_read m = { .kind = RECORD_POLICY, .scope = "*" };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(scopes); i++) {
		begin(scopes[i], -1);
		put_record(RECORD_POLICY, "p", "{}");
		assert_int_equal(commit(), 0);
	}
	for (i = 0; i < ARRAY_LEN(scopes); i++) {
		serve_done(serve);
		assert_int_equal(
			SEND(ROLE_CONTROL, MSG_CONTROL_READ, &m, SPAN_NONE),
			SERVE_REPLY);
		assert_int_equal(reply.body.record.found, 1);
		assert_string_equal(reply.body.record.scope, scopes[i]);
		memcpy(m.scope_after, reply.body.record.scope,
		       sizeof(m.scope_after));
		memcpy(m.name, reply.body.record.name, sizeof(m.name));
	}
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_READ, &m, SPAN_NONE),
			 SERVE_REPLY);
	assert_int_equal(reply.body.record.found, 0);
}

/* -- the CA -------------------------------------------------------------- */

static void serve__signs_what_is_a_name(void **state)
{
	CLEANUP(buf_fini) struct buf spki = BUF_INIT(LEAF_SPKI_MAX);
	struct msg_sign m = { .name = "a.example" };
	struct evp_pkey_st *key = NULL;
	struct x509_st *cert = NULL;
	char subject[CERT_NAME_SIZE];

	(void)state;
	assert_int_equal(leaf_key_new(&key), 0);
	assert_int_equal(leaf_spki(key, &spki), 0);
	assert_int_equal(
		SEND(ROLE_GATEWAY, MSG_GATEWAY_SIGN, &m, buf_peek(&spki)),
		SERVE_REPLY);
	assert_int_equal(reply.type, MSG_VAULT_SIGNED);
	assert_int_equal(reply.body.result.status, 0);
	assert_int_equal(cert_from_der(reply.tail, &cert), 0);
	assert_string_equal(cert_subject(cert, subject, sizeof(subject)),
			    "CN = a.example");
	X509_free(cert);

	memcpy(m.name, "*.example", 10);
	assert_int_equal(
		SEND(ROLE_GATEWAY, MSG_GATEWAY_SIGN, &m, buf_peek(&spki)),
		SERVE_REPLY);
	assert_int_equal(reply.body.result.status, EINVAL);
	assert_int_equal(reply.tail.len, 0);
	EVP_PKEY_free(key);
}

static void serve__the_ca_is_the_same_after_a_restart(void **state)
{
	struct fixture *f = *state;
	struct ca *again = NULL;

	assert_int_equal(
		SEND(ROLE_SUPERVISOR, MSG_ROLE_GET_CA, &none, SPAN_NONE),
		SERVE_REPLY);
	assert_int_equal(reply.type, MSG_VAULT_CA);
	assert_true(span_eq(reply.tail, ca_cert_der(test_ca)));
	assert_int_equal(vault_ca_at(f->v, clock_wall_ms(), &again, &f->d), 0);
	assert_true(span_eq(ca_cert_der(again), ca_cert_der(test_ca)));
	ca_free(again);
	/* no message reaches the key */
	assert_int_equal(ask_read("*", RECORD_TOKEN, "", false), 0);
}

static void serve__maintains(void **state)
{
	struct msg_maintain m = { .verb = MAINTAIN_VERIFY };

	(void)state;
	begin("box", -1);
	put_record(RECORD_CREDENTIAL, "one", "x");
	assert_int_equal(commit(), 0);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_MAINTAIN, &m, SPAN_NONE),
		SERVE_REPLY);
	assert_int_equal(reply.body.result.status, 0);
	assert_non_null(
		strstr(reply.body.result.text, "3 records in 2 scopes"));
	m.verb = MAINTAIN_ROTATE_DEK;
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_MAINTAIN, &m, SPAN_NONE),
		SERVE_REPLY);
	assert_int_equal(reply.body.result.status, 0);
}

/* -- accusations --------------------------------------------------------- */

/* Every type from every role: what is not in the table is an accusation. */
static void serve__only_the_table_is_allowed(void **state)
{
	static const struct {
		uint16_t type;
		enum role from;
	} allowed[] = {
		{ MSG_GATEWAY_SIGN, ROLE_GATEWAY },
		{ MSG_GATEWAY_LEASE, ROLE_GATEWAY },
		{ MSG_ROLE_GET_CA, ROLE_GATEWAY },
		{ MSG_ROLE_GET_CA, ROLE_CONTROL },
		{ MSG_ROLE_GET_CA, ROLE_SUPERVISOR },
		{ MSG_CONTROL_BEGIN, ROLE_CONTROL },
		{ MSG_CONTROL_PUT, ROLE_CONTROL },
		{ MSG_CONTROL_REMOVE, ROLE_CONTROL },
		{ MSG_CONTROL_COMMIT, ROLE_CONTROL },
		{ MSG_CONTROL_READ, ROLE_CONTROL },
		{ MSG_CONTROL_REVISION, ROLE_CONTROL },
		{ MSG_CONTROL_MAINTAIN, ROLE_CONTROL },
	};
	unsigned type, from;
	bool expected;
	size_t i;

	(void)state;
	for (type = 0; type < MSG_TYPE_NUM + 3; type++) {
		for (from = 0; from < ROLE_NUM; from++) {
			expected = false;
			for (i = 0; i < ARRAY_LEN(allowed); i++)
				expected |= allowed[i].type == type &&
					    allowed[i].from == from;
			assert_int_equal(row_find((enum role)from,
						  (uint16_t)type) != NULL,
					 expected);
		}
	}
}

static void serve__malformed_messages_are_accused(void **state)
{
	struct msg_credential lease = { .scope = "box", .name = "one" };
	struct msg_record record = { .kind = RECORD_CREDENTIAL, .name = "x" };
	struct msg_begin m = { .expected_revision = -2 };
	struct msg_read read = { .kind = RECORD_KIND_NUM };
	struct msg_sign sign = { .name = "a.example" };
	struct msg_maintain maintain = { .verb = 7 };
	static char big[MSG_TAIL_MAX + 1];
	size_t len;

	(void)state;
	for (len = 0; len < sizeof(lease); len++)
		assert_int_equal(send_bytes(ROLE_GATEWAY, MSG_GATEWAY_LEASE,
					    &lease, len, SPAN_NONE),
				 SERVE_ACCUSE);
	assert_int_equal(
		SEND(ROLE_GATEWAY, MSG_GATEWAY_LEASE, &lease, SPAN("tail")),
		SERVE_ACCUSE);
	memset(lease.name, 'x', sizeof(lease.name)); /* no NUL */
	assert_int_equal(
		SEND(ROLE_GATEWAY, MSG_GATEWAY_LEASE, &lease, SPAN_NONE),
		SERVE_ACCUSE);
	memcpy(lease.scope, ".vault", 7);
	memcpy(lease.name, "node", 5);
	assert_int_equal(
		SEND(ROLE_GATEWAY, MSG_GATEWAY_LEASE, &lease, SPAN_NONE),
		SERVE_ACCUSE);
	assert_int_equal(SEND(ROLE_GATEWAY, MSG_GATEWAY_SIGN, &sign, SPAN_NONE),
			 SERVE_ACCUSE);
	assert_int_equal(SEND(ROLE_GATEWAY, MSG_GATEWAY_SIGN, &sign,
			      span_of(big, LEAF_SPKI_MAX + 1)),
			 SERVE_ACCUSE);

	/* the order of a transaction */
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_PUT, &record, SPAN("x")),
		SERVE_ACCUSE);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_REMOVE, &record, SPAN_NONE),
		SERVE_ACCUSE);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_COMMIT, &none, SPAN_NONE),
		SERVE_ACCUSE);

	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_BEGIN, &m, SPAN_NONE),
			 SERVE_ACCUSE);
	m = (struct msg_begin){ .scope = ".vault", .expected_revision = -1 };
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_BEGIN, &m, SPAN_NONE),
			 SERVE_ACCUSE);
	begin("box", -1);
	record.kind = VAULT_CA_KEY;
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_PUT, &record, SPAN("x")),
		SERVE_ACCUSE);
	record.kind = RECORD_POLICY;
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_PUT, &record,
			      span_of(big, sizeof(big))),
			 SERVE_ACCUSE);
	assert_int_equal(SEND(ROLE_CONTROL, MSG_CONTROL_READ, &read, SPAN_NONE),
			 SERVE_ACCUSE);
	assert_int_equal(
		SEND(ROLE_CONTROL, MSG_CONTROL_MAINTAIN, &maintain, SPAN_NONE),
		SERVE_ACCUSE);
}

static void serve__a_name_that_is_no_name_is_not_found(void **state)
{
	(void)state;
	assert_int_equal(ask_lease("a\nb", "x"), EACCES);
	assert_int_equal(ask_lease("box", "a\nb"), EACCES);
	assert_int_equal(ask_read("a\nb", RECORD_POLICY, "", false), 0);
	assert_int_equal(ask_read("*", RECORD_POLICY, "a\nb", false), 0);
	assert_int_equal(ask_read("box", RECORD_POLICY, "a\nb", true), 0);
}

int main(void)
{
#define CASE(test)                                                  \
	cmocka_unit_test_setup_teardown(serve__##test, serve_setup, \
					serve_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_credential_reaches_the_gateway_only),
		CASE(the_configuration_may_name_one_too),
		CASE(what_is_wrong_with_a_change_is_told_at_commit),
		CASE(a_new_begin_drops_the_old),
		CASE(a_scope_goes_as_a_whole),
		CASE(reads_through_all_scopes),
		CASE(signs_what_is_a_name),
		CASE(the_ca_is_the_same_after_a_restart),
		CASE(maintains),
		CASE(only_the_table_is_allowed),
		CASE(malformed_messages_are_accused),
		CASE(a_name_that_is_no_name_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
