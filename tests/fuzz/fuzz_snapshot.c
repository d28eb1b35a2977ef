/* fuzz: policy */
/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_snapshot.c - any bytes as a snapshot: refused, or safe to ask */

#include <stdlib.h>
#include <string.h>

#include "policy/rules.h"
#include "src/base/attrib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct snapshot *overlay, const struct snapshot *policy)
{
	static const char *const hosts[] = { "", "a.example.com",
					     "b.a.example.com", "example.com" };
	static const char *const ips[] = { "10.1.2.3", "2001:db8::1" };
	struct policy_query q = { .port = 443, .protocol = PROTOCOL_TCP };
	char sentence[512], limits[POLICY_LIMITS_TEXT_SIZE];
	struct policy_ports ports[4];
	struct span strings[4];
	struct policy_rule_room room = { .ports = ports,
					 .strings = strings,
					 .port_room = 4,
					 .string_room = 4 };
	struct policy_rule rule;
	struct addr address;
	struct verdict v;
	unsigned i;

	if (policy)
		policy_limits_text(snapshot_limits(policy), limits,
				   sizeof(limits));
	for (i = 0; policy && i < snapshot_rule_count(policy); i++)
		policy_rule_read(policy, i, &room, &rule);
	q.method = SPAN("GET");
	q.path = SPAN("/v1/x");
	q.address = &address;
	for (i = 0; i < 3 * 8; i++) {
		q.stage = i / 8;
		q.host = span_str(hosts[i % 4]);
		if (!addr_parse(span_str(ips[i / 4 % 2]), &address))
			abort();
		policy_match(overlay, policy, &q, &v);
		policy_sentence(overlay, policy, &v, sentence,
				sizeof(sentence));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct snapshot_head *h = malloc(size ? size : 1);
	struct snapshot s;

	if (!h)
		abort();
	if (size)
		memcpy(h, data, size);
	/* what a fuzzer cannot guess, and what it would break at once */
	if (size >= sizeof(*h)) {
		h->magic = SNAPSHOT_MAGIC;
		h->version = SNAPSHOT_VERSION;
		h->size = (uint32_t)size;
	}
	if (!snapshot_open(h, size, &s)) {
		if (h->is_overlay)
			ask(&s, NULL);
		ask(h->is_overlay ? &s : NULL, &s);
	}
	free(h);
	return 0;
}
