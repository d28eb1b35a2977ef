/* SPDX-License-Identifier: Apache-2.0 */
/* volume.c - volumes: folders of the node, named volumes of Docker */

#include "src/control/lifecycle/volume.h"

#include <stdio.h>

#include "src/base/chars.h"
#include "src/control/lifecycle/kit.h"
#include "src/text/json.h"

enum { NAME_MAX_LEN = 63, PATH_LEN_MAX = 4096, CLAIM_MAX = 253 };

struct volume_reading {
	const struct json *j;
	unsigned at;
	struct create_request *q;
	struct create_volume *v;
	const struct create_limits *limits;
	struct lifecycle_error *no;
};

#define REFUSE(rd, code, fmt, ...)                                             \
	lifecycle_error_set((rd)->no, 400, "VOLUME::" code, "volumes[%u]" fmt, \
			    (rd)->at, ##__VA_ARGS__)

static struct span text_of(struct volume_reading *rd, const struct json *j,
			   const char *name)
{
	return arena_dup(&rd->q->arena, json_text(json_find(j, name)));
}

static bool flag_of(const struct json *j, const char *name, bool otherwise)
{
	const struct json *m = json_find(j, name);

	return json_kind(m) == JSON_KIND_BOOL ? json_bool(m) : otherwise;
}

static bool is_lower_alnum(char c)
{
	return char_is_lower(c) || char_is_digit(c);
}

static bool is_dns_label(struct span s)
{
	size_t i;

	if (!s.len || s.len > NAME_MAX_LEN || !is_lower_alnum(s.ptr[0]) ||
	    !is_lower_alnum(s.ptr[s.len - 1]))
		return false;
	for (i = 0; i < s.len; i++)
		if (!is_lower_alnum(s.ptr[i]) && s.ptr[i] != '-')
			return false;
	return true;
}

/* As Docker wants the names of volumes. */
static bool is_claim(struct span s)
{
	size_t i;
	char c;

	if (s.len < 2 || s.len > CLAIM_MAX)
		return false;
	for (i = 0; i < s.len; i++) {
		c = span_lower_char(s.ptr[i]);
		if (!is_lower_alnum(c) &&
		    (!i || (c != '-' && c != '_' && c != '.')))
			return false;
	}
	return true;
}

/* No "." and "..", no empty segment but at the end, no NUL. */
static bool is_clean(struct span path)
{
	struct span rest = path, segment;

	if (span_find(path, '\0') < path.len || path.len >= PATH_LEN_MAX)
		return false;
	while (rest.len) {
		segment = span_cut(&rest, '/');
		if ((!segment.len && rest.len) || span_eq(segment, SPAN(".")) ||
		    span_eq(segment, SPAN("..")))
			return false;
	}
	return true;
}

static bool is_absolute(struct span path)
{
	return path.len && path.ptr[0] == '/' && is_clean(span_from(path, 1));
}

bool volume_path_is_allowed(struct span path, const char *const *allowed)
{
	struct span base;

	for (; allowed && *allowed; allowed++) {
		base = span_str(*allowed);
		while (base.len > 1 && base.ptr[base.len - 1] == '/')
			base.len--;
		if (span_eq(base, SPAN("/")))
			return true;
		if (span_starts(path, base) &&
		    (path.len == base.len || path.ptr[base.len] == '/'))
			return true;
	}
	return false;
}

static int read_host(struct volume_reading *rd, const struct json *host)
{
	rd->v->kind = VOLUME_HOST;
	rd->v->create = true;
	rd->v->source = text_of(rd, host, "path");
	if (!is_absolute(rd->v->source))
		return REFUSE(rd, "INVALID_HOST_PATH",
			      ".host.path: expected an absolute path without "
			      "\".\" and \"..\", found \"%.*s\"",
			      SPAN_FMT(rd->v->source));
	if (!volume_path_is_allowed(rd->v->source, rd->limits->host_paths))
		return REFUSE(rd, "HOST_PATH_NOT_ALLOWED",
			      ".host.path: \"%.*s\" is not below any path that "
			      "this server allows",
			      SPAN_FMT(rd->v->source));
	return 0;
}

static int read_claim(struct volume_reading *rd, const struct json *claim)
{
	rd->v->kind = VOLUME_NAMED;
	rd->v->source = text_of(rd, claim, "claimName");
	rd->v->create = flag_of(claim, "createIfNotExists", true);
	rd->v->delete_at_end =
		flag_of(claim, "deleteOnSandboxTermination", false);
	if (!is_claim(rd->v->source))
		return REFUSE(rd, "INVALID_PVC_NAME",
			      ".pvc.claimName: \"%.*s\" cannot be the name of "
			      "a volume",
			      SPAN_FMT(rd->v->source));
	/* who may write there would be in every sandbox */
	if (span_eq(rd->v->source, SPAN(KIT_VOLUME)))
		return REFUSE(rd, "INVALID_PVC_NAME",
			      ".pvc.claimName: " KIT_VOLUME
			      " is the server's own");
	return 0;
}

static int read_backend(struct volume_reading *rd)
{
	const struct json *host = json_find(rd->j, "host");
	const struct json *claim = json_find(rd->j, "pvc");
	const struct json *ossfs = json_find(rd->j, "ossfs");
	unsigned count = (json_kind(host) == JSON_KIND_OBJECT) +
			 (json_kind(claim) == JSON_KIND_OBJECT) +
			 (json_kind(ossfs) == JSON_KIND_OBJECT);

	if (count != 1)
		return REFUSE(rd, "INVALID_BACKEND",
			      ": expected one of \"host\" and \"pvc\", found "
			      "%u",
			      count);
	if (json_kind(ossfs) == JSON_KIND_OBJECT)
		return REFUSE(rd, "UNSUPPORTED_BACKEND",
			      ": this server does not mount \"ossfs\"");
	return json_kind(host) == JSON_KIND_OBJECT ? read_host(rd, host)
						   : read_claim(rd, claim);
}

static int read_places(struct volume_reading *rd)
{
	struct create_volume *v = rd->v;
	unsigned i;

	if (!is_absolute(v->mount_path) || v->mount_path.len < 2)
		return REFUSE(rd, "INVALID_MOUNT_PATH",
			      ".mountPath: expected an absolute path, found "
			      "\"%.*s\"",
			      SPAN_FMT(v->mount_path));
	if (v->sub_path.len &&
	    (v->sub_path.ptr[0] == '/' || !is_clean(v->sub_path)))
		return REFUSE(rd, "INVALID_SUB_PATH",
			      ".subPath: expected a relative path without "
			      "\"..\", found \"%.*s\"",
			      SPAN_FMT(v->sub_path));
	for (i = 0; i < rd->at; i++) {
		if (span_eq(rd->q->volumes[i].name, v->name))
			return REFUSE(rd, "DUPLICATE_NAME",
				      ".name: \"%.*s\" is there twice",
				      SPAN_FMT(v->name));
		if (span_eq(rd->q->volumes[i].mount_path, v->mount_path))
			return REFUSE(rd, "INVALID_MOUNT_PATH",
				      ".mountPath: \"%.*s\" is there twice",
				      SPAN_FMT(v->mount_path));
	}
	return 0;
}

static void trim_end(struct span *path)
{
	while (path->len > 1 && path->ptr[path->len - 1] == '/')
		path->len--;
}

int volume_parse(const struct json *j, unsigned at, struct create_request *q,
		 const struct create_limits *limits, struct lifecycle_error *no)
{
	struct volume_reading rd = { j, at, q, &q->volumes[at], limits, no };
	int r;

	if (json_kind(j) != JSON_KIND_OBJECT)
		return REFUSE(&rd, "INVALID_BACKEND",
			      ": expected an object, found %s",
			      json_kind_name(json_kind(j)));
	rd.v->name = text_of(&rd, j, "name");
	rd.v->mount_path = text_of(&rd, j, "mountPath");
	rd.v->sub_path = text_of(&rd, j, "subPath");
	trim_end(&rd.v->mount_path);
	trim_end(&rd.v->sub_path);
	rd.v->read_only = flag_of(j, "readOnly", false);
	if (!is_dns_label(rd.v->name))
		return REFUSE(&rd, "INVALID_NAME",
			      ".name: expected 1 to 63 of a-z, 0-9 and '-', "
			      "found \"%.*s\"",
			      SPAN_FMT(rd.v->name));
	r = read_places(&rd);
	return r ? r : read_backend(&rd);
}
