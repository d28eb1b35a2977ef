/* SPDX-License-Identifier: Apache-2.0 */
/* egress_api.h - policy and credential vault of one sandbox, as its SDK asks
 *
 * The contract's sections 1 and 2, served on connections that the gateway hands
 * over (docs/lifecycle.md): each is one end of a socketpair, on which the
 * gateway speaks HTTP/1.1 with "X-Sallyport-Sandbox: {id}" set by itself and
 * everything else as the client sent it. The token is checked here.
 *
 * Errors are text, as clients of this API expect; a policy or a vault that is
 * answered for is in force.
 */
#pragma once

#include "src/base/attrib.h"

struct control;
struct egress_api;
struct msg_ingress_client;

WUNRES int egress_api_new(struct control *c, struct egress_api **ret);
struct egress_api *egress_api_free(struct egress_api *e);
/* Takes fd: a connection from the gateway, of the client `from`. */
void egress_api_serve(struct egress_api *e, int fd,
		      const struct msg_ingress_client *from);
