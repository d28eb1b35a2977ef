/* SPDX-License-Identifier: Apache-2.0 */
/* client_ctx.h - TLS towards sandboxes: one context, the leaf per connection
 *
 * Sessions are resumed by stateless tickets. A ticket is good only for the
 * sandbox and the name it was given to: both are in the session id context,
 * which OpenSSL compares before it resumes.
 */
#pragma once

#include <stdbool.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct evp_pkey_st;
struct ssl_ctx_st;
struct ssl_st;
struct x509_st;

/* 0 or -EIO. */
WUNRES int client_ctx_new(struct ssl_ctx_st **ret);

/* An SSL in accept state with this leaf and key; NULL on failure. h2: HTTP/2 is
 * chosen where the client offers it. */
struct ssl_st *client_ssl_new(struct ssl_ctx_st *ctx, struct x509_st *leaf,
			      struct evp_pkey_st *key, struct span sandbox,
			      struct span name, bool h2);
