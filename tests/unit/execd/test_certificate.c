/* SPDX-License-Identifier: Apache-2.0 */
/* test_certificate.c - PEM in and out, and the names OpenSSL gives to subjects
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/base/buf.h"
#include "src/execd/init/certificate.h"
#include "src/execd/whole.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/certificate"

static void hash_is(const char *folder, const char *name, uint32_t expected)
{
	struct buf text = BUF_INIT(1 << 20), der = BUF_INIT(1 << 20);
	char path[512];
	struct span rest, base64;
	uint32_t hash;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(whole_read(path, &text), 0);
	rest = buf_peek(&text);
	assert_true(certificate_next(&rest, &base64));
	assert_int_equal(certificate_decode(base64, &der), 0);
	assert_int_equal(certificate_subject_hash(buf_peek(&der), &hash), 0);
	if (hash != expected)
		fail_msg("%s: %08x", path, hash);
	buf_fini(&text);
	buf_fini(&der);
}

/* The files are named by what `openssl x509 -hash` says: names in UTF-8, BMP,
 * T61 and universal strings, blanks to fold, a set of three. */
static void hash__of_every_kind_of_string(void **state)
{
	DIR *d = opendir(CORPUS);
	const struct dirent *e;
	const char *dash;
	unsigned count = 0;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d))) {
		dash = strchr(e->d_name, '-');
		if (!dash)
			continue;
		hash_is(CORPUS, e->d_name,
			(uint32_t)strtoul(dash + 1, NULL, 16));
		count++;
	}
	closedir(d);
	assert_int_equal(count, 7);
}

/* The links of this machine's own roots were made by OpenSSL. */
static void hash__of_all_roots_here(void **state)
{
	DIR *d = opendir("/etc/ssl/certs");
	const struct dirent *e;
	char *end;

	(void)state;
	while (d && (e = readdir(d))) {
		uint32_t hash = (uint32_t)strtoul(e->d_name, &end, 16);

		if (end == e->d_name + 8 && !strcmp(end, ".0"))
			hash_is("/etc/ssl/certs", e->d_name, hash);
	}
	if (d)
		closedir(d);
}

static void next__skips_what_is_no_certificate(void **state)
{
	struct buf text = BUF_INIT(1 << 20), der = BUF_INIT(1 << 20);
	unsigned good = 0, bad = 0;
	struct span rest, base64;

	(void)state;
	assert_int_equal(whole_read(CORPUS "/several", &text), 0);
	rest = buf_peek(&text);
	while (certificate_next(&rest, &base64)) {
		size_t before = buf_len(&der);

		if (certificate_decode(base64, &der)) {
			assert_int_equal(buf_len(&der), before);
			bad++;
		} else {
			good++;
		}
	}
	assert_int_equal(good, 2);
	assert_int_equal(bad, 1);
	buf_fini(&text);
	buf_fini(&der);
}

static void next__leaves_keys_alone(void **state)
{
	struct span rest = SPAN("-----BEGIN PRIVATE KEY-----\nAAAA\n"
				"-----END PRIVATE KEY-----\n");
	struct span base64;

	(void)state;
	assert_false(certificate_next(&rest, &base64));
	assert_int_equal(rest.len, 0);
}

static void decode__wants_the_whole_element(void **state)
{
	/* not base64; an empty sequence; a length that is longer */
	static const char *const bad[] = { "", "%%%%", "MAA=", "MIIB" };
	struct buf der = BUF_INIT(1000);
	unsigned i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_not_equal(certificate_decode(span_str(bad[i]), &der),
				     0);
	assert_int_equal(buf_len(&der), 0);
	buf_fini(&der);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash__of_every_kind_of_string),
		cmocka_unit_test(hash__of_all_roots_here),
		cmocka_unit_test(next__skips_what_is_no_certificate),
		cmocka_unit_test(next__leaves_keys_alone),
		cmocka_unit_test(decode__wants_the_whole_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
