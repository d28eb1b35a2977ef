/* SPDX-License-Identifier: Apache-2.0 */
/* plan.h - what an isolated session is to look like: POST /v1/isolated/session,
 * read and checked
 *
 * A member that is null is absent, one that is unknown is passed over. Folders
 * that are to be writable must exist, and lie in the allowed ones as they
 * really are, links resolved: what is mounted later is opened without following
 * any (world.c), so nothing can be exchanged between the two looks.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "src/base/attrib.h"
#include "src/base/span.h"

struct diag;
struct env;
struct json;
struct json_out;

enum plan_profile { PLAN_STRICT, PLAN_BALANCED, PLAN_PROFILE_NUM };
enum plan_workspace {
	PLAN_OVERLAY,
	PLAN_WRITABLE,
	PLAN_READ_ONLY,
	PLAN_WORKSPACE_NUM
};
enum plan_user {
	PLAN_SETPRIV, /* the uid is the container's */
	PLAN_USERNS,  /* the uid is mapped to the daemon's own */
	PLAN_USER_NUM
};
enum plan_env { PLAN_ENV_DENY, PLAN_ENV_ALLOW, PLAN_ENV_NUM };

const char *plan_user_name(enum plan_user u);

enum { PLAN_BINDS_MAX = 32, PLAN_KEYS_MAX = 128 };

struct plan_bind {
	char *source, *dest; /* resolved; where it is mounted */
	bool read_only;
	bool is_extra; /* of extra_writable: dest is source */
};

struct plan {
	enum plan_profile profile;
	enum plan_workspace mode;
	enum plan_user user;
	char *workspace;
	struct plan_bind binds[PLAN_BINDS_MAX];
	unsigned bind_count;
	bool share_net;
	enum plan_env env;
	char *keys[PLAN_KEYS_MAX];
	unsigned key_count;
	bool has_uid, has_gid;
	uid_t uid;
	gid_t gid;
	unsigned idle_s; /* 0: for ever */
};

/* What it says; looks at no folder. 0; -EINVAL with a sentence in d.
 * plan_fini() is due in either case. */
WUNRES int plan_parse(const struct json *j, struct plan *ret, struct diag *d);
/* The same, its folders found, and allowed: absolute paths, NULL-terminated.
 * Makes the workspace if it is missing. */
WUNRES int plan_read(const struct json *j, const char *const *allowed,
		     struct plan *ret, struct diag *d);
void plan_fini(struct plan *p);
/* The members by which it was asked for, into an open object. */
void plan_put(const struct plan *p, struct json_out *o);
/* Takes from env what the session may not see. */
void plan_env(const struct plan *p, struct env *env);
/* Does a glob with one star at an end fit the name, in either case? */
bool plan_name_fits(struct span name, struct span glob);
