/* SPDX-License-Identifier: Apache-2.0 */
/* test_record.c - keys and heads: built, parsed, refused; sums of sets */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/record.h"
#include "vault/refs.h"
#include "vault/set.h"

static void record__keys_round_trip(void **state)
{
	struct record_place p;
	struct record_key k;

	(void)state;
	record_key_value(&k, SPAN("box-1"), 5, SPAN("name"));
	assert_true(record_key_parse(record_key_span(&k), &p));
	assert_int_equal(p.table, RECORD_TABLE_VALUE);
	assert_int_equal(p.kind, 5);
	assert_true(span_eq(p.scope, SPAN("box-1")));
	assert_true(span_eq(p.name, SPAN("name")));
	record_key_manifest(&k, SPAN(""));
	assert_true(record_key_parse(record_key_span(&k), &p));
	assert_int_equal(p.table, RECORD_TABLE_MANIFEST);
	assert_int_equal(p.scope.len, 0);
	record_key_single(&k, RECORD_TABLE_STATE);
	assert_true(record_key_parse(record_key_span(&k), &p));
	assert_int_equal(p.table, RECORD_TABLE_STATE);
}

static void record__keys_that_are_none(void **state)
{
	static const struct span bad[] = {
		SPAN_INIT(""),		SPAN_INIT("x"),
		SPAN_INIT("kk"),	SPAN_INIT("s\0"),
		SPAN_INIT("r"),		SPAN_INIT("rscope"),
		SPAN_INIT("rscope\0"),	SPAN_INIT("rscope\0\1"),
		SPAN_INIT("ra\0\0n"),	SPAN_INIT("r\n\0\1n"),
		SPAN_INIT("ra\0\1n\n"), SPAN_INIT("ma\0"),
	};
	struct record_place p;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(record_key_parse(bad[i], &p));
}

static void record__heads_round_trip(void **state)
{
	const struct record_head h = {
		.table = RECORD_TABLE_VALUE,
		.dek = 0x01020304,
		.revision = 0x1122334455667788,
		.nonce = "nonce--nonce",
	};
	char row[RECORD_OVERHEAD] = "";
	struct record_head parsed;
	struct span sealed;
	size_t len;

	(void)state;
	record_head_emit(&h, row);
	assert_int_equal(row[0], RECORD_FORMAT);
	assert_int_equal(row[4], 4); /* little-endian */
	assert_int_equal(row[8], (char)0x88);
	assert_true(record_parse(span_of(row, sizeof(row)), &parsed, &sealed));
	assert_int_equal(parsed.dek, h.dek);
	assert_int_equal(parsed.revision, h.revision);
	assert_memory_equal(parsed.nonce, h.nonce, sizeof(h.nonce));
	assert_int_equal(sealed.len, RECORD_TAG_SIZE);
	for (len = 0; len < sizeof(row); len++)
		assert_false(record_parse(span_of(row, len), &parsed, &sealed));
	row[2] = 1;
	assert_false(record_parse(span_of(row, sizeof(row)), &parsed, &sealed));
}

static void record__associated_data_tells_rows_apart(void **state)
{
	struct record_head h = { .table = RECORD_TABLE_VALUE, .revision = 1 };
	char a[RECORD_AAD_MAX], b[RECORD_AAD_MAX];
	struct record_key k;
	size_t len;

	(void)state;
	record_key_value(&k, SPAN("a"), 1, SPAN("x"));
	len = record_aad(&h, record_key_span(&k), a);
	h.revision = 2;
	assert_int_equal(record_aad(&h, record_key_span(&k), b), len);
	assert_memory_not_equal(a, b, len);
	h.revision = 1;
	record_key_value(&k, SPAN("a"), 2, SPAN("x"));
	assert_int_equal(record_aad(&h, record_key_span(&k), b), len);
	assert_memory_not_equal(a, b, len);
}

static void set__forgets_in_any_order(void **state)
{
	struct record_head heads[64] = { 0 };
	struct envelope_mac *mac = NULL;
	struct secret *key = NULL;
	struct set_sum sum = { 0 }, zero = { 0 }, parsed;
	char bytes[SET_SUM_SIZE];
	size_t i;

	(void)state;
	assert_int_equal(secret_new(ENVELOPE_KEY_SIZE, &key), 0);
	assert_int_equal(envelope_mac_new(key, &mac), 0);
	for (i = 0; i < ARRAY_LEN(heads); i++) {
		heads[i].table = RECORD_TABLE_VALUE;
		heads[i].revision = i;
		assert_int_equal(set_add(&sum, mac, SPAN("key"), &heads[i]), 0);
	}
	set_emit(&sum, bytes);
	set_parse(&parsed, bytes);
	assert_true(set_eq(&sum, &parsed));
	for (i = 0; i < ARRAY_LEN(heads); i++) {
		assert_false(set_eq(&sum, &zero));
		assert_int_equal(
			set_remove(&sum, mac, SPAN("key"), &heads[i * 37 % 64]),
			0);
	}
	assert_true(set_eq(&sum, &zero));
	envelope_mac_free(mac);
	secret_free(key);
}

static void refs__bound_what_a_binding_names(void **state)
{
	char json[8192];
	struct ref_list l;
	size_t at;
	int i, count;

	(void)state;
	for (count = REFS_PER_BINDING; count <= REFS_PER_BINDING + 1; count++) {
		at = (size_t)snprintf(json, sizeof(json),
				      "{\"auth\":{\"headers\":[");
		for (i = 0; i < count; i++)
			at += (size_t)snprintf(json + at, sizeof(json) - at,
					       "%s{\"credential\":\"c%d\"}",
					       i ? "," : "", i);
		at += (size_t)snprintf(json + at, sizeof(json) - at, "]}}");
		assert_int_equal(ref_list_parse(span_of(json, at), &l, NULL),
				 count > REFS_PER_BINDING ? -EINVAL : 0);
		assert_int_equal(l.count, count > REFS_PER_BINDING ? 0 : count);
		ref_list_fini(&l);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record__keys_round_trip),
		cmocka_unit_test(record__keys_that_are_none),
		cmocka_unit_test(record__heads_round_trip),
		cmocka_unit_test(record__associated_data_tells_rows_apart),
		cmocka_unit_test(set__forgets_in_any_order),
		cmocka_unit_test(refs__bound_what_a_binding_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
