/* SPDX-License-Identifier: Apache-2.0 */
/* test_dns_svcb.c - service bindings: what is read, and what is passed on */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/wire/dns_svcb.h"

#define BYTES(literal) span_of((literal), sizeof(literal) - 1)
#define FOO_COM	       "\3foo\7example\3com\0"
#define FOO_ORG	       "\3foo\7example\3org\0"

struct vector {
	struct span in, out; /* .out.ptr NULL: nothing of it goes on */
};

#define SAME(bytes)                                \
	{                                          \
		{ (bytes), sizeof(bytes) - 1 },    \
		{                                  \
			(bytes), sizeof(bytes) - 1 \
		}                                  \
	}
#define CHANGED(a, b)                      \
	{                                  \
		{ (a), sizeof(a) - 1 },    \
		{                          \
			(b), sizeof(b) - 1 \
		}                          \
	}
#define GONE(a)                         \
	{                               \
		{ (a), sizeof(a) - 1 }, \
		{                       \
			0               \
		}                       \
	}

/* RFC 9460 appendix D.1 and D.2, in order. */
static const struct vector appendix_d[] = {
	SAME("\0\0" FOO_COM),
	SAME("\0\1\0"),
	SAME("\0\x10" FOO_COM "\0\3\0\2\0\x35"),
	CHANGED("\0\1" FOO_COM "\x02\x9b\0\5hello", "\0\1" FOO_COM),
	CHANGED("\0\1" FOO_COM "\x02\x9b\0\x09hello\xd2qoo", "\0\1" FOO_COM),
	CHANGED("\0\1" FOO_COM "\0\6\0\x20\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0"
		"\0\1\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\x53\0\1",
		"\0\1" FOO_COM),
	CHANGED("\0\1\7example\3com\0\0\6\0\x10\x20\x01\x0d\xb8\x01\x22\x03\x44"
		"\0\0\0\0\xc0\0\2\x21",
		"\0\1\7example\3com\0"),
	/* demands ipv4hint, which is not passed on */
	GONE("\0\x10" FOO_ORG "\0\0\0\4\0\1\0\4\0\1\0\x09\2h2\5h3-19"
	     "\0\4\0\4\xc0\0\2\1"),
	CHANGED("\0\x10" FOO_ORG "\0\1\0\x0c\x08"
		"f\\oo,bar\2h2",
		"\0\x10" FOO_ORG "\0\1\0\3\2h2"),
};

static const struct vector vectors[] = {
	/* case 14: the keys of ECH */
	CHANGED("\0\1\0\0\1\0\3\2h2\0\5\0\4\0\2\xfe\x0d", "\0\1\0\0\1\0\3\2h2"),
	GONE("\0\1\0\0\0\0\2\0\5\0\5\0\4\0\2\xfe\x0d"),
	/* case 54: HTTP/3 and other protocols of QUIC */
	CHANGED("\0\1\0\0\1\0\6\2h3\2h2", "\0\1\0\0\1\0\3\2h2"),
	CHANGED("\0\1\0\0\1\0\3\2h3", "\0\1\0"),
	CHANGED("\0\1\0\0\1\0\x12\5h3-29\2hq\x08http/1.1",
		"\0\1\0\0\1\0\x09\x08http/1.1"),
	GONE("\0\1\0\0\1\0\3\2h3\0\2\0\0"),
	GONE("\0\1\0\0\0\0\2\0\1\0\1\0\3\2h3"),
	/* resolvers of others (RFC 9461): DoT, DoQ, the path of DoH */
	GONE("\0\1\0\0\1\0\x08\3dot\3doq\0\2\0\0\0\7\0\x10/dns-query{?dns}"),
	/* what stays: mandatory keys that are there, the port, no default */
	SAME("\0\1\0\0\0\0\4\0\1\0\3\0\1\0\3\2h2\0\3\0\2\x20\xfb"),
	SAME("\0\2\0\0\1\0\3\2h2\0\2\0\0\0\3\0\2\0\x50"),
	SAME("\0\1\0\0\0\0\4\0\1\0\2\0\1\0\3\2h2\0\2\0\0"),
	/* an alias has no parameters */
	CHANGED("\0\0" FOO_COM "\0\3\0\2\0\x35", "\0\0" FOO_COM),
	SAME("\0\0\0"),
	/* key65535, and the last key that a mandatory list can hold */
	CHANGED("\0\1\0\xff\xff\0\1x", "\0\1\0"),
	GONE("\0\1\0\0\0\0\2\xff\xff\xff\xff\0\1x"),
};

static const struct span malformed[] = {
	SPAN_INIT(""),
	SPAN_INIT("\0"),
	SPAN_INIT("\0\1"),
	/* names: cut off, compressed, a label too long */
	SPAN_INIT("\0\1\3foo"),
	SPAN_INIT("\0\1\3foo\xc0\0"),
	SPAN_INIT("\0\1\x40"),
	/* parameters: cut off, in disorder, twice (D.3) */
	SPAN_INIT("\0\1\0\0"),
	SPAN_INIT("\0\1\0\0\3\0"),
	SPAN_INIT("\0\1\0\0\3\0\2\0"),
	SPAN_INIT("\0\1\0\0\3\0\2\0\x35\0\1\0\3\2h2"),
	SPAN_INIT("\0\1\0\0\3\0\2\0\x35\0\3\0\2\0\x35"),
	SPAN_INIT("\0\1\0\x02\x9b\0\1a\x02\x9b\0\1b"),
	/* values that are missing, or too many (D.3) */
	SPAN_INIT("\0\1\0\0\0\0\0"),
	SPAN_INIT("\0\1\0\0\1\0\0"),
	SPAN_INIT("\0\1\0\0\3\0\0"),
	SPAN_INIT("\0\1\0\0\4\0\0"),
	SPAN_INIT("\0\1\0\0\6\0\0"),
	SPAN_INIT("\0\1\0\0\1\0\3\2h2\0\2\0\3abc"),
	/* no-default-alpn alone (7.1.1) */
	SPAN_INIT("\0\1\0\0\2\0\0"),
	/* mandatory: absent key, itself, twice, in disorder, half a key (8) */
	SPAN_INIT("\0\1\0\0\0\0\2\x02\x9b"),
	SPAN_INIT("\0\1\0\0\0\0\2\0\0"),
	SPAN_INIT("\0\1\0\0\0\0\4\0\3\0\3\0\3\0\2\0\x35"),
	SPAN_INIT("\0\1\0\0\0\0\4\0\3\0\1\0\1\0\3\2h2\0\3\0\2\0\x35"),
	SPAN_INIT("\0\1\0\0\0\0\1\0\0\3\0\2\0\x35"),
	/* lists: an empty protocol, one that is cut off, half addresses */
	SPAN_INIT("\0\1\0\0\1\0\1\0"),
	SPAN_INIT("\0\1\0\0\1\0\4\2h2\0"),
	SPAN_INIT("\0\1\0\0\1\0\2\2h"),
	SPAN_INIT("\0\1\0\0\3\0\3\0\x35\0"),
	SPAN_INIT("\0\1\0\0\4\0\5\xc0\0\2\1\0"),
	SPAN_INIT("\0\1\0\0\6\0\4\xc0\0\2\1"),
};

static void check(const struct vector *v, size_t count)
{
	struct dns_svcb s;
	uint8_t out[256];
	size_t i, len;

	for (i = 0; i < count; i++) {
		print_message("vector %zu\n", i);
		assert_true(dns_svcb_parse(v[i].in, &s));
		len = dns_svcb_emit(&s, out, v[i].in.len);
		assert_int_equal(len, v[i].out.len);
		if (len)
			assert_memory_equal(out, v[i].out.ptr, len);
	}
}

static void svcb__rfc_9460_appendix_d(void **state)
{
	(void)state;
	check(appendix_d, ARRAY_LEN(appendix_d));
}

static void svcb__passes_on_what_policy_sees(void **state)
{
	(void)state;
	check(vectors, ARRAY_LEN(vectors));
}

static void svcb__reads_the_parameters(void **state)
{
	static const char data[] = "\0\x10" FOO_COM "\0\0\0\2\0\1"
				   "\0\1\0\3\2h2\0\2\0\0\0\3\0\2\x20\xfb";
	struct dns_svcb s;

	(void)state;
	assert_true(dns_svcb_parse(BYTES(data), &s));
	assert_int_equal(s.priority, 16);
	assert_int_equal(s.target.len, sizeof(FOO_COM) - 1);
	assert_true(span_eq(s.mandatory, BYTES("\0\1")));
	assert_true(span_eq(s.alpn, BYTES("\2h2")));
	assert_true(s.has_no_default_alpn && s.has_port);
	assert_int_equal(s.port, 8443);
}

static void svcb__refuses_what_is_malformed(void **state)
{
	struct dns_svcb s = { .priority = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(malformed); i++) {
		print_message("vector %zu\n", i);
		assert_false(dns_svcb_parse(malformed[i], &s));
		assert_int_equal(s.priority, 7); /* untouched */
	}
}

/* Cut anywhere it parses only where a parameter ends. */
static void svcb__refuses_truncations(void **state)
{
	static const char data[] = "\0\1" FOO_COM "\0\1\0\3\2h2\0\3\0\2\0\x35";
	size_t name_end = 2 + sizeof(FOO_COM) - 1, len;
	struct dns_svcb s;

	(void)state;
	for (len = 0; len < sizeof(data) - 1; len++) {
		char *copy = malloc(len + 1);

		assert_non_null(copy);
		memcpy(copy, data, len);
		assert_int_equal(dns_svcb_parse(span_of(copy, len), &s),
				 len == name_end || len == name_end + 7);
		free(copy);
	}
}

static void svcb__writes_nothing_that_does_not_fit(void **state)
{
	static const char data[] = "\0\1" FOO_COM "\0\1\0\3\2h2\0\3\0\2\0\x35";
	uint8_t out[sizeof(data)];
	struct dns_svcb s;
	size_t size;

	(void)state;
	assert_true(dns_svcb_parse(BYTES(data), &s));
	for (size = 0; size < sizeof(data) - 1; size++)
		assert_int_equal(dns_svcb_emit(&s, out, size), 0);
	assert_int_equal(dns_svcb_emit(&s, out, size), size);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(svcb__rfc_9460_appendix_d),
		cmocka_unit_test(svcb__passes_on_what_policy_sees),
		cmocka_unit_test(svcb__reads_the_parameters),
		cmocka_unit_test(svcb__refuses_what_is_malformed),
		cmocka_unit_test(svcb__refuses_truncations),
		cmocka_unit_test(svcb__writes_nothing_that_does_not_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
