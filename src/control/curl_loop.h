/* SPDX-License-Identifier: Apache-2.0 */
/* curl_loop.h - libcurl's multi interface on our loop
 *
 * For the folders that ask others over HTTP: the Docker daemon, the webhook.
 * They make easy handles; this drives them.
 */
#pragma once

#include <curl/curl.h>

#include "src/base/attrib.h"
#include "src/base/list.h"
#include "src/io/loop.h"

struct curl_loop_ops {
	/* A transfer is over; its handle is in still, curl_loop_remove() it. */
	void (*done)(void *ctx, CURL *easy, CURLcode result);
	/* libcurl has returned, all that was done was told. May free c. */
	void (*rest)(void *ctx);
};

struct curl_loop {
	struct loop *loop;
	const struct curl_loop_ops *ops;
	void *ctx;
	CURLM *multi;
	struct timer timer; /* what libcurl waits for */
	struct list sockets;
	bool inside; /* libcurl is at work and may not be asked anything */
};

/* kept: connections that stay open at most. 0 or -ENOMEM; in either case
 * curl_loop_fini(). */
WUNRES int curl_loop_init(struct curl_loop *c, struct loop *loop,
			  const struct curl_loop_ops *ops, void *ctx,
			  long kept);
/* Without transfers. */
void curl_loop_fini(struct curl_loop *c);
/* It runs from now on. 0 or -ENOMEM. */
WUNRES int curl_loop_add(struct curl_loop *c, CURL *easy);
/* It runs no more; not while c->inside. */
void curl_loop_remove(struct curl_loop *c, CURL *easy);
