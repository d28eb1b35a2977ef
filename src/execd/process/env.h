/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - the environment of a program to start: ours, EXECD_ENVS, the call's
 *
 * Later sources win: the daemon's own environment (without EXECD_*, but for
 * EXECD_ENVS, and without JUPYTER_TOKEN), then the file named by EXECD_ENVS
 * (read anew each time; at most 1 MiB), then the pairs of the call.
 *
 * An entry of the file is NAME=value, with or without "export " before it and
 * quotes around the value. $NAME and ${NAME} stand for what is set before it,
 * but in single quotes. In double quotes \n, \r and \t are what they are in
 * C, and a backslash before any other character leaves that. What is quoted may
 * be several lines long. Empty lines, comments (#) and anything else are passed
 * over.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct buf;
struct env;

enum {
	ENV_FILE_MAX = 1024 * 1024, /* bytes of it that are read */
	/* Bytes it may come to: no system gives a program as many, and a line
	 * of it may be a name for a value of 128 KiB. */
	ENV_ENTRIES_MAX = 8 * 1024 * 1024,
};

struct env *env_new(void);
struct env *env_new_empty(void);
struct env *env_free(struct env *v); /* NULL is fine; returns NULL */
/* 0; -EINVAL: name empty, or '=' or NUL in it, or NUL in value. */
WUNRES int env_set(struct env *v, struct span name, struct span value);
void env_unset(struct env *v, struct span name);
/* NULL when there is none. */
const char *env_get(const struct env *v, const char *name);
/* The entries of such a file, up to ENV_ENTRIES_MAX bytes of them. */
void env_take_text(struct env *v, struct span text);
/* For exec; valid until the next call on v. */
const char *const *env_list(struct env *v);
/* Appends text with each $NAME and ${NAME} replaced; by nothing when it is not
 * set. 0 or -ENOBUFS. */
WUNRES int env_expand(const struct env *v, struct span text, struct buf *out);
