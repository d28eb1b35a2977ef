/* SPDX-License-Identifier: Apache-2.0 */
/* api.h - the admin API: its routes and what their handlers share */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/control/change.h"
#include "src/httpd/httpd.h"
#include "src/text/json.h"

struct control;

enum { API_REPLY_MAX = 64 * 1024 * 1024 };

#define ROUTE(method, path, auth, handler) httpd_handler handler;
#include "src/control/routes.def"
#undef ROUTE

/* The route table and who may use it, with the control as context. */
WUNRES int api_new(struct control *c, struct httpd **ret);

/* Was the vault read once? Else answers 503 and returns false. */
bool api_ready(const struct control *c, struct httpd_request *r);
/* 400 with the sentence of d. */
void api_invalid(struct httpd_request *r, const struct diag *d);
void api_not_found(struct httpd_request *r, const char *what);
/* Sends what was written to out, unless writing failed; wipes it. */
void api_reply_buf(struct httpd_request *r, unsigned status, int error,
		   struct buf *out);
/* ?expectedRevision=N; -1 when absent. False: answered. */
bool api_expected_revision(struct httpd_request *r, int64_t *ret);

/* Fills a refusal and returns CHANGE_REFUSE. */
enum change_step api_refuse(struct refusal *no, unsigned status,
			    const char *code, const char *fmt, ...)
	PRINTF(4, 5);
