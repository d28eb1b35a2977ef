/* SPDX-License-Identifier: Apache-2.0 */
/* box.c - the record of one sandbox, read and written
 *
 * The stored form holds every member that a restart must not lose; members that
 * are empty are left out, and read as empty. What control wrote itself is read
 * strictly all the same: a database may be older than the program, or damaged.
 */

#include "src/control/lifecycle/box.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/base/buf.h"
#include "src/base/clock.h"
#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/text/json.h"

enum { ARENA_MAX = 1024 * 1024, ENTRYPOINT_MAX = 4096 };

static const char *const state_names[BOX_STATE_NUM] = {
	[BOX_PENDING] = "Pending",	 [BOX_RUNNING] = "Running",
	[BOX_PAUSED] = "Paused",	 [BOX_STOPPING] = "Stopping",
	[BOX_TERMINATED] = "Terminated", [BOX_FAILED] = "Failed",
	[BOX_UNKNOWN] = "Unknown",
};

/* The reasons of the contract (4.4), so that a stored one is a constant too. */
static const char *const reasons[] = {
	"",
	"CONTAINER_RUNNING",
	"CONTAINER_RESTARTING",
	"CONTAINER_PAUSED",
	"CONTAINER_STARTING",
	"CONTAINER_EXITED",
	"CONTAINER_EXITED_ERROR",
	"PROVISIONING_ERROR",
};

const char *box_state_name(enum box_state state)
{
	return state < BOX_STATE_NUM ? state_names[state] : "Unknown";
}

bool box_state_by_name(struct span name, enum box_state *ret)
{
	unsigned i;

	for (i = 0; i < BOX_STATE_NUM; i++) {
		if (span_eq_nocase(name, span_str(state_names[i]))) {
			*ret = (enum box_state)i;
			return true;
		}
	}
	return false;
}

static const char *reason_constant(struct span text)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(reasons); i++)
		if (span_eq(text, span_str(reasons[i])))
			return reasons[i];
	return "";
}

struct box *box_new(void)
{
	struct box *b = must_alloc(sizeof(*b));

	arena_init(&b->arena, ARENA_MAX);
	map_init(&b->metadata);
	b->reason = "";
	return b;
}

struct box *box_free(struct box *b)
{
	size_t cursor = 0;
	void *value;

	if (!b)
		return NULL;
	while ((value = map_next(&b->metadata, &cursor, NULL)))
		free(value);
	map_fini(&b->metadata);
	arena_wipe(&b->arena);
	explicit_bzero(b, sizeof(*b));
	free(b);
	return NULL;
}

void box_set_state(struct box *b, enum box_state state, const char *reason,
		   const char *message, uint64_t now_ms)
{
	b->state = state;
	b->reason = reason;
	(void)snprintf(b->message, sizeof(b->message), "%s", message);
	b->changed_ms = now_ms;
}

void box_set_metadata(struct box *b, struct span name, struct span value)
{
	char *copy = NULL;

	if (!value.ptr) {
		free(map_take(&b->metadata, name));
		return;
	}
	copy = must_alloc(value.len + 1);
	memcpy(copy, value.ptr, value.len);
	free(map_set(&b->metadata, name, copy));
}

/* -- writing -------------------------------------------------------------- */

static int pair_order(const void *a, const void *b)
{
	const struct box_pair *x = a, *y = b;
	size_t len = MIN(x->name.len, y->name.len);
	int r = memcmp(x->name.ptr, y->name.ptr, len);

	if (r)
		return r;
	return (x->name.len > y->name.len) - (x->name.len < y->name.len);
}

static void put_metadata(struct json_out *o, const struct box *b)
{
	size_t count = map_count(&b->metadata), cursor = 0, i = 0;
	struct box_pair *pairs;
	const char *value;
	struct span name;

	if (!count)
		return;
	pairs = must_alloc(count * sizeof(*pairs));
	while ((value = map_next(&b->metadata, &cursor, &name)))
		pairs[i++] = (struct box_pair){ name, span_str(value) };
	qsort(pairs, count, sizeof(*pairs), pair_order);
	json_open_object(o, "metadata");
	for (i = 0; i < count; i++) {
		json_put_name(o, pairs[i].name);
		json_put_text(o, NULL, pairs[i].value);
	}
	json_close(o);
	free(pairs);
}

static void put_some(struct json_out *o, const char *name, struct span text)
{
	if (text.len)
		json_put_text(o, name, text);
}

static void put_time(struct json_out *o, const char *name, uint64_t ms)
{
	char text[CLOCK_TEXT_SIZE];

	if (!ms)
		return;
	clock_text(ms, text, sizeof(text));
	json_put_str(o, name, text);
}

static void put_entrypoint(struct json_out *o, const struct box *b)
{
	unsigned i;

	if (!b->entrypoint_count)
		return;
	json_open_array(o, "entrypoint");
	for (i = 0; i < b->entrypoint_count; i++)
		json_put_text(o, NULL, b->entrypoint[i]);
	json_close(o);
}

void box_emit(struct json_out *o, const struct box *b, bool with_image)
{
	json_open_object(o, NULL);
	json_put_str(o, "id", b->id);
	json_open_object(o, "status");
	json_put_str(o, "state", box_state_name(b->state));
	put_some(o, "reason", span_str(b->reason));
	put_some(o, "message", span_str(b->message));
	put_time(o, "lastTransitionAt", b->changed_ms);
	json_close(o);
	put_metadata(o, b);
	if (b->image.len && with_image) {
		json_open_object(o, "image");
		json_put_text(o, "uri", b->image);
		json_close(o);
	}
	put_some(o, "snapshotId", b->snapshot_id);
	if (b->platform_os.len || b->platform_arch.len) {
		json_open_object(o, "platform");
		put_some(o, "os", b->platform_os);
		put_some(o, "arch", b->platform_arch);
		json_close(o);
	}
	put_entrypoint(o, b);
	put_time(o, "expiresAt", b->expires_ms);
	put_time(o, "createdAt", b->created_ms);
	json_close(o);
}

static void put_addr(struct json_out *o, const char *name, const struct addr *a)
{
	static const struct addr none;
	char text[ADDR_TEXT_SIZE];

	if (!addr_eq_ip(a, &none))
		json_put_str(o, name, addr_text(a, text, sizeof(text)));
}

void box_emit_stored(struct json_out *o, const struct box *b)
{
	json_open_object(o, NULL);
	json_put_str(o, "id", b->id);
	put_some(o, "container", span_str(b->container));
	json_put_str(o, "state", box_state_name(b->state));
	put_some(o, "reason", span_str(b->reason));
	put_some(o, "message", span_str(b->message));
	json_put_u64(o, "createdMs", b->created_ms);
	json_put_u64(o, "changedMs", b->changed_ms);
	json_put_u64(o, "expiresMs", b->expires_ms);
	put_some(o, "image", b->image);
	put_some(o, "snapshotId", b->snapshot_id);
	put_entrypoint(o, b);
	put_metadata(o, b);
	put_some(o, "platformOs", b->platform_os);
	put_some(o, "platformArch", b->platform_arch);
	if (b->request.len)
		json_put_raw(o, "request", b->request);
	json_put_bool(o, "hasPolicy", b->has_policy);
	json_put_bool(o, "credentialProxy", b->credential_proxy);
	json_put_u64(o, "renewExtendS", b->renew_extend_s);
	put_addr(o, "v4", &b->v4);
	put_addr(o, "v6", &b->v6);
	put_some(o, "port", span_str(b->port));
	json_put_str(o, "execdToken", b->execd_token);
	json_put_str(o, "egressToken", b->egress_token);
	put_some(o, "secureToken", span_str(b->secure_token));
	put_some(o, "proxyToken", span_str(b->proxy_token));
	json_close(o);
}

/* -- reading -------------------------------------------------------------- */

static struct span get_span(struct box *b, const struct json *j,
			    const char *name)
{
	return arena_dup(&b->arena, json_text(json_find(j, name)));
}

/* Texts that the record must have, in an array of the struct. */
struct text_member {
	const char *name;
	size_t offset, size;
	bool needed;
};

#define TEXT(name, field, needed)                                \
	{                                                        \
		name, offsetof(struct box, field),               \
			sizeof(((struct box *)0)->field), needed \
	}

static const struct text_member texts[] = {
	TEXT("id", id, true),
	TEXT("container", container, false),
	TEXT("message", message, false),
	TEXT("port", port, false),
	TEXT("execdToken", execd_token, true),
	TEXT("egressToken", egress_token, true),
	TEXT("secureToken", secure_token, false),
	TEXT("proxyToken", proxy_token, false),
};

static int read_texts(struct box *b, const struct json *j, struct diag *d)
{
	const struct text_member *m;
	struct span text;
	size_t i;

	for (i = 0; i < ARRAY_LEN(texts); i++) {
		m = &texts[i];
		text = json_text(json_find(j, m->name));
		if (!text.len && m->needed)
			return diag_set(d, 0, 0, "the record has no \"%s\"",
					m->name);
		if (!span_copy(text, (char *)b + m->offset, m->size))
			return diag_set(d, 0, 0,
					"\"%s\" of the record is longer than "
					"%zu bytes",
					m->name, m->size - 1);
	}
	return 0;
}

static int read_lists(struct box *b, const struct json *j, struct diag *d)
{
	const struct json *list = json_find(j, "entrypoint"), *value;
	size_t count = json_count(list), i;
	void *cursor = NULL;
	struct span name;

	if (count > ENTRYPOINT_MAX)
		return diag_set(d, 0, 0, "an entrypoint of %zu words", count);
	b->entrypoint =
		arena_alloc(&b->arena, (count + 1) * sizeof(*b->entrypoint));
	for (i = 0; b->entrypoint && i < count; i++)
		b->entrypoint[i] =
			arena_dup(&b->arena, json_text(json_item(list, i)));
	b->entrypoint_count = (unsigned)count;
	list = json_find(j, "metadata");
	while ((value = json_next(list, &cursor, &name)))
		box_set_metadata(b, name, json_text(value));
	return 0;
}

static int read_request(struct box *b, const struct json *j)
{
	struct buf text CLEANUP(buf_fini) = BUF_INIT(ARENA_MAX);
	const struct json *request = json_find(j, "request");
	int r;

	if (!request)
		return 0;
	r = json_emit(&text, request);
	if (!r)
		b->request = arena_dup(&b->arena, buf_peek(&text));
	return r;
}

static int read_members(struct box *b, const struct json *j, struct diag *d)
{
	struct span state = json_text(json_find(j, "state"));
	uint64_t extend = 0;

	if (!box_state_by_name(state, &b->state))
		return diag_set(d, 0, 0, "the record has the state \"%.*s\"",
				SPAN_FMT(state));
	b->reason = reason_constant(json_text(json_find(j, "reason")));
	(void)json_u64(json_find(j, "createdMs"), &b->created_ms);
	(void)json_u64(json_find(j, "changedMs"), &b->changed_ms);
	(void)json_u64(json_find(j, "expiresMs"), &b->expires_ms);
	(void)json_u64(json_find(j, "renewExtendS"), &extend);
	b->renew_extend_s = (unsigned)MIN(extend, (uint64_t)UINT32_MAX);
	b->image = get_span(b, j, "image");
	b->snapshot_id = get_span(b, j, "snapshotId");
	b->platform_os = get_span(b, j, "platformOs");
	b->platform_arch = get_span(b, j, "platformArch");
	b->has_policy = json_bool(json_find(j, "hasPolicy"));
	b->credential_proxy = json_bool(json_find(j, "credentialProxy"));
	if (!addr_parse(json_text(json_find(j, "v4")), &b->v4))
		return diag_set(d, 0, 0, "the record has no IPv4 address");
	if (json_find(j, "v6") &&
	    !addr_parse(json_text(json_find(j, "v6")), &b->v6))
		return diag_set(d, 0, 0, "\"v6\" of the record is no address");
	return 0;
}

int box_parse(struct span text, struct box **ret, struct diag *d)
{
	struct json *j CLEANUP_JSON = NULL;
	struct box *b;
	int r;

	r = json_parse(text, &j, d);
	if (r)
		return r;
	r = json_want(j, JSON_KIND_OBJECT, "record", d);
	if (r)
		return r;
	b = box_new();
	r = read_texts(b, j, d);
	if (!r)
		r = read_members(b, j, d);
	if (!r)
		r = read_lists(b, j, d);
	if (!r && (read_request(b, j) || arena_overflowed(&b->arena)))
		r = diag_set(d, 0, 0, "the record is larger than %d bytes",
			     ARENA_MAX);
	if (r) {
		box_free(b);
		return r;
	}
	box_set_mac(b);
	*ret = b;
	return 0;
}

/* As Docker would: locally administered, then the IPv4 address. */
void box_set_mac(struct box *b)
{
	b->mac[0] = 0x02;
	b->mac[1] = 0x42;
	memcpy(b->mac + 2, b->v4.ip + 12, 4);
}
