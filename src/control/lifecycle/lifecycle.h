/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - the lifecycle API: its listener, its sandboxes, its runtime
 *
 * docs/lifecycle.md has the whole picture. Everything that changes what is kept
 * goes through control's queue of changes (change.h): stored by the vault
 * first, then in force, then answered.
 */
#pragma once

#include <stdbool.h>

#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/create_request.h"
#include "src/httpd/httpd.h"

struct control;
struct docker;
struct lifecycle;

struct lifecycle {
	struct control *control;
	struct httpd *httpd;
	struct docker *docker;
	struct boxes boxes;
	struct network *network;
	struct snapshots *snapshots;
	struct expiry *expiry;
};

#define ROUTE(method, path, auth, handler) httpd_handler handler;
#include "src/control/lifecycle/routes.def"
#undef ROUTE

/* Does nothing (*ret = NULL) unless lifecycle.listen is configured. */
WUNRES int lifecycle_new(struct control *c, struct lifecycle **ret);
struct lifecycle *lifecycle_free(struct lifecycle *l);
/* Control has read everything: compare with what Docker has, then serve. */
void lifecycle_loaded(struct lifecycle *l);

/* Each ends the request. */
void lifecycle_refuse(struct httpd_request *r,
		      const struct lifecycle_error *no);

/* -- making and ending (create.c, remove.c) ------------------------------- */

/* Takes q; answers r when the sandbox runs, or why it does not. */
void lifecycle_create(struct lifecycle *l, struct create_request *q,
		      struct httpd_request *r);
/* Removes the container and all that belongs to it, the record last. done may
 * be NULL; status 0 or -errno with a sentence. */
typedef void removed_fn(void *ctx, int status, const char *message);
void lifecycle_remove(struct lifecycle *l, struct box *b, removed_fn *done,
		      void *ctx);
