/* SPDX-License-Identifier: Apache-2.0 */
/* model.h - a policy as it was written: checked, typed, with its places
 *
 * What load.h makes from files and API bodies, what compile.h turns into a
 * snapshot, and what is shown to people as JSON. Everything of a set lives in
 * the set's arena and is read-only once loaded.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/limits.h"
#include "policy/policy.h"
#include "src/base/arena.h"
#include "src/base/attrib.h"
#include "src/base/diag.h"

struct buf;

enum {
	POLICY_NAME_MAX = 128,
	POLICY_RULES_MAX = 1000000, /* in one list */
	POLICY_LIST_MAX = 4096,	    /* ports, methods, paths of one rule; hosts
				       never or always opened */
	POLICY_IDS_MAX = 65536,
	POLICY_PATH_MAX = 4096,
	POLICY_METHOD_MAX = 32,
	POLICY_LABELS_MAX = 64,
};

enum target_kind {
	TARGET_NAME,	 /* exactly this host */
	TARGET_WILDCARD, /* "*.name": any depth below, not name itself */
	TARGET_ADDRESS,	 /* an address or a CIDR prefix */
};

struct policy_target {
	enum target_kind kind;
	struct span name; /* canonical, without "*." */
	struct cidr cidr;
};

struct policy_ports {
	uint16_t first, last; /* inclusive */
};

/* A rule with methods or paths is about HTTP, hence TCP: "constrained". */
struct policy_rule {
	enum verdict_kind action;
	enum policy_protocol protocol;
	struct policy_target target;
	const struct policy_ports *ports; /* none: every port */
	const struct span *methods;	  /* none: every method */
	const struct span *paths;	  /* none: every path */
	unsigned port_count, method_count, path_count;
	struct span file; /* where it was written */
	uint32_t line;
};

struct policy_label {
	struct span key, value;
};

struct policy_model {
	const struct policy_model *next; /* in the set */
	struct span name;
	/* which sandboxes: any of the ids ("x" or "x*"), or all labels */
	const struct span *ids;
	const struct policy_label *labels;
	unsigned id_count, label_count;
	enum verdict_kind default_action;
	const struct policy_rule *rules;
	unsigned rule_count;
	const struct policy_target *inspect, *passthrough; /* no addresses */
	unsigned inspect_count, passthrough_count;
	struct policy_limits limits;
	struct span file;
	uint32_t line;
};

struct policy_set {
	struct arena arena;
	const struct policy_model *policies; /* in order of files and lists */
	unsigned policy_count;
	/* operator overlays of all files together */
	const struct policy_rule *deny, *allow;
	unsigned deny_count, allow_count;
};

/* NULL is fine; returns NULL. */
struct policy_set *policy_set_free(struct policy_set *set);

static inline void cleanup_policy_set(struct policy_set **set)
{
	*set = policy_set_free(*set);
}
#define CLEANUP_POLICY_SET CLEANUP(cleanup_policy_set)

const struct policy_model *policy_find(const struct policy_set *set,
				       struct span name);

/* Does this policy choose that sandbox? By one of its ids, or because the
 * sandbox has all of its labels. A policy that says neither chooses nobody. */
bool policy_chooses(const struct policy_model *m, struct span id,
		    const struct policy_label *labels, unsigned label_count);
/* The first that does, or NULL. */
const struct policy_model *policy_select(const struct policy_set *set,
					 struct span id,
					 const struct policy_label *labels,
					 unsigned label_count);

/* A host that is never opened (passthrough) cannot have its methods and paths
 * checked. 0, or -EINVAL with diag at the offending rule. load.h checks what
 * it loads; call this for a policy put by API against the operator's set. */
WUNRES int policy_check_passthrough(const struct policy_model *m,
				    const struct policy_rule *rules,
				    unsigned rule_count, struct diag *d);

bool policy_rule_is_constrained(const struct policy_rule *rule);

/* A copy in one block of memory, to free(), of all but the rules; it outlives
 * the set. */
struct policy_model *policy_model_brief(const struct policy_model *m);

/* "allow *.example.com ports 443,8000-8100 GET,POST /v1/x", cut with "..." to
 * fit. Returns dst. */
const char *policy_rule_text(const struct policy_rule *rule, char *dst,
			     size_t size);
/* "*.example.com", "10.0.0.0/8". Returns dst. */
enum { POLICY_TARGET_TEXT_SIZE = 260 };
const char *policy_target_text(const struct policy_target *target, char *dst,
			       size_t size);

/* The policy as one compact JSON object in the schema of policy files, which
 * policy_load_one() reads back. 0 or -ENOBUFS. */
WUNRES int policy_emit(const struct policy_model *m, struct buf *out);
/* The same, but for the rules: those of s, which was compiled from m when it
 * still had them. */
WUNRES int policy_emit_compiled(const struct policy_model *m,
				const struct snapshot *s, struct buf *out);

/* Of a rule that does not say: TCP when it allows, any when it denies. */
enum policy_protocol policy_protocol_default(enum verdict_kind action);
const char *policy_protocol_name(enum policy_protocol protocol);
WUNRES bool policy_protocol_parse(struct span name, enum policy_protocol *ret);
const char *verdict_kind_name(enum verdict_kind kind);
