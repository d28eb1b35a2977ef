/* SPDX-License-Identifier: Apache-2.0 */
/* vault.c - make, open and close a vault */

#include "vault/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/secret.h"
#include "vault/envelope.h"
#include "vault/epoch.h"
#include "vault/keyring.h"
#include "vault/store.h"

enum { MAP_BYTES = 16 * 1024 * 1024 };

static void cleanup_vault(struct vault **v)
{
	*v = vault_close(*v);
}

/* -- open ---------------------------------------------------------------- */

/* <state_dir>/vault into path. */
static int folder_path(const struct vault_options *o, char *path, size_t size,
		       struct diag *d)
{
	if (snprintf(path, size, "%s/vault", o->state_dir) < (int)size)
		return 0;
	return diag_set(d, 0, 0, "the state directory's name is too long");
}

static int folder_make(const struct vault_options *o, const char *path,
		       struct diag *d)
{
	if (mkdir(o->state_dir, 0755) != 0 && errno != EEXIST)
		return diag_set(d, 0, 0, "%s could not be made: %s",
				o->state_dir, err_text(errno));
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return diag_set(d, 0, 0, "%s could not be made: %s", path,
				err_text(errno));
	return 0;
}

static int folder_check(const char *path, struct diag *d)
{
	struct stat st;

	if (stat(path, &st) != 0 && errno == ENOENT)
		return vault_refuse(d, VAULT_E_ABSENT,
				    "there is no vault in %s: make it with "
				    "\"sallyport-vault init\"",
				    path);
	if (access(path, X_OK) != 0)
		return diag_set(d, 0, 0, "%s could not be entered: %s", path,
				err_text(errno));
	if (st.st_mode & 077)
		return diag_set(d, 0, 0,
				"%s has mode %04o, expected 0700: nobody else "
				"may reach into the vault",
				path, (unsigned)st.st_mode & 07777);
	return 0;
}

static int lock_take(const char *folder, int *ret, struct diag *d)
{
	char path[4096];
	int fd;

	if (snprintf(path, sizeof(path), "%s/lock", folder) >=
	    (int)sizeof(path))
		return err_origin(-ENAMETOOLONG);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return diag_set(d, 0, 0, "%s could not be opened: %s", path,
				err_text(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		(void)fd_close(fd);
		return vault_refuse(d, VAULT_E_HELD,
				    "the vault in %s is in use by another "
				    "process: the daemon, whose admin API "
				    "changes it while it runs, or another "
				    "sallyport-vault",
				    folder);
	}
	*ret = fd;
	return 0;
}

/* Lock, store and epoch file; nothing is read yet. */
static int files_open(struct vault *v, const struct vault_options *o,
		      bool create, struct diag *d)
{
	char folder[4000];
	int r;

	r = folder_path(o, folder, sizeof(folder), d);
	if (!r && create)
		r = folder_make(o, folder, d);
	if (!r)
		r = folder_check(folder, d);
	if (!r)
		r = lock_take(folder, &v->lock_fd, d);
	if (!r)
		r = store_open(folder, create,
			       o->map_bytes ? o->map_bytes : MAP_BYTES,
			       &v->store, d);
	if (r == -ENOENT)
		return vault_refuse(d, VAULT_E_ABSENT,
				    "there is no vault in %s: make it with "
				    "\"sallyport-vault init\"",
				    folder);
	if (r)
		return r;
	r = epoch_open(folder, create || o->for_repair, &v->epoch, d);
	return r == EPOCH_E_ABSENT ? 0 : r; /* load.c says what it means */
}

static struct vault *vault_alloc(const struct vault_options *o)
{
	struct vault *v = must_alloc(sizeof(*v));

	v->lock_fd = -1;
	v->seals_max = o->seals_max ? o->seals_max : SEALS_MAX;
	index_init(&v->index);
	refs_init(&v->refs);
	return v;
}

int vault_open(const struct vault_options *o, struct vault **ret,
	       struct diag *d)
{
	CLEANUP(cleanup_vault) struct vault *v = vault_alloc(o);
	int r;

	r = files_open(v, o, false, d);
	if (!r)
		r = vault_load(v, o, d);
	if (!r)
		*ret = take_ptr(v);
	return r;
}

struct vault *vault_close(struct vault *v)
{
	if (!v)
		return NULL;
	refs_fini(&v->refs);
	index_fini(&v->index);
	free(v->foreign);
	envelope_mac_free(v->epoch_mac);
	secret_free(v->epoch_key);
	keyring_free(v->keyring);
	epoch_free(v->epoch);
	store_free(v->store);
	v->lock_fd = fd_close(v->lock_fd); /* last: lets the next one in */
	free(v);
	return NULL;
}

void vault_rest(struct vault *v)
{
	store_rest(v->store);
}

/* -- init ---------------------------------------------------------------- */

static int init_write(void *ctx, struct store_txn *st)
{
	struct vault *v = ctx;
	struct vault_state state = { .epoch = 1 };
	char row[KEYRING_ROW_SIZE];
	struct record_key key;
	int r;

	record_key_single(&key, RECORD_TABLE_KEYRING);
	r = keyring_emit(v->keyring, row);
	if (!r)
		r = store_put(st, record_key_span(&key),
			      span_of(row, sizeof(row)));
	if (!r)
		r = vault_state_write(st, v->keyring, v->epoch_key, &state);
	if (!r)
		v->state = state;
	return r;
}

static int store_is_empty(void *ctx, struct span key, struct span value)
{
	(void)ctx;
	(void)key;
	(void)value;
	return VAULT_E_EXISTS;
}

static int init_check(struct vault *v, const struct vault_options *o,
		      struct diag *d)
{
	int r = store_read_begin(v->store);

	if (r)
		return r;
	r = store_each(v->store, store_is_empty, NULL);
	store_read_end(v->store);
	if (r == VAULT_E_EXISTS)
		return vault_refuse(d, VAULT_E_EXISTS,
				    "there is a vault in %s/vault already, and "
				    "it is not overwritten",
				    o->state_dir);
	if (!r && epoch_is_used(v->epoch))
		return vault_refuse(d, VAULT_E_ROLLED_BACK,
				    "the store in %s/vault is empty, but the "
				    "epoch file beside it knows of commits: "
				    "restore the store, or remove the file to "
				    "begin anew",
				    o->state_dir);
	return r;
}

int vault_init(const struct vault_options *o, struct diag *d)
{
	CLEANUP(cleanup_vault) struct vault *v = vault_alloc(o);
	int r;

	r = files_open(v, o, true, d);
	if (!r)
		r = init_check(v, o, d);
	if (!r)
		r = keyring_new(&o->kek, &v->keyring, d);
	if (!r)
		r = secret_new(STATE_EPOCH_KEY, &v->epoch_key);
	if (r)
		return r;
	envelope_random(secret_fill(v->epoch_key), STATE_EPOCH_KEY);
	r = envelope_mac_new(v->epoch_key, &v->epoch_mac);
	/* commit 0 outside first: a crash between leaves no store, and init
	 * may run again; the other way round would leave a store that cannot
	 * be opened */
	if (!r)
		r = vault_epoch_write(v, d);
	if (!r)
		r = store_write(v->store, init_write, v);
	if (!r)
		r = vault_epoch_write(v, d);
	if (r < 0)
		(void)diag_set(d, 0, 0, "the vault could not be made: %s",
			       err_text(r));
	return r;
}
