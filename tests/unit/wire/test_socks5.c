/* SPDX-License-Identifier: Apache-2.0 */
/* test_socks5.c - greetings, requests and replies of SOCKS5 */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/base/attrib.h"
#include "src/wire/socks5.h"

static const struct {
	struct span bytes;
	int r;
	enum socks5_method method; /* when r > 0 */
} greetings[] = {
	{ SPAN_INIT("\5\1\0"), 3, SOCKS5_NO_AUTH },
	{ SPAN_INIT("\5\1\0more"), 3, SOCKS5_NO_AUTH },
	{ SPAN_INIT("\5\3\2\1\0"), 5, SOCKS5_NO_AUTH },
	{ SPAN_INIT("\5\1\2"), 3, SOCKS5_NO_METHOD },
	{ SPAN_INIT("\5\0"), 2, SOCKS5_NO_METHOD },
	/* the method must be among those that are counted */
	{ SPAN_INIT("\5\1\2\0"), 3, SOCKS5_NO_METHOD },
	{ SPAN_INIT(""), 0, 0 },
	{ SPAN_INIT("\5"), 0, 0 },
	{ SPAN_INIT("\5\2\0"), 0, 0 },
	{ SPAN_INIT("\4\1\0"), -1, 0 },
	{ SPAN_INIT("GET / HTTP/1.1"), -1, 0 },
};

static void socks5__greetings(void **state)
{
	enum socks5_method method = SOCKS5_NO_METHOD;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(greetings); i++) {
		assert_int_equal(
			socks5_parse_greeting(greetings[i].bytes, &method),
			greetings[i].r);
		if (greetings[i].r > 0)
			assert_int_equal(method, greetings[i].method);
	}
}

static const struct {
	struct span bytes;
	const char *host; /* or */
	const char *address;
	uint16_t port;
} good[] = {
	{ SPAN_INIT("\5\1\0\1\300\0\2\7\1\273"), NULL, "192.0.2.7", 443 },
	{ SPAN_INIT("\5\1\0\4\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\26"),
	  NULL, "2001:db8::1", 22 },
	/* mapped IPv4 is IPv4 */
	{ SPAN_INIT("\5\1\0\4\0\0\0\0\0\0\0\0\0\0\xff\xff\300\0\2\7\0\x50"),
	  NULL, "192.0.2.7", 80 },
	{ SPAN_INIT("\5\1\0\3\17Api.Example.COM\1\273"), "api.example.com",
	  NULL, 443 },
	{ SPAN_INIT("\5\1\0\3\1a\xff\xff"), "a", NULL, 65535 },
	/* a literal where a name is due is an address */
	{ SPAN_INIT("\5\1\0\3\x0a"
		    "192.0.2.10\0\x50"),
	  NULL, "192.0.2.10", 80 },
	{ SPAN_INIT("\5\1\0\3\3::1\0\x50"), NULL, "::1", 80 },
};

static void check_good(struct span bytes, size_t i)
{
	struct authority a;
	struct addr address;

	assert_int_equal(socks5_parse_request(bytes, &a),
			 (int)good[i].bytes.len);
	assert_int_equal(a.port, good[i].port);
	assert_true(a.port_given);
	assert_int_equal(a.is_address, !good[i].host);
	if (good[i].host) {
		assert_string_equal(a.host.text, good[i].host);
		return;
	}
	assert_true(addr_parse(span_str(good[i].address), &address));
	assert_true(addr_eq_ip(&a.address, &address));
	assert_int_equal(a.address.port, good[i].port);
}

static void socks5__requests(void **state)
{
	struct authority a;
	char more[64];
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(good); i++) {
		check_good(good[i].bytes, i);
		for (len = 0; len < good[i].bytes.len; len++)
			assert_int_equal(
				socks5_parse_request(
					span_of(good[i].bytes.ptr, len), &a),
				0);
		/* what comes behind is the tunnel's */
		memset(more, 'x', sizeof(more));
		memcpy(more, good[i].bytes.ptr, good[i].bytes.len);
		check_good(span_of(more, sizeof(more)), i);
	}
}

static const struct {
	struct span bytes;
	enum socks5_reply reply;
} bad[] = {
	{ SPAN_INIT("\4\1\0\1\300\0\2\7\1\273"), SOCKS5_FAILURE },
	{ SPAN_INIT("\5\1\1\1\300\0\2\7\1\273"), SOCKS5_FAILURE },
	{ SPAN_INIT("\5\1\0\1\300\0\2\7\0\0"), SOCKS5_FAILURE },
	{ SPAN_INIT("\5\1\0\3\0\1\273"), SOCKS5_FAILURE },
	/* case 4: two parties would read two names */
	{ SPAN_INIT("\5\1\0\3\x15"
		    "evil.com\0.trusted.com\1\273"),
	  SOCKS5_FAILURE },
	{ SPAN_INIT("\5\1\0\3\5"
		    "127.1\0\x50"),
	  SOCKS5_FAILURE },
	{ SPAN_INIT("\5\1\0\3\5"
		    "a:443\1\273"),
	  SOCKS5_FAILURE },
	{ SPAN_INIT("\5\2\0\1\300\0\2\7\1\273"), SOCKS5_COMMAND }, /* BIND */
	{ SPAN_INIT("\5\3\0\1\0\0\0\0\0\0"), SOCKS5_COMMAND },	   /* UDP */
	{ SPAN_INIT("\5\0\0\1\0\0\0\0\0\0"), SOCKS5_COMMAND },
	{ SPAN_INIT("\5\1\0\0\0\0\0\0\0\0"), SOCKS5_ADDRESS },
	{ SPAN_INIT("\5\1\0\2\0\0\0\0\0\0"), SOCKS5_ADDRESS },
};

static void socks5__refusals(void **state)
{
	struct authority a = { .port = 7 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(socks5_parse_request(bad[i].bytes, &a),
				 -(int)bad[i].reply);
		assert_int_equal(a.port, 7);
	}
}

static void socks5__replies(void **state)
{
	char reply[SOCKS5_REPLY_SIZE];

	(void)state;
	socks5_emit_reply(SOCKS5_SUCCEEDED, reply);
	assert_memory_equal(reply, "\5\0\0\1\0\0\0\0\0\0", sizeof(reply));
	socks5_emit_reply(SOCKS5_NOT_ALLOWED, reply);
	assert_memory_equal(reply, "\5\2\0\1\0\0\0\0\0\0", sizeof(reply));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(socks5__greetings),
		cmocka_unit_test(socks5__requests),
		cmocka_unit_test(socks5__refusals),
		cmocka_unit_test(socks5__replies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
