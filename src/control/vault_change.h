/* SPDX-License-Identifier: Apache-2.0 */
/* vault_change.h - a wish to change credentials and bindings of one scope
 *
 * Parsed from a PATCH, or made from a request about one thing; checked against
 * the present state as a whole; put into one transaction; applied when that
 * was acknowledged. Deletes come before replacements before additions. Values
 * live only as long as the change, in memory that is wiped.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct binding;
struct diag;
struct json;
struct vault_link;
struct vault_state;

enum { CREDENTIAL_VALUE_MAX = 32 * 1024 };

enum change_verb {
	CHANGE_NONE,
	CHANGE_DELETE,
	CHANGE_REPLACE,
	CHANGE_ADD,
	CHANGE_SET, /* add or replace: PUT */
	CHANGE_VERB_NUM,
};

struct credential_change {
	enum change_verb verb;
	struct span name;
	struct span value; /* in .body */
};

struct binding_change {
	enum change_verb verb;
	struct span name;
	struct binding *binding; /* NULL: deleted, or already applied */
};

struct vault_change {
	int64_t expected; /* revision, or -1 */
	struct credential_change *credentials;
	unsigned credential_count;
	struct binding_change *bindings;
	unsigned binding_count;
	struct json *body; /* what the spans point into */
	char *name;	   /* of a change without a body */
};

/* {"expectedRevision"?, "credentials"?: {"add"?, "replace"?, "delete"?},
 * "bindings"?: {same}}. 0; -EINVAL with d. */
WUNRES int vault_change_parse_patch(struct span text, struct vault_change **ret,
				    struct diag *d);
/* {"credentials"?: [...], "bindings"?: [...]}: a vault from nothing. */
WUNRES int vault_change_parse_create(struct span text,
				     struct vault_change **ret, struct diag *d);
/* One credential or binding. name: of the path (the body may repeat it), or
 * SPAN_NONE. */
WUNRES int vault_change_parse_credential(struct span text,
					 enum change_verb verb,
					 struct span name,
					 struct vault_change **ret,
					 struct diag *d);
WUNRES int vault_change_parse_binding(struct span text, enum change_verb verb,
				      struct span name,
				      struct vault_change **ret,
				      struct diag *d);
struct vault_change *vault_change_delete_credential(struct span name);
struct vault_change *vault_change_delete_binding(struct span name);
struct vault_change *vault_change_free(struct vault_change *c);

enum {
	VAULT_CHANGE_E_CONFLICT = 1, /* expectedRevision differs, name exists */
	VAULT_CHANGE_E_ABSENT,	     /* no such name */
};

/* May the change happen? 0, one of the above, or -EINVAL; with d. */
WUNRES int vault_change_check(const struct vault_change *c,
			      const struct vault_state *s, struct diag *d);
/* Puts everything into the open transaction. */
void vault_change_store(const struct vault_change *c, struct vault_link *link);
/* It was acknowledged under this revision. Gives the bindings away. */
void vault_change_apply(struct vault_change *c, struct vault_state *s,
			uint64_t revision);
