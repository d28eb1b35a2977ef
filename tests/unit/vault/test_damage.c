/* SPDX-License-Identifier: Apache-2.0 */
/* test_damage.c - whatever is done to the store's bytes is noticed
 *
 * The attacker here may write the store and knows its format, but no key.
 */

#include "tests/unit/vault/fixture.h"

#include <errno.h>

#include "vault/keyring.h"
#include "vault/record.h"
#include "vault/store.h"

/* -- an attacker's hands ------------------------------------------------- */

struct hands {
	struct store *store;
	struct span key, value; /* of the put to come; value NULL: delete */
};

static int hands_write(void *ctx, struct store_txn *t)
{
	struct hands *h = ctx;

	return h->value.ptr ? store_put(t, h->key, h->value)
			    : store_delete(t, h->key);
}

static struct hands hands_open(struct fixture *f)
{
	struct hands h = { 0 };
	char folder[96];

	(void)snprintf(folder, sizeof(folder), "%s/vault", f->dir);
	assert_int_equal(store_open(folder, false, 0, &h.store, &f->d), 0);
	return h;
}

/* value.ptr NULL deletes. The vault must be closed. */
static void row_put(struct fixture *f, struct span key, struct span value)
{
	struct hands h = hands_open(f);

	h.key = key;
	h.value = value;
	assert_int_equal(store_write(h.store, hands_write, &h), 0);
	store_free(h.store);
}

/* malloc()ed copy. */
static struct span row_get(struct fixture *f, struct span key)
{
	struct hands h = hands_open(f);
	struct span value;
	char *copy;

	assert_int_equal(store_read_begin(h.store), 0);
	assert_int_equal(store_find(h.store, key, &value), 0);
	copy = malloc(value.len);
	assert_non_null(copy);
	memcpy(copy, value.ptr, value.len);
	value.ptr = copy;
	store_read_end(h.store);
	store_free(h.store);
	return value;
}

static void span_free(struct span s)
{
	free((void *)(uintptr_t)s.ptr);
}

static struct record_key value_key(const char *scope, const char *name)
{
	struct record_key k;

	record_key_value(&k, span_str(scope), VAULT_CREDENTIAL, span_str(name));
	return k;
}

static struct record_key manifest_key(const char *scope)
{
	struct record_key k;

	record_key_manifest(&k, span_str(scope));
	return k;
}

static struct record_key single_key(enum record_table table)
{
	struct record_key k;

	record_key_single(&k, table);
	return k;
}

/* Two scopes; in "a" x has an older version. Closed. */
static int damage_setup(void **state)
{
	struct fixture *f;

	if (vault_setup(state))
		return -1;
	f = *state;
	put(f, "a", "x", "first");
	put(f, "a", "x", "second");
	put(f, "a", "y", "other");
	put(f, "b", "x", "third");
	fixture_close(f);
	return 0;
}

/* -- bits ---------------------------------------------------------------- */

static void damage__every_bit_of_a_record_counts(void **state)
{
	struct fixture *f = *state;
	struct record_key k = value_key("a", "x");
	struct span row = row_get(f, record_key_span(&k));
	char *bytes = (char *)(uintptr_t)row.ptr;
	size_t bit;
	int r;

	for (bit = 0; bit < row.len * 8; bit++) {
		bytes[bit / 8] ^= (char)(1 << bit % 8);
		row_put(f, record_key_span(&k), row);
		bytes[bit / 8] ^= (char)(1 << bit % 8);

		fixture_open(f);
		r = get(f, "a", "x", "");
		assert_true(r == VAULT_E_CORRUPT || r == VAULT_E_ROLLED_BACK);
		assert_said(f, "sandbox \"a\"");
		if (bit >= RECORD_HEAD_SIZE * 8) {
			assert_int_equal(r, VAULT_E_CORRUPT);
			assert_said(f, "credential \"x\"");
			assert_int_equal(get(f, "a", "y", "other"), 0);
		}
		assert_int_equal(get(f, "b", "x", "third"), 0);
		fixture_close(f);
	}
	row_put(f, record_key_span(&k), row);
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", "second"), 0);
	span_free(row);
}

static void damage__every_byte_of_the_upper_rows_counts(void **state)
{
	struct fixture *f = *state;
	const struct record_key keys[] = {
		manifest_key("a"),
		single_key(RECORD_TABLE_STATE),
		single_key(RECORD_TABLE_KEYRING),
	};
	struct span row;
	size_t i, at;
	char *bytes;
	int r;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		row = row_get(f, record_key_span(&keys[i]));
		bytes = (char *)(uintptr_t)row.ptr;
		for (at = 0; at < row.len; at++) {
			bytes[at] ^= 0x10;
			row_put(f, record_key_span(&keys[i]), row);
			bytes[at] ^= 0x10;
			r = fixture_try_open(f);
			if (!r) {
				assert_int_equal(i, 0);
				assert_true(get(f, "a", "x", "") > 0);
				assert_int_equal(get(f, "b", "x", "third"), 0);
			} else {
				assert_true(r > 0 || r == -EINVAL);
				assert_true(diag_is_set(&f->d));
			}
			fixture_close(f);
		}
		row_put(f, record_key_span(&keys[i]), row);
		span_free(row);
	}
	fixture_open(f);
}

static void damage__every_truncation_of_a_record_counts(void **state)
{
	struct fixture *f = *state;
	struct record_key k = value_key("a", "x");
	struct span row = row_get(f, record_key_span(&k));
	size_t len;

	for (len = 0; len < row.len; len++) {
		row_put(f, record_key_span(&k), span_of(row.ptr, len));
		fixture_open(f);
		assert_true(get(f, "a", "x", "") > 0);
		fixture_close(f);
	}
	span_free(row);
}

/* -- places and versions ------------------------------------------------- */

/* The scope is refused, the others are not. */
static void scope_is_refused(struct fixture *f)
{
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", ""), VAULT_E_ROLLED_BACK);
	assert_said(f, "the records of sandbox \"a\" are not the ones written "
		       "last");
	assert_int_equal(get(f, "a", "y", ""), VAULT_E_ROLLED_BACK);
	assert_int_equal(change_one(f, "a", VAULT_CREDENTIAL, "z", SPAN("v")),
			 VAULT_E_ROLLED_BACK);
	assert_int_equal(get(f, "b", "x", "third"), 0);
	fixture_close(f);
}

static void damage__an_older_version_is_not_served(void **state)
{
	struct fixture *f = *state;
	struct record_key k = value_key("a", "y");
	struct span old = row_get(f, record_key_span(&k));

	fixture_open(f);
	put(f, "a", "y", "newer");
	fixture_close(f);
	row_put(f, record_key_span(&k), old);
	scope_is_refused(f);
	span_free(old);
}

static void damage__a_moved_record_is_not_served(void **state)
{
	struct fixture *f = *state;
	struct record_key x = value_key("a", "x"), y = value_key("a", "y");
	struct record_key b = value_key("b", "x");
	struct span row = row_get(f, record_key_span(&x));
	struct span was = row_get(f, record_key_span(&y));

	row_put(f, record_key_span(&y), row);
	scope_is_refused(f);
	row_put(f, record_key_span(&y), was);

	row_put(f, record_key_span(&b), row); /* into another sandbox */
	fixture_open(f);
	assert_int_equal(get(f, "b", "x", ""), VAULT_E_ROLLED_BACK);
	assert_int_equal(get(f, "a", "x", "second"), 0);
	span_free(row);
	span_free(was);
}

static void damage__a_removed_record_is_missed(void **state)
{
	struct fixture *f = *state;
	struct record_key k = value_key("a", "y");

	row_put(f, record_key_span(&k), SPAN_NONE);
	scope_is_refused(f);
}

static void damage__an_added_record_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct record_key k = value_key("a", "x"), z = value_key("a", "z");
	struct record_key c = value_key("c", "x");
	struct span row = row_get(f, record_key_span(&k));

	row_put(f, record_key_span(&z), row);
	scope_is_refused(f);
	row_put(f, record_key_span(&z), SPAN_NONE);

	row_put(f, record_key_span(&c), row); /* a scope that never was */
	fixture_open(f);
	assert_int_equal(get(f, "c", "x", ""), VAULT_E_ROLLED_BACK);
	assert_int_equal(get(f, "a", "x", "second"), 0);
	span_free(row);
}

static void open_is_refused(struct fixture *f, int error, const char *said)
{
	assert_int_equal(fixture_try_open(f), error);
	assert_said(f, said);
}

static void damage__an_older_scope_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct record_key x = value_key("a", "x"), m = manifest_key("a");
	struct span old_row = row_get(f, record_key_span(&x));
	struct span old_manifest = row_get(f, record_key_span(&m));

	fixture_open(f);
	put(f, "a", "x", "newer");
	fixture_close(f);
	row_put(f, record_key_span(&x), old_row);
	row_put(f, record_key_span(&m), old_manifest);
	open_is_refused(f, VAULT_E_ROLLED_BACK, "replaced by an older one");
	span_free(old_row);
	span_free(old_manifest);
}

static void damage__an_older_state_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct record_key s = single_key(RECORD_TABLE_STATE);
	struct span old = row_get(f, record_key_span(&s));

	fixture_open(f);
	put(f, "a", "x", "newer");
	fixture_close(f);
	row_put(f, record_key_span(&s), old);
	open_is_refused(f, VAULT_E_ROLLED_BACK, "");
	row_put(f, record_key_span(&s), SPAN_NONE);
	open_is_refused(f, VAULT_E_CORRUPT, "state row is missing");
	span_free(old);
}

static void damage__an_older_store_is_noticed(void **state)
{
	struct fixture *f = *state;
	char copy[96];

	(void)snprintf(copy, sizeof(copy), "%s/copy", f->dir);
	file_copy(f->data, copy);
	fixture_open(f);
	put(f, "b", "x", "newer");
	fixture_close(f);
	file_copy(copy, f->data);
	open_is_refused(f, VAULT_E_ROLLED_BACK,
			"the store is at commit 5, but commit 6 was "
			"acknowledged");
}

static void damage__a_foreign_row_is_noticed(void **state)
{
	struct fixture *f = *state;

	row_put(f, SPAN("hello"), SPAN("world"));
	open_is_refused(f, VAULT_E_ROLLED_BACK, "not the vault's");
}

/* -- keys ---------------------------------------------------------------- */

static void damage__an_older_keyring_is_noticed(void **state)
{
	struct fixture *f = *state;
	const struct kek_source other = { .key_file = f->other_key_file };
	struct record_key k = single_key(RECORD_TABLE_KEYRING);
	struct span old = row_get(f, record_key_span(&k));

	fixture_open(f);
	assert_int_equal(vault_rotate_kek(f->v, &other, &f->d), 0);
	fixture_close(f);
	row_put(f, record_key_span(&k), old);
	open_is_refused(f, VAULT_E_ROLLED_BACK, "an older one was put back");
	span_free(old);
}

static void damage__the_keyring_before_rotate_dek_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct record_key k = single_key(RECORD_TABLE_KEYRING);
	struct span old = row_get(f, record_key_span(&k));

	fixture_open(f);
	assert_int_equal(vault_rotate_dek(f->v, &f->d), 0);
	fixture_close(f);
	row_put(f, record_key_span(&k), old);
	open_is_refused(f, VAULT_E_ROLLED_BACK,
			"an older keyring was put back");
	span_free(old);
}

/* -- the epoch file ------------------------------------------------------ */

static void damage__the_epoch_file_is_missed(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(unlink(f->epoch), 0);
	open_is_refused(f, VAULT_E_ROLLED_BACK,
			"epoch file beside the store "
			"is missing");
	file_put(f->epoch, SPAN("nonsense"));
	open_is_refused(f, VAULT_E_ROLLED_BACK, "damaged or of another store");
}

static void damage__an_emptied_store_is_not_made_anew(void **state)
{
	struct fixture *f = *state;

	file_put(f->data, SPAN(""));
	assert_int_equal(fixture_try_open(f), VAULT_E_ABSENT);
	f->d = (struct diag){ 0 };
	assert_int_equal(vault_init(&f->options, &f->d), VAULT_E_ROLLED_BACK);
	assert_said(f, "knows of commits");
	assert_int_equal(unlink(f->data), 0);
	f->d = (struct diag){ 0 };
	assert_int_equal(vault_init(&f->options, &f->d), VAULT_E_ROLLED_BACK);
	assert_int_equal(unlink(f->epoch), 0);
	assert_int_equal(vault_init(&f->options, &f->d), 0);
}

static void damage__a_torn_epoch_slot_is_survived(void **state)
{
	struct fixture *f = *state;
	struct span bytes = file_get(f->epoch);
	char *slots = (char *)(uintptr_t)bytes.ptr;

	/* epoch is 5: slot 1 is the newest, and was being written */
	memset(slots + 4096 + 24, 0, 20);
	file_put(f->epoch, bytes);
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", "second"), 0);
	span_free(bytes);
}

/* -- the file ------------------------------------------------------------ */

/* Pages are copied on write, so a row may stand in several places. */
static void bend_everywhere(struct fixture *f, struct span row, size_t at)
{
	struct span file = file_get(f->data);
	int fd = open(f->data, O_WRONLY);
	const char *from = file.ptr, *found;
	unsigned count = 0;

	while ((found = memmem(from, file.len - (size_t)(from - file.ptr),
			       row.ptr, row.len))) {
		assert_int_equal(
			pwrite(fd, "\xff", 1, found - file.ptr + (off_t)at), 1);
		from = found + 1;
		count++;
	}
	assert_true(count > 0);
	close(fd);
	span_free(file);
}

static void damage__a_change_under_an_open_vault_is_noticed(void **state)
{
	struct fixture *f = *state;
	struct record_key x = value_key("a", "x"), y = value_key("a", "y");
	struct span row = row_get(f, record_key_span(&x));
	struct span other = row_get(f, record_key_span(&y));

	fixture_open(f);
	bend_everywhere(f, row, RECORD_HEAD_SIZE + 2);
	bend_everywhere(f, other, 8);
	assert_int_equal(get(f, "a", "x", ""), VAULT_E_CORRUPT);
	assert_said(f, "is damaged");
	assert_int_equal(get(f, "a", "y", ""), VAULT_E_ROLLED_BACK);
	assert_said(f, "is not the version written last");
	span_free(other);
	span_free(row);
}

/* The value or an error, never something else. */
static void value_or_error(struct fixture *f, const char *name,
			   struct span value)
{
	struct secret *s = NULL;

	f->d = (struct diag){ 0 };
	if (!vault_get(f->v, SPAN("a"), VAULT_CREDENTIAL, span_str(name), &s,
		       NULL, &f->d))
		assert_true(span_eq(secret_open(s), value));
	secret_free(s);
}

static void damage__a_shortened_file_is_an_error(void **state)
{
	static char value[VAULT_CREDENTIAL_MAX];
	struct fixture *f = *state;
	unsigned refused = 0;
	struct span whole;
	size_t len;

	memset(value, 'v', sizeof(value));
	fixture_open(f);
	assert_int_equal(change_one(f, "a", VAULT_CREDENTIAL, "big",
				    span_of(value, sizeof(value))),
			 0);
	fixture_close(f);
	whole = file_get(f->data);
	for (len = 0; len < whole.len; len += 1000) {
		file_put(f->data, span_of(whole.ptr, len));
		if (!fixture_try_open(f)) {
			value_or_error(f, "x", SPAN("second"));
			value_or_error(f, "big", span_of(value, sizeof(value)));
		} else {
			refused++;
		}
		fixture_close(f);
	}
	assert_true(refused > 10);
	span_free(whole);
}

/* -- afterwards ---------------------------------------------------------- */

static unsigned findings;

static void on_finding(void *ctx, const struct vault_finding *finding)
{
	(void)ctx;
	assert_true(finding->error > 0);
	assert_non_null(finding->text);
	findings++;
}

static void damage__verify_names_and_repair_mends(void **state)
{
	struct fixture *f = *state;
	struct record_key x = value_key("a", "x"), y = value_key("a", "y");
	struct span row = row_get(f, record_key_span(&x));
	struct vault_counts counts;

	((char *)(uintptr_t)row.ptr)[row.len - 1] ^= 1;
	row_put(f, record_key_span(&x), row);
	row_put(f, record_key_span(&y), row); /* of x, and bent */
	row_put(f, SPAN("hello"), SPAN("world"));
	assert_int_equal(unlink(f->epoch), 0);
	span_free(row);
	assert_true(fixture_try_open(f) > 0);

	f->options.for_repair = true;
	fixture_open(f);
	findings = 0;
	assert_int_equal(vault_verify(f->v, on_finding, NULL, &counts), 0);
	assert_int_equal(findings, 4); /* the whole, a, a/x, a/y */
	assert_int_equal(counts.findings, 4);
	assert_int_equal(get(f, "b", "x", ""), VAULT_E_ROLLED_BACK);
	assert_true(vault_rotate_dek(f->v, &f->d) > 0);

	assert_int_equal(vault_repair(f->v, on_finding, NULL, &counts, &f->d),
			 0);
	assert_int_equal(get(f, "b", "x", "third"), 0);
	fixture_close(f);

	f->options.for_repair = false;
	fixture_open(f);
	assert_int_equal(vault_verify(f->v, on_finding, NULL, &counts), 0);
	assert_int_equal(counts.findings, 0);
	assert_int_equal(get(f, "a", "x", ""), VAULT_E_NOT_FOUND);
	assert_int_equal(get(f, "b", "x", "third"), 0);
	assert_int_equal(vault_revision(f->v, SPAN("a")), 4); /* was 3 */
	put(f, "a", "x", "again");
}

static void damage__putting_a_damaged_record_again_heals_it(void **state)
{
	struct fixture *f = *state;
	struct record_key x = value_key("a", "x");
	struct span row = row_get(f, record_key_span(&x));

	((char *)(uintptr_t)row.ptr)[row.len - 1] ^= 1;
	row_put(f, record_key_span(&x), row);
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", ""), VAULT_E_CORRUPT);
	put(f, "a", "x", "again");
	assert_int_equal(get(f, "a", "x", "again"), 0);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", "again"), 0);
	span_free(row);
}

int main(void)
{
#define CASE(test)                                                    \
	cmocka_unit_test_setup_teardown(damage__##test, damage_setup, \
					vault_teardown)
	const struct CMUnitTest tests[] = {
		CASE(every_bit_of_a_record_counts),
		CASE(every_byte_of_the_upper_rows_counts),
		CASE(every_truncation_of_a_record_counts),
		CASE(an_older_version_is_not_served),
		CASE(a_moved_record_is_not_served),
		CASE(a_removed_record_is_missed),
		CASE(an_added_record_is_noticed),
		CASE(an_older_scope_is_noticed),
		CASE(an_older_state_is_noticed),
		CASE(an_older_store_is_noticed),
		CASE(a_foreign_row_is_noticed),
		CASE(an_older_keyring_is_noticed),
		CASE(the_keyring_before_rotate_dek_is_noticed),
		CASE(the_epoch_file_is_missed),
		CASE(an_emptied_store_is_not_made_anew),
		CASE(a_torn_epoch_slot_is_survived),
		CASE(a_change_under_an_open_vault_is_noticed),
		CASE(a_shortened_file_is_an_error),
		CASE(verify_names_and_repair_mends),
		CASE(putting_a_damaged_record_again_heals_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
