/* SPDX-License-Identifier: Apache-2.0 */
/* test_packet.c - packets of UDP and ICMP, and what is no flow */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/wire/packet.h"

#define CORPUS SOURCE_DIR "/tests/fuzz/corpus/packet/"

enum { PACKET_BYTES = 2048 };

static uint8_t packet[PACKET_BYTES];
static size_t packet_len;

static void load(const char *name)
{
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), CORPUS "%s", name);
	f = fopen(path, "rb");
	if (!f)
		fail_msg("no %s", path);
	packet_len = fread(packet, 1, sizeof(packet), f);
	(void)fclose(f);
}

static bool parse(struct packet_flow *ret)
{
	return packet_parse(span_of(packet, packet_len), ret);
}

static void assert_addr(const struct addr *a, const char *text)
{
	char said[ADDR_TEXT_SIZE];

	assert_string_equal(a->port ? addr_text_port(a, said, sizeof(said))
				    : addr_text(a, said, sizeof(said)),
			    text);
}

static const struct {
	const char *file, *source, *destination;
	uint8_t protocol, type, code;
	size_t headers; /* fewer bytes are no flow */
} flows[] = {
	{ "udp4", "10.211.1.2:40000", "203.0.113.7:443", IPPROTO_UDP, 0, 0,
	  28 },
	{ "udp6", "[fd11:1::2]:40000", "[2001:db8::7]:3478", IPPROTO_UDP, 0, 0,
	  48 },
	{ "udp6_options", "[fd11:1::2]:40000", "[2001:db8::7]:3478",
	  IPPROTO_UDP, 0, 0, 72 },
	{ "echo4", "10.211.1.2", "203.0.113.7", IPPROTO_ICMP, 8, 0, 28 },
	{ "echo6", "fd11:1::2", "2001:db8::7", IPPROTO_ICMPV6, 128, 0, 48 },
	{ "unreachable4", "10.211.1.2", "203.0.113.7", IPPROTO_ICMP, 3, 13,
	  28 },
};

static void packet__flows(void **state)
{
	struct packet_flow f;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(flows); i++) {
		load(flows[i].file);
		if (!parse(&f))
			fail_msg("%s is no flow", flows[i].file);
		assert_addr(&f.source, flows[i].source);
		assert_addr(&f.destination, flows[i].destination);
		assert_int_equal(f.protocol, flows[i].protocol);
		assert_int_equal(f.icmp_type, flows[i].type);
		assert_int_equal(f.icmp_code, flows[i].code);
	}
}

static void packet__every_truncation(void **state)
{
	struct packet_flow f;
	size_t i, len;

	(void)state;
	for (i = 0; i < ARRAY_LEN(flows); i++) {
		load(flows[i].file);
		for (len = 0; len <= packet_len; len++)
			if (packet_parse(span_of(packet, len), &f) !=
			    (len >= flows[i].headers))
				fail_msg("%s of %zu bytes", flows[i].file, len);
	}
}

/* One byte of a good packet is another, or two. */
static const struct {
	const char *what, *file;
	size_t at;
	uint8_t bytes[2];
	unsigned count;
} spoilt[] = {
	{ "version 5", "udp4", 0, { 0x55 }, 1 },
	{ "options", "udp4", 0, { 0x46 }, 1 },
	{ "a short header", "udp4", 0, { 0x44 }, 1 },
	{ "less than its header", "udp4", 2, { 0, 19 }, 2 },
	{ "less than its content", "udp4", 2, { 0, 27 }, 2 },
	{ "a first fragment", "udp4", 6, { 0x20, 0 }, 2 },
	{ "a last fragment", "udp4", 6, { 0, 1 }, 2 },
	{ "GRE", "udp4", 9, { IPPROTO_GRE }, 1 },
	{ "SCTP", "udp4", 9, { IPPROTO_SCTP }, 1 },
	{ "IPv6 inside", "udp4", 9, { IPPROTO_IPV6 }, 1 },
	{ "IPv4 inside", "udp4", 9, { IPPROTO_IPIP }, 1 },
	{ "IGMP", "udp4", 9, { IPPROTO_IGMP }, 1 },
	{ "TCP", "udp4", 9, { IPPROTO_TCP }, 1 },
	{ "UDP-Lite", "udp4", 9, { IPPROTO_UDPLITE }, 1 },
	{ "ICMPv6 in IPv4", "echo4", 9, { IPPROTO_ICMPV6 }, 1 },
	{ "source port 0", "udp4", 20, { 0, 0 }, 2 },
	{ "destination port 0", "udp4", 22, { 0, 0 }, 2 },
	{ "UDP of 7 bytes", "udp4", 24, { 0, 7 }, 2 },
	{ "no payload", "udp6", 4, { 0, 0 }, 2 },
	{ "less than UDP", "udp6", 4, { 0, 7 }, 2 },
	{ "a fragment", "udp6", 6, { IPPROTO_FRAGMENT }, 1 },
	{ "a routing header", "udp6", 6, { IPPROTO_ROUTING }, 1 },
	{ "AH", "udp6", 6, { IPPROTO_AH }, 1 },
	{ "ESP", "udp6", 6, { IPPROTO_ESP }, 1 },
	{ "nothing next", "udp6", 6, { IPPROTO_NONE }, 1 },
	{ "mobility", "udp6", 6, { IPPROTO_MH }, 1 },
	{ "ICMP in IPv6", "echo6", 6, { IPPROTO_ICMP }, 1 },
	{ "hop-by-hop twice", "udp6_options", 40, { IPPROTO_HOPOPTS }, 1 },
	{ "a fragment behind options",
	  "udp6_options",
	  48,
	  { IPPROTO_FRAGMENT },
	  1 },
	{ "options longer than all", "udp6_options", 49, { 255 }, 1 },
};

static void packet__refused(void **state)
{
	struct packet_flow f = { .protocol = 77 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(spoilt); i++) {
		load(spoilt[i].file);
		memcpy(packet + spoilt[i].at, spoilt[i].bytes, spoilt[i].count);
		if (parse(&f))
			fail_msg("%s is a flow", spoilt[i].what);
		assert_int_equal(f.protocol, 77);
	}
}

/* What lies behind the length that IP says does not belong to it. */
static void packet__padding_is_no_header(void **state)
{
	struct packet_flow f;

	(void)state;
	load("udp4");
	packet[2] = 0;
	packet[3] = 24; /* half of UDP's header */
	assert_false(parse(&f));
}

static void packet__mapped_addresses(void **state)
{
	static const uint8_t mapped[16] = { [10] = 0xff, 0xff, 127, 0, 0, 1 };
	struct packet_flow f;

	(void)state;
	load("udp6");
	memcpy(packet + 24, mapped, 16);
	assert_false(parse(&f));
	load("udp6");
	memcpy(packet + 8, mapped, 16);
	assert_false(parse(&f));
}

/* One destination-options header more than is read. */
static void packet__too_many_extensions(void **state)
{
	struct packet_flow f;
	unsigned count;
	size_t at;

	(void)state;
	for (count = PACKET_EXTENSIONS_MAX; count <= PACKET_EXTENSIONS_MAX + 1;
	     count++) {
		load("udp6");
		at = 40 + 8 * (size_t)count;
		memmove(packet + at, packet + 40, packet_len - 40);
		memset(packet + 40, 0, at - 40);
		packet[6] = IPPROTO_DSTOPTS;
		packet[5] = (uint8_t)(packet[5] + 8 * count);
		packet_len += 8 * (size_t)count;
		for (; at > 40; at -= 8)
			packet[at - 8] = at == 40 + 8 * (size_t)count
						 ? IPPROTO_UDP
						 : IPPROTO_DSTOPTS;
		assert_int_equal(parse(&f), count == PACKET_EXTENSIONS_MAX);
	}
}

static const struct {
	const char *bytes;
	size_t len;
	uint16_t ethertype;
	const char *source, *destination;
	uint8_t protocol, type;
} sketches[] = {
#define SKETCH(bytes) bytes, sizeof(bytes) - 1
	/* GRE; SCTP with options of IPv4; the end of a datagram in pieces */
	{ SKETCH("\x45\0\0\x18\0\0\0\0\x40\x2f\0\0\x0a\0\0\x01\x0a\0\0"
		 "\x02wxyz"),
	  0x0800, "10.0.0.1", "10.0.0.2", 47, 0 },
	{ SKETCH("\x46\0\0\x1c\0\0\0\0\x40\x84\0\0\x0a\0\0\x01\x0a\0\0\x02"
		 "\x94\x04\0\0\0\x07\0\x08"),
	  0x0800, "10.0.0.1:7", "10.0.0.2:8", 132, 0 },
	{ SKETCH("\x45\0\0\x18\0\0\0\x05\x40\x11\0\0\x0a\0\0\x01\x0a\0\0"
		 "\x02wxyz"),
	  0x0800, "10.0.0.1", "10.0.0.2", 17, 0 },
	/* a header that says it is longer than the packet */
	{ SKETCH("\x4f\0\0\x18\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0"
		 "\x02wxyz"),
	  0x0800, "10.0.0.1", "10.0.0.2", 17, 0 },
	/* a routing header in front of an echo request */
	{ SKETCH("\x60\0\0\0\0\x10\x2b\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
		 "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x3a\0\0\0\0\0\0\0\x80"
		 "\0"),
	  0x86dd, "fd00::1", "fd00::2", 58, 128 },
	/* a later fragment */
	{ SKETCH("\x60\0\0\0\0\x10\x2c\x40\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
		 "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x11\0\0\x08\0\0\0\0\x80"
		 "\0"),
	  0x86dd, "fd00::1", "fd00::2", 17, 0 },
	/* ARP: sender and target */
	{ SKETCH("\0\x01\x08\0\x06\x04\0\x01\x02\0\0\0\0\x01\x0a\0\0\x01"
		 "\0\0\0\0\0\0\x0a\0\0\x02"),
	  0x0806, "10.0.0.1", "10.0.0.2", 0, 0 },
	/* anything else, and too little */
	{ SKETCH("\x45\0\0\x18\0\0\0\0\x40\x2f\0\0\x0a\0\0\x01\x0a\0\0\x02"),
	  0x8847, "::", "::", 0, 0 },
	{ SKETCH("\x45\0\0\x18"), 0x0800, "::", "::", 0, 0 },
	{ SKETCH("\x60"), 0x86dd, "::", "::", 0, 0 },
	{ SKETCH("\0\x01"), 0x0806, "::", "::", 0, 0 },
#undef SKETCH
};

static void packet__sketches(void **state)
{
	struct packet_flow flow;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sketches) / sizeof(*sketches); i++) {
		packet_sketch(span_of(sketches[i].bytes, sketches[i].len),
			      sketches[i].ethertype, &flow);
		assert_addr(&flow.source, sketches[i].source);
		assert_addr(&flow.destination, sketches[i].destination);
		assert_int_equal(flow.protocol, sketches[i].protocol);
		assert_int_equal(flow.icmp_type, sketches[i].type);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packet__flows),
		cmocka_unit_test(packet__every_truncation),
		cmocka_unit_test(packet__refused),
		cmocka_unit_test(packet__padding_is_no_header),
		cmocka_unit_test(packet__mapped_addresses),
		cmocka_unit_test(packet__too_many_extensions),
		cmocka_unit_test(packet__sketches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
