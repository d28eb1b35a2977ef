/* SPDX-License-Identifier: Apache-2.0 */
/* plan.c - what an isolated session is to look like, read and checked */

#include "src/execd/isolated/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/execd/process/env.h"
#include "src/text/json.h"

static const char *const profiles[] = {
	[PLAN_STRICT] = "strict",
	[PLAN_BALANCED] = "balanced",
};
static const char *const modes[] = {
	[PLAN_OVERLAY] = "overlay",
	[PLAN_WRITABLE] = "rw",
	[PLAN_READ_ONLY] = "ro",
};
static const char *const users[] = {
	[PLAN_SETPRIV] = "setpriv",
	[PLAN_USERNS] = "userns",
};
static const char *const env_modes[] = {
	[PLAN_ENV_DENY] = "deny",
	[PLAN_ENV_ALLOW] = "allow",
};
_Static_assert(ARRAY_LEN(profiles) == PLAN_PROFILE_NUM, "a name for each");
_Static_assert(ARRAY_LEN(modes) == PLAN_WORKSPACE_NUM, "a name for each");
_Static_assert(ARRAY_LEN(users) == PLAN_USER_NUM, "a name for each");
_Static_assert(ARRAY_LEN(env_modes) == PLAN_ENV_NUM, "a name for each");

/* What is not handed on unless a list says otherwise: names of secrets. */
static const char *const secrets[] = {
	"*_API_KEY", "*_TOKEN",	 "*_SECRET", "*_PASSWORD", "AWS_*",
	"ALI_*",     "ALIYUN_*", "K8S_*",    "KUBE_*",
};

const char *plan_user_name(enum plan_user u)
{
	return users[u];
}

/* -- members -------------------------------------------------------------- */

static int wrong(struct diag *d, const char *where, const char *wanted,
		 const struct json *v)
{
	return diag_set(d, 0, 0, "%s is %s, expected %s", where,
			json_kind_name(json_kind(v)), wanted);
}

/* One of the words; absent leaves *ret. */
static int word_read(const struct json *v, const char *where,
		     const char *const *words, unsigned count, unsigned *ret,
		     struct diag *d)
{
	struct span text = json_text(v);
	unsigned i;

	if (!v)
		return 0;
	if (!text.ptr)
		return wrong(d, where, "a string", v);
	for (i = 0; text.len && i < count; i++)
		if (span_eq(text, span_str(words[i]))) {
			*ret = i;
			return 0;
		}
	if (!text.len)
		return 0;
	return diag_set(d, 0, 0, "%s is \"%.*s\", expected %s, %s%s%s", where,
			(int)MIN(text.len, 64u), text.ptr, words[0], words[1],
			count > 2 ? " or " : "", count > 2 ? words[2] : "");
}

static int number_read(const struct json *v, const char *where, uint64_t max,
		       bool *ret_has, uint64_t *ret, struct diag *d)
{
	uint64_t n;

	if (!v)
		return 0;
	if (!json_u64(v, &n) || n > max)
		return diag_set(d, 0, 0, "%s is no number from 0 to %llu",
				where, (unsigned long long)max);
	*ret_has = true;
	*ret = n;
	return 0;
}

static int path_read(const struct json *v, const char *where, char **ret,
		     struct diag *d)
{
	struct span text = json_text(v);
	char path[PATH_MAX];

	if (!text.len)
		return diag_set(d, 0, 0, "%s is required", where);
	if (text.ptr[0] != '/')
		return diag_set(d, 0, 0, "%s must be an absolute path", where);
	if (!span_copy(text, path, sizeof(path)))
		return diag_set(d, 0, 0, "%s is no path of less than %d bytes",
				where, PATH_MAX);
	*ret = must_strdup(path);
	return 0;
}

/* -- folders, as they are named ------------------------------------------ */

static int workspace_read(const struct json *j, struct plan *p, struct diag *d)
{
	const struct json *w = json_find_some(j, "workspace");
	unsigned mode = PLAN_OVERLAY;
	int r;

	if (json_kind(w) != JSON_KIND_OBJECT)
		return wrong(d, "workspace", "an object with a path", w);
	r = path_read(json_find_some(w, "path"), "workspace.path",
		      &p->workspace, d);
	if (!r)
		r = word_read(json_find_some(w, "mode"), "workspace.mode",
			      modes, ARRAY_LEN(modes), &mode, d);
	p->mode = (enum plan_workspace)mode;
	return r;
}

static struct plan_bind *bind_next(struct plan *p, struct diag *d)
{
	if (p->bind_count < PLAN_BINDS_MAX)
		return &p->binds[p->bind_count++];
	(void)diag_set(d, 0, 0,
		       "extra_writable and binds are more than %d together",
		       PLAN_BINDS_MAX);
	return NULL;
}

static int extra_read(const struct json *j, struct plan *p, struct diag *d)
{
	const struct json *list = json_find_some(j, "extra_writable");
	struct plan_bind *b;
	int r = 0;

	if (list && json_kind(list) != JSON_KIND_ARRAY)
		return wrong(d, "extra_writable", "a list of paths", list);
	json_for_each(v, list)
	{
		b = r ? NULL : bind_next(p, d);
		if (!b)
			return r ? r : -EINVAL;
		b->is_extra = true;
		r = path_read(v, "extra_writable", &b->source, d);
		if (!r)
			b->dest = must_strdup(b->source);
	}
	return r;
}

static int bind_read(const struct json *v, struct plan *p, struct diag *d)
{
	struct plan_bind *b = bind_next(p, d);
	int r;

	if (!b)
		return -EINVAL;
	if (json_kind(v) != JSON_KIND_OBJECT)
		return wrong(d, "a bind", "an object with a source", v);
	b->read_only = json_bool(json_find_some(v, "readonly"));
	r = path_read(json_find_some(v, "source"), "binds.source", &b->source,
		      d);
	if (!r && json_text(json_find_some(v, "dest")).len)
		return path_read(json_find_some(v, "dest"), "binds.dest",
				 &b->dest, d);
	if (!r)
		b->dest = must_strdup(b->source);
	return r;
}

static int binds_read(const struct json *j, struct plan *p, struct diag *d)
{
	const struct json *list = json_find_some(j, "binds");
	int r = 0;

	if (list && json_kind(list) != JSON_KIND_ARRAY)
		return wrong(d, "binds", "a list of objects", list);
	json_for_each(v, list) if (!r) r = bind_read(v, p, d);
	return r;
}

/* -- folders, as they are ------------------------------------------------- */

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return !strncmp(path, folder, len) &&
	       (!path[len] || path[len] == '/' || len == 1);
}

/* Replaces *path by what it really is. */
static int path_resolve(char **path, const char *where,
			const char *const *allowed, struct diag *d)
{
	char *real = realpath(*path, NULL), folder[PATH_MAX];

	if (!real)
		return diag_set(d, 0, 0, "%s must be an existing path: %s: %s",
				where, *path, err_text(errno));
	for (; *allowed; allowed++)
		if (realpath(*allowed, folder) && is_below(real, folder)) {
			free(*path);
			*path = real;
			return 0;
		}
	free(real);
	return diag_set(d, 0, 0,
			"%s is not in allowlist: %s is in none of the folders "
			"that sessions may be given",
			where, *path);
}

/* Where an extra folder is seen is where it really is; a bind's place is as it
 * was said. */
static int bind_resolve(struct plan_bind *b, const char *const *allowed,
			struct diag *d)
{
	int r = path_resolve(&b->source,
			     b->is_extra ? "extra_writable" : "binds.source",
			     allowed, d);

	if (!r && b->is_extra) {
		free(b->dest);
		b->dest = must_strdup(b->source);
	}
	return r;
}

static void folders_make(const char *path)
{
	char at[PATH_MAX], *slash;

	if (!span_copy(span_str(path), at, sizeof(at)))
		return;
	for (slash = strchr(at + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		(void)mkdir(at, 0755);
		*slash = '/';
	}
	(void)mkdir(at, 0755);
}

static int workspace_resolve(struct plan *p, struct diag *d)
{
	struct stat is;
	char *real;

	folders_make(p->workspace);
	real = realpath(p->workspace, NULL);
	if (!real || stat(real, &is) || !S_ISDIR(is.st_mode)) {
		free(real);
		return diag_set(d, 0, 0,
				"workspace.path %s is no folder and cannot be "
				"made one",
				p->workspace);
	}
	free(p->workspace);
	p->workspace = real;
	return 0;
}

/* -- the rest ------------------------------------------------------------- */

static int keys_read(const struct json *list, struct plan *p, struct diag *d)
{
	struct span text;

	if (list && json_kind(list) != JSON_KIND_ARRAY)
		return wrong(d, "env_passthrough.keys", "a list of names",
			     list);
	json_for_each(v, list)
	{
		text = json_text(v);
		if (!text.len || span_has(text, '\0') ||
		    p->key_count == PLAN_KEYS_MAX)
			return diag_set(d, 0, 0,
					"env_passthrough.keys is no list of at "
					"most %d names",
					PLAN_KEYS_MAX);
		p->keys[p->key_count] = must_alloc(text.len + 1);
		memcpy(p->keys[p->key_count++], text.ptr, text.len);
	}
	return 0;
}

static int env_read(const struct json *j, struct plan *p, struct diag *d)
{
	const struct json *e = json_find_some(j, "env_passthrough");
	unsigned mode = PLAN_ENV_DENY;
	int r;

	if (!e)
		return 0;
	if (json_kind(e) != JSON_KIND_OBJECT)
		return wrong(d, "env_passthrough", "an object", e);
	r = word_read(json_find_some(e, "mode"), "env_passthrough.mode",
		      env_modes, ARRAY_LEN(env_modes), &mode, d);
	p->env = (enum plan_env)mode;
	return r ? r : keys_read(json_find_some(e, "keys"), p, d);
}

static int user_read(const struct json *j, struct plan *p, struct diag *d)
{
	uint64_t uid = 0, gid = 0, idle = 0;
	unsigned user = PLAN_SETPRIV;
	bool has_idle = false;
	int r;

	r = word_read(json_find_some(j, "uid_mode"), "uid_mode", users,
		      ARRAY_LEN(users), &user, d);
	if (!r)
		r = number_read(json_find_some(j, "uid"), "uid", UINT32_MAX - 1,
				&p->has_uid, &uid, d);
	if (!r)
		r = number_read(json_find_some(j, "gid"), "gid", UINT32_MAX - 1,
				&p->has_gid, &gid, d);
	if (!r)
		r = number_read(json_find_some(j, "idle_timeout_seconds"),
				"idle_timeout_seconds", INT32_MAX, &has_idle,
				&idle, d);
	p->user = (enum plan_user)user;
	p->uid = (uid_t)uid;
	p->gid = p->has_gid ? (gid_t)gid : (gid_t)uid;
	p->idle_s = (unsigned)idle;
	return r;
}

int plan_parse(const struct json *j, struct plan *ret, struct diag *d)
{
	const struct json *net = json_find_some(j, "share_net");
	unsigned profile = PLAN_STRICT;
	int r;

	*ret = (struct plan){ .share_net = true };
	if (net && json_kind(net) != JSON_KIND_BOOL)
		return wrong(d, "share_net", "true or false", net);
	if (net)
		ret->share_net = json_bool(net);
	r = word_read(json_find_some(j, "profile"), "profile", profiles,
		      ARRAY_LEN(profiles), &profile, d);
	ret->profile = (enum plan_profile)profile;
	if (!r)
		r = user_read(j, ret, d);
	if (!r)
		r = env_read(j, ret, d);
	if (!r)
		r = extra_read(j, ret, d);
	if (!r)
		r = binds_read(j, ret, d);
	return r ? r : workspace_read(j, ret, d);
}

int plan_read(const struct json *j, const char *const *allowed,
	      struct plan *ret, struct diag *d)
{
	unsigned i;
	int r = plan_parse(j, ret, d);

	for (i = 0; !r && i < ret->bind_count; i++)
		r = bind_resolve(&ret->binds[i], allowed, d);
	return r ? r : workspace_resolve(ret, d);
}

void plan_fini(struct plan *p)
{
	unsigned i;

	free(p->workspace);
	for (i = 0; i < p->bind_count; i++) {
		free(p->binds[i].source);
		free(p->binds[i].dest);
	}
	for (i = 0; i < p->key_count; i++)
		free(p->keys[i]);
	*p = (struct plan){ 0 };
}

/* -- saying it again ------------------------------------------------------ */

static void put_binds(const struct plan *p, struct json_out *o, bool extra)
{
	const struct plan_bind *b;
	unsigned i;

	for (i = 0; i < p->bind_count; i++) {
		b = &p->binds[i];
		if (b->is_extra != extra)
			continue;
		if (extra) {
			json_put_str(o, NULL, b->source);
			continue;
		}
		json_open_object(o, NULL);
		json_put_str(o, "source", b->source);
		json_put_str(o, "dest", b->dest);
		json_put_bool(o, "readonly", b->read_only);
		json_close(o);
	}
}

void plan_put(const struct plan *p, struct json_out *o)
{
	unsigned i;

	json_put_str(o, "profile", profiles[p->profile]);
	json_open_object(o, "workspace");
	json_put_str(o, "path", p->workspace);
	json_put_str(o, "mode", modes[p->mode]);
	json_close(o);
	json_open_array(o, "extra_writable");
	put_binds(p, o, true);
	json_close(o);
	json_open_array(o, "binds");
	put_binds(p, o, false);
	json_close(o);
	json_put_bool(o, "share_net", p->share_net);
	json_open_object(o, "env_passthrough");
	json_put_str(o, "mode", env_modes[p->env]);
	json_open_array(o, "keys");
	for (i = 0; i < p->key_count; i++)
		json_put_str(o, NULL, p->keys[i]);
	json_close(o);
	json_close(o);
	if (p->has_uid)
		json_put_u64(o, "uid", p->uid);
	if (p->has_gid)
		json_put_u64(o, "gid", p->gid);
	json_put_str(o, "uid_mode", users[p->user]);
	json_put_u64(o, "idle_timeout_seconds", p->idle_s);
}

/* -- the environment ------------------------------------------------------ */

bool plan_name_fits(struct span name, struct span glob)
{
	if (span_starts(glob, SPAN("*"))) {
		glob = span_from(glob, 1);
		return name.len >= glob.len &&
		       span_eq_nocase(span_from(name, name.len - glob.len),
				      glob);
	}
	if (span_ends(glob, SPAN("*"))) {
		glob.len--;
		return name.len >= glob.len &&
		       span_eq_nocase(span_of(name.ptr, glob.len), glob);
	}
	return span_eq_nocase(name, glob);
}

static bool is_named(const struct plan *p, struct span name)
{
	unsigned i;

	if (p->env == PLAN_ENV_DENY && !p->key_count) {
		for (i = 0; i < ARRAY_LEN(secrets); i++)
			if (plan_name_fits(name, span_str(secrets[i])))
				return true;
		return false;
	}
	for (i = 0; i < p->key_count; i++)
		if (span_eq(name, span_str(p->keys[i])))
			return true;
	return false;
}

void plan_env(const struct plan *p, struct env *env)
{
	const char *const *at = env_list(env);
	struct span name;
	char *copy;

	/* taking one out puts the last one in its place */
	while (*at) {
		name = span_of(*at, strcspn(*at, "="));
		if (is_named(p, name) == (p->env == PLAN_ENV_ALLOW)) {
			at++;
			continue;
		}
		copy = must_alloc(name.len + 1);
		memcpy(copy, name.ptr, name.len);
		env_unset(env, span_str(copy));
		free(copy);
	}
}
