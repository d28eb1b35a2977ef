/* SPDX-License-Identifier: Apache-2.0 */
/* maintain.c - verify, repair, and change of keys
 *
 * How it works: rotate-dek and repair are one act: seal everything again under
 * a fresh DEK, in one LMDB write. They differ in what they do with a record
 * that does not open: rotation stops, repair drops it. Until the write is
 * committed the old keyring, heads and sums stay in force; afterwards the new
 * ones are swapped in.
 */

#include "vault/inside.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/keyring.h"
#include "vault/row.h"
#include "vault/store.h"

struct reporter {
	vault_report_fn *fn;
	void *ctx;
	struct vault_counts counts;
};

static void cleanup_keyring(struct keyring **k)
{
	*k = keyring_free(*k);
}

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

/* -- verify -------------------------------------------------------------- */

static void report(struct reporter *rep, int error,
		   const struct record_place *place, const char *text)
{
	const struct vault_finding f = {
		.error = (enum vault_error)error,
		.scope = place->scope,
		.name = place->name,
		.kind = place->kind,
		.text = text,
	};

	rep->counts.findings++;
	if (rep->fn)
		rep->fn(rep->ctx, &f);
}

static void verify_scopes(struct vault *v, struct reporter *rep)
{
	struct record_place place = { 0 };
	struct index_scope *scope;
	size_t cursor = 0;
	struct diag d;
	int r;

	if (v->damage)
		report(rep, (int)v->damage, &place, v->damage_text.msg);
	while ((scope = index_scope_next(&v->index, &cursor))) {
		rep->counts.scopes++;
		d = (struct diag){ 0 };
		r = vault_scope_check(scope, &d);
		place.scope = index_scope_name(scope);
		if (r)
			report(rep, r, &place, d.msg);
	}
}

int vault_verify(struct vault *v, vault_report_fn *fn, void *ctx,
		 struct vault_counts *ret)
{
	struct reporter rep = { .fn = fn, .ctx = ctx };
	struct record_place place;
	struct index_entry *e;
	struct diag d;
	size_t i;
	int r;

	verify_scopes(v, &rep);
	for (i = 0; i < v->index.count; i++) {
		CLEANUP(cleanup_secret) struct secret *value = NULL;

		e = v->index.entries[i];
		d = (struct diag){ 0 };
		r = vault_entry_open(v, e, &value, &d);
		if (r < 0)
			return r;
		must(record_key_parse(index_key(e), &place));
		rep.counts.records++;
		if (r)
			report(&rep, r, &place, d.msg);
	}
	*ret = rep.counts;
	return 0;
}

/* -- seal everything again ----------------------------------------------- */

/* One run of the write. */
struct reseal {
	struct vault *v;
	struct keyring *next;
	bool repairs;
	struct record_head *heads; /* one per entry; table NONE: drop it */
	struct vault_state state;
	struct diag *d;
};

static int value_reseal(struct reseal *m, struct store_txn *st, size_t at,
			struct secret *value)
{
	const struct index_entry *e = m->v->index.entries[at];
	CLEANUP(row_fini) struct row row = { 0 };
	struct index_facts *facts;
	struct record_place place;
	int r;

	must(record_key_parse(index_key(e), &place));
	facts = &index_scope_at(&m->v->index, place.scope)->next;
	r = row_seal(m->next, &e->head, index_key(e), secret_open(value), &row);
	if (!r)
		r = store_put(st, index_key(e), row_span(&row));
	if (!r)
		r = set_add(&facts->sum, m->next->set, index_key(e), &row.head);
	if (r)
		return r;
	m->heads[at] = row.head;
	m->state.seals++;
	facts->count++;
	facts->head.revision = MAX(facts->head.revision, row.head.revision);
	return 0;
}

static int entry_reseal(struct reseal *m, struct store_txn *st, size_t at)
{
	const struct index_entry *e = m->v->index.entries[at];
	CLEANUP(cleanup_secret) struct secret *value = NULL;
	struct diag ignored = { 0 };
	struct span row = SPAN_NONE;
	int r;

	r = store_txn_find(st, index_key(e), &row);
	if (r < 0)
		return r;
	r = vault_row_open(m->v, e, row, &value, m->repairs ? &ignored : m->d);
	if (!r)
		return value_reseal(m, st, at, value);
	if (r < 0 || !m->repairs)
		return r;
	m->heads[at] = (struct record_head){ 0 };
	return store_delete(st, index_key(e));
}

static int scope_reseal(struct reseal *m, struct store_txn *st,
			struct index_scope *scope)
{
	static const struct index_facts none;
	struct record_key key;

	if (scope->next.head.revision)
		return vault_manifest_write(st, m->next,
					    index_scope_name(scope), &none,
					    &scope->next, &m->state);
	/* nothing of it opened, not even its manifest */
	record_key_manifest(&key, index_scope_name(scope));
	return store_delete(st, record_key_span(&key));
}

static int scopes_reseal(struct reseal *m, struct store_txn *st)
{
	struct index_scope *scope;
	size_t cursor = 0;
	int r = 0;

	while (!r && (scope = index_scope_next(&m->v->index, &cursor))) {
		/* clients that expect a revision must look again */
		if (scope->state != SCOPE_OK && scope->next.head.revision)
			scope->next.head.revision++;
		r = scope_reseal(m, st, scope);
	}
	return r;
}

static void reseal_begin(struct reseal *m)
{
	struct index_scope *scope;
	size_t cursor = 0;

	while ((scope = index_scope_next(&m->v->index, &cursor)))
		scope->next = (struct index_facts){
			.head.revision = scope->facts.head.revision,
		};
	m->state = (struct vault_state){ .epoch = m->v->state.epoch + 1 };
}

/* The two rows that name the keys. */
static int keys_write(struct store_txn *st, struct keyring *k,
		      struct secret *epoch_key, struct vault_state *state)
{
	char row[KEYRING_ROW_SIZE];
	struct record_key key;
	int r;

	record_key_single(&key, RECORD_TABLE_KEYRING);
	r = keyring_emit(k, row);
	if (!r)
		r = store_put(st, record_key_span(&key),
			      span_of(row, sizeof(row)));
	return r ? r : vault_state_write(st, k, epoch_key, state);
}

static int reseal_write(void *ctx, struct store_txn *st)
{
	struct reseal *m = ctx;
	struct vault *v = m->v;
	size_t i;
	int r = 0;

	reseal_begin(m);
	for (i = 0; i < v->index.count && !r; i++)
		r = entry_reseal(m, st, i);
	for (i = 0; i < v->foreign_count && !r; i++)
		r = store_delete(st, record_key_span(&v->foreign[i]));
	if (!r)
		r = scopes_reseal(m, st);
	return r ? r : keys_write(st, m->next, v->epoch_key, &m->state);
}

static void reseal_apply(struct reseal *m)
{
	struct index *ix = &m->v->index;
	struct index_scope *scope;
	struct record_place place;
	struct index_entry *e;
	size_t i, cursor = 0;

	for (i = ix->count; i-- > 0;) { /* from the end: entries may go */
		e = ix->entries[i];
		e->head = m->heads[i];
		if (e->head.table != RECORD_TABLE_NONE)
			continue;
		must(record_key_parse(index_key(e), &place));
		refs_remove(&m->v->refs, place.scope, &e->refs);
		index_drop(ix, index_key(e));
	}
	while ((scope = index_scope_next(ix, &cursor))) {
		scope->facts = scope->next;
		scope->state = SCOPE_OK;
	}
	keyring_free(m->v->keyring);
	m->v->keyring = take_ptr(m->next);
	m->v->state = m->state;
	m->v->damage = VAULT_OK;
	m->v->foreign_count = 0;
}

static int reseal(struct vault *v, bool repairs, struct diag *d)
{
	struct reseal m = { .v = v, .repairs = repairs, .d = d };
	int r;

	r = keyring_next(v->keyring, &m.next);
	if (r)
		return r;
	m.heads = must_alloc(v->index.count * sizeof(*m.heads));
	r = store_write(v->store, reseal_write, &m);
	if (r < 0)
		(void)diag_set(d, 0, 0, "the store could not be rewritten: %s",
			       r == -EFBIG ? "it is too large for one "
					     "transaction"
					   : err_text(r));
	if (!r) {
		reseal_apply(&m);
		r = vault_epoch_write(v, d);
	}
	free(m.heads);
	keyring_free(m.next);
	return r;
}

int vault_rotate_dek(struct vault *v, struct diag *d)
{
	struct index_scope *scope;
	size_t cursor = 0;
	int r = 0;

	if (v->damage)
		return vault_refuse(d, v->damage, "%s", v->damage_text.msg);
	while (!r && (scope = index_scope_next(&v->index, &cursor)))
		r = vault_scope_check(scope, d);
	return r ? r : reseal(v, false, d);
}

int vault_repair(struct vault *v, vault_report_fn *fn, void *ctx,
		 struct vault_counts *ret, struct diag *d)
{
	int r = vault_verify(v, fn, ctx, ret);

	return r ? r : reseal(v, true, d);
}

/* -- the KEK ------------------------------------------------------------- */

struct rewrap {
	struct vault *v;
	struct keyring *next;
	struct vault_state state;
};

static int rewrap_write(void *ctx, struct store_txn *st)
{
	struct rewrap *m = ctx;

	m->state = m->v->state;
	m->state.epoch++;
	return keys_write(st, m->next, m->v->epoch_key, &m->state);
}

int vault_rotate_kek(struct vault *v, const struct kek_source *kek,
		     struct diag *d)
{
	CLEANUP(cleanup_keyring) struct keyring *next = NULL;
	struct rewrap m = { .v = v };
	int r;

	if (v->damage)
		return vault_refuse(d, v->damage, "%s", v->damage_text.msg);
	r = keyring_rewrap(v->keyring, kek, &next, d);
	if (r)
		return r;
	m.next = next;
	r = store_write(v->store, rewrap_write, &m);
	if (r) {
		(void)diag_set(d, 0, 0, "the keyring could not be stored: %s",
			       err_text(r));
		return r;
	}
	keyring_free(v->keyring);
	v->keyring = take_ptr(next);
	v->state = m.state;
	return vault_epoch_write(v, d);
}
