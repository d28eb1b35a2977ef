/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - a state directory with a key file, and short words for tests */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/secret.h"
#include "vault/vault.h"

struct fixture {
	char dir[64];
	char key_file[96], other_key_file[96], data[96], epoch[96];
	struct vault_options options;
	struct vault *v;
	struct diag d; /* of the last call below */
};

static inline void file_put(const char *path, struct span bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.ptr, bytes.len), bytes.len);
	assert_int_equal(close(fd), 0);
}

/* malloc()ed; fails the test when the file cannot be read. */
static inline struct span file_get(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *bytes;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	assert_int_equal(close(fd), 0);
	return span_of(bytes, (size_t)st.st_size);
}

static inline void file_copy(const char *from, const char *to)
{
	struct span bytes = file_get(from);

	file_put(to, bytes);
	free((void *)(uintptr_t)bytes.ptr);
}

static inline bool file_has(const char *path, struct span what)
{
	struct span bytes = file_get(path);
	bool has = memmem(bytes.ptr, bytes.len, what.ptr, what.len) != NULL;

	free((void *)(uintptr_t)bytes.ptr);
	return has;
}

static inline void fixture_open(struct fixture *f)
{
	f->d = (struct diag){ 0 };
	if (vault_open(&f->options, &f->v, &f->d))
		fail_msg("%s", f->d.msg);
}

static inline int fixture_try_open(struct fixture *f)
{
	f->d = (struct diag){ 0 };
	f->v = NULL;
	return vault_open(&f->options, &f->v, &f->d);
}

static inline void fixture_close(struct fixture *f)
{
	f->v = vault_close(f->v);
}

/* Files only, no open vault. */
static inline int files_setup(void **state)
{
	struct fixture *f = must_alloc(sizeof(*f));

	/* fdatasync costs nothing in memory; the kill test uses the disk */
	(void)snprintf(f->dir, sizeof(f->dir), "%s/sallyport-vault-XXXXXX",
		       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	if (!mkdtemp(f->dir))
		return -1;
	(void)snprintf(f->key_file, 96, "%s/key", f->dir);
	(void)snprintf(f->other_key_file, 96, "%s/other-key", f->dir);
	(void)snprintf(f->data, 96, "%s/vault/data.mdb", f->dir);
	(void)snprintf(f->epoch, 96, "%s/vault/epoch", f->dir);
	file_put(f->key_file, SPAN("0123456789abcdef0123456789ABCDEF"
				   "0123456789abcdef0123456789abcdef\n"));
	file_put(f->other_key_file, SPAN("another key of exactly 32 bytes."));
	f->options.state_dir = f->dir;
	f->options.kek.key_file = f->key_file;
	*state = f;
	return 0;
}

static inline int vault_setup(void **state)
{
	struct fixture *f;

	if (files_setup(state))
		return -1;
	f = *state;
	return vault_init(&f->options, &f->d) ||
	       vault_open(&f->options, &f->v, &f->d);
}

static inline int path_remove(const char *path, const struct stat *st, int flag,
			      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static inline int vault_teardown(void **state)
{
	struct fixture *f = *state;
	int r;

	fixture_close(f);
	r = nftw(f->dir, path_remove, 8, FTW_DEPTH | FTW_PHYS);
	free(f);
	return r;
}

/* A transaction of one record; value NULL removes. Returns the result. */
static inline int change_one(struct fixture *f, const char *scope, uint8_t kind,
			     const char *name, struct span value)
{
	struct vault_txn *t = NULL;
	int r;

	f->d = (struct diag){ 0 };
	r = vault_begin(f->v, span_str(scope), -1, &t, &f->d);
	if (!r && value.ptr)
		r = vault_put(t, kind, span_str(name), value, &f->d);
	else if (!r)
		r = vault_remove(t, kind, span_str(name), &f->d);
	if (!r)
		return vault_commit(t, NULL, &f->d);
	vault_abort(t);
	return r;
}

static inline void put(struct fixture *f, const char *scope, const char *name,
		       const char *value)
{
	if (change_one(f, scope, VAULT_CREDENTIAL, name, span_str(value)))
		fail_msg("%s", f->d.msg);
}

/* What vault_get() returns; on success the value must be `value`. */
static inline int get(struct fixture *f, const char *scope, const char *name,
		      const char *value)
{
	struct secret *s = NULL;
	int r;

	f->d = (struct diag){ 0 };
	r = vault_get(f->v, span_str(scope), VAULT_CREDENTIAL, span_str(name),
		      &s, NULL, &f->d);
	if (!r)
		assert_true(span_eq(secret_open(s), span_str(value)));
	secret_free(s);
	return r;
}

static inline void assert_said(const struct fixture *f, const char *what)
{
	if (!strstr(f->d.msg, what))
		fail_msg("\"%s\" is not in \"%s\"", what, f->d.msg);
}
