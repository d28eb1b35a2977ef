/* SPDX-License-Identifier: Apache-2.0 */
/* test_keystore.c - stores that keytool wrote, extended (that Java reads them
 * is tests/scenes/execd/test_trust.py)
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/base/buf.h"
#include "src/execd/init/keystore.h"
#include "src/execd/whole.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/keystore/"

static const struct span two[] = { SPAN_INIT("0\3one"), SPAN_INIT("0\3two") };
static const struct keystore_add add = { two, 2, "ours", 1000 };
static const struct keystore_add other = { two + 1, 1, "ours", 2000 };

static int extend(const char *name, const struct keystore_add *what,
		  struct buf *out)
{
	struct buf store CLEANUP(buf_fini) = BUF_INIT(1 << 20);
	char path[512];

	snprintf(path, sizeof(path), CORPUS "%s", name);
	assert_int_equal(whole_read(path, &store), 0);
	return keystore_extend(buf_peek(&store), what, out);
}

static unsigned count_of(const struct buf *store)
{
	const uint8_t *p = (const uint8_t *)buf_peek(store).ptr;

	assert_true(buf_len(store) > 12);
	assert_memory_equal(p, "\xfe\xed\xfe\xed\0\0\0\2", 8);
	return (unsigned)p[10] << 8 | p[11];
}

static void extend__jks_and_open_pkcs12(void **state)
{
	static const char *const names[] = { "s.jks", "s.p12" };
	struct buf out = BUF_INIT(1 << 20), again = out, third = out;
	unsigned i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(extend(names[i], &add, &out), 0);
		assert_int_equal(count_of(&out), 4);
		/* once more changes nothing */
		assert_int_equal(keystore_extend(buf_peek(&out), &add, &again),
				 KEYSTORE_E_SAME);
		/* another CA takes the place of both */
		buf_clear(&again);
		assert_int_equal(
			keystore_extend(buf_peek(&out), &other, &again), 0);
		assert_int_equal(count_of(&again), 3);
		buf_clear(&third);
		assert_int_equal(
			keystore_extend(buf_peek(&again), &other, &third),
			KEYSTORE_E_SAME);
		buf_clear(&out);
		buf_clear(&again);
		buf_clear(&third);
	}
	buf_fini(&out);
	buf_fini(&again);
	buf_fini(&third);
}

static void extend__keeps_keys(void **state)
{
	struct buf out = BUF_INIT(1 << 20);

	(void)state;
	assert_int_equal(extend("key.jks", &other, &out), 0);
	assert_int_equal(count_of(&out), 2);
	buf_fini(&out);
}

static void extend__refuses_what_it_cannot_read(void **state)
{
	struct buf out = BUF_INIT(1 << 20), store = out;

	(void)state;
	assert_int_equal(extend("m.p12", &add, &out), KEYSTORE_E_LOCKED);
	buf_clear(&out);
	assert_int_equal(keystore_extend(SPAN("hello"), &add, &out),
			 KEYSTORE_E_FOREIGN);
	assert_int_equal(keystore_extend(SPAN(""), &add, &out),
			 KEYSTORE_E_FOREIGN);
	/* one bit of a store: the digest does not fit */
	assert_int_equal(whole_read(CORPUS "s.jks", &store), 0);
	store.data[store.start + 40] ^= 1;
	assert_int_equal(keystore_extend(buf_peek(&store), &add, &out),
			 KEYSTORE_E_LOCKED);
	buf_fini(&out);
	buf_fini(&store);
}

static void make__from_pem(void **state)
{
	struct buf pem = BUF_INIT(1 << 20), out = pem, again = pem;

	(void)state;
	assert_int_equal(whole_read(SOURCE_DIR
				    "/tests/fuzz/corpus/certificate/several",
				    &pem),
			 0);
	assert_int_equal(keystore_make(buf_peek(&pem), &add, &out), 0);
	assert_int_equal(count_of(&out), 4);
	assert_int_equal(keystore_extend(buf_peek(&out), &add, &again),
			 KEYSTORE_E_SAME);
	buf_fini(&pem);
	buf_fini(&out);
	buf_fini(&again);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(extend__jks_and_open_pkcs12),
		cmocka_unit_test(extend__keeps_keys),
		cmocka_unit_test(extend__refuses_what_it_cannot_read),
		cmocka_unit_test(make__from_pem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
