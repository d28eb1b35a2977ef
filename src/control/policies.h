/* SPDX-License-Identifier: Apache-2.0 */
/* policies.h - every policy of the node: from files and by API, compiled
 *
 * How it works: a policy has a number for as long as it keeps its name and
 * origin; a new text under the same name is a new snapshot of the same number,
 * so that a sandbox need not be sent again. Number 0 is the operator's overlay
 * of all files together. Policies put by API are asked before those of files
 * when a sandbox looks for its policy, in order of names; files in order of
 * names and lists.
 *
 * Replacing is all or nothing: everything that changed is compiled first; only
 * then is anything exchanged. Entries that changed carry .dirty until they
 * were published.
 *
 * Of a policy only what chooses sandboxes and is shown is kept as it was
 * written; its rules are in the snapshot, which is packed (stash.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "policy/model.h"
#include "policy/policy.h"
#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/map.h"
#include "src/base/span.h"
#include "src/control/chooser.h"
#include "src/control/stash.h"

struct json_out;
struct sandbox;

enum { POLICY_ID_OVERLAY = 0, POLICY_API_MAX = 16384 };
#define POLICY_ID_NONE UINT32_MAX

struct policies;

struct policy_entry {
	struct policies *all;
	uint32_t id;
	bool from_api;
	bool dirty;		   /* the gateway has not got this snapshot */
	unsigned rank, rule_count; /* rank: among those of files */
	uint64_t generation;
	struct policy_model *model; /* brief; NULL: overlay */
	struct stash *compiled;
};

/* A snapshot that was unpacked. */
struct policy_opened {
	struct buf bytes;
	struct snapshot snapshot;
};

struct policies {
	bool loaded; /* files were, once: without them nobody's policy holds */
	unsigned deny_count, allow_count; /* of the overlay */
	/* with the overlay's rules, if some of them need opened connections */
	struct policy_set *checks;
	struct policy_entry **entries; /* in order of selection */
	unsigned count, api_count;     /* the first api_count are by API */
	struct map by_name;	       /* origin and name -> entry */
	struct chooser chooser;
	struct stashes stashes;
	struct policy_entry *overlay;
	uint32_t last_id;
	uint64_t generation; /* moves with every exchange */
	uint64_t loaded_ms;  /* wall clock of the last good load of files */
	struct diag error;   /* of the last load, when it failed */
	/* numbers that the gateway should forget */
	uint32_t *dropped;
	unsigned dropped_count;
};

void policies_init(struct policies *p);
void policies_fini(struct policies *p);

/* Exchanges all file policies for those of a directory. A directory that does
 * not exist is one without files. 0; -errno with p->error set and everything
 * as it was. */
WUNRES int policies_load_dir(struct policies *p, const char *dir);

/* One policy by API, in three steps, so that what takes time needs no turn:
 * make parses and compiles (0; -EINVAL with d; ret_text: an empty buffer for
 * the policy as it is stored, or NULL; -ENOBUFS: it has no room for that);
 * check looks at the present (0; -EINVAL with d; may be called again); put
 * exchanges. */
WUNRES int policies_make(struct policies *p, struct span text, struct span name,
			 struct policy_entry **ret, struct buf *ret_text,
			 struct diag *d);
WUNRES int policies_check(struct policies *p, struct policy_entry *e,
			  struct diag *d);
void policies_put(struct policies *p, struct policy_entry *e); /* takes e */
bool policies_remove(struct policies *p, struct span name);
/* NULL is fine; returns NULL. */
struct policy_entry *policy_entry_free(struct policy_entry *e);

/* By API first. NULL: none. */
struct policy_entry *policies_find(const struct policies *p, struct span name);
struct policy_entry *policies_at(const struct policies *p, uint32_t id);
/* The policy of a sandbox: the one that chooses it, else the one that it names
 * for that case, or NULL. */
struct policy_entry *policies_select(const struct policies *p,
				     const struct sandbox *s);
/* In the order of selection. */
bool policy_entry_precedes(const struct policy_entry *a,
			   const struct policy_entry *b);
/* Forgets p->dropped (they were published). */
void policies_clear_dropped(struct policies *p);

/* Unpacks; e NULL: *ret holds nothing. To policy_opened_fini(). */
void policy_entry_open(const struct policy_entry *e, struct policy_opened *ret);
void policy_opened_fini(struct policy_opened *o);
/* NULL: nothing was opened. */
const struct snapshot *policy_opened_get(const struct policy_opened *o);

/* {"name", "source", "file"?, "line"?, "generation", "rules"} */
void policy_entry_emit(struct json_out *o, const char *member,
		       const struct policy_entry *e);
/* The policy as it was written. 0 or -ENOBUFS. */
WUNRES int policy_entry_text(const struct policy_entry *e, struct buf *out);
