/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the paths of the admin API that this program uses
 *
 * The whole table, with bodies and replies, is docs/openapi/admin.yaml.
 */
#pragma once

#define ROUTE_ROOT	"/v1"
#define ROUTE_STATUS	"/v1/status"
#define ROUTE_CA	"/v1/ca"
#define ROUTE_AUDIT	"/v1/audit"
#define ROUTE_EXPLAIN	"/v1/explain"
#define ROUTE_POLICIES	"/v1/policies"
#define ROUTE_SANDBOXES "/v1/sandboxes"

/* behind ROUTE_ROOT */
#define ROUTE_RELOAD	 "/policies/reload"
#define ROUTE_TOKENS	 "/tokens"
#define ROUTE_ROTATE_DEK "/vault/rotate-dek"
#define ROUTE_VERIFY	 "/vault/verify"
/* behind ROUTE_ROOT or a sandbox */
#define ROUTE_BINDINGS	  "/bindings"
#define ROUTE_CREDENTIALS "/credentials"
#define ROUTE_SCOPE_VAULT "/vault"
