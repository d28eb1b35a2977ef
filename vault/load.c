/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - read every head of the store and check the sets, once
 *
 * How it works: the walk fills the index with what is there. Then each layer
 * of inside.h is compared with the one above. What is wrong with the store as
 * a whole (keyring, state, set of scopes, epoch) refuses the open; what is
 * wrong with one scope refuses that scope; a record whose ciphertext changed
 * is found when it is opened. Bindings are opened here, for their references.
 */

#include "vault/inside.h"

#include <errno.h>

#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/epoch.h"
#include "vault/keyring.h"
#include "vault/row.h"
#include "vault/store.h"

struct load {
	struct vault *v;
	const struct vault_options *options;
	struct diag *d;
};

static void cleanup_secret(struct secret **s)
{
	*s = secret_free(*s);
}

/* The whole is wrong: the end, unless somebody came to repair it. */
#define whole_is_wrong(l, error, ...)                        \
	((l)->options->for_repair                            \
		 ? damage_note((l)->v, (error), __VA_ARGS__) \
		 : vault_refuse((l)->d, (error), __VA_ARGS__))

#define damage_note(v, error, ...)                          \
	((v)->damage = (v)->damage ? (v)->damage : (error), \
	 (void)diag_set(&(v)->damage_text, 0, 0, __VA_ARGS__), 0)

/* -- the walk ------------------------------------------------------------ */

static void foreign_note(struct vault *v, struct span key)
{
	struct record_key *k;

	if (v->foreign_count == FOREIGN_MAX || key.len > RECORD_KEY_MAX)
		return;
	v->foreign =
		must_realloc(v->foreign, (v->foreign_count + 1) * sizeof(*k));
	k = &v->foreign[v->foreign_count++];
	k->len = key.len;
	memcpy(k->bytes, key.ptr, key.len);
}

static int walk_manifest(struct load *l, struct span key, struct span name,
			 struct span row)
{
	struct index_scope *scope = index_scope_at(&l->v->index, name);
	struct span sealed;
	int r;

	if (!record_parse(row, &scope->facts.head, &sealed)) {
		scope->state = SCOPE_CORRUPT;
		return 0;
	}
	r = vault_manifest_parse(l->v, key, row, &scope->facts);
	if (r == ROW_E_CORRUPT)
		scope->state = SCOPE_CORRUPT;
	return r < 0 ? r : 0;
}

static int walk_value(struct load *l, struct span key, struct span row)
{
	struct index_entry *e = index_at(&l->v->index, key);
	struct span sealed;

	e->unreadable = !record_parse(row, &e->head, &sealed);
	return 0;
}

static int walk_row(void *ctx, struct span key, struct span row)
{
	struct record_place place;
	struct load *l = ctx;

	if (!record_key_parse(key, &place)) {
		foreign_note(l->v, key);
		return whole_is_wrong(l, VAULT_E_ROLLED_BACK,
				      "the store holds a row that is not "
				      "the vault's: it was written by "
				      "something else");
	}
	switch (place.table) {
	case RECORD_TABLE_MANIFEST:
		return walk_manifest(l, key, place.scope, row);
	case RECORD_TABLE_VALUE:
		return walk_value(l, key, row);
	case RECORD_TABLE_NONE:
	case RECORD_TABLE_KEYRING:
	case RECORD_TABLE_STATE:
		return 0; /* read before */
	}
	return err_origin(-EUCLEAN);
}

/* -- keyring and state --------------------------------------------------- */

static int load_keyring(struct load *l)
{
	struct record_key key;
	struct span row;
	int r;

	record_key_single(&key, RECORD_TABLE_KEYRING);
	r = store_find(l->v->store, record_key_span(&key), &row);
	if (r == STORE_E_ABSENT)
		return vault_refuse(l->d, VAULT_E_ABSENT,
				    "there is no vault in %s/vault yet: make "
				    "it with \"sallyport-vault init\"",
				    l->options->state_dir);
	if (r)
		return r;
	r = keyring_open(row, &l->options->kek, &l->v->keyring, l->d);
	if (r == KEYRING_E_WRONG_KEY)
		return VAULT_E_WRONG_KEY;
	return r == KEYRING_E_CORRUPT ? VAULT_E_CORRUPT : r;
}

/* A state that cannot be read: repair goes on with an empty one. */
static int state_is_lost(struct load *l, struct span row)
{
	struct record_head head;
	struct span sealed;

	if (record_parse(row, &head, &sealed) &&
	    head.dek != l->v->keyring->dek_id)
		return whole_is_wrong(l, VAULT_E_ROLLED_BACK,
				      "the keyring holds key %u, but the store "
				      "was sealed with key %u: an older "
				      "keyring was put back",
				      l->v->keyring->dek_id, head.dek);
	return whole_is_wrong(l, VAULT_E_CORRUPT,
			      "the state row is missing or damaged");
}

static int load_state(struct load *l)
{
	struct vault *v = l->v;
	struct span row = SPAN_NONE;
	struct record_key key;
	int r;

	record_key_single(&key, RECORD_TABLE_STATE);
	r = store_find(v->store, record_key_span(&key), &row);
	if (r < 0)
		return r;
	r = r ? ROW_E_CORRUPT : vault_state_parse(v, row);
	if (r < 0)
		return r;
	if (r) {
		r = state_is_lost(l, row);
		if (!r)
			r = secret_new(STATE_EPOCH_KEY, &v->epoch_key);
		if (r)
			return r;
		envelope_random(secret_fill(v->epoch_key), STATE_EPOCH_KEY);
	} else if (memcmp(v->state.keyring_tag, v->keyring->row_tag,
			  STATE_KEYRING_TAG) != 0) {
		r = whole_is_wrong(l, VAULT_E_ROLLED_BACK,
				   "the keyring is not the one written last: "
				   "an older one was put back");
	}
	return r ? r : envelope_mac_new(v->epoch_key, &v->epoch_mac);
}

/* -- the sets ------------------------------------------------------------ */

/* Is what the manifest says true of the records that are there? */
static int scope_compare(struct vault *v, struct index_scope *scope)
{
	struct record_key at;
	struct index_entry *e;
	struct set_sum sum = { 0 };
	uint64_t count = 0;
	struct span prefix;
	int r;

	record_key_value(&at, index_scope_name(scope), 0, SPAN_NONE);
	prefix = span_of(at.bytes, at.len - 1); /* without the kind */
	e = index_after(&v->index, record_key_span(&at));
	while (e && span_starts(index_key(e), prefix)) {
		r = set_add(&sum, v->keyring->set, index_key(e), &e->head);
		if (r)
			return r;
		count++;
		e = index_after(&v->index, index_key(e));
	}
	if (count != scope->facts.count || !set_eq(&sum, &scope->facts.sum))
		scope->state = SCOPE_ROLLED_BACK;
	return 0;
}

/* Records of a scope that nobody ever committed to were added by others. */
static void orphans_note(struct vault *v)
{
	struct record_place place;
	struct index_scope *scope;
	size_t i;

	for (i = 0; i < v->index.count; i++) {
		must(record_key_parse(index_key(v->index.entries[i]), &place));
		scope = index_scope_at(&v->index, place.scope);
		if (!scope->facts.head.revision && scope->state == SCOPE_OK)
			scope->state = SCOPE_ROLLED_BACK;
	}
}

static int manifests_compare(struct load *l)
{
	struct set_sum sum = { 0 };
	struct index_scope *scope;
	struct record_key key;
	uint64_t count = 0;
	size_t cursor = 0;
	int r;

	while ((scope = index_scope_next(&l->v->index, &cursor))) {
		if (!scope->facts.head.revision)
			continue;
		record_key_manifest(&key, index_scope_name(scope));
		r = set_add(&sum, l->v->keyring->set, record_key_span(&key),
			    &scope->facts.head);
		if (r)
			return r;
		count++;
	}
	if (count == l->v->state.scope_count &&
	    set_eq(&sum, &l->v->state.scopes))
		return 0;
	return whole_is_wrong(l, VAULT_E_ROLLED_BACK,
			      "the store holds %llu scopes that are not the "
			      "%llu sealed last: a scope was replaced by an "
			      "older one, added, removed or damaged",
			      (unsigned long long)count,
			      (unsigned long long)l->v->state.scope_count);
}

static int sets_compare(struct load *l)
{
	struct index_scope *scope;
	size_t cursor = 0;
	int r;

	r = manifests_compare(l);
	orphans_note(l->v);
	while (!r && (scope = index_scope_next(&l->v->index, &cursor)))
		if (scope->state == SCOPE_OK)
			r = scope_compare(l->v, scope);
	return r;
}

static int epoch_compare(struct load *l)
{
	struct vault *v = l->v;
	uint64_t outside = 0;
	int r = EPOCH_E_ABSENT;

	if (v->epoch)
		r = epoch_read(v->epoch, v->epoch_mac, v->keyring->store_id,
			       &outside);
	if (r < 0)
		return r;
	if (r)
		return whole_is_wrong(l, VAULT_E_ROLLED_BACK,
				      "the epoch file beside the store is %s: "
				      "whether the store is an older copy "
				      "cannot be told",
				      r == EPOCH_E_ABSENT
					      ? "missing"
					      : "damaged or of another store");
	if (v->state.epoch >= outside)
		return 0;
	r = whole_is_wrong(l, VAULT_E_ROLLED_BACK,
			   "the store is at commit %llu, but commit %llu was "
			   "acknowledged: an older copy was put back",
			   (unsigned long long)v->state.epoch,
			   (unsigned long long)outside);
	v->state.epoch = outside; /* repair goes on from there */
	return r;
}

/* -- references ---------------------------------------------------------- */

static int refs_load(struct vault *v)
{
	struct diag ignored = { 0 };
	struct record_place place;
	struct index_entry *e;
	size_t i;
	int r;

	for (i = 0; i < v->index.count; i++) {
		CLEANUP(cleanup_secret) struct secret *json = NULL;

		e = v->index.entries[i];
		must(record_key_parse(index_key(e), &place));
		if (place.kind != VAULT_BINDING || e->unreadable)
			continue;
		r = vault_entry_open(v, e, &json, &ignored);
		if (r < 0)
			return r;
		/* what does not open names nothing; verify reports it */
		if (r || ref_list_parse(secret_open(json), &e->refs, &ignored))
			continue;
		refs_add(&v->refs, place.scope, &e->refs);
	}
	return 0;
}

/* -- all of it ----------------------------------------------------------- */

int vault_load(struct vault *v, const struct vault_options *o, struct diag *d)
{
	struct load l = { .v = v, .options = o, .d = d };
	int r;

	r = store_read_begin(v->store);
	if (r)
		return r;
	r = load_keyring(&l);
	if (!r)
		r = load_state(&l);
	if (!r)
		r = store_each(v->store, walk_row, &l);
	store_read_end(v->store);
	if (!r)
		r = sets_compare(&l);
	if (!r)
		r = epoch_compare(&l);
	if (!r)
		r = refs_load(v);
	if (r < 0)
		(void)diag_set(d, 0, 0, "the store could not be read: %s",
			       err_text(r));
	return r;
}
