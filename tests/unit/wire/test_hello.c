/* SPDX-License-Identifier: Apache-2.0 */
/* test_hello.c - ClientHellos of real clients, and what is refused
 *
 * The bytes are files of the fuzz corpus. Most were captured on loopback from
 * openssl s_client, curl, wget, git, node and python; the others were made
 * from one of them by moving its extensions.
 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/wire/hello.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/hello/"

static char file_bytes[HELLO_MAX];
static struct buf joined = BUF_INIT(HELLO_MAX);

static struct span load(const char *name)
{
	char path[4096];
	size_t len;
	FILE *f;

	(void)snprintf(path, sizeof(path), CORPUS "%s", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("no %s", path);
	len = fread(file_bytes, 1, sizeof(file_bytes), f);
	fclose(f);
	return span_of(file_bytes, len);
}

/* Parses an exact heap copy, so that ASan sees one byte too far. */
static int parse(struct span bytes, struct hello *ret)
{
	char *copy = malloc(bytes.len ? bytes.len : 1);
	int r;

	assert_non_null(copy);
	memcpy(copy, bytes.ptr, bytes.len);
	r = hello_parse(span_of(copy, bytes.len), &joined, ret);
	free(copy);
	return r;
}

enum {
	H2 = 1,
	H1 = 2,
	ALPN = 4,
	ECH = 8,
	RESUMES = 16,
	ADDRESS = 32,
};

static const struct good {
	const char *file, *sni; /* NULL: none */
	unsigned flags;
	uint16_t max_version;
} good[] = {
	{ "tls13_sni_alpn", "api.example.com", H2 | H1 | ALPN, 0x0304 },
	{ "tls13_nosni", NULL, 0, 0x0304 },
	{ "tls13_psk", "again.example.com", RESUMES, 0x0304 },
	{ "tls12_sni", "api.example.com", 0, 0x0303 },
	{ "tls12_nosni", NULL, 0, 0x0303 },
	{ "tls12_ticket", "again.example.com", RESUMES, 0x0303 },
	{ "tls_default", "example.org", H1 | ALPN, 0x0304 },
	{ "many_ext", "many.example.com", 0, 0x0304 },
	{ "two_records", "frag.example.com", ALPN, 0x0304 },
	{ "curl", "files.example.net", H2 | H1 | ALPN, 0x0304 },
	{ "git", "localhost", H2 | H1 | ALPN, 0x0304 },
	{ "wget_ip", NULL, 0, 0x0304 },
	{ "node", "node.example.com", H1 | ALPN, 0x0304 },
	{ "python", "py.example.com", 0, 0x0304 },
	{ "grease_ech", "outer.example.com", H2 | H1 | ALPN | ECH, 0x0304 },
	{ "one_byte_records", "tiny.example.com", H2 | H1 | ALPN, 0x0304 },
	{ "three_byte_records", "tiny.example.com", H2 | H1 | ALPN, 0x0304 },
	{ "sni_address", NULL, H2 | H1 | ALPN | ADDRESS, 0x0304 },
	{ "no_extensions", NULL, 0, 0x0303 },
};

static void check(const struct hello *h, const struct good *row)
{
	assert_int_equal(h->has_sni, row->sni != NULL);
	assert_string_equal(h->sni.text, row->sni ? row->sni : "");
	assert_int_equal(h->sni_is_address, !!(row->flags & ADDRESS));
	assert_int_equal(h->offers_h2, !!(row->flags & H2));
	assert_int_equal(h->offers_h1, !!(row->flags & H1));
	assert_int_equal(h->has_alpn, !!(row->flags & ALPN));
	assert_int_equal(h->has_ech, !!(row->flags & ECH));
	assert_int_equal(h->is_resumption, !!(row->flags & RESUMES));
	assert_int_equal(h->max_version, row->max_version);
}

static void hello__good(void **state)
{
	struct span bytes;
	struct hello h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		bytes = load(good[i].file);
		if (parse(bytes, &h) != (int)bytes.len)
			fail_msg("not read: %s", good[i].file);
		check(&h, &good[i]);
	}
}

static void hello__every_truncation_needs_more(void **state)
{
	struct hello h = { .max_version = 7 };
	struct span bytes;
	size_t i, len;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		bytes = load(good[i].file);
		for (len = 0; len < bytes.len; len++)
			assert_int_equal(parse(span_of(bytes.ptr, len), &h), 0);
	}
	assert_int_equal(h.max_version, 7);
}

/* What comes behind the hello is not its own. */
static void hello__says_where_it_ends(void **state)
{
	struct span bytes = load("bytes_after");
	struct hello h;

	(void)state;
	assert_int_equal(parse(bytes, &h), (int)bytes.len - 6);
	assert_int_equal(h.max_version, 0x0303);
}

/* The message of a file in records of `size` bytes. */
static size_t refragment(struct span bytes, size_t size, char *dst)
{
	struct span message = span_from(bytes, 5);
	size_t at = 0, len;

	while (message.len) {
		len = size < message.len ? size : message.len;
		memcpy(dst + at, "\x16\x03\x01", 3);
		dst[at + 3] = (char)(len >> 8);
		dst[at + 4] = (char)len;
		memcpy(dst + at + 5, message.ptr, len);
		message = span_from(message, len);
		at += 5 + len;
	}
	return at;
}

static void hello__every_fragmentation(void **state)
{
	static char records[8192];
	struct span bytes = load("tls13_sni_alpn");
	struct hello h;
	size_t size, len;

	(void)state;
	for (size = 1; size <= bytes.len; size++) {
		len = refragment(bytes, size, records);
		assert_int_equal(parse(span_of(records, len), &h), (int)len);
		check(&h, &good[0]);
		assert_int_equal(parse(span_of(records, len - 1), &h), 0);
	}
}

static void hello__refused_files(void **state)
{
	static const char *const files[] = {
		"alert",	"alpn_empty_name", "http",
		"sni_empty",	"psk_not_last",	   "second_message_in_record",
		"sni_nul",	"sni_overlong",	   "sni_trailing",
		"sni_twice",	"sni_two_names",   "ssl2",
		"versions_odd",
	};
	struct hello h = { .max_version = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		if (parse(load(files[i]), &h) != -EPROTO)
			fail_msg("not refused: %s", files[i]);
		assert_int_equal(h.max_version, 7);
	}
	assert_int_equal(parse(load("huge"), &h), -E2BIG);
}

static void hello__refused_heads(void **state)
{
	static const struct {
		struct span bytes;
		int r;
	} rows[] = {
		{ SPAN_INIT(""), 0 },
		{ SPAN_INIT("\x16"), 0 },
		{ SPAN_INIT("\x17"), -EPROTO },
		{ SPAN_INIT("G"), -EPROTO },
		{ SPAN_INIT("\x16\x03"), 0 },
		{ SPAN_INIT("\x16\x02"), -EPROTO },
		{ SPAN_INIT("\x16\x03\x01\x00\x00"), -EPROTO },
		{ SPAN_INIT("\x16\x03\x01\x40\x01"), -EPROTO },
		{ SPAN_INIT("\x16\x03\x01\x40\x00"), 0 },
		{ SPAN_INIT("\x16\x03\x01\x00\x05\x02"), -EPROTO },
		{ SPAN_INIT("\x16\x03\x01\x00\x05\x01\x00"), 0 },
		{ SPAN_INIT("\x16\x03\x01\x00\x05\x01\x01\x00\x00"), -E2BIG },
		{ SPAN_INIT("\x16\x03\x01\x00\x04\x01\x00\x00\x00"), -EPROTO },
		/* an alert between two fragments */
		{ SPAN_INIT("\x16\x03\x01\x00\x01\x01\x15"), -EPROTO },
	};
	struct hello h;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(parse(rows[i].bytes, &h), rows[i].r);
}

/* Each byte of a good hello changed in turn: never a crash, and a hello that
 * still reads has its lengths in order. */
static void hello__every_byte_changed(void **state)
{
	struct span bytes = load("tls13_psk");
	struct hello h;
	size_t i;
	int bit, r;

	(void)state;
	for (i = 0; i < bytes.len; i++) {
		for (bit = 0; bit < 8; bit++) {
			file_bytes[i] ^= (char)(1 << bit);
			r = parse(bytes, &h);
			assert_true(r == 0 || r == -EPROTO || r == -E2BIG ||
				    r == (int)bytes.len);
			file_bytes[i] ^= (char)(1 << bit);
		}
	}
}

/* A padded hello of `len` bytes, its record heads included, in full records;
 * returns how many bytes that is. */
static size_t make_padded(char *dst, size_t message)
{
	static char flat[5 + 70000];
	/* 43 bytes of the body come before the list */
	size_t body = message - 4, list = body - 43;

	memset(flat, 0, sizeof(flat));
	flat[5] = 1;
	flat[6] = (char)(body >> 16);
	flat[7] = (char)(body >> 8);
	flat[8] = (char)body;
	memcpy(flat + 9, "\x03\x03", 2);
	memcpy(flat + 9 + 34, "\x00\x00\x02\x13\x01\x01\x00", 7);
	flat[50] = (char)(list >> 8);
	flat[51] = (char)list;
	flat[52 + 1] = 21; /* padding, RFC 7685 */
	flat[54] = (char)((list - 4) >> 8);
	flat[55] = (char)(list - 4);
	return refragment(span_of(flat, 5 + message), 1 << 14, dst);
}

static void hello__size_limit(void **state)
{
	static char records[80000];
	struct hello h;
	size_t message = HELLO_MAX - 4 * 5, len;

	(void)state;
	len = make_padded(records, message);
	assert_int_equal(len, HELLO_MAX);
	assert_int_equal(parse(span_of(records, len), &h), HELLO_MAX);
	assert_int_equal(parse(span_of(records, len - 1), &h), 0);

	len = make_padded(records, message + 1);
	assert_int_equal(parse(span_of(records, len), &h), -E2BIG);
	assert_int_equal(parse(span_of(records, 20000), &h), 0);
	assert_int_equal(parse(span_of(records, HELLO_MAX), &h), -E2BIG);
}

static void hello__record_limit(void **state)
{
	static char records[80000];
	struct hello h;
	size_t i;

	(void)state;
	for (i = 0; i < 2049; i++)
		memcpy(records + 6 * i, "\x16\x03\x01\x00\x01", 6);
	memcpy(records + 5, "\x01", 1);
	memcpy(records + 5 + 12, "\x10", 1); /* 4 KiB are announced */
	assert_int_equal(parse(span_of(records, 6 * 2048), &h), 0);
	assert_int_equal(parse(span_of(records, 6 * 2049), &h), -E2BIG);
}

static void hello__small_scratch(void **state)
{
	struct buf small = BUF_INIT(64);
	struct span bytes = load("two_records");
	struct hello h;

	(void)state;
	assert_int_equal(hello_parse(bytes, &small, &h), -E2BIG);
	buf_fini(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello__good),
		cmocka_unit_test(hello__every_truncation_needs_more),
		cmocka_unit_test(hello__says_where_it_ends),
		cmocka_unit_test(hello__every_fragmentation),
		cmocka_unit_test(hello__refused_files),
		cmocka_unit_test(hello__refused_heads),
		cmocka_unit_test(hello__every_byte_changed),
		cmocka_unit_test(hello__size_limit),
		cmocka_unit_test(hello__record_limit),
		cmocka_unit_test(hello__small_scratch),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	buf_fini(&joined);
	return failed;
}
