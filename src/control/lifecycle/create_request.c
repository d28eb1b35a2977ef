/* SPDX-License-Identifier: Apache-2.0 */
/* create_request.c - the body of POST /sandboxes, checked member by member
 *
 * How it works: one function per member, in the order of a table; each takes
 * what it needs from the body and stops at the first thing that is wrong. A
 * member that is null is a member that is not there.
 */

#include "src/control/lifecycle/create_request.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/control/egress/net_policy.h"
#include "src/control/lifecycle/metadata.h"
#include "src/control/lifecycle/quantity.h"
#include "src/control/lifecycle/volume.h"
#include "src/text/json.h"

enum {
	ARENA_MAX = 4 * 1024 * 1024,
	LIST_MAX = 4096,
	TIMEOUT_MIN_S = 60,
	RENEW_MIN_S = 300,
	RENEW_MAX_S = 86400,
};

#define INVALID "SANDBOX::INVALID_PARAMETER"

struct reading {
	struct create_request *q;
	const struct json *body;
	const struct create_limits *limits;
	struct lifecycle_error *no;
};

int lifecycle_error_set(struct lifecycle_error *no, unsigned status,
			const char *code, const char *fmt, ...)
{
	va_list args;

	no->status = status;
	no->code = code;
	va_start(args, fmt);
	(void)vsnprintf(no->message, sizeof(no->message), fmt, args);
	va_end(args);
	return -EINVAL;
}

/* 400: the body is not of the form that the contract gives. */
static int want(struct reading *rd, const struct json *m, enum json_kind kind,
		const char *path)
{
	if (json_kind(m) == kind)
		return 0;
	return lifecycle_error_set(
		rd->no, 400, INVALID, "%s: expected %s, found %s", path,
		json_kind_name(kind), json_kind_name(json_kind(m)));
}

static struct span keep(struct reading *rd, struct span text)
{
	return arena_dup(&rd->q->box->arena, text);
}

/* An optional text of the body; SPAN_NONE when absent. */
static int read_text(struct reading *rd, const struct json *j, const char *name,
		     const char *path, struct span *ret)
{
	const struct json *m = json_find_some(j, name);
	int r;

	*ret = SPAN_NONE;
	if (!m)
		return 0;
	r = want(rd, m, JSON_KIND_STRING, path);
	if (!r)
		*ret = json_text(m);
	return r;
}

/* -- what runs ------------------------------------------------------------ */

static int read_registry_auth(struct reading *rd, const struct json *image)
{
	const struct json *auth = json_find_some(image, "auth");
	struct span user, password;
	int r;

	if (!auth)
		return 0;
	r = want(rd, auth, JSON_KIND_OBJECT, "image.auth");
	if (!r)
		r = read_text(rd, auth, "username", "image.auth.username",
			      &user);
	if (!r)
		r = read_text(rd, auth, "password", "image.auth.password",
			      &password);
	if (r)
		return r;
	rd->q->registry_user = arena_dup(&rd->q->arena, user);
	rd->q->registry_password = arena_dup(&rd->q->arena, password);
	return 0;
}

static int read_image(struct reading *rd)
{
	const struct json *image = json_find_some(rd->body, "image");
	struct span uri, snapshot;
	int r;

	r = read_text(rd, rd->body, "snapshotId", "snapshotId", &snapshot);
	if (r)
		return r;
	if (!image && !snapshot.len)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "one of \"image\" and "
					   "\"snapshotId\" is needed");
	if (image && snapshot.len)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "\"image\" and \"snapshotId\" are "
					   "both given, one is expected");
	rd->q->box->snapshot_id = keep(rd, snapshot);
	if (!image)
		return 0;
	r = want(rd, image, JSON_KIND_OBJECT, "image");
	if (!r)
		r = read_text(rd, image, "uri", "image.uri", &uri);
	if (r)
		return r;
	if (!uri.len)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "image.uri is empty");
	rd->q->box->image = keep(rd, uri);
	return read_registry_auth(rd, image);
}

static int read_entrypoint(struct reading *rd)
{
	static const struct span idle[] = { SPAN_INIT("tail"), SPAN_INIT("-f"),
					    SPAN_INIT("/dev/null") };
	const struct json *list = json_find_some(rd->body, "entrypoint");
	struct box *b = rd->q->box;
	size_t count = json_count(list), i;
	int r = 0;

	if (list)
		r = want(rd, list, JSON_KIND_ARRAY, "entrypoint");
	if (r)
		return r;
	if (!count && !b->snapshot_id.len)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "entrypoint: at least one word is "
					   "needed with an image");
	if (count > LIST_MAX)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "entrypoint: %zu words, at most %d",
					   count, LIST_MAX);
	b->entrypoint_count = (unsigned)(count ? count : ARRAY_LEN(idle));
	b->entrypoint = arena_alloc(&b->arena, b->entrypoint_count *
						       sizeof(*b->entrypoint));
	if (!b->entrypoint)
		return 0; /* told at the end */
	for (i = 0; !count && i < ARRAY_LEN(idle); i++)
		b->entrypoint[i] = idle[i];
	for (i = 0; !r && i < count; i++) {
		r = want(rd, json_item(list, i), JSON_KIND_STRING,
			 "an item of entrypoint");
		b->entrypoint[i] = keep(rd, json_text(json_item(list, i)));
	}
	return r;
}

static int read_env(struct reading *rd)
{
	const struct json *env = json_find_some(rd->body, "env"), *value;
	struct create_request *q = rd->q;
	struct box_pair *pair;
	void *cursor = NULL;
	struct span name;
	int r = 0;

	if (!env)
		return 0;
	r = want(rd, env, JSON_KIND_OBJECT, "env");
	if (r)
		return r;
	q->env =
		arena_alloc(&q->arena, (json_count(env) + 1) * sizeof(*q->env));
	while (q->env && !r && (value = json_next(env, &cursor, &name))) {
		if (json_kind(value) == JSON_KIND_NULL)
			continue;
		r = want(rd, value, JSON_KIND_STRING, "a value of env");
		if (!r &&
		    (!name.len || span_has(name, '=') || span_has(name, '\0') ||
		     span_has(json_text(value), '\0')))
			r = lifecycle_error_set(rd->no, 400, INVALID,
						"env: \"%.*s\" cannot be a "
						"variable",
						SPAN_FMT(name));
		pair = &q->env[q->env_count++];
		pair->name = arena_dup(&q->arena, name);
		pair->value = arena_dup(&q->arena, json_text(value));
	}
	return r;
}

static int read_platform(struct reading *rd)
{
	const struct json *p = json_find_some(rd->body, "platform");
	struct span os, arch;
	int r;

	if (!p)
		return 0;
	r = want(rd, p, JSON_KIND_OBJECT, "platform");
	if (!r)
		r = read_text(rd, p, "os", "platform.os", &os);
	if (!r)
		r = read_text(rd, p, "arch", "platform.arch", &arch);
	if (r)
		return r;
	if (os.len && !span_eq(os, SPAN("linux")))
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "platform.os: this node runs "
					   "\"linux\", found \"%.*s\"",
					   SPAN_FMT(os));
	if (arch.len && !span_eq(arch, SPAN("amd64")) &&
	    !span_eq(arch, SPAN("arm64")))
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "platform.arch: expected \"amd64\" "
					   "or \"arm64\", found \"%.*s\"",
					   SPAN_FMT(arch));
	rd->q->box->platform_os = keep(rd, os);
	rd->q->box->platform_arch = keep(rd, arch);
	return 0;
}

/* -- how long and how much ------------------------------------------------ */

/* Kept as a duration until the sandbox is made. */
static int read_timeout(struct reading *rd)
{
	const struct json *t = json_find_some(rd->body, "timeout");
	uint64_t max = rd->limits->timeout_max_s, seconds;

	if (!t)
		return 0;
	if (!json_u64(t, &seconds) || seconds < TIMEOUT_MIN_S)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "timeout: expected whole seconds, "
					   "at least %d",
					   TIMEOUT_MIN_S);
	if (max && seconds > max)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "timeout: %llu s, at most %llu s on "
					   "this server",
					   (unsigned long long)seconds,
					   (unsigned long long)max);
	rd->q->timeout_s = seconds;
	return 0;
}

static int read_resources(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "resourceLimits"),
			  *value;
	struct create_resources *to = &rd->q->resources;
	void *cursor = NULL;
	struct span name;
	int r;

	r = want(rd, m, JSON_KIND_OBJECT, "resourceLimits");
	while (!r && (value = json_next(m, &cursor, &name))) {
		if (json_kind(value) == JSON_KIND_NULL)
			continue;
		r = want(rd, value, JSON_KIND_STRING,
			 "a value of resourceLimits");
		/* What cannot be read is no limit, as the contract has it. */
		if (span_eq(name, SPAN("cpu")))
			(void)quantity_cpu(json_text(value), &to->cpu_nano);
		else if (span_eq(name, SPAN("memory")))
			(void)quantity_bytes(json_text(value),
					     &to->memory_bytes);
		else if (span_eq(name, SPAN("disk")))
			(void)quantity_bytes(json_text(value), &to->disk_bytes);
		else if (span_eq(name, SPAN("gpu")))
			to->gpu = arena_dup(&rd->q->arena, json_text(value));
	}
	return r;
}

/* -- names ---------------------------------------------------------------- */

static int read_metadata(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "metadata"), *value;
	void *cursor = NULL;
	struct span name;
	int r = 0;

	if (!m)
		return 0;
	r = want(rd, m, JSON_KIND_OBJECT, "metadata");
	while (!r && (value = json_next(m, &cursor, &name))) {
		if (json_kind(value) == JSON_KIND_NULL)
			continue;
		r = want(rd, value, JSON_KIND_STRING, "a value of metadata");
		if (!r)
			r = metadata_check(name, json_text(value), rd->no);
		if (!r)
			box_set_metadata(rd->q->box, name, json_text(value));
	}
	return r ? r
		 : metadata_check_count(map_count(&rd->q->box->metadata),
					rd->no);
}

static int read_extensions(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "extensions"), *renew;
	uint64_t seconds;
	int r;

	if (!m)
		return 0;
	r = want(rd, m, JSON_KIND_OBJECT, "extensions");
	if (r)
		return r;
	if (json_find_some(m, "poolRef"))
		return lifecycle_error_set(
			rd->no, 400, "SANDBOX::UNSUPPORTED_POOL_REF",
			"extensions.poolRef: this server has no pools");
	renew = json_find_some(m, "access.renew.extend.seconds");
	if (!renew)
		return 0;
	if (!span_parse_u64(json_text(renew), &seconds) ||
	    seconds < RENEW_MIN_S || seconds > RENEW_MAX_S)
		return lifecycle_error_set(
			rd->no, 400, INVALID,
			"extensions[\"access.renew.extend.seconds\"]: expected "
			"a decimal number from %d to %d as a string",
			RENEW_MIN_S, RENEW_MAX_S);
	rd->q->box->renew_extend_s = (unsigned)seconds;
	return 0;
}

/* -- network -------------------------------------------------------------- */

static int read_policy(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "networkPolicy");
	struct diag d = { 0 };
	unsigned total;
	int r;

	if (!m)
		return 0;
	r = net_policy_parse(m, &rd->q->policy, &total, &d);
	if (r == NET_POLICY_E_MANY)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "networkPolicy.egress: %u rules, at "
					   "most %d",
					   total, NET_RULES_MAX);
	if (!r)
		r = net_policy_check(rd->q->policy, &d);
	if (r)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "networkPolicy: %s", d.msg);
	rd->q->box->has_policy = true;
	return 0;
}

static int read_credential_proxy(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "credentialProxy");
	struct box *b = rd->q->box;
	int r;

	if (!m)
		return 0;
	r = want(rd, m, JSON_KIND_OBJECT, "credentialProxy");
	if (r)
		return r;
	b->credential_proxy = json_bool(json_find(m, "enabled"));
	if (b->credential_proxy && !b->has_policy)
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "credentialProxy.enabled needs a "
					   "networkPolicy");
	return 0;
}

static int read_secure_access(struct reading *rd)
{
	rd->q->box->secure_access =
		json_bool(json_find(rd->body, "secureAccess"));
	return 0;
}

static int read_volumes(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "volumes");
	struct create_request *q = rd->q;
	size_t i;
	int r = 0;

	if (!m)
		return 0;
	r = want(rd, m, JSON_KIND_ARRAY, "volumes");
	if (!r && json_count(m) > LIST_MAX)
		r = lifecycle_error_set(rd->no, 400, INVALID,
					"volumes: %zu of them, at most %d",
					json_count(m), LIST_MAX);
	if (r)
		return r;
	q->volumes = arena_alloc(&q->arena,
				 (json_count(m) + 1) * sizeof(*q->volumes));
	for (i = 0; q->volumes && !r && i < json_count(m); i++) {
		r = volume_parse(json_item(m, i), (unsigned)i, q, rd->limits,
				 rd->no);
		q->volume_count++;
	}
	return r;
}

/* -- the whole ------------------------------------------------------------ */

static int read_unknown(struct reading *rd)
{
	static const char *const known[] = {
		"image",	   "snapshotId",
		"entrypoint",	   "env",
		"platform",	   "timeout",
		"resourceLimits",  "metadata",
		"extensions",	   "networkPolicy",
		"credentialProxy", "secureAccess",
		"volumes",	   NULL,
	};
	struct diag d = { 0 };

	if (rd->limits->closed &&
	    json_refuse_unknown(rd->body, "request", known, &d))
		return lifecycle_error_set(rd->no, 400, INVALID, "%s", d.msg);
	return 0;
}

/* Of newer clients: commands to be run as the sandbox comes and goes. Left out
 * silently they would be missed too late. */
static int read_hooks(struct reading *rd)
{
	const struct json *m = json_find_some(rd->body, "lifecycle");

	if (!m || (json_kind(m) == JSON_KIND_OBJECT && !json_count(m)))
		return 0;
	return lifecycle_error_set(rd->no, 400, INVALID,
				   "lifecycle: this server runs no hooks");
}

/* What a restart needs of the request and nothing else has: as it came. */
static int keep_request(struct reading *rd)
{
	static const char *const kept[] = { "resourceLimits", "volumes" };
	struct buf text CLEANUP(buf_fini) = BUF_INIT(ARENA_MAX);
	struct json_out o;
	size_t i;

	json_start(&o, &text);
	json_open_object(&o, NULL);
	for (i = 0; i < ARRAY_LEN(kept); i++)
		if (json_find_some(rd->body, kept[i]))
			json_put_json(&o, kept[i],
				      json_find_some(rd->body, kept[i]));
	json_close(&o);
	if (json_done(&o))
		return lifecycle_error_set(rd->no, 400, INVALID,
					   "the request is too large");
	rd->q->box->request = keep(rd, buf_peek(&text));
	return 0;
}

static int (*const readers[])(struct reading *rd) = {
	read_unknown,	       read_image,
	read_entrypoint,       read_env,
	read_platform,	       read_timeout,
	read_resources,	       read_metadata,
	read_extensions,       read_policy,
	read_credential_proxy, read_secure_access,
	read_volumes,	       read_hooks,
	keep_request,
};

static int read_all(struct reading *rd)
{
	size_t i;
	int r;

	r = want(rd, rd->body, JSON_KIND_OBJECT, "the body");
	for (i = 0; !r && i < ARRAY_LEN(readers); i++)
		r = readers[i](rd);
	if (!r && (arena_overflowed(&rd->q->arena) ||
		   arena_overflowed(&rd->q->box->arena)))
		r = lifecycle_error_set(rd->no, 400, INVALID,
					"the request is too large");
	return r;
}

int create_request_parse(struct span body, const struct create_limits *limits,
			 struct create_request **ret,
			 struct lifecycle_error *no)
{
	struct json *j CLEANUP_JSON = NULL;
	struct reading rd = { .limits = limits, .no = no };
	struct diag d = { 0 };
	int r;

	if (json_parse(body, &j, &d))
		return lifecycle_error_set(no, 400, INVALID,
					   "the body is no JSON: %s", d.msg);
	rd.body = j;
	rd.q = must_alloc(sizeof(*rd.q));
	arena_init(&rd.q->arena, ARENA_MAX);
	rd.q->box = box_new();
	r = read_all(&rd);
	if (r) {
		create_request_free(rd.q);
		return r;
	}
	*ret = rd.q;
	return 0;
}

struct create_request *create_request_free(struct create_request *q)
{
	if (!q)
		return NULL;
	box_free(q->box);
	net_policy_free(q->policy);
	arena_wipe(&q->arena);
	free(q);
	return NULL;
}
