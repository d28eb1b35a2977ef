/* SPDX-License-Identifier: Apache-2.0 */
/* test_tls_record.c - the key schedule and records, against RFC 8448 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/io/tls/record.h"

/* RFC 8448 3, "Simple 1-RTT Handshake": TLS_AES_128_GCM_SHA256 */
static const uint8_t secret[32] = {
	0x9e, 0x40, 0x64, 0x6c, 0xe7, 0x9a, 0x7f, 0x9d, 0xc0, 0x5a, 0xf8,
	0x88, 0x9b, 0xce, 0x65, 0x52, 0x87, 0x5a, 0xfa, 0x0b, 0x06, 0xdf,
	0x00, 0x87, 0xf7, 0x92, 0xeb, 0xb7, 0xc1, 0x75, 0x04, 0xa5,
};
static const uint8_t iv[12] = { 0x5b, 0x78, 0x92, 0x3d, 0xee, 0x08,
				0x57, 0x90, 0x33, 0xe5, 0x23, 0xd9 };
/* {client} send application_data record: 50 bytes, 0 to 49 */
static const uint8_t record[72] = {
	0x17, 0x03, 0x03, 0x00, 0x43, 0xa2, 0x3f, 0x70, 0x54, 0xb6, 0x2c, 0x94,
	0xd0, 0xaf, 0xfa, 0xfe, 0x82, 0x28, 0xba, 0x55, 0xcb, 0xef, 0xac, 0xea,
	0x42, 0xf9, 0x14, 0xaa, 0x66, 0xbc, 0xab, 0x3f, 0x2b, 0x98, 0x19, 0xa8,
	0xa5, 0xb4, 0x6b, 0x39, 0x5b, 0xd5, 0x4a, 0x9a, 0x20, 0x44, 0x1e, 0x2b,
	0x62, 0x97, 0x4e, 0x1f, 0x5a, 0x62, 0x92, 0xa2, 0x97, 0x70, 0x14, 0xbd,
	0x1e, 0x3d, 0xea, 0xe6, 0x3a, 0xee, 0xbb, 0x21, 0x69, 0x49, 0x15, 0xe4,
};
/* {client} send alert record: close_notify, the second of this secret */
static const uint8_t alert[24] = {
	0x17, 0x03, 0x03, 0x00, 0x13, 0xc9, 0x87, 0x27, 0x60, 0x65, 0x56, 0x66,
	0xb7, 0x4d, 0x7f, 0xf1, 0x15, 0x3e, 0xfd, 0x6d, 0xb6, 0xd0, 0xb0, 0xe3,
};

static void keys_of(struct tls_keys *k, bool seals)
{
	*k = (struct tls_keys){ 0 };
	assert_true(tls_keys_init(k, 0x1301, span_of(secret, 32), seals, 0));
	assert_memory_equal(k->iv, iv, sizeof(iv));
}

static void record__is_that_of_the_rfc(void **state)
{
	uint8_t bytes[50], dst[sizeof(record)], opened[64], type = 0;
	struct tls_keys out, in;
	size_t len = 0;

	(void)state;
	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	keys_of(&out, true);
	keys_of(&in, false);
	tls_seal(&out, TLS_TYPE_DATA, span_of(bytes, sizeof(bytes)),
		 (char *)dst);
	assert_memory_equal(dst, record, sizeof(record));
	assert_int_equal(tls_open(&in, record, span_of(record + 5, 67),
				  (char *)opened, &type, &len),
			 0);
	assert_int_equal(type, TLS_TYPE_DATA);
	assert_int_equal(len, 50);
	assert_memory_equal(opened, bytes, 50);
	tls_seal(&out, TLS_TYPE_ALERT, SPAN("\1\0"), (char *)dst);
	assert_memory_equal(dst, alert, sizeof(alert));
	tls_keys_fini(&out);
	tls_keys_fini(&in);
}

/* Each bit of a record is guarded: head, body, tag; and its place in the row.
 */
static void record__changed_is_refused(void **state)
{
	uint8_t bytes[sizeof(record)], opened[64], type;
	struct tls_keys in;
	size_t len;

	(void)state;
	for (size_t bit = 0; bit < sizeof(record) * 8; bit++) {
		keys_of(&in, false);
		memcpy(bytes, record, sizeof(record));
		bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
		assert_int_equal(tls_open(&in, bytes, span_of(bytes + 5, 67),
					  (char *)opened, &type, &len),
				 TLS_ALERT_BAD_RECORD_MAC);
		tls_keys_fini(&in);
	}
	keys_of(&in, false);
	in.count = 1;
	assert_int_equal(tls_open(&in, record, span_of(record + 5, 67),
				  (char *)opened, &type, &len),
			 TLS_ALERT_BAD_RECORD_MAC);
	tls_keys_fini(&in);
}

static void keys__follow_each_other(void **state)
{
	static const uint16_t suites[] = { 0x1301, 0x1302, 0x1303 };
	static const char zero[TLS_SECRET_MAX];
	char dst[64], opened[64];
	struct tls_keys out, in;
	uint8_t type = 0;
	size_t len = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(suites); i++) {
		size_t size = suites[i] == 0x1302 ? 48 : 32;

		out = in = (struct tls_keys){ 0 };
		assert_true(tls_keys_init(&out, suites[i], span_of(zero, size),
					  true, 7));
		assert_true(tls_keys_init(&in, suites[i], span_of(zero, size),
					  false, 7));
		for (int j = 0; j < 5; j++) {
			tls_seal(&out, 22, SPAN("five"), dst);
			assert_int_equal(tls_open(&in, (uint8_t *)dst,
						  span_of(dst + 5, 21), opened,
						  &type, &len),
					 0);
			assert_int_equal(type, 22);
			assert_int_equal(len, 4);
			assert_memory_equal(opened, "five", 4);
			tls_keys_update(&out);
			assert_int_equal(out.count, 0);
			if (j == 3) { /* the old ones open nothing of the new */
				tls_seal(&out, 22, SPAN("five"), dst);
				assert_int_equal(tls_open(&in, (uint8_t *)dst,
							  span_of(dst + 5, 21),
							  opened, &type, &len),
						 TLS_ALERT_BAD_RECORD_MAC);
				tls_keys_update(&out);
				tls_keys_update(&in);
			}
			tls_keys_update(&in);
		}
		tls_keys_fini(&out);
		tls_keys_fini(&in);
	}
}

static void keys__of_nothing_known(void **state)
{
	struct tls_keys k = { 0 };

	(void)state;
	assert_false(tls_keys_init(&k, 0x1304, span_of(secret, 32), true, 0));
	assert_false(tls_keys_init(&k, 0x1301, span_of(secret, 31), true, 0));
	assert_false(tls_keys_init(&k, 0x1302, span_of(secret, 32), true, 0));
	assert_false(tls_keys_init(&k, 0x1301, SPAN_NONE, true, 0));
	tls_keys_fini(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__is_that_of_the_rfc),
		cmocka_unit_test(record__changed_is_refused),
		cmocka_unit_test(keys__follow_each_other),
		cmocka_unit_test(keys__of_nothing_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
