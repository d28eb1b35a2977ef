/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - what a client asks to run, checked */

#include "src/execd/command/body.h"

#include <errno.h>

#include "src/base/diag.h"
#include "src/execd/process/env.h"
#include "src/text/json.h"

/* 365 days: what is longer is a mistake of units. */
static const uint64_t timeout_max_ms = 365ull * 24 * 3600 * 1000;

static int say_kind(struct diag *d, const char *name, const struct json *found,
		    const char *expected)
{
	return diag_set(d, 0, 0, "%s is %s, expected %s", name,
			json_kind_name(json_kind(found)), expected);
}

static int read_text(const struct json *j, const char *name, struct span *ret,
		     struct diag *d)
{
	const struct json *found = json_find_some(j, name);

	*ret = SPAN_NONE;
	if (!found)
		return 0;
	if (json_kind(found) != JSON_KIND_STRING)
		return say_kind(d, name, found, "a string");
	*ret = json_text(found);
	if (span_has(*ret, '\0'))
		return diag_set(d, 0, 0,
				"%s holds a NUL character, which no program "
				"can be given",
				name);
	return 0;
}

static int read_bool(const struct json *j, const char *name, bool *ret,
		     struct diag *d)
{
	const struct json *found = json_find_some(j, name);

	*ret = json_bool(found);
	if (found && json_kind(found) != JSON_KIND_BOOL)
		return say_kind(d, name, found, "true or false");
	return 0;
}

/* 0 read; 1 absent; -EINVAL. */
static int read_number(const struct json *j, const char *name, uint64_t max,
		       uint64_t *ret, struct diag *d)
{
	const struct json *found = json_find_some(j, name);

	*ret = 0;
	if (!found)
		return 1;
	if (json_kind(found) != JSON_KIND_NUMBER)
		return say_kind(d, name, found, "a number");
	if (!json_u64(found, ret) || *ret > max)
		return diag_set(d, 0, 0,
				"%s is out of range, expected a whole number "
				"from 0 to %llu",
				name, (unsigned long long)max);
	return 0;
}

static int read_ids(const struct json *j, struct command_body *ret,
		    struct diag *d)
{
	/* the last one means "as it is" to the kernel */
	const uint64_t max = UINT32_MAX - 1;
	uint64_t value;
	int r;

	r = read_number(j, "uid", max, &value, d);
	if (r < 0)
		return r;
	ret->has_uid = !r;
	ret->uid = (uid_t)value;
	r = read_number(j, "gid", max, &value, d);
	if (r < 0)
		return r;
	ret->has_gid = !r;
	ret->gid = (gid_t)value;
	if (ret->has_gid && !ret->has_uid)
		return diag_set(d, 0, 0,
				"found gid without uid, expected both");
	return 0;
}

static int read_envs(const struct json *j, struct command_body *ret,
		     struct diag *d)
{
	ret->envs = json_find_some(j, "envs");
	if (ret->envs && json_kind(ret->envs) != JSON_KIND_OBJECT)
		return say_kind(d, "envs", ret->envs, "an object");
	return 0;
}

int command_body_cwd(const struct json *j, struct span *ret, struct diag *d)
{
	int r = read_text(j, "cwd", ret, d);

	if (!r && !ret->len)
		*ret = SPAN_NONE; /* "" is how some clients say nothing */
	return r;
}

static int read_argv(const struct json *argv, struct diag *d)
{
	size_t i;

	if (json_kind(argv) != JSON_KIND_ARRAY)
		return say_kind(d, "argv", argv, "an array of strings");
	for (i = 0; i < json_count(argv); i++) {
		if (json_kind(json_item(argv, i)) != JSON_KIND_STRING)
			return say_kind(d, "an item of argv",
					json_item(argv, i), "a string");
		if (span_has(json_text(json_item(argv, i)), '\0'))
			return diag_set(d, 0, 0,
					"argv holds a NUL character, which no "
					"program can be given");
	}
	if (!json_text(json_item(argv, 0)).len)
		return diag_set(d, 0, 0,
				"argv names no program, expected it first");
	return 0;
}

/* A text for the shell, or the words of a program that needs none. */
static int read_command(const struct json *j, struct command_body *ret,
			struct diag *d)
{
	int r;

	ret->argv = json_find_some(j, "argv");
	r = read_text(j, "command", &ret->command, d);
	if (r)
		return r;
	if (!ret->argv && !ret->command.len)
		return diag_set(d, 0, 0,
				"command is %s, expected a text to run",
				ret->command.ptr ? "empty" : "absent");
	if (ret->argv && ret->command.len)
		return diag_set(d, 0, 0,
				"found command and argv, expected one of them");
	return ret->argv ? read_argv(ret->argv, d) : 0;
}

int command_body_read(const struct json *j, struct command_body *ret,
		      struct diag *d)
{
	int r;

	*ret = (struct command_body){ 0 };
	r = read_command(j, ret, d);
	if (!r)
		r = command_body_cwd(j, &ret->cwd, d);
	if (!r)
		r = read_bool(j, "background", &ret->background, d);
	if (!r)
		r = read_number(j, "timeout", timeout_max_ms, &ret->timeout_ms,
				d);
	if (r < 0)
		return r;
	r = read_ids(j, ret, d);
	if (!r)
		r = read_envs(j, ret, d);
	return r;
}

int command_body_envs(const struct command_body *b, struct env *env,
		      struct diag *d)
{
	const struct json *value;
	void *cursor = NULL;
	struct span name;

	while ((value = json_next(b->envs, &cursor, &name))) {
		if (json_kind(value) == JSON_KIND_NULL) {
			env_unset(env, name);
			continue;
		}
		if (json_kind(value) != JSON_KIND_STRING)
			return say_kind(d, "a value of envs", value,
					"a string");
		if (env_set(env, name, json_text(value)))
			return diag_set(d, 0, 0,
					"envs holds a name that is empty or "
					"has '=' in it, or a NUL character");
	}
	return 0;
}
