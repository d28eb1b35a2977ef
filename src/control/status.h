/* SPDX-License-Identifier: Apache-2.0 */
/* status.h - what every role says about itself, asked and put together */
#pragma once

#include "src/base/span.h"

struct control;
struct json_out;
struct policies;

/* A reply of the supervisor to MSG_CONTROL_ROLES. False: malformed. */
struct msg_roles;
void status_on_roles(struct control *c, uint32_t serial,
		     const struct msg_roles *roles);
/* The supervisor is gone or we end: open questions are answered without. */
void status_fini(struct control *c);

/* {"count", "generation", "loadedAt", "error"} (api_policies.c) */
void policies_status_put(struct json_out *o, const char *member,
			 const struct policies *p);
