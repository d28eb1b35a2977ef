/* SPDX-License-Identifier: Apache-2.0 */
/* read.c - read from an open vault, and say what was wrong
 *
 * Every read is checked against the index (inside.h): the row must be there
 * and must be the version that was committed last. A file that is changed
 * underneath an open vault is noticed that way too.
 */

#include "vault/inside.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "src/base/err.h"
#include "src/base/log.h"
#include "src/base/secret.h"
#include "vault/row.h"
#include "vault/store.h"

static const char *const error_names[VAULT_ERROR_NUM] = {
	[VAULT_OK] = "fine",
	[VAULT_E_ABSENT] = "absent",
	[VAULT_E_EXISTS] = "exists",
	[VAULT_E_HELD] = "held",
	[VAULT_E_WRONG_KEY] = "wrong key",
	[VAULT_E_CORRUPT] = "corrupt",
	[VAULT_E_ROLLED_BACK] = "rolled back",
	[VAULT_E_NOT_FOUND] = "not found",
	[VAULT_E_CONFLICT] = "conflict",
	[VAULT_E_REFUSED] = "refused",
	[VAULT_E_NOT_NAMED] = "not named",
	[VAULT_E_WORN] = "key worn",
};
static_assert(VAULT_ERROR_NUM == 12, "error_names has one name per error");

/* -- names --------------------------------------------------------------- */

const char *vault_error_name(int error)
{
	if (error < 0)
		return err_text(error);
	return error < VAULT_ERROR_NUM ? error_names[error] : "unknown";
}

const char *vault_kind_name(uint8_t kind)
{
	switch (kind) {
	case VAULT_CREDENTIAL:
		return "credential";
	case VAULT_BINDING:
		return "binding";
	case VAULT_SANDBOX:
		return "sandbox";
	case VAULT_POLICY:
		return "policy";
	case VAULT_TOKEN:
		return "token";
	case VAULT_BOX:
		return "box";
	case VAULT_SNAPSHOT:
		return "snapshot";
	case VAULT_NET_POLICY:
		return "network policy";
	case VAULT_CA_KEY:
		return "CA key";
	case VAULT_CA_CERT:
		return "CA certificate";
	default:
		return "record";
	}
}

const char *vault_scope_text(struct span scope, char dst[VAULT_TEXT_SIZE])
{
	char name[VAULT_TEXT_SIZE - 16];

	if (!scope.len)
		(void)snprintf(dst, VAULT_TEXT_SIZE, "the node");
	else if (span_eq(scope, VAULT_OWN_SCOPE))
		(void)snprintf(dst, VAULT_TEXT_SIZE, "the vault itself");
	else
		(void)snprintf(dst, VAULT_TEXT_SIZE, "sandbox \"%s\"",
			       log_escape(scope, name, sizeof(name)));
	return dst;
}

const char *vault_describe(struct span scope, uint8_t kind, struct span name,
			   char dst[VAULT_TEXT_SIZE])
{
	char shown[VAULT_TEXT_SIZE / 3], of[VAULT_TEXT_SIZE];

	(void)snprintf(dst, VAULT_TEXT_SIZE, "%s \"%s\" of %.300s",
		       vault_kind_name(kind),
		       log_escape(name, shown, sizeof(shown)),
		       vault_scope_text(scope, of));
	return dst;
}

/* -- read ---------------------------------------------------------------- */

int vault_scope_check(const struct index_scope *scope, struct diag *d)
{
	char of[VAULT_TEXT_SIZE];

	if (!scope || scope->state == SCOPE_OK)
		return 0;
	vault_scope_text(index_scope_name(scope), of);
	if (scope->state == SCOPE_CORRUPT)
		return vault_refuse(d, VAULT_E_CORRUPT,
				    "the manifest of %.300s is damaged; its "
				    "records are not served",
				    of);
	return vault_refuse(d, VAULT_E_ROLLED_BACK,
			    "the records of %.300s are not the ones written "
			    "last: one was replaced by an older version, "
			    "added, removed or damaged; none is served",
			    of);
}

static int entry_refuse(const struct index_entry *e, enum vault_error error,
			const char *what, struct diag *d)
{
	struct record_place place;
	char text[VAULT_TEXT_SIZE];

	must(record_key_parse(index_key(e), &place));
	return vault_refuse(
		d, error, "%.400s %s",
		vault_describe(place.scope, place.kind, place.name, text),
		what);
}

int vault_row_open(struct vault *v, const struct index_entry *e,
		   struct span row, struct secret **ret, struct diag *d)
{
	char expected[RECORD_HEAD_SIZE];
	int r;

	record_head_emit(&e->head, expected);
	if (e->unreadable || row.len < sizeof(expected))
		return entry_refuse(e, VAULT_E_CORRUPT, "is damaged", d);
	if (memcmp(row.ptr, expected, sizeof(expected)) != 0)
		return entry_refuse(e, VAULT_E_ROLLED_BACK,
				    "is not the version written last", d);
	r = row_open(v->keyring, index_key(e), row, ret);
	if (r == ROW_E_CORRUPT)
		return entry_refuse(e, VAULT_E_CORRUPT, "is damaged", d);
	return r;
}

int vault_entry_open(struct vault *v, const struct index_entry *e,
		     struct secret **ret, struct diag *d)
{
	struct span row = SPAN_NONE;
	int r;

	r = store_read_begin(v->store);
	if (r)
		return r;
	r = store_find(v->store, index_key(e), &row);
	if (r == STORE_E_ABSENT)
		r = entry_refuse(e, VAULT_E_ROLLED_BACK,
				 "was removed behind the vault's back", d);
	else if (!r)
		r = vault_row_open(v, e, row, ret, d);
	store_read_end(v->store);
	return r;
}

static int entry_find(struct vault *v, struct span scope, uint8_t kind,
		      struct span name, struct index_entry **ret,
		      struct diag *d)
{
	char text[VAULT_TEXT_SIZE];
	struct record_key key;
	struct index_entry *e = NULL;
	const enum vault_error damage = v->damage;
	int r;

	if (damage)
		return vault_refuse(d, damage, "%s", v->damage_text.msg);
	r = vault_scope_check(index_scope_find(&v->index, scope), d);
	if (r)
		return r;
	if (record_scope_is_valid(scope) && record_name_is_valid(name)) {
		record_key_value(&key, scope, kind, name);
		e = index_find(&v->index, record_key_span(&key));
	}
	if (!e)
		return vault_refuse(d, VAULT_E_NOT_FOUND, "there is no %.400s",
				    vault_describe(scope, kind, name, text));
	*ret = e;
	return 0;
}

int vault_get(struct vault *v, struct span scope, uint8_t kind,
	      struct span name, struct secret **ret, uint64_t *ret_revision,
	      struct diag *d)
{
	struct index_entry *e = NULL;
	int r;

	r = entry_find(v, scope, kind, name, &e, d);
	if (!r)
		r = vault_entry_open(v, e, ret, d);
	if (!r && ret_revision)
		*ret_revision = e->head.revision;
	return r;
}

static void item_fill(const struct index_entry *e, struct vault_item *ret)
{
	struct record_place place;

	must(record_key_parse(index_key(e), &place));
	*ret = (struct vault_item){
		.scope = place.scope,
		.name = place.name,
		.kind = place.kind,
		.revision = e->head.revision,
	};
}

int vault_stat(struct vault *v, struct span scope, uint8_t kind,
	       struct span name, struct vault_item *ret, struct diag *d)
{
	struct index_entry *e = NULL;
	int r = entry_find(v, scope, kind, name, &e, d);

	if (!r)
		item_fill(e, ret);
	return r;
}

/* May it be sought from? Names in questions are foreign bytes. */
static bool place_is_valid(struct span scope, struct span after)
{
	return record_scope_is_valid(scope) &&
	       (!after.len || record_name_is_valid(after));
}

int vault_next(struct vault *v, struct span scope, uint8_t kind,
	       struct span after, struct vault_item *ret)
{
	const struct index_entry *e;
	struct vault_item item;
	struct record_key key;

	if (!place_is_valid(scope, after))
		return VAULT_E_NOT_FOUND;
	record_key_value(&key, scope, kind, after);
	e = index_after(&v->index, record_key_span(&key));
	if (!e)
		return VAULT_E_NOT_FOUND;
	item_fill(e, &item);
	if (!span_eq(item.scope, scope) || item.kind != kind)
		return VAULT_E_NOT_FOUND;
	*ret = item;
	return 0;
}

int vault_next_any(struct vault *v, struct span scope, uint8_t kind,
		   struct span after, struct vault_item *ret)
{
	const struct index_entry *e;
	struct vault_item item;
	struct record_key key;

	if (!place_is_valid(scope, after))
		return VAULT_E_NOT_FOUND;
	record_key_value(&key, scope, kind, after);
	while ((e = index_after(&v->index, record_key_span(&key)))) {
		item_fill(e, &item);
		if (item.kind == kind) {
			*ret = item;
			return 0;
		}
		if (item.kind < kind)
			record_key_value(&key, item.scope, kind, SPAN_NONE);
		else
			record_key_scope_end(&key, item.scope);
	}
	return VAULT_E_NOT_FOUND;
}

uint64_t vault_revision(struct vault *v, struct span scope)
{
	const struct index_scope *s = index_scope_find(&v->index, scope);

	return s ? s->facts.head.revision : 0;
}

bool vault_is_named(struct vault *v, struct span scope, struct span credential)
{
	return refs_has(&v->refs, scope, credential);
}

int vault_lease(struct vault *v, struct span scope, struct span name,
		struct secret **ret, uint64_t *ret_revision, struct diag *d)
{
	char text[VAULT_TEXT_SIZE];

	if (!refs_has(&v->refs, scope, name))
		return vault_refuse(
			d, VAULT_E_NOT_NAMED, "no binding names the %.400s",
			vault_describe(scope, VAULT_CREDENTIAL, name, text));
	return vault_get(v, scope, VAULT_CREDENTIAL, name, ret, ret_revision,
			 d);
}
