/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the paths of the admin API that this program uses
 *
 * The whole table, with bodies and replies, is docs/openapi/admin.yaml.
 */
#pragma once

#define ROUTE_STATUS	  "/v1/status"
#define ROUTE_CA	  "/v1/ca"
#define ROUTE_CA_BUNDLE	  "/v1/ca/bundle"
#define ROUTE_AUDIT	  "/v1/audit/tail"
#define ROUTE_EXPLAIN	  "/v1/explain"
#define ROUTE_POLICIES	  "/v1/policies"
#define ROUTE_RELOAD	  "/v1/policies/reload"
#define ROUTE_SANDBOXES	  "/v1/sandboxes"
#define ROUTE_TOKENS	  "/v1/tokens"
#define ROUTE_BINDINGS	  "/v1/bindings"
#define ROUTE_CREDENTIALS "/v1/credentials"
#define ROUTE_ROTATE_DEK  "/v1/vault/rotate-dek"
#define ROUTE_VERIFY	  "/v1/vault/verify"
