/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - a request of the lifecycle API that is answered later, and what all
 * handlers share */
#pragma once

#include "src/base/buf.h"
#include "src/control/lifecycle/box.h"
#include "src/control/lifecycle/lifecycle.h"

struct list_query;
struct refusal;

enum { ASK_REPLY_MAX = 64 * 1024 * 1024 };

struct ask {
	struct lifecycle *lifecycle;
	struct httpd_request *request;
	char id[BOX_ID_SIZE];
};

/* To be freed by whoever answers. */
struct ask *ask_new(struct lifecycle *l, struct httpd_request *r,
		    struct span id);
/* The sandbox of {id}; NULL: answered with 404. */
struct box *ask_box(struct lifecycle *l, struct httpd_request *r);
void ask_refuse_unknown(struct httpd_request *r);
/* What a change was refused with; conflict: the code of a 409. */
void ask_refuse_change(struct httpd_request *r, const struct refusal *why,
		       const char *conflict);
/* For lifecycle_done_fn: ctx is a struct ask, which is freed. 202 and 204
 * without a body. */
void ask_on_accepted(void *ctx, const struct lifecycle_error *no);
void ask_on_removed(void *ctx, const struct lifecycle_error *no);
/* Sends what was written, unless writing failed; frees out. */
void ask_reply(struct httpd_request *r, unsigned status, int error,
	       struct buf *out);
/* What is shown of a sandbox. */
void ask_reply_box(struct httpd_request *r, const struct box *b);
/* The query of a list. False: answered. */
WUNRES bool ask_list(struct httpd_request *r, struct list_query *ret);
