/* SPDX-License-Identifier: Apache-2.0 */
/* msg.c - the sizes and strings of every message, checked in one place
 *
 * How it works: one row per type, made from MSG_TYPES. A row knows how long
 * the fixed body is and where its strings lie. The strings hang on the body's
 * struct and not on the type, through _Generic: a new body struct does not
 * compile before somebody said which strings it has.
 */

#include "src/role/msg.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/attrib.h"
#include "src/base/err.h"

/* FNV-1a, a word at a time */
enum { HASH_PRIME = 16777619 };
#define HASH_BASIS 2166136261U

/* A char array of a body that must hold a NUL. size 0 ends a list. */
struct string_field {
	uint32_t offset, size;
};

struct row {
	uint32_t body_size;
	const struct string_field *strings;
};

#define STRING(body, field)                               \
	{                                                 \
		offsetof(struct body, field),             \
			sizeof(((struct body *)0)->field) \
	}

static const struct string_field no_strings[] = { { 0, 0 } };
static const struct string_field result_strings[] = {
	STRING(msg_result, text),
	{ 0, 0 },
};
static const struct string_field sign_strings[] = {
	STRING(msg_sign, name),
	{ 0, 0 },
};
static const struct string_field credential_strings[] = {
	STRING(msg_credential, scope),
	STRING(msg_credential, name),
	{ 0, 0 },
};
static const struct string_field begin_strings[] = {
	STRING(msg_begin, scope),
	{ 0, 0 },
};
static const struct string_field record_strings[] = {
	STRING(msg_record, scope),
	STRING(msg_record, name),
	{ 0, 0 },
};
static const struct string_field read_strings[] = {
	STRING(msg_read, scope),
	STRING(msg_read, scope_after),
	STRING(msg_read, name),
	{ 0, 0 },
};
static const struct string_field sandbox_strings[] = {
	STRING(msg_sandbox, id),
	STRING(msg_sandbox, iface),
	STRING(msg_sandbox, port),
	{ 0, 0 },
};
static const struct string_field lock_strings[] = {
	STRING(msg_lock, id),
	STRING(msg_lock, iface),
	STRING(msg_lock, port),
	{ 0, 0 },
};
static const struct string_field locked_strings[] = {
	STRING(msg_locked, device),
	STRING(msg_locked, text),
	{ 0, 0 },
};
static const struct string_field policy_strings[] = {
	STRING(msg_policy, name),
	{ 0, 0 },
};
static const struct string_field ingress_strings[] = {
	STRING(msg_ingress, id),
	STRING(msg_ingress, proxy_token),
	{ 0, 0 },
};
static const struct string_field ingress_client_strings[] = {
	STRING(msg_ingress_client, id),
	{ 0, 0 },
};
static const struct string_field denied_strings[] = {
	STRING(msg_denied, id),
	STRING(msg_denied, host),
	STRING(msg_denied, kind),
	STRING(msg_denied, text),
	{ 0, 0 },
};
static const struct string_field scope_strings[] = {
	STRING(msg_scope, scope),
	{ 0, 0 },
};

#define BODY_STRINGS(body)                                      \
	_Generic((body *)0, struct msg_none *                   \
		 : no_strings, struct msg_peer *                \
		 : no_strings, struct msg_listener *            \
		 : no_strings, struct msg_drain *               \
		 : no_strings, struct msg_certificate *         \
		 : no_strings, struct msg_roles *               \
		 : no_strings, struct msg_maintain *            \
		 : no_strings, struct msg_flow *                \
		 : no_strings, struct msg_flow_verdict *        \
		 : no_strings, struct msg_queue_counters *      \
		 : no_strings, struct msg_drop *                \
		 : no_strings, struct msg_drops *               \
		 : no_strings, struct msg_result *              \
		 : result_strings, struct msg_sign *            \
		 : sign_strings, struct msg_credential *        \
		 : credential_strings, struct msg_begin *       \
		 : begin_strings, struct msg_record *           \
		 : record_strings, struct msg_read *            \
		 : read_strings, struct msg_sandbox *           \
		 : sandbox_strings, struct msg_lock *           \
		 : lock_strings, struct msg_locked *            \
		 : locked_strings, struct msg_denied *          \
		 : denied_strings, struct msg_scope *           \
		 : scope_strings, struct msg_ingress *          \
		 : ingress_strings, struct msg_ingress_client * \
		 : ingress_client_strings, struct msg_policy *  \
		 : policy_strings)

static const struct row rows[MSG_TYPE_NUM] = {
#define MSG_ROW(type, body) [type] = { sizeof(body), BODY_STRINGS(body) },
	MSG_TYPES(MSG_ROW)
#undef MSG_ROW
};

uint32_t msg_layout(void)
{
	uint32_t hash = HASH_BASIS;
	unsigned i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		hash = (hash ^ rows[i].body_size) * HASH_PRIME;
	return hash;
}

static const char *const role_names[ROLE_NUM] = {
	[ROLE_NONE] = "none",	    [ROLE_SUPERVISOR] = "supervisor",
	[ROLE_GATEWAY] = "gateway", [ROLE_VAULT] = "vault",
	[ROLE_CONTROL] = "control", [ROLE_QUEUE] = "queue",
};
static_assert(ROLE_NUM == 6, "role_names has one name per role");

static const char *const queue_names[QUEUE_KIND_NUM] = {
	[QUEUE_NONE] = "none",
	[QUEUE_NATIVE] = "native",
	[QUEUE_XTABLES] = "xtables",
};

static const char *const type_names[MSG_TYPE_NUM] = { [MSG_NONE] = "MSG_NONE",
#define MSG_NAME(type, body) [type] = #type,
						      MSG_TYPES(MSG_NAME)
#undef MSG_NAME
};

const char *role_name(enum role role)
{
	if ((unsigned)role >= ROLE_NUM)
		return "unknown";
	return role_names[role];
}

const char *queue_kind_name(enum queue_kind kind)
{
	return (unsigned)kind < QUEUE_KIND_NUM ? queue_names[kind] : "unknown";
}

const char *msg_type_name(uint16_t type)
{
	return type < MSG_TYPE_NUM ? type_names[type] : "unknown";
}

size_t msg_body_size(uint16_t type)
{
	return type < MSG_TYPE_NUM ? rows[type].body_size : 0;
}

const void *msg_body(uint16_t type, struct span payload, struct span *ret_tail)
{
	const struct string_field *field;
	size_t size = msg_body_size(type);

	if (!size || payload.len < size || payload.len - size > MSG_TAIL_MAX)
		return NULL;
	must(((uintptr_t)payload.ptr & (MSG_ALIGN - 1)) == 0);

	for (field = rows[type].strings; field->size; field++)
		if (!memchr(payload.ptr + field->offset, '\0', field->size))
			return NULL;

	*ret_tail = span_from(payload, size);
	return payload.ptr;
}
