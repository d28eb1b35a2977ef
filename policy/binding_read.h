/* SPDX-License-Identifier: Apache-2.0 */
/* binding_read.h - reading one binding: what the parts of the reader share
 * (inside policy/)
 */
#pragma once

#include "policy/binding.h"

struct diag;
struct json;

struct binding_reader {
	struct binding *b; /* under construction */
	struct diag *d;
	char where[BINDING_NAME_MAX + 32]; /* "binding "name": match" */
};

/* All: 0, or -EINVAL with the reader's diag. */

/* 'where: what "found": expected ...' */
int binding_refuse(struct binding_reader *rd, const char *what,
		   struct span found, const char *expected);
/* A copy in the binding's arena. */
WUNRES int binding_keep(struct binding_reader *rd, struct span text,
			struct span *ret);
/* A member that must be there. */
WUNRES int binding_need_text(struct binding_reader *rd,
			     const struct json *object, const char *name,
			     struct span *ret);
/* Normalises a name of something and keeps it. */
WUNRES int binding_read_name(struct binding_reader *rd, struct span text,
			     struct span *ret);
/* The object "auth". */
WUNRES int binding_read_auth(struct binding_reader *rd,
			     const struct json *auth);
