/* SPDX-License-Identifier: Apache-2.0 */
/* test_keys.c - sources of the KEK, changes of keys, and who else may open */

#include "tests/unit/vault/fixture.h"

#include <errno.h>

#include "vault/envelope.h"
#include "vault/keyring.h"

/* What kek_read() says of a key file with these bytes; "" = fine. */
static void key_file_is(struct fixture *f, struct span bytes, const char *said)
{
	const struct kek_params raw = { .method = KEK_RAW };
	struct secret *key = NULL;
	int r;

	f->d = (struct diag){ 0 };
	file_put(f->key_file, bytes);
	r = kek_read(&f->options.kek, &raw, &key, &f->d);
	assert_int_equal(r != 0, *said != '\0');
	assert_said(f, said);
	secret_free(key);
}

static void keys__a_key_file_holds_32_bytes_or_64_digits(void **state)
{
	static const char hex[] = "00112233445566778899aabbccddeeff"
				  "00112233445566778899AABBCCDDEEFF";
	struct fixture *f = *state;

	key_file_is(f, SPAN("exactly thirty-two bytes long..."), "");
	key_file_is(f, SPAN("31 bytes and no newline here..."), "found 31");
	key_file_is(f, span_of(hex, 64), "");
	key_file_is(f,
		    SPAN("00112233445566778899aabbccddeeff"
			 "00112233445566778899AABBCCDDEEFF\r\n"),
		    "");
	key_file_is(f, span_of(hex, 63), "found 63");
	key_file_is(f,
		    SPAN("00112233445566778899aabbccddeeff"
			 "00112233445566778899AABBCCDDEEFg"),
		    "expected 32 bytes or 64 hex digits");
	key_file_is(f,
		    SPAN("00112233445566778899aabbccddeeff"
			 "00112233445566778899AABBCCDDEEFF0011"),
		    "or more");
	key_file_is(f, SPAN(""), "found 0");
}

static void keys__a_key_file_is_private(void **state)
{
	static const mode_t open_modes[] = { 0640, 0604, 0620, 0610, 0666 };
	const struct kek_params raw = { .method = KEK_RAW };
	struct fixture *f = *state;
	struct secret *key = NULL;
	size_t i;

	for (i = 0; i < ARRAY_LEN(open_modes); i++) {
		f->d = (struct diag){ 0 };
		assert_int_equal(chmod(f->key_file, open_modes[i]), 0);
		assert_true(kek_read(&f->options.kek, &raw, &key, &f->d) < 0);
		assert_said(f, "expected 0600 or 0400");
	}
	assert_int_equal(chmod(f->key_file, 0400), 0);
	assert_int_equal(kek_read(&f->options.kek, &raw, &key, &f->d), 0);
	secret_free(key);
}

static void keys__the_source_must_be_one(void **state)
{
	const struct kek_params raw = { .method = KEK_RAW };
	struct fixture *f = *state;
	struct kek_source s = { 0 };
	struct secret *key = NULL;

	assert_true(kek_read(&s, &raw, &key, &f->d) < 0);
	assert_said(f, "found no source");
	f->d = (struct diag){ 0 };
	s.key_file = s.passphrase_file = f->key_file;
	assert_true(kek_read(&s, &raw, &key, &f->d) < 0);
	assert_said(f, "more than one");
	f->d = (struct diag){ 0 };
	s.key_file = NULL;
	assert_true(kek_read(&s, &raw, &key, &f->d) < 0);
	assert_said(f, "sealed with a key, but a passphrase was given");
	f->d = (struct diag){ 0 };
	s.passphrase_file = NULL;
	s.key_file = f->dir;
	assert_true(kek_read(&s, &raw, &key, &f->d) < 0);
	assert_said(f, "not a regular file");
}

static void keys__a_credential_of_systemd(void **state)
{
	const struct kek_params raw = { .method = KEK_RAW };
	struct fixture *f = *state;
	const struct kek_source s = { .credential = "key" };
	const struct kek_source up = { .credential = "../key" };
	struct secret *key = NULL;

	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
	assert_true(kek_read(&s, &raw, &key, &f->d) < 0);
	assert_said(f, "CREDENTIALS_DIRECTORY is not set");
	assert_int_equal(setenv("CREDENTIALS_DIRECTORY", f->dir, 1), 0);
	assert_int_equal(kek_read(&s, &raw, &key, &f->d), 0);
	secret_free(key);
	f->d = (struct diag){ 0 };
	assert_true(kek_read(&up, &raw, &key, &f->d) < 0);
	assert_said(f, "plain name");
	assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
}

static void keys__a_passphrase_opens_what_it_sealed(void **state)
{
	struct fixture *f = *state;
	const struct kek_source phrase = { .passphrase_file = f->key_file };

	f->options.kek = phrase;
	file_put(f->key_file, SPAN("short\n"));
	assert_true(vault_init(&f->options, &f->d) < 0);
	assert_said(f, "too short");
	file_put(f->key_file, SPAN("correct horse battery staple\n"));
	f->d = (struct diag){ 0 };
	assert_int_equal(vault_init(&f->options, &f->d), 0);
	fixture_open(f);
	put(f, "", "x", "value");
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(get(f, "", "x", "value"), 0);
	fixture_close(f);

	file_put(f->key_file, SPAN("correct horse battery stable\n"));
	assert_int_equal(fixture_try_open(f), VAULT_E_WRONG_KEY);
	assert_said(f, "the passphrase given is not the one");
}

static void keys__weak_scrypt_is_refused(void **state)
{
	struct kek_params p;
	const struct kek_source phrase = { .passphrase_file = "x" };

	(void)state;
	kek_params_new(&phrase, &p);
	assert_true(p.log2_n >= 15);
	assert_true(kek_params_are_sane(&p));
	p.log2_n = 14;
	assert_false(kek_params_are_sane(&p));
	p.log2_n = 30; /* a gigabyte-sized surprise */
	assert_false(kek_params_are_sane(&p));
	p.log2_n = 17;
	p.block = 1;
	assert_false(kek_params_are_sane(&p));
	p.method = KEK_NONE;
	assert_false(kek_params_are_sane(&p));
}

/* -- an open vault ------------------------------------------------------- */

static void keys__a_wrong_key_is_said(void **state)
{
	struct fixture *f = *state;

	fixture_close(f);
	f->options.kek.key_file = f->other_key_file;
	assert_int_equal(fixture_try_open(f), VAULT_E_WRONG_KEY);
	assert_said(f, "the key given is not the one that this vault was "
		       "sealed with");
}

static void keys__init_overwrites_nothing(void **state)
{
	struct fixture *f = *state;

	put(f, "", "x", "value");
	assert_int_equal(vault_init(&f->options, &f->d), VAULT_E_HELD);
	fixture_close(f);
	f->d = (struct diag){ 0 };
	assert_int_equal(vault_init(&f->options, &f->d), VAULT_E_EXISTS);
	assert_said(f, "is not overwritten");
	fixture_open(f);
	assert_int_equal(get(f, "", "x", "value"), 0);
}

static void keys__one_process_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct vault *second = NULL;

	assert_int_equal(vault_open(&f->options, &second, &f->d), VAULT_E_HELD);
	assert_said(f, "in use by another process");
	fixture_close(f);
	fixture_open(f);
}

static void keys__absent_is_said(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(fixture_try_open(f), VAULT_E_ABSENT);
	assert_said(f, "make it with");
}

static void keys__files_are_private(void **state)
{
	static const char *const names[] = { "data.mdb", "epoch", "lock" };
	struct fixture *f = *state;
	char path[160];
	struct stat st;
	size_t i;

	(void)snprintf(path, sizeof(path), "%s/vault", f->dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		(void)snprintf(path, sizeof(path), "%s/vault/%s", f->dir,
			       names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	fixture_close(f);
	(void)snprintf(path, sizeof(path), "%s/vault", f->dir);
	assert_int_equal(chmod(path, 0755), 0);
	assert_true(fixture_try_open(f) < 0);
	assert_said(f, "expected 0700");
}

static void keys__rotate_kek_changes_who_may_open(void **state)
{
	struct fixture *f = *state;
	const struct kek_source other = { .key_file = f->other_key_file };

	put(f, "a", "x", "value");
	assert_int_equal(vault_rotate_kek(f->v, &other, &f->d), 0);
	put(f, "a", "y", "after");
	fixture_close(f);
	assert_int_equal(fixture_try_open(f), VAULT_E_WRONG_KEY);
	f->options.kek = other;
	fixture_open(f);
	assert_int_equal(get(f, "a", "x", "value"), 0);
	assert_int_equal(get(f, "a", "y", "after"), 0);
	assert_int_equal(vault_revision(f->v, SPAN("a")), 2);
}

static void keys__rotate_dek_changes_every_row(void **state)
{
	struct fixture *f = *state;
	struct vault_counts counts;
	char name[16];
	int i;

	for (i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "n%d", i);
		put(f, i % 2 ? "a" : "b", name, name);
	}
	assert_int_equal(change_one(f, "a", VAULT_BINDING, "b",
				    SPAN("{\"auth\":{\"credential\":"
					 "\"n1\"}}")),
			 0);
	assert_int_equal(vault_rotate_dek(f->v, &f->d), 0);
	assert_int_equal(vault_rotate_dek(f->v, &f->d), 0);
	assert_int_equal(get(f, "a", "n1", "n1"), 0);
	fixture_close(f);
	fixture_open(f);
	assert_int_equal(vault_verify(f->v, NULL, NULL, &counts), 0);
	assert_int_equal(counts.records, 51);
	assert_int_equal(counts.findings, 0);
	assert_int_equal(get(f, "b", "n48", "n48"), 0);
	assert_int_equal(vault_revision(f->v, SPAN("b")), 25);
	assert_true(vault_is_named(f->v, SPAN("a"), SPAN("n1")));
}

static void keys__the_store_holds_no_clear_value(void **state)
{
	struct fixture *f = *state;
	const struct kek_source other = { .key_file = f->other_key_file };
	struct span key = file_get(f->other_key_file);

	put(f, "", "named-in-clear", "PLAINTEXT-VALUE-0123456789");
	put(f, "", "gone", "PLAINTEXT-VALUE-0123456789");
	assert_int_equal(change_one(f, "", VAULT_CREDENTIAL, "gone", SPAN_NONE),
			 0);
	assert_int_equal(change_one(f, "", VAULT_POLICY, "p",
				    SPAN("{\"PLAINTEXT-VALUE\":1}")),
			 0);
	assert_int_equal(vault_rotate_dek(f->v, &f->d), 0);
	assert_int_equal(vault_rotate_kek(f->v, &other, &f->d), 0);
	fixture_close(f);
	assert_true(file_has(f->data, SPAN("named-in-clear")));
	assert_false(file_has(f->data, SPAN("PLAINTEXT")));
	assert_false(file_has(f->data, span_of(key.ptr, 16)));
	assert_false(file_has(f->epoch, span_of(key.ptr, 16)));
	free((void *)(uintptr_t)key.ptr);
}

static void keys__a_new_key_file_is_private_and_new(void **state)
{
	struct fixture *f = *state;
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/fresh", f->dir);
	assert_int_equal(kek_file_new(path, &f->d), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, KEK_SIZE);
	assert_int_equal(kek_file_new(path, &f->d), -EEXIST);
}

/* RFC 7914 section 12 has no vector with 32 bytes of output and our N; the
 * first 32 bytes of one of 64 are the same, PBKDF2's blocks being separate. */
static void keys__scrypt_is_scrypt(void **state)
{
	static const uint8_t expected[32] = {
		0x70, 0x23, 0xbd, 0xcb, 0x3a, 0xfd, 0x73, 0x48,
		0x46, 0x1c, 0x06, 0xcd, 0x81, 0xfd, 0x38, 0xeb,
		0xfd, 0xa8, 0xfb, 0xba, 0x90, 0x4f, 0x8e, 0x3e,
		0xa9, 0xb5, 0x43, 0xf6, 0x54, 0x5d, 0xa1, 0xf2,
	};
	struct secret *pass = NULL, *key = NULL;

	(void)state;
	assert_int_equal(secret_dup(SPAN("pleaseletmein"), &pass), 0);
	assert_int_equal(
		envelope_scrypt(pass, SPAN("SodiumChloride"), 14, 8, 1, &key),
		0);
	assert_memory_equal(secret_open(key).ptr, expected, sizeof(expected));
	secret_free(key);
	secret_free(pass);
}

int main(void)
{
#define FILES(test)                                                \
	cmocka_unit_test_setup_teardown(keys__##test, files_setup, \
					vault_teardown)
#define VAULT(test)                                                \
	cmocka_unit_test_setup_teardown(keys__##test, vault_setup, \
					vault_teardown)
	const struct CMUnitTest tests[] = {
		FILES(a_key_file_holds_32_bytes_or_64_digits),
		FILES(a_key_file_is_private),
		FILES(the_source_must_be_one),
		FILES(a_credential_of_systemd),
		FILES(a_passphrase_opens_what_it_sealed),
		FILES(weak_scrypt_is_refused),
		FILES(a_new_key_file_is_private_and_new),
		FILES(scrypt_is_scrypt),
		FILES(absent_is_said),
		VAULT(a_wrong_key_is_said),
		VAULT(init_overwrites_nothing),
		VAULT(one_process_at_a_time),
		VAULT(files_are_private),
		VAULT(rotate_kek_changes_who_may_open),
		VAULT(rotate_dek_changes_every_row),
		VAULT(the_store_holds_no_clear_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
