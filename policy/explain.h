/* SPDX-License-Identifier: Apache-2.0 */
/* explain.h - questions as people write them, and policies ready to answer
 *
 * What `sallyport policy explain` and the golden cases need besides policy.h:
 * policy_origin() and policy_sentence(), declared there, live here.
 */
#pragma once

#include "policy/model.h"
#include "src/base/buf.h"
#include "src/wire/host.h"

/* A policy of a set and the set's overlays, compiled and opened. */
struct policy_pair {
	struct buf overlay_bytes, policy_bytes;
	struct snapshot overlay, policy;
	bool has_policy;      /* false: every question is denied */
	bool foreign_allowed; /* dns.allowForeignResolvers */
};

/* m may be NULL: no policy. 0 or what policy_compile() said. *ret is always
 * fit for policy_pair_fini(). */
WUNRES int policy_pair_init(struct policy_pair *ret,
			    const struct policy_set *set,
			    const struct policy_model *m, uint64_t generation);
void policy_pair_fini(struct policy_pair *pair);
/* As the gateway does, resolvers of others among it. */
void policy_pair_match(const struct policy_pair *pair,
		       const struct policy_query *q, struct verdict *ret);
const char *policy_pair_sentence(const struct policy_pair *pair,
				 const struct verdict *v, char *dst,
				 size_t size);

/* A question in words. The query's views point into this struct: do not copy
 * it. Forms:
 *   name HOST
 *   connect [tcp|udp|icmp] HOST|ADDRESS[:PORT] [at ADDRESS]
 *   METHOD URL [at ADDRESS]
 * PORT is 443 when not given (0 for icmp), or the scheme's. */
struct policy_question {
	struct policy_query query;
	struct authority where;
	struct addr address; /* what query.address points to */
	char method[POLICY_METHOD_MAX + 1];
	struct arena arena; /* of the canonical path */
};

/* 0 and *ret to policy_question_fini(); -EINVAL with diag (line 0, column in
 * the text). */
WUNRES int policy_question_parse(struct span text, struct policy_question *ret,
				 struct diag *d);
void policy_question_fini(struct policy_question *q);

/* "allow inspect by-address": kind and flags in this order: inspect,
 * passthrough, by-address. Returns dst. */
const char *policy_verdict_text(const struct verdict *v, char *dst,
				size_t size);
