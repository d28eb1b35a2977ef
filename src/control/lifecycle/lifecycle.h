/* SPDX-License-Identifier: Apache-2.0 */
/* lifecycle.h - the lifecycle API: its listener, its sandboxes, its runtime
 *
 * docs/lifecycle.md has the whole picture. Everything that changes what is kept
 * goes through control's queue of changes (change.h): stored by the vault
 * first, then in force, then answered.
 */
#pragma once

#include <stdbool.h>

#include "src/base/buf.h"
#include "src/base/list.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/capture.h"
#include "src/control/lifecycle/create_request.h"
#include "src/control/lifecycle/secrets.h"
#include "src/httpd/httpd.h"

enum { LIFECYCLE_DESCRIPTION_MAX = 1024 * 1024 };

struct control;
struct docker;
struct runtime;

struct lifecycle {
	struct control *control;
	struct httpd *httpd;
	struct docker *docker;
	struct boxes boxes;
	struct network *network;
	struct runtime *runtime;
	uint64_t changes; /* of states of boxes, by this process */
	bool ended;	  /* answers that still come change nothing */

	/* of the API (server.c, capturing.c, proxy.c) */
	struct lifecycle_secrets secrets;
	bool key_was_sent; /* by the request that authorise() looked at */
	struct captures captures;
	struct list captures_in_work;
	struct list proxies;
	unsigned proxy_count;
	struct buf description; /* api_description.c; empty: not made yet */
};

#define ROUTE(method, path, auth, handler) httpd_handler handler;
#include "src/control/lifecycle/routes.def"
#undef ROUTE
httpd_handler lifecycle_proxy;

/* Does nothing (*ret = NULL) unless lifecycle.listen is configured. Blocks for
 * local files only. */
WUNRES int lifecycle_new(struct control *c, struct lifecycle **ret);
/* Takes what s holds (s is empty then), before anybody listens. Without a key
 * nobody may ask, unless the configuration says otherwise. */
void lifecycle_give_secrets(struct lifecycle *l, struct lifecycle_secrets *s);
/* Nothing begins any more; before the queue of changes ends. NULL is fine. */
void lifecycle_end(struct lifecycle *l);
struct lifecycle *lifecycle_free(struct lifecycle *l);
/* The vault was read, again or for the first time: takes the boxes and the
 * snapshots (both are empty then). NULL is fine, as below. */
void lifecycle_loaded(struct lifecycle *l, struct boxes *all,
		      struct captures *captures);
/* Everything of it is in force: compares with what Docker has. */
void lifecycle_start(struct lifecycle *l);

/* The sandbox was used through the ingress: one that access renews lives on
 * (contract 3.5). NULL is fine. */
void lifecycle_accessed(struct lifecycle *l, struct span id);

/* Each ends the request. */
void lifecycle_refuse(struct httpd_request *r,
		      const struct lifecycle_error *no);

/* -- making and ending (create.c, remove.c, pause.c) ---------------------- */

/* no: NULL when it is done; else what the client is answered. Called once, from
 * the loop or before the function that asked returns. */
typedef void lifecycle_done_fn(void *ctx, const struct lifecycle_error *no);

/* Takes q; answers r when the sandbox runs, or why it does not. */
void lifecycle_create(struct lifecycle *l, struct create_request *q,
		      struct httpd_request *r);
/* Removes the container and all that belongs to it, the record last. Also one
 * that is being made, or removed already. done may be NULL. */
void lifecycle_remove(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx);
/* Done when the record says Paused, or Running. */
void lifecycle_pause(struct lifecycle *l, struct span id,
		     lifecycle_done_fn *done, void *ctx);
void lifecycle_resume(struct lifecycle *l, struct span id,
		      lifecycle_done_fn *done, void *ctx);
/* Makes an image of the sandbox's file system, container_snapshot_image() of
 * the snapshot's id; removes one. */
void lifecycle_commit(struct lifecycle *l, struct span id, struct span snapshot,
		      lifecycle_done_fn *done, void *ctx);
void lifecycle_drop_image(struct lifecycle *l, struct span snapshot,
			  lifecycle_done_fn *done, void *ctx);
