/* SPDX-License-Identifier: Apache-2.0 */
/* policy.h - ask a compiled policy what a sandbox may do, and why
 *
 * Pure: no sockets, no clock, no allocation. A snapshot is one block of bytes
 * without pointers, made by compile.h, checked once by snapshot_open(), shared
 * between threads and processes.
 *
 * Order (docs/architecture, "policy order"):
 *   1. operator deny overlay	2. operator allow overlay
 *   3. address deny rules of the policy, wherever they stand in the list
 *   4. first matching rule in list order
 *   5. the policy's default action (deny unless said otherwise)
 * `*.a.com` matches any depth below a.com and not a.com itself.
 *
 * A rule matches when target, port, protocol and, where it has them, method
 * and path match. A name question never matches an address target by text; an
 * address target matches when the question carries the address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/addr.h"
#include "src/base/span.h"

enum policy_protocol {
	PROTOCOL_ANY, /* in a rule only */
	PROTOCOL_TCP,
	PROTOCOL_UDP,
	PROTOCOL_ICMP,
	PROTOCOL_NUM,
};

/* What is being asked. Fewer facts are known earlier. */
enum policy_stage {
	/* DNS: may this name be resolved at all (on any port and protocol,
	 * by any method and path)? host only. */
	POLICY_NAME,
	/* A connection: host and/or address, port, protocol. Rules with
	 * methods or paths answer "maybe": allowed, with .inspect set. */
	POLICY_CONNECT,
	/* An HTTP request on it: method and path too. Final. */
	POLICY_REQUEST,
};

/* What is not known (an empty method, an ambiguous path left empty, protocol
 * any) fits a rule that denies by it, and no rule that allows by it. */
struct policy_query {
	enum policy_stage stage;
	enum policy_protocol protocol;
	struct span host;	    /* canonical (wire/host.h); empty: none */
	const struct addr *address; /* NULL: not known (yet) */
	uint16_t port;		    /* 0 in POLICY_NAME */
	struct span method;	    /* upper-case */
	struct span path;	    /* canonical path (wire/url.h), no query */
};

enum verdict_kind {
	VERDICT_DENY, /* zero */
	VERDICT_ALLOW,
};

/* What decided. */
enum verdict_source {
	VERDICT_NOTHING, /* zero: no policy at all */
	/* Not of policy_match(): allowed, but for a resolver of others, which
	 * only a rule for exactly it allows; see policy/foreign.h. */
	VERDICT_FOREIGN_RESOLVER,
	VERDICT_OVERLAY_DENY,
	VERDICT_OVERLAY_ALLOW,
	VERDICT_ADDRESS_DENY, /* step 3 */
	VERDICT_RULE,
	VERDICT_DEFAULT,
	VERDICT_SOURCE_NUM,
};

struct verdict {
	enum verdict_kind kind;
	enum verdict_source source;
	bool inspect;	  /* TLS must be opened: method or path rules, or the
			     policy's inspect list names the host */
	bool passthrough; /* the passthrough list names the host: never open */
	bool by_address;  /* what allowed it was an address target: the name
			     was not what policy trusted */
	bool everywhere;  /* and that target is every address of a family, so
			     it was not this one that was meant */
	bool exact; /* the target that decided is that one host or address */
	uint8_t labels;	     /* of a target that is a name: "*.a.com" has 2; 0:
				the default action, or an address */
	uint32_t rule;	     /* index in its list, from 0 (sentences count from
				1); meaningful with a list source */
	uint64_t generation; /* the newer one of overlay and policy */
};

#define VERDICT_DENY_ALL ((struct verdict){ 0 })

struct policy_limits; /* policy/limits.h */
struct snapshot_head;

/* Borrowed view of a compiled policy. What it is called and how new it is says
 * whoever has it: equal policies are equal bytes under whatever name. */
struct snapshot {
	const struct snapshot_head *head;
	size_t len;
	struct span name;
	uint64_t generation;
};

/* Checks every offset once. 0, or -EINVAL when the bytes are no snapshot; the
 * bytes must be 16-byte aligned and outlive *ret. The name is "operator" for
 * an overlay, else empty, and the generation 0, until the caller says. */
WUNRES int snapshot_open(const void *bytes, size_t len, struct snapshot *ret);
uint32_t snapshot_rule_count(const struct snapshot *s);
/* Is there a name whose requests it wants to see, by the inspect list or a rule
 * with methods or paths? */
bool snapshot_looks_inside(const struct snapshot *s);
/* Never out of the bounds of policy_limit_max(), or LIMIT_UNSAID. */
const struct policy_limits *snapshot_limits(const struct snapshot *s);

/* overlay may be NULL. policy NULL denies (VERDICT_NOTHING). Never fails;
 * under 200 ns with 100,000 rules. */
void policy_match(const struct snapshot *overlay, const struct snapshot *policy,
		  const struct policy_query *q, struct verdict *ret);

enum { POLICY_RULE_TEXT_SIZE = 256 }; /* longer ones end in "..." */

/* Where a verdict came from, for people and for the audit record. Spans live
 * as long as the snapshot, but for .rule, which points into this struct (so do
 * not copy it); empty where unknown. */
struct verdict_origin {
	struct span policy; /* name of the policy, "operator" for overlays */
	struct span rule;   /* e.g. "allow *.example.com ports 443 GET /v1/" */
	struct span file;
	uint32_t line;
	char text[POLICY_RULE_TEXT_SIZE];
};

void policy_origin(const struct snapshot *overlay,
		   const struct snapshot *policy, const struct verdict *v,
		   struct verdict_origin *ret);

/* One plain sentence: "denied by rule 3 of policy agents (deny *.x.com,
 * agents.yaml:14)". Returns dst. */
const char *policy_sentence(const struct snapshot *overlay,
			    const struct snapshot *policy,
			    const struct verdict *v, char *dst, size_t size);

const char *verdict_source_name(enum verdict_source source);
