/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - the explicit proxy, for clients that insist on one
 *
 * How it works: every TCP connection of a sandbox arrives with its original
 * destination. Where that is the gateway's own address (listeners.h) at
 * "explicitProxyPort", the client speaks to a proxy: SOCKS5 (RFC 1928), HTTP
 * CONNECT, or requests in absolute-form. Only the destination comes from the
 * payload; who asks is known from the packet, as always, and credentials for
 * a proxy are neither needed nor looked at.
 *
 * A name is decided, resolved and guarded before it is answered. The tunnel
 * that then begins is a session like any other, in SESSION_SNIFF: TLS must be
 * for that name, HTTP too, and what is neither passes if policy says so. An IP
 * literal takes the place of the original destination, and nothing is decided
 * before the first byte, as for a connection made to it directly. Requests in
 * absolute-form have an admission each: one connection may go to many hosts.
 */
#pragma once

#include <stdbool.h>

#include "src/base/addr.h"
#include "src/base/span.h"

struct authority;
struct exchange;
struct session;
struct worker;

/* Is a connection to this address one to the proxy? */
bool proxy_is_dialled(const struct worker *w, const struct addr *original);
/* The addresses of the proxy, port 0. */
enum { PROXY_ADDRS = 2 };
void proxy_addresses(struct addr ret[PROXY_ADDRS]);
/* Is it the name (canonical) by which sandboxes find the proxy? */
bool proxy_is_named(const struct worker *w, struct span host);
/* Such a connection begins. */
void proxy_start(struct session *s);
/* SESSION_PROXY: the client sent something, or ended. */
void proxy_on_client(struct session *s);

/* A request whose connection is to the proxy (s->proxied). */
void proxy_begin(struct exchange *x);
bool proxy_is_connect(const struct exchange *x);
/* Before each of them: where the last one went is nothing to this one. */
void proxy_forget(struct session *s);
/* CONNECT is granted: says so and begins the tunnel. Its exchange is gone. */
void proxy_tunnel(struct session *s);

/* -- between proxy.c and socks.c ------------------------------------------- */

/* The session is for this destination, as `via` asks ("connect", ...). False:
 * that is the proxy itself. */
bool proxy_name(struct session *s, const struct authority *a, const char *via);
/* The rest of the session is the destination's. */
void proxy_open(struct session *s);
/* SESSION_PROXY with the first byte of SOCKS5 in s->in. True: decided, s may
 * be gone. False: more bytes are needed. */
bool socks_run(struct session *s);
