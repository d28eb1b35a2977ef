/* SPDX-License-Identifier: Apache-2.0 */
/* http1.h - HTTP/1.1 towards a sandbox: exchanges one after another
 *
 * Every function here may end the session; the caller returns at once.
 */
#pragma once

#include <stdbool.h>

struct http1;
struct session;

/* The session entered SESSION_HTTP; s->in may hold the first bytes. */
void http1_start(struct session *s);
void http1_on_client(struct session *s);
/* The session's timer: idle, or a head that does not come. */
void http1_timeout(struct session *s);
/* Policy changed: what runs is ended; or only what it denies now. */
void http1_cut(struct session *s);
void http1_recheck(struct session *s);
void http1_drain(struct session *s);
/* A CONNECT was granted: HTTP ends here, without a word, and with it the
 * exchange. What the client sent behind the head is left in s->in. */
void http1_leave(struct session *s);
/* The session is being freed; NULL is fine. */
void http1_free(struct http1 *h);
