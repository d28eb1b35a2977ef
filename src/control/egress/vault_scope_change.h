/* SPDX-License-Identifier: Apache-2.0 */
/* vault_scope_change.h - the credential vault of one sandbox changed: stored,
 * in force, answered (contract 2.2-2.6)
 *
 * In control's queue of changes. What is put is checked as a whole against what
 * is there when its turn comes, and each binding against the sandbox's policy.
 */
#pragma once

#include "src/control/changes.h"

struct httpd_request;
struct vault_change;

enum vault_scope_verb { VAULT_SCOPE_CREATE, VAULT_SCOPE_PATCH };

/* Takes change; answers r. */
void vault_scope_change_put(struct control *c, struct span id,
			    enum vault_scope_verb verb,
			    struct vault_change *change,
			    struct httpd_request *r);
/* 204. */
void vault_scope_change_delete(struct control *c, struct span id,
			       struct httpd_request *r);
/* From inside: with the sandbox. 404: there is none. */
void vault_scope_change_remove(struct control *c, struct span id,
			       changed_fn *fn, void *ctx);
