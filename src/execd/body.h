/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - large bodies are parsed beside the loop
 *
 * JSON costs ten nanoseconds a byte and more: a body of the longest kind would
 * keep every other client waiting for the better part of a second. One of a
 * POST of more than BODY_LARGE bytes is parsed by a thread of the files' before
 * its handler is called; answer_body() then finds it done.
 */
#pragma once

#include "src/httpd/httpd.h"

struct diag;
struct execd;
struct json;

enum { BODY_LARGE = 128 * 1024 };

/* Calls the handler, now or when the body is parsed; or answers that it cannot
 * be. */
void body_first(struct execd *e, struct httpd_request *r,
		httpd_handler *handler);
/* The body of the request whose handler is being called, parsed; owned. 0, or
 * -EINVAL with a sentence in d. */
WUNRES int body_take(const struct httpd_request *r, struct span text,
		     struct json **ret, struct diag *d);
