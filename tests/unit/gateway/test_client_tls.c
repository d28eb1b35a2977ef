/* SPDX-License-Identifier: Apache-2.0 */
/* test_client_tls.c - TLS towards sandboxes: the leaf, tickets, ALPN */

#include "tests/unit/gateway/fixture.h"

#include <openssl/err.h>
#include <openssl/x509v3.h>

enum { TURNS = 40 };

struct desk {
	struct world *world;
	SSL_CTX *client;
	SSL *near, *far;       /* the gateway's side, the sandbox's side */
	SSL_SESSION *session;  /* newest that the far side was given */
	int near_ok, far_ok;   /* 1 when shaken */
	unsigned long far_why; /* the alert, as OpenSSL reports it */
	bool h2;	       /* as if the origin spoke it */
};

static int on_session(SSL *ssl, SSL_SESSION *session)
{
	struct desk *d = SSL_get_app_data(ssl);

	SSL_SESSION_free(d->session);
	d->session = session;
	return 1;
}

static int desk_open(void **state)
{
	struct desk *d = must_alloc(sizeof(*d));

	d->world = world_new();
	d->client = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set1_cert_store(d->client, d->world->store);
	SSL_CTX_set_verify(d->client, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_session_cache_mode(
		d->client, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(d->client, on_session);
	*state = d;
	return 0;
}

/* A session outlives a connection that ended in good order only. */
static void ssl_end(SSL *ssl)
{
	if (ssl)
		SSL_set_shutdown(ssl,
				 SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	SSL_free(ssl);
}

static void desk_end(struct desk *d)
{
	ssl_end(d->near);
	ssl_end(d->far);
	d->near = d->far = NULL;
	ERR_clear_error();
}

static int desk_close(void **state)
{
	struct desk *d = *state;

	desk_end(d);
	SSL_SESSION_free(d->session);
	SSL_CTX_free(d->client);
	world_free(d->world);
	free(d);
	return 0;
}

static X509 *leaf_for(struct desk *d, const char *name)
{
	CLEANUP(buf_fini) struct buf der = BUF_INIT(CERT_DER_MAX);
	struct gateway *g = &d->world->gateway;
	struct diag diag = { 0 };
	X509 *leaf;

	must(!leaf_sign(d->world->ca, span_str(name),
			span_of(g->leaf_spki, g->leaf_spki_len),
			clock_wall_ms(), &der, &diag));
	must(!cert_from_der(buf_peek(&der), &leaf));
	return leaf;
}

/* Both ends of a new connection; the far one offers what it was given. */
static void begin(struct desk *d, const char *sandbox, const char *name)
{
	struct gateway *g = &d->world->gateway;
	X509 *leaf = leaf_for(d, name);
	BIO *a, *b;

	desk_end(d);
	d->near = client_ssl_new(g->client_ctx, leaf, g->leaf_key,
				 span_str(sandbox), span_str(name), d->h2);
	X509_free(leaf);
	assert_non_null(d->near);
	d->far = SSL_new(d->client);
	SSL_set_app_data(d->far, d);
	SSL_set_connect_state(d->far);
	must(SSL_set_tlsext_host_name(d->far, name));
	must(SSL_set1_host(d->far, name));
	must(BIO_new_bio_pair(&a, 0, &b, 0));
	SSL_set_bio(d->near, a, a);
	SSL_set_bio(d->far, b, b);
}

/* Until both are shaken or one has failed; tickets arrive too. */
static bool shake(struct desk *d)
{
	char byte;
	int i;

	d->far_why = 0;
	for (i = 0; i < TURNS; i++) {
		d->far_ok = SSL_do_handshake(d->far);
		if (d->far_ok != 1 && !d->far_why &&
		    SSL_get_error(d->far, d->far_ok) == SSL_ERROR_SSL)
			d->far_why = ERR_peek_error();
		ERR_clear_error();
		d->near_ok = SSL_do_handshake(d->near);
		ERR_clear_error();
		if (d->near_ok == 1 && d->far_ok == 1)
			(void)SSL_read(d->far, &byte, 1);
	}
	return d->near_ok == 1 && d->far_ok == 1;
}

static bool resumed(struct desk *d)
{
	assert_int_equal(SSL_session_reused(d->near),
			 SSL_session_reused(d->far));
	return SSL_session_reused(d->far);
}

static void use_version(struct desk *d, int version)
{
	must(SSL_CTX_set_min_proto_version(d->client, version));
	must(SSL_CTX_set_max_proto_version(d->client, version));
}

/* A first connection of sandbox "s" to a.example; its ticket is kept. */
static SSL_SESSION *first_session(struct desk *d)
{
	SSL_SESSION *kept;

	SSL_SESSION_free(d->session);
	d->session = NULL;
	begin(d, "s", "a.example");
	assert_true(shake(d));
	assert_false(resumed(d));
	assert_non_null(d->session);
	kept = d->session;
	d->session = NULL;
	return kept;
}

/* -- the leaf ---------------------------------------------------------------
 */

static void client__sees_the_leaf_of_its_name(void **state)
{
	struct desk *d = *state;
	X509 *leaf;

	begin(d, "s", "a.example");
	assert_true(shake(d));
	leaf = SSL_get1_peer_certificate(d->far);
	assert_int_equal(X509_check_host(leaf, "a.example", 0, 0, NULL), 1);
	assert_int_equal(X509_check_host(leaf, "b.example", 0, 0, NULL), 0);
	assert_int_equal(SSL_get_verify_result(d->far), X509_V_OK);
	X509_free(leaf);
}

static void client__trusts_no_other_name(void **state)
{
	struct desk *d = *state;

	begin(d, "s", "a.example");
	must(SSL_set1_host(d->far, "b.example"));
	assert_false(shake(d));
}

static void client__a_key_of_another_leaf_is_refused(void **state)
{
	struct desk *d = *state;
	struct gateway *g = &d->world->gateway;
	X509 *leaf = leaf_for(d, "a.example");
	EVP_PKEY *other;

	must(!leaf_key_new(&other));
	assert_null(client_ssl_new(g->client_ctx, leaf, other, SPAN("s"),
				   SPAN("a.example"), false));
	ERR_clear_error();
	EVP_PKEY_free(other);
	X509_free(leaf);
}

static void client__speaks_nothing_older_than_1_2(void **state)
{
	struct desk *d = *state;

	SSL_CTX_set_security_level(d->client, 0);
	use_version(d, TLS1_1_VERSION);
	begin(d, "s", "a.example");
	assert_false(shake(d));
	use_version(d, TLS1_2_VERSION);
	begin(d, "s", "a.example");
	assert_true(shake(d));
	assert_int_equal(SSL_version(d->near), TLS1_2_VERSION);
}

/* -- tickets ----------------------------------------------------------------
 */

/* case 27, towards the client. */
static void ticket__is_for_one_sandbox_and_one_name(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	static const struct {
		const char *sandbox, *name;
		bool resumes;
	} rows[] = {
		{ "s", "a.example", true },  { "t", "a.example", false },
		{ "s", "b.example", false }, { "", "a.example", false },
		{ "s", "192.0.2.1", false },
	};
	struct desk *d = *state;
	SSL_SESSION *kept;
	size_t v, i;

	for (v = 0; v < ARRAY_LEN(versions); v++) {
		use_version(d, versions[v]);
		for (i = 0; i < ARRAY_LEN(rows); i++) {
			kept = first_session(d);
			begin(d, rows[i].sandbox, rows[i].name);
			must(SSL_set_session(d->far, kept));
			SSL_SESSION_free(kept);
			assert_true(shake(d));
			if (resumed(d) != rows[i].resumes)
				fail_msg("%s to %s, version %x",
					 rows[i].sandbox, rows[i].name,
					 (unsigned)versions[v]);
		}
	}
}

/* "ab" and "c.example" are not "a" and "bc.example". */
static void ticket__ties_are_unambiguous(void **state)
{
	struct desk *d = *state;
	SSL_SESSION *kept;

	begin(d, "ab", "c.example");
	assert_true(shake(d));
	kept = take_ptr(d->session);
	begin(d, "a", "bc.example");
	must(SSL_set_session(d->far, kept));
	SSL_SESSION_free(kept);
	assert_true(shake(d));
	assert_false(resumed(d));
}

/* -- ALPN -------------------------------------------------------------------
 */

static void offer(struct desk *d, const char *protocols, size_t len)
{
	begin(d, "s", "a.example");
	must(!SSL_set_alpn_protos(d->far, (const unsigned char *)protocols,
				  (unsigned)len));
}

static void alpn__takes_http_1_1(void **state)
{
	struct desk *d = *state;
	const unsigned char *chosen;
	unsigned len;

	offer(d, "\x02h2\x08http/1.1", 12);
	assert_true(shake(d));
	SSL_get0_alpn_selected(d->far, &chosen, &len);
	assert_span(span_of(chosen, len), "http/1.1");

	begin(d, "s", "a.example"); /* none offered: none chosen */
	assert_true(shake(d));
	SSL_get0_alpn_selected(d->far, &chosen, &len);
	assert_int_equal(len, 0);

	offer(d, "\x02h2", 3); /* speaks nothing else: it is bridged */
	assert_true(shake(d));
	SSL_get0_alpn_selected(d->far, &chosen, &len);
	assert_span(span_of(chosen, len), "h2");
}

static void alpn__prefers_h2_where_it_may(void **state)
{
	static const struct {
		struct span offered;
		const char *chosen;
	} cases[] = {
		{ SPAN_INIT("\x02h2\x08http/1.1"), "h2" },
		{ SPAN_INIT("\x08http/1.1\x02h2"), "h2" },
		{ SPAN_INIT("\x02h2"), "h2" },
		{ SPAN_INIT("\x08http/1.1"), "http/1.1" },
	};
	struct desk *d = *state;
	const unsigned char *chosen;
	unsigned len;
	size_t i;

	d->h2 = true;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		offer(d, cases[i].offered.ptr, cases[i].offered.len);
		assert_true(shake(d));
		SSL_get0_alpn_selected(d->far, &chosen, &len);
		assert_span(span_of(chosen, len), cases[i].chosen);
	}
	begin(d, "s", "a.example"); /* none offered: none chosen */
	assert_true(shake(d));
	SSL_get0_alpn_selected(d->far, &chosen, &len);
	assert_int_equal(len, 0);
}

static void alpn__alerts_when_nothing_fits(void **state)
{
	static const int versions[] = { TLS1_2_VERSION, TLS1_3_VERSION };
	struct desk *d = *state;
	size_t v;

	for (v = 0; v < ARRAY_LEN(versions); v++) {
		use_version(d, versions[v]);
		offer(d, "\x03h2c\x02h3", 7);
		assert_false(shake(d));
		assert_int_equal(ERR_GET_REASON(d->far_why),
				 SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL);
	}
}

#define DESK_TEST(fn) cmocka_unit_test_setup_teardown(fn, desk_open, desk_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		DESK_TEST(client__sees_the_leaf_of_its_name),
		DESK_TEST(client__trusts_no_other_name),
		DESK_TEST(client__a_key_of_another_leaf_is_refused),
		DESK_TEST(client__speaks_nothing_older_than_1_2),
		DESK_TEST(ticket__is_for_one_sandbox_and_one_name),
		DESK_TEST(ticket__ties_are_unambiguous),
		DESK_TEST(alpn__takes_http_1_1),
		DESK_TEST(alpn__prefers_h2_where_it_may),
		DESK_TEST(alpn__alerts_when_nothing_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
