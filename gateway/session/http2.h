/* SPDX-License-Identifier: Apache-2.0 */
/* http2.h - HTTP/2 towards a sandbox: many exchanges at once
 *
 * Every function here may end the session; the caller returns at once.
 */
#pragma once

struct http2;
struct session;

/* The session entered SESSION_HTTP2. */
void http2_start(struct session *s);
void http2_on_client(struct session *s);
void http2_timeout(struct session *s);
/* Policy changed: every stream is ended; or only those that it denies now. */
void http2_cut(struct session *s);
void http2_recheck(struct session *s);
void http2_drain(struct session *s);
/* The session is being freed; NULL is fine. */
void http2_free(struct http2 *h);
