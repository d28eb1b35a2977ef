/* SPDX-License-Identifier: Apache-2.0 */
/* server.h - the Jupyter server: where it is, and one HTTP call to it
 *
 * JUPYTER_HOST is http://HOST:PORT, with a path when the server has a base
 * URL. HOST is an IP literal or a name of /etc/hosts: a static program has no
 * resolver, and the server runs in the same sandbox. https is refused: this
 * program has no TLS.
 *
 * The token goes into each request as "Authorization: token ...", and nowhere
 * else.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/list.h"
#include "src/base/span.h"
#include "src/wire/host.h"

struct addr;
struct buf;
struct diag;
struct execd;

enum {
	JUPYTER_CALL_MS = 20 * 1000,
	JUPYTER_PATH_MAX = 256,
	JUPYTER_HOST_TEXT_MAX = 300,
};

struct jupyter {
	struct execd *execd;
	/* What is wrong with JUPYTER_HOST; "": nothing. */
	char wrong[256];
	struct authority at;
	char host[JUPYTER_HOST_TEXT_MAX]; /* of the Host header */
	char base[JUPYTER_PATH_MAX];	  /* "" or "/base" */
	struct list calls;
};

struct jupyter *jupyter_new(struct execd *e);
/* Cancels the calls that nobody waits for. NULL is fine; returns NULL. */
struct jupyter *jupyter_free(struct jupyter *j);

/* "http://a:1/base/" into the three. False: *ret is set to why not only. Pure.
 */
WUNRES bool jupyter_parse(const char *text, struct jupyter *ret);
/* The address to connect to. 0 or -errno with a sentence in d. */
WUNRES int jupyter_resolve(const struct jupyter *j, struct addr *ret,
			   struct diag *d);
/* The Authorization line with CRLF, or nothing. 0 or -ENOBUFS. */
WUNRES int jupyter_put_token(const struct jupyter *j, struct buf *out);

/* Once, from the loop. status 0: no reply, `text` is a sentence why; else text
 * is its body. Borrowed for the call. */
typedef void jupyter_fn(void *ctx, unsigned status, struct span text);

struct jupyter_call;

/* path is behind the base. fn NULL: nobody waits for the reply, and the call
 * must not be touched any more. */
struct jupyter_call *jupyter_call(struct jupyter *j, const char *method,
				  const char *path, struct span body,
				  jupyter_fn *fn, void *ctx);
/* Another one waits for it. */
void jupyter_call_give(struct jupyter_call *c, jupyter_fn *fn, void *ctx);
/* Gives up; fn is not called. NULL is fine; returns NULL. */
struct jupyter_call *jupyter_call_cancel(struct jupyter_call *c);
