/* SPDX-License-Identifier: Apache-2.0 */
/* vault_request.h - what a client of the egress API wants of the vault
 * (contract 2.3)
 *
 *   create: {"credentials"?: [...], "bindings"?: [...]}
 *   patch:  {"expectedRevision"?, "credentials"?: {"add"?, "replace"?,
 *            "delete"?}, "bindings"?: {same}}
 *
 * Pure. Clients write what they leave out as null, or as an empty list; both
 * mean that it is not there. Members that only the node's own bindings have are
 * refused, and so is what newer clients may ask for and we do not do.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct vault_change;

enum { VAULT_REQUEST_TEXT_MAX = 2 * 1024 * 1024 };

/* 0; -EINVAL with d, a whole sentence without any value. */
WUNRES int vault_request_parse_create(struct span text,
				      struct vault_change **ret,
				      struct diag *d);
WUNRES int vault_request_parse_patch(struct span text,
				     struct vault_change **ret, struct diag *d);
