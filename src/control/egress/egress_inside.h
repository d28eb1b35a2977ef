/* SPDX-License-Identifier: Apache-2.0 */
/* egress_inside.h - what the files of the egress API share */
#pragma once

#include "src/base/buf.h"
#include "src/control/lifecycle/box.h"
#include "src/httpd/httpd.h"
#include "src/text/json.h"

struct control;

enum {
	EGRESS_REPLY_MAX = 64 * 1024 * 1024,
	EGRESS_BODY_MAX = 1024 * 1024,
};

/* Every connection is decided on, and names too: the stronger of the contract's
 * two words. */
#define EGRESS_ENFORCEMENT "dns+nft"
#define EGRESS_NO_POLICY   "this sandbox has no network policy"

/* text/plain, and a newline behind it. */
void egress_refuse(struct httpd_request *r, unsigned status, const char *fmt,
		   ...) PRINTF(3, 4);
/* A newline behind it; wipes out. error: of writing it. */
void egress_reply_json(struct httpd_request *r, unsigned status, int error,
		       struct buf *out);
void egress_refuse_method(struct httpd_request *r, const char *allow);
/* The box that r is about; it was there when r was authorised. NULL: answered.
 */
const struct box *egress_box(struct control *c, struct httpd_request *r);

/* policy_api.c, vault_api.c: handlers, with the control as context. */
httpd_handler egress_policy;
httpd_handler egress_vault;
httpd_handler egress_vault_active;
httpd_handler egress_vault_part;
