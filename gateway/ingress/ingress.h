/* SPDX-License-Identifier: Apache-2.0 */
/* ingress.h - the way from outside to the ports of sandboxes (contract 3)
 *
 * One for each worker, with everything of its own but the boxes and keys, which
 * all share. A request is routed (ingress_route.h), checked (ingress_access.h),
 * and passed on (src/httpd/forward.h) with a head of ours (ingress_head.h).
 * Our own answers are text that begins with "OpenSandbox Ingress: ".
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct ingress;
struct ingress_box;
struct ingress_keys;
struct msg_ingress_client;
struct worker;

struct ingress *ingress_new(struct worker *w);
/* Cuts what is under way. NULL is fine; returns NULL. */
struct ingress *ingress_free(struct ingress *in);

/* Takes a listening fd. 0 or -errno. */
WUNRES int ingress_listen(struct ingress *in, int fd);
/* Takes fd: a client whose connection control had. */
void ingress_adopt(struct ingress *in, int fd,
		   const struct msg_ingress_client *client);

/* References are taken. What goes to addresses that a box has no more is cut.
 */
void ingress_put(struct ingress *in, struct ingress_box *b);
void ingress_drop(struct ingress *in, struct span id);
/* keys NULL: there are none. */
void ingress_set_keys(struct ingress *in, struct ingress_keys *keys);
/* Control is new: what it does not say again until the sweep is dropped. */
void ingress_renew(struct ingress *in);
void ingress_sweep(struct ingress *in);

/* No new connections; each ends with its exchange. */
void ingress_drain(struct ingress *in);
bool ingress_is_idle(const struct ingress *in);
