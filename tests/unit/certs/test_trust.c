/* SPDX-License-Identifier: Apache-2.0 */
/* test_trust.c - roots from files, and the bundle that sandboxes get */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <openssl/x509.h>

#include "certs/ca.h"
#include "certs/cert.h"
#include "certs/trust.h"
#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"

static struct ca *ca;
static char path[64];

static int group_setup(void **state)
{
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/sallyport-trust-XXXXXX");
	fd = mkstemp(path);
	if (fd < 0)
		return -1;
	close(fd);
	return ca_new(clock_wall_ms(), &ca);
}

static int group_teardown(void **state)
{
	(void)state;
	ca_free(ca);
	return unlink(path);
}

static void file_put(struct span text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(text.ptr, 1, text.len, f), text.len);
	assert_int_equal(fclose(f), 0);
}

static unsigned count_of(struct span text, const char *what)
{
	unsigned n = 0;
	const char *at = text.ptr, *end = text.ptr + text.len;

	while ((at = memmem(at, (size_t)(end - at), what, strlen(what)))) {
		at++;
		n++;
	}
	return n;
}

static void trust__reads_files_and_writes_a_bundle(void **state)
{
	CLEANUP(buf_fini) struct buf pem = BUF_INIT(1 << 20);
	CLEANUP(buf_fini) struct buf bundle = BUF_INIT(1 << 20);
	char *files[] = { path };
	struct trust *t = NULL;
	struct ca *other = NULL;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(ca_new(clock_wall_ms(), &other), 0);
	assert_int_equal(buf_put_str(&pem, "# a comment\n"), 0);
	assert_int_equal(cert_der_to_pem(ca_cert_der(ca), &pem), 0);
	assert_int_equal(cert_der_to_pem(ca_cert_der(other), &pem), 0);
	file_put(buf_peek(&pem));

	assert_int_equal(trust_new(false, files, 1, &t, &d), 0);
	assert_int_equal(trust_count(t), 2);
	assert_non_null(trust_store(t));
	assert_int_equal(trust_bundle(t, ca_cert_der(ca), &bundle), 0);
	assert_int_equal(count_of(buf_peek(&bundle), "BEGIN CERTIFICATE"), 3);
	trust_free(t);
	ca_free(other);
}

/* What a container has besides its own roots. */
static void trust__bundle_without_the_system(void **state)
{
	CLEANUP(buf_fini) struct buf pem = BUF_INIT(1 << 20);
	CLEANUP(buf_fini) struct buf bundle = BUF_INIT(1 << 20);
	char *files[] = { path };
	struct trust *t = NULL;
	struct ca *other = NULL;
	struct diag d = { 0 };

	(void)state;
	if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) != 0)
		skip();
	assert_int_equal(ca_new(clock_wall_ms(), &other), 0);
	assert_int_equal(cert_der_to_pem(ca_cert_der(other), &pem), 0);
	file_put(buf_peek(&pem));
	assert_int_equal(trust_new(true, files, 1, &t, &d), 0);
	assert_true(trust_count(t) > 20);
	buf_clear(&pem);
	assert_int_equal(cert_der_to_pem(ca_cert_der(ca), &pem), 0);
	assert_int_equal(cert_der_to_pem(ca_cert_der(other), &pem), 0);
	assert_int_equal(trust_bundle_own(t, ca_cert_der(ca), &bundle), 0);
	assert_true(span_eq(buf_peek(&bundle), buf_peek(&pem)));
	trust_free(t);
	ca_free(other);
}

static void trust__says_what_is_wrong(void **state)
{
	CLEANUP(buf_fini) struct buf pem = BUF_INIT(1 << 20);
	static char missing[] = "/nonexistent/roots.pem";
	char *files[] = { path }, *nowhere[] = { missing };
	struct trust *t = NULL;
	struct diag d = { 0 };

	(void)state;
	file_put(SPAN("no certificate here\n"));
	assert_true(trust_new(false, files, 1, &t, &d) < 0);
	assert_string_equal(d.file, path);
	assert_non_null(strstr(d.msg, "found no certificate"));

	assert_int_equal(cert_der_to_pem(ca_cert_der(ca), &pem), 0);
	assert_int_equal(buf_put_str(&pem, "-----BEGIN CERTIFICATE-----\n"
					   "AAAA\n"
					   "-----END CERTIFICATE-----\n"),
			 0);
	file_put(buf_peek(&pem));
	d = (struct diag){ 0 };
	assert_true(trust_new(false, files, 1, &t, &d) < 0);
	assert_non_null(strstr(d.msg, "certificate 2 is damaged"));

	d = (struct diag){ 0 };
	assert_true(trust_new(false, nowhere, 1, &t, &d) < 0);
	assert_string_equal(d.file, nowhere[0]);
	assert_null(t);
}

static void trust__finds_the_system_roots(void **state)
{
	struct trust *t = NULL;
	struct diag d = { 0 };

	(void)state;
	if (access("/etc/ssl/certs/ca-certificates.crt", R_OK) != 0)
		skip();
	assert_int_equal(trust_new(true, NULL, 0, &t, &d), 0);
	assert_true(trust_count(t) > 20);
	trust_free(t);
}

static void trust__of_nothing_trusts_nobody(void **state)
{
	struct trust *t = NULL;
	struct diag d = { 0 };

	(void)state;
	assert_int_equal(trust_new(false, NULL, 0, &t, &d), 0);
	assert_int_equal(trust_count(t), 0);
	trust_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trust__reads_files_and_writes_a_bundle),
		cmocka_unit_test(trust__bundle_without_the_system),
		cmocka_unit_test(trust__says_what_is_wrong),
		cmocka_unit_test(trust__finds_the_system_roots),
		cmocka_unit_test(trust__of_nothing_trusts_nobody),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
