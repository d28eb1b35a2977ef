/* SPDX-License-Identifier: Apache-2.0 */
/* env.h - the environment of a program to start: ours, EXECD_ENVS, the call's
 *
 * Later sources win: the daemon's own environment (without EXECD_* and what is
 * secret in it: EXECD_ACCESS_TOKEN, JUPYTER_TOKEN), then the file named by
 * EXECD_ENVS (read anew each time; NAME=value lines), then the pairs of the
 * call.
 */
#pragma once

#include "src/base/attrib.h"
#include "src/base/span.h"

struct env;

struct env *env_new(void);
struct env *env_free(struct env *v); /* NULL is fine; returns NULL */
/* 0; -EINVAL: name empty, or '=' or NUL in it, or NUL in value. */
WUNRES int env_set(struct env *v, struct span name, struct span value);
void env_unset(struct env *v, struct span name);
/* NULL when there is none. */
const char *env_get(const struct env *v, const char *name);
/* For exec; valid until the next call on v. */
const char *const *env_list(struct env *v);
