/* SPDX-License-Identifier: Apache-2.0 */
/* body.h - what a client asks to run: the bodies of POST /command and of a run
 * in a session, checked
 *
 * Pure. Texts are borrowed from the JSON. A member that is null is absent; one
 * that is unknown is passed over, as clients of every age are served.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct env;
struct json;

struct command_body {
	struct span command;	 /* not empty, no NUL; or, without it: */
	const struct json *argv; /* texts without NUL, the first not empty */
	struct span cwd;	 /* SPAN_NONE: as it is */
	bool background;
	uint64_t timeout_ms; /* 0: none */
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	const struct json *envs; /* NULL, or an object of texts */
};

/* 0; -EINVAL with a sentence in d. */
WUNRES int command_body_read(const struct json *j, struct command_body *ret,
			     struct diag *d);
/* Only "cwd". */
WUNRES int command_body_cwd(const struct json *j, struct span *ret,
			    struct diag *d);
/* Sets the pairs of envs. 0; -EINVAL with a sentence in d. */
WUNRES int command_body_envs(const struct command_body *b, struct env *env,
			     struct diag *d);
