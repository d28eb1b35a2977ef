/* SPDX-License-Identifier: Apache-2.0 */
/* test_client.c - the blocking client against a scripted server, and the
 * server with the operator's certificate against OpenSSL
 */

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/httpd/client.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"

/* -- a server that reads a head (and a body of a length) and says its line --
 */

struct script {
	int fd;
	const char *answer;
	char request[4096];
	struct addr at;
	int nodelay; /* of what was accepted */
};

static void *script_run(void *arg)
{
	struct script *s = arg;
	int fd = accept(s->fd, NULL, NULL);
	socklen_t size = sizeof(s->nodelay);
	const char *length, *body;
	size_t len = 0;
	ssize_t n;

	(void)getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &s->nodelay, &size);
	while ((n = recv(fd, s->request + len, sizeof(s->request) - len - 1,
			 0)) > 0) {
		len += (size_t)n;
		s->request[len] = '\0';
		body = strstr(s->request, "\r\n\r\n");
		length = strstr(s->request, "Content-Length: ");
		if (body && (!length || strlen(body + 4) >=
						strtoul(length + 16, NULL, 10)))
			break;
	}
	/* byte by byte: the client must not depend on packets */
	for (length = s->answer; *length; length++)
		if (send(fd, length, 1, MSG_NOSIGNAL) != 1)
			break;
	close(fd);
	return NULL;
}

static pthread_t script_start(struct script *s, const char *answer)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof(at);
	pthread_t thread;

	*s = (struct script){ .answer = answer };
	assert_true(addr_parse(SPAN("127.0.0.1"), &s->at));
	s->fd = httpd_bind_tcp(&s->at);
	assert_true(s->fd >= 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&at, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&at, &s->at));
	/* accept() waits */
	assert_int_equal(fcntl(s->fd, F_SETFL, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, script_run, s), 0);
	return thread;
}

static int call(const char *answer, struct span body, unsigned *status,
		struct buf *reply, struct script *s)
{
	pthread_t thread = script_start(s, answer);
	struct httpd_target target = {
		.address = s->at,
		.token = "secret-token",
		.timeout_ms = 2000,
	};
	int r;

	r = httpd_client_call(&target, "PUT", "/v1/x", body, status, reply);
	pthread_join(thread, NULL);
	close(s->fd);
	assert_int_equal(s->nodelay, 1);
	return r;
}

static void client__reads_every_framing(void **state)
{
	static const struct {
		const char *answer;
		unsigned status;
		const char *body;
	} rows[] = {
		{ "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 200,
		  "abc" },
		{ "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
		  "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
		  201, "abc" },
		{ "HTTP/1.1 404 Not Found\r\n\r\nuntil the end", 404,
		  "until the end" },
		{ "HTTP/1.1 204 No Content\r\n\r\n", 204, "" },
		{ "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 409 Conflict\r\n"
		  "Content-Length: 2\r\n\r\n{}",
		  409, "{}" },
	};
	struct buf reply = BUF_INIT(1024);
	struct script s;
	unsigned status;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		buf_clear(&reply);
		assert_int_equal(call(rows[i].answer, SPAN("{\"a\":1}"),
				      &status, &reply, &s),
				 0);
		assert_int_equal(status, rows[i].status);
		assert_true(span_eq(buf_peek(&reply), span_str(rows[i].body)));
	}
	assert_non_null(strstr(s.request, "PUT /v1/x HTTP/1.1\r\n"));
	assert_non_null(strstr(s.request, "Authorization: Bearer secret-token"
					  "\r\n"));
	assert_non_null(strstr(s.request, "\r\n\r\n{\"a\":1}"));
	buf_fini(&reply);
}

static void client__tells_broken_answers(void **state)
{
	static const struct {
		const char *answer;
		int r;
	} rows[] = {
		{ "", -EPROTO },
		{ "SSH-2.0\r\n\r\n", -EPROTO },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", -EPROTO },
		{ "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz",
		  -EPROTO },
		{ "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789",
		  -ENOBUFS },
	};
	struct script s;
	unsigned status;
	size_t i;
	int r;

	(void)state;
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf reply = BUF_INIT(8);

		r = call(rows[i].answer, SPAN_NONE, &status, &reply, &s);
		if (r != rows[i].r)
			fail_msg("%s: %d", rows[i].answer, r);
		buf_fini(&reply);
	}
}

static void client__tells_that_nobody_listens(void **state)
{
	struct httpd_target target = { .socket_path = "/nonexistent/sock" };
	struct buf reply = BUF_INIT(8);
	unsigned status;

	(void)state;
	assert_int_equal(httpd_client_call(&target, "GET", "/", SPAN_NONE,
					   &status, &reply),
			 -ENOENT);
	target.socket_path = NULL;
	assert_true(addr_parse_port(SPAN("127.0.0.1:1"), 0, &target.address));
	assert_int_equal(httpd_client_call(&target, "GET", "/", SPAN_NONE,
					   &status, &reply),
			 -ECONNREFUSED);
	buf_fini(&reply);
}

static bool on_piece(void *ctx, struct span piece)
{
	struct buf *all = ctx;

	assert_int_equal(buf_put(all, piece), 0);
	return buf_len(all) < 4;
}

static void client__streams_until_told_to_stop(void **state)
{
	struct buf reply = BUF_INIT(1024), all = BUF_INIT(1024);
	struct script s;
	pthread_t thread = script_start(
		&s, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "2\r\nab\r\n2\r\ncd\r\n2\r\nef\r\n0\r\n\r\n");
	struct httpd_target target = { .address = s.at };
	unsigned status;

	(void)state;
	assert_int_equal(httpd_client_stream(&target, "/s", &status, on_piece,
					     &all, &reply),
			 0);
	assert_int_equal(status, 200);
	assert_true(span_eq(buf_peek(&all), SPAN("abcd")));
	pthread_join(thread, NULL);
	close(s.fd);
	buf_fini(&all);
	buf_fini(&reply);
}

static void encode__leaves_only_unreserved_bytes(void **state)
{
	struct buf text = BUF_INIT(64);

	(void)state;
	assert_int_equal(httpd_client_encode(&text, SPAN("a-b/c d%\xc3\xa9")),
			 0);
	assert_true(span_eq(buf_peek(&text), SPAN("a-b%2Fc%20d%25%C3%A9")));
	buf_fini(&text);
}

/* -- TLS ------------------------------------------------------------------ */

static char folder[] = "/tmp/httpd-tls-XXXXXX";

static void certificate_make(char *cert_path, char *key_path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *name;
	FILE *file;

	strcpy(folder, "/tmp/httpd-tls-XXXXXX");
	assert_non_null(mkdtemp(folder));
	sprintf(cert_path, "%s/cert.pem", folder);
	sprintf(key_path, "%s/key.pem", folder);
	assert_true(X509_set_version(cert, 2));
	ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
	X509_gmtime_adj(X509_getm_notBefore(cert), -60);
	X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
	name = X509_get_subject_name(cert);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const unsigned char *)"localhost", -1, -1,
				   0);
	X509_set_issuer_name(cert, name);
	X509_set_pubkey(cert, key);
	assert_true(X509_sign(cert, key, EVP_sha256()));
	file = fopen(cert_path, "w");
	PEM_write_X509(file, cert);
	fclose(file);
	file = fopen(key_path, "w");
	PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
	fclose(file);
	X509_free(cert);
	EVP_PKEY_free(key);
}

static void on_hello(void *ctx, struct httpd_request *r)
{
	assert_false(httpd_peer(r)->is_unix);
	assert_int_equal(httpd_peer(r)->uid, (uid_t)-1);
	*(unsigned *)ctx += 1;
	httpd_reply(r, 200, "text/plain", SPAN("hello over TLS"));
}

static unsigned on_authorise(void *ctx, const struct httpd_request *r)
{
	(void)ctx;
	return httpd_header(r, SPAN("authorization")).ptr ? 0 : 401;
}

struct tls_client {
	struct addr at;
	char text[4096];
};

static void *tls_client_run(void *arg)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct tls_client *c = arg;
	struct sockaddr_storage at;
	socklen_t len = addr_to_sockaddr(&c->at, &at);
	int fd = socket(at.ss_family, SOCK_STREAM, 0), n;
	static const char request[] =
		"GET /hello HTTP/1.1\r\nHost: x\r\n"
		"Authorization: Bearer t\r\nConnection: close\r\n\r\n";
	SSL *ssl = SSL_new(ctx);
	size_t got = 0;

	if (connect(fd, (struct sockaddr *)&at, len))
		return NULL;
	SSL_set_fd(ssl, fd);
	if (SSL_connect(ssl) == 1 &&
	    SSL_write(ssl, request, sizeof(request) - 1) > 0)
		while ((n = SSL_read(ssl, c->text + got,
				     (int)(sizeof(c->text) - got - 1))) > 0)
			got += (size_t)n;
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	close(fd);
	return NULL;
}

static void server__speaks_tls(void **state)
{
	static const struct httpd_route routes[] = {
		{ "GET", "/hello", HTTPD_AUTH_REQUIRED, on_hello },
	};
	static const struct httpd_ops ops = { on_authorise };
	char cert[128], key[128], why[256];
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	struct tls_client client = { 0 };
	struct ssl_ctx_st *tls;
	unsigned served = 0, i;
	struct httpd *h;
	struct loop *loop;
	pthread_t thread;
	int fd;

	(void)state;
	certificate_make(cert, key);
	assert_int_equal(httpd_tls_new(key, key, why, sizeof(why), &tls),
			 -EINVAL);
	assert_non_null(strstr(why, "certificate"));
	assert_int_equal(httpd_tls_new(cert, cert, why, sizeof(why), &tls),
			 -EINVAL);
	assert_int_equal(httpd_tls_new(cert, key, why, sizeof(why), &tls), 0);

	assert_int_equal(loop_new(&loop), 0);
	assert_int_equal(httpd_new(loop, routes, 1, &ops, &served, &h), 0);
	assert_true(addr_parse(SPAN("127.0.0.1"), &client.at));
	fd = httpd_bind_tcp(&client.at);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&bound, &client.at));
	assert_int_equal(httpd_listen_fd(h, fd, tls), 0);

	assert_int_equal(pthread_create(&thread, NULL, tls_client_run, &client),
			 0);
	for (i = 0; i < 4000 && !(served && !httpd_connection_count(h)); i++) {
		loop_run_once(loop, false);
		usleep(500);
	}
	for (i = 0; i < 100; i++) {
		loop_run_once(loop, false);
		usleep(500);
	}
	pthread_join(thread, NULL);
	assert_int_equal(served, 1);
	assert_non_null(strstr(client.text, "200 OK"));
	assert_non_null(strstr(client.text, "\r\n\r\nhello over TLS"));

	httpd_free(h);
	loop_free(loop);
	httpd_tls_free(tls);
	unlink(cert);
	unlink(key);
	rmdir(folder);
}

/* -- another certificate --------------------------------------------------- */

/* Of a handshake in memory: the name that the server showed. */
static void assert_shows(struct ssl_ctx_st *tls, const char *certificate)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *client = SSL_new(ctx), *server = SSL_new(tls);
	FILE *file = fopen(certificate, "r");
	X509 *want = PEM_read_X509(file, NULL, NULL, NULL), *shown;
	BIO *a, *b;
	int i;

	assert_int_equal(BIO_new_bio_pair(&a, 0, &b, 0), 1);
	SSL_set_bio(client, a, a);
	SSL_set_bio(server, b, b);
	SSL_set_connect_state(client);
	SSL_set_accept_state(server);
	for (i = 0; i < 8; i++) {
		(void)SSL_do_handshake(client);
		(void)SSL_do_handshake(server);
	}
	assert_true(SSL_is_init_finished(client));
	shown = SSL_get1_peer_certificate(client);
	assert_int_equal(X509_cmp(shown, want), 0);
	X509_free(shown);
	X509_free(want);
	fclose(file);
	SSL_free(client);
	SSL_free(server);
	SSL_CTX_free(ctx);
}

static int renew(struct ssl_ctx_st *tls, const char *certificate,
		 const char *key, char why[256])
{
	int fds[2] = { open(certificate, O_RDONLY), open(key, O_RDONLY) };
	int r = httpd_tls_renew(tls, fds[0], fds[1], why, 256);

	close(fds[0]);
	close(fds[1]);
	return r;
}

static void tls__shows_the_present_certificate(void **state)
{
	char cert[2][128], key[2][128], why[256], made[2][64];
	struct ssl_ctx_st *tls;
	int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		certificate_make(cert[i], key[i]);
		strcpy(made[i], folder);
	}
	assert_int_equal(httpd_tls_new(cert[0], key[0], why, sizeof(why), &tls),
			 0);
	assert_shows(tls, cert[0]);
	/* nothing that is wrong takes its place */
	assert_int_equal(renew(tls, cert[1], key[0], why), -EINVAL);
	assert_non_null(strstr(why, "the key"));
	assert_int_equal(renew(tls, key[1], key[1], why), -EINVAL);
	assert_non_null(strstr(why, "the certificate"));
	assert_int_equal(renew(tls, cert[1], "/dev/null", why), -EINVAL);
	assert_int_equal(truncate(cert[1], 300), 0);
	assert_int_equal(renew(tls, cert[1], key[1], why), -EINVAL);
	assert_shows(tls, cert[0]);
	unlink(cert[1]);
	unlink(key[1]);
	rmdir(made[1]);

	certificate_make(cert[1], key[1]);
	strcpy(made[1], folder);
	assert_int_equal(renew(tls, cert[1], key[1], why), 0);
	assert_shows(tls, cert[1]);
	assert_int_equal(renew(tls, cert[1], key[1], why), HTTPD_TLS_SAME);
	assert_shows(tls, cert[1]);
	httpd_tls_free(tls);
	for (i = 0; i < 2; i++) {
		unlink(cert[i]);
		unlink(key[i]);
		rmdir(made[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(client__reads_every_framing),
		cmocka_unit_test(client__tells_broken_answers),
		cmocka_unit_test(client__tells_that_nobody_listens),
		cmocka_unit_test(client__streams_until_told_to_stop),
		cmocka_unit_test(encode__leaves_only_unreserved_bytes),
		cmocka_unit_test(server__speaks_tls),
		cmocka_unit_test(tls__shows_the_present_certificate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
