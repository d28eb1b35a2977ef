/* SPDX-License-Identifier: Apache-2.0 */
/* ingress_inside.h - what ingress.c and ingress_pass.c share */
#pragma once

#include "gateway/ingress/ingress.h"
#include "gateway/ingress/ingress_access.h"
#include "gateway/ingress/ingress_box.h"
#include "gateway/ingress/ingress_route.h"
#include "src/base/map.h"
#include "src/httpd/forward.h"
#include "src/httpd/httpd.h"
#include "src/io/loop.h"

#define INGRESS_PREFIX "OpenSandbox Ingress: "

struct ingress {
	struct worker *worker;
	struct httpd *httpd;
	struct forwarder forwarder;
	struct map boxes; /* id -> struct known */
	struct ingress_keys *keys;
	unsigned egress_count; /* exchanges with control under way */
	struct timer look;     /* runs while anything is under way */
	bool is_looking;
};

/* NULL: there is none. */
struct ingress_box *ingress_find(const struct ingress *in, struct span id);
/* Of .look: which sandboxes are used by what lasts? */
void ingress_on_look(struct timer *t);
/* Passes it on, or answers. The request is taken. */
void ingress_pass(struct ingress *in, struct httpd_request *r,
		  struct ingress_box *box, const struct ingress_route *route);
/* Writes the record of one that is refused, then answers it. route may be
 * NULL. */
void ingress_refuse(struct ingress *in, struct httpd_request *r,
		    const struct ingress_route *route,
		    const struct ingress_refusal *no);
