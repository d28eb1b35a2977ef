/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - what would happen to a request, and why, without making it */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct diag;
struct policies;
struct sandbox;
struct vault_state;

struct explain_query {
	const struct sandbox *sandbox;
	/* In place of the next three: "connect udp ntp.example:123", any of the
	 * forms of policy_question_parse(). */
	struct span words;
	struct span url;      /* "https://host[:port]/path" */
	struct span method;   /* empty = GET */
	struct span address;  /* what the host resolves to; empty = not known */
	bool foreign_allowed; /* dns.allowForeignResolvers */
};

/* Appends the answer as JSON:
 *   {"sandbox", "url", "method", "verdict": "allow" | "deny", "source",
 *    "sentence", "policy", "rule", "file", "line", "inspect", "passthrough",
 *    "limits": what the policy says of them, or absent,
 *    "binding": name or null, "bindingTie": [two names] or absent}
 * With words: "words" in place of url and method, and no binding.
 * 0; -EINVAL with d when the question cannot be read; -ENOBUFS. */
WUNRES int explain(const struct explain_query *q, const struct policies *p,
		   struct vault_state *vault, struct buf *out, struct diag *d);
