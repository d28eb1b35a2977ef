/* SPDX-License-Identifier: Apache-2.0 */
/* txn.c - stage changes of one scope, then commit them all at once
 *
 * How it works: puts and removes only collect, in locked memory, one entry per
 * record. vault_commit() checks everything that can be refused, seals the rows
 * inside one LMDB write (which may run twice, when the map has to grow), and
 * after that, when nothing can fail any more, brings index and references up
 * to date and notes the commit in the epoch file.
 */

#include "vault/inside.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/keyring.h"
#include "vault/row.h"
#include "vault/store.h"

struct change {
	struct record_key key;
	uint8_t kind;
	struct secret *value;	 /* NULL: remove */
	struct ref_list refs;	 /* of a binding */
	struct record_head head; /* as written by the commit */
};

struct vault_txn {
	struct vault *v;
	char scope[RECORD_SCOPE_MAX];
	size_t scope_len;
	int64_t expected;
	struct change *changes;
	unsigned count;
	struct map by_key; /* key -> index in changes + 1 */
	size_t bytes;
	bool drop; /* the whole scope */
};

/* What one run of the LMDB write computes. */
struct commit {
	struct vault_txn *t;
	struct index_facts facts;
	struct vault_state state;
};

static void cleanup_txn(struct vault_txn **t)
{
	*t = vault_abort(*t);
}

static struct span txn_scope(const struct vault_txn *t)
{
	return span_of(t->scope, t->scope_len);
}

/* -- stage --------------------------------------------------------------- */

int vault_begin(struct vault *v, struct span scope, int64_t expected,
		struct vault_txn **ret, struct diag *d)
{
	struct vault_txn *t;

	if (!record_scope_is_valid(scope))
		return vault_refuse(d, VAULT_E_REFUSED,
				    "the scope is no sandbox id: expected at "
				    "most %d bytes without control characters",
				    RECORD_SCOPE_MAX);
	if (v->damage)
		return vault_refuse(d, v->damage, "%s", v->damage_text.msg);
	t = must_alloc(sizeof(*t));
	t->v = v;
	t->expected = expected;
	t->scope_len = scope.len;
	if (scope.len)
		memcpy(t->scope, scope.ptr, scope.len);
	map_init(&t->by_key);
	*ret = t;
	return 0;
}

static void change_fini(struct change *c)
{
	c->value = secret_free(c->value);
	ref_list_fini(&c->refs);
}

struct vault_txn *vault_abort(struct vault_txn *t)
{
	unsigned i;

	if (!t)
		return NULL;
	for (i = 0; i < t->count; i++)
		change_fini(&t->changes[i]);
	free(t->changes);
	map_fini(&t->by_key);
	free(t);
	return NULL;
}

/* The change of this record, made or emptied. */
static int change_at(struct vault_txn *t, uint8_t kind, struct span name,
		     struct change **ret, struct diag *d)
{
	struct record_key key;
	struct change *c;
	uintptr_t at;

	if (!record_name_is_valid(name) || kind == VAULT_NONE)
		return vault_refuse(d, VAULT_E_REFUSED,
				    "the name of a %s is empty, too long or "
				    "holds control characters: expected 1 to "
				    "%d bytes",
				    vault_kind_name(kind), RECORD_NAME_MAX);
	if (t->drop)
		return vault_refuse(d, VAULT_E_REFUSED,
				    "a transaction that removes the whole "
				    "scope cannot hold other changes");
	record_key_value(&key, txn_scope(t), kind, name);
	at = (uintptr_t)map_find(&t->by_key, record_key_span(&key));
	if (at) {
		*ret = &t->changes[at - 1];
		t->bytes -= (*ret)->value ? secret_len((*ret)->value) : 0;
		change_fini(*ret);
		return 0;
	}
	if (t->count == VAULT_TXN_RECORDS)
		return vault_refuse(d, VAULT_E_REFUSED,
				    "more than %d records in one transaction",
				    VAULT_TXN_RECORDS);
	t->changes = must_realloc(t->changes, (t->count + 1) * sizeof(*c));
	c = &t->changes[t->count++];
	*c = (struct change){ .key = key, .kind = kind };
	(void)map_set(&t->by_key, record_key_span(&key),
		      (void *)(uintptr_t)t->count);
	*ret = c;
	return 0;
}

/* The value itself is never part of a sentence. */
static int value_check(struct vault_txn *t, uint8_t kind, struct span name,
		       struct span value, struct diag *d)
{
	size_t max = kind == VAULT_CREDENTIAL ? VAULT_CREDENTIAL_MAX
					      : VAULT_VALUE_MAX;
	char text[VAULT_TEXT_SIZE];
	const char *wrong = NULL;

	vault_describe(txn_scope(t), kind, name, text);
	if (!value.len && kind == VAULT_CREDENTIAL)
		wrong = "is empty";
	else if (value.len > max)
		return vault_refuse(d, VAULT_E_REFUSED,
				    "the value of %.400s has %zu bytes, "
				    "expected at most %zu",
				    text, value.len, max);
	else if (t->bytes + value.len > VAULT_TXN_BYTES)
		wrong = "does not fit: the transaction is over 16 MiB";
	else if (kind != VAULT_CREDENTIAL)
		return 0;
	else if (memchr(value.ptr, '\0', value.len))
		wrong = "holds a NUL byte, which no header can carry";
	else if (memchr(value.ptr, '\n', value.len))
		wrong = "holds a line feed, which no header can carry";
	else if (memchr(value.ptr, '\r', value.len))
		wrong = "holds a carriage return, which no header can carry";
	if (!wrong)
		return 0;
	return vault_refuse(d, VAULT_E_REFUSED, "the value of %.400s %s", text,
			    wrong);
}

int vault_put(struct vault_txn *t, uint8_t kind, struct span name,
	      struct span value, struct diag *d)
{
	struct ref_list refs = { 0 };
	struct secret *copy;
	struct change *c;
	int r;

	r = value_check(t, kind, name, value, d);
	if (!r && kind == VAULT_BINDING && ref_list_parse(value, &refs, d))
		r = VAULT_E_REFUSED;
	if (!r)
		r = secret_dup(value, &copy);
	if (r)
		return r;
	r = change_at(t, kind, name, &c, d);
	if (r) {
		ref_list_fini(&refs);
		secret_free(copy);
		return r;
	}
	c->value = copy;
	c->refs = refs;
	t->bytes += value.len;
	return 0;
}

int vault_remove(struct vault_txn *t, uint8_t kind, struct span name,
		 struct diag *d)
{
	struct change *c;

	return change_at(t, kind, name, &c, d);
}

int vault_remove_scope(struct vault_txn *t, struct diag *d)
{
	if (t->count)
		return vault_refuse(d, VAULT_E_REFUSED,
				    "a transaction that removes the whole "
				    "scope cannot hold other changes");
	t->drop = true;
	return 0;
}

/* -- commit -------------------------------------------------------------- */

static int commit_check(struct vault_txn *t, struct diag *d)
{
	struct vault *v = t->v;
	uint64_t revision = vault_revision(v, txn_scope(t));
	char text[VAULT_TEXT_SIZE];
	struct record_place place;
	struct change *c;
	unsigned i;
	int r;

	r = vault_scope_check(index_scope_find(&v->index, txn_scope(t)), d);
	if (r)
		return r;
	if (t->expected >= 0 && (uint64_t)t->expected != revision)
		return vault_refuse(d, VAULT_E_CONFLICT,
				    "expectedRevision %lld does not match "
				    "current revision %llu",
				    (long long)t->expected,
				    (unsigned long long)revision);
	if (v->state.seals + t->count + 2 > v->seals_max)
		return vault_refuse(d, VAULT_E_WORN,
				    "the data key has sealed %llu rows and is "
				    "worn out: run rotate-dek",
				    (unsigned long long)v->state.seals);
	for (i = 0; i < t->count; i++) {
		c = &t->changes[i];
		if (c->value || index_find(&v->index, record_key_span(&c->key)))
			continue;
		must(record_key_parse(record_key_span(&c->key), &place));
		return vault_refuse(d, VAULT_E_NOT_FOUND, "there is no %.400s",
				    vault_describe(place.scope, place.kind,
						   place.name, text));
	}
	return 0;
}

static int change_put(struct commit *m, struct store_txn *st, struct change *c)
{
	CLEANUP(row_fini) struct row row = { 0 };
	struct keyring *k = m->t->v->keyring;
	struct record_head head = {
		.table = RECORD_TABLE_VALUE,
		.revision = m->facts.head.revision,
	};
	int r;

	r = row_seal(k, &head, record_key_span(&c->key), secret_open(c->value),
		     &row);
	if (!r)
		r = store_put(st, record_key_span(&c->key), row_span(&row));
	if (r)
		return r;
	c->head = row.head;
	m->facts.count++;
	m->state.seals++;
	return set_add(&m->facts.sum, k->set, record_key_span(&c->key),
		       &row.head);
}

static int change_write(struct commit *m, struct store_txn *st,
			struct change *c)
{
	struct span key = record_key_span(&c->key);
	const struct index_entry *old = index_find(&m->t->v->index, key);
	int r = 0;

	if (old) {
		r = set_remove(&m->facts.sum, m->t->v->keyring->set, key,
			       &old->head);
		m->facts.count--;
	}
	if (r)
		return r;
	return c->value ? change_put(m, st, c) : store_delete(st, key);
}

/* The first entry of the transaction's scope behind `after`, or NULL. */
static struct index_entry *scope_entry_after(const struct vault_txn *t,
					     struct span after)
{
	struct index_entry *e = index_after(&t->v->index, after);
	struct record_place place;

	if (!e)
		return NULL;
	must(record_key_parse(index_key(e), &place));
	return span_eq(place.scope, txn_scope(t)) ? e : NULL;
}

static int scope_delete(struct commit *m, struct store_txn *st,
			const struct index_scope *scope)
{
	struct vault_txn *t = m->t;
	struct index_entry *e;
	struct record_key key;
	int r = 0;

	record_key_value(&key, txn_scope(t), 0, SPAN_NONE);
	e = scope_entry_after(t, record_key_span(&key));
	while (e && !r) {
		r = store_delete(st, index_key(e));
		e = scope_entry_after(t, index_key(e));
	}
	record_key_manifest(&key, txn_scope(t));
	if (!r)
		r = store_delete(st, record_key_span(&key));
	m->state.scope_count--;
	return r ? r
		 : set_remove(&m->state.scopes, t->v->keyring->set,
			      record_key_span(&key), &scope->facts.head);
}

/* Repeatable: starts from what the vault knows, every time. */
static int commit_write(void *ctx, struct store_txn *st)
{
	static const struct index_facts none;
	struct commit *m = ctx;
	struct vault_txn *t = m->t;
	const struct index_scope *scope =
		index_scope_find(&t->v->index, txn_scope(t));
	const struct index_facts *old = scope ? &scope->facts : &none;
	unsigned i;
	int r = 0;

	m->state = t->v->state;
	m->state.epoch++;
	m->facts = *old;
	m->facts.head.revision++;
	for (i = 0; i < t->count && !r; i++)
		r = change_write(m, st, &t->changes[i]);
	if (!r && t->drop)
		r = scope ? scope_delete(m, st, scope) : 0;
	else if (!r)
		r = vault_manifest_write(st, t->v->keyring, txn_scope(t), old,
					 &m->facts, &m->state);
	if (!r)
		r = vault_state_write(st, t->v->keyring, t->v->epoch_key,
				      &m->state);
	return r;
}

static void entry_forget(struct vault_txn *t, struct index_entry *e)
{
	refs_remove(&t->v->refs, txn_scope(t), &e->refs);
	index_drop(&t->v->index, index_key(e));
}

static void change_apply(struct vault_txn *t, struct change *c)
{
	struct span key = record_key_span(&c->key);
	struct index_entry *e = index_find(&t->v->index, key);

	if (!c->value) {
		entry_forget(t, e);
		return;
	}
	e = index_at(&t->v->index, key);
	refs_remove(&t->v->refs, txn_scope(t), &e->refs);
	ref_list_fini(&e->refs);
	e->refs = c->refs; /* moved */
	c->refs = (struct ref_list){ 0 };
	refs_add(&t->v->refs, txn_scope(t), &e->refs);
	e->head = c->head;
	e->unreadable = false;
}

static void commit_apply(struct commit *m)
{
	struct vault_txn *t = m->t;
	struct index_entry *e;
	struct record_key key;
	unsigned i;

	t->v->state = m->state;
	for (i = 0; i < t->count; i++)
		change_apply(t, &t->changes[i]);
	if (!t->drop) {
		index_scope_at(&t->v->index, txn_scope(t))->facts = m->facts;
		return;
	}
	record_key_value(&key, txn_scope(t), 0, SPAN_NONE);
	while ((e = scope_entry_after(t, record_key_span(&key))))
		entry_forget(t, e);
	index_scope_drop(&t->v->index, txn_scope(t));
}

int vault_commit(struct vault_txn *taken, uint64_t *ret_revision,
		 struct diag *d)
{
	CLEANUP(cleanup_txn) struct vault_txn *t = taken;
	struct commit m = { .t = t };
	int r;

	r = commit_check(t, d);
	if (r)
		return r;
	r = store_write(t->v->store, commit_write, &m);
	if (r) {
		(void)diag_set(d, 0, 0, "the change could not be stored: %s",
			       err_text(r));
		return r;
	}
	commit_apply(&m);
	if (ret_revision)
		*ret_revision = vault_revision(t->v, txn_scope(t));
	return vault_epoch_write(t->v, d);
}
