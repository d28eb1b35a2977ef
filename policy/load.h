/* SPDX-License-Identifier: Apache-2.0 */
/* load.h - policy files and API bodies into a set, whole or not at all
 *
 * The schema is docs/policy.schema.json and sallyport-policy(5). A file is a
 * map of `policies`, `deny` and `allow`, or one of the two lists of lines of
 * policy/always.h; the overlays of all files count together. Errors name file,
 * line and column, what was found and what was expected. Pure but for reading
 * the files; blocks.
 */
#pragma once

#include "policy/model.h"

enum { POLICY_FILES_MAX = 4096 };

/* A text and what to call it in errors and explanations. */
struct policy_source {
	struct span text;
	const char *name;
};

/* Each: 0 and *ret (the caller's to free), or -EINVAL with diag. */

WUNRES int policy_load_texts(const struct policy_source *sources,
			     unsigned count, struct policy_set **ret,
			     struct diag *d);
WUNRES int policy_load_text(struct span text, const char *name,
			    struct policy_set **ret, struct diag *d);

/* Every *.json, *.yaml and *.yml of a directory, deny.always and allow.always,
 * in order of their names; names
 * beginning with '.' are skipped. Also -errno (with diag) when the directory
 * or a file cannot be read. */
WUNRES int policy_load_dir(const char *path, struct policy_set **ret,
			   struct diag *d);
/* One file, by the same rules. */
WUNRES int policy_load_file(const char *path, struct policy_set **ret,
			    struct diag *d);

/* A single policy object as an API takes it: the set holds just that. name:
 * what it is put under (a name in the object must be equal); SPAN_NONE: the
 * object names itself. */
WUNRES int policy_load_one(struct span text, const char *source,
			   struct span name, struct policy_set **ret,
			   struct diag *d);
