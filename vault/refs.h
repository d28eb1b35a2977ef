/* SPDX-License-Identifier: Apache-2.0 */
/* refs.h - which credentials the bindings of a scope name */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/map.h"
#include "src/base/span.h"

struct diag;

enum { REFS_PER_BINDING = 64 };

/* The credentials that one binding names; owned strings. */
struct ref_list {
	char **names;
	unsigned count;
};

/* From a binding's JSON: auth.credential and auth.headers[].credential. 0, or
 * -EINVAL with d; *ret is then empty. */
WUNRES int ref_list_parse(struct span json, struct ref_list *ret,
			  struct diag *d);
void ref_list_fini(struct ref_list *l);

/* (scope, credential) -> how many bindings name it. */
struct refs {
	struct map counts;
};

void refs_init(struct refs *r);
void refs_fini(struct refs *r);
void refs_add(struct refs *r, struct span scope, const struct ref_list *l);
void refs_remove(struct refs *r, struct span scope, const struct ref_list *l);
bool refs_has(const struct refs *r, struct span scope, struct span credential);
