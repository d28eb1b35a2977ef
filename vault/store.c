/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - one LMDB database in one environment
 *
 * How it works: the vault's own lock file keeps every other process out, so
 * LMDB's lock table is not used (MDB_NOLOCK) and its single-writer rule holds
 * by itself. Writes are synchronous and go through write(2), not through the
 * map: LMDB's pages are copied, synced, and only then named by a new meta
 * page, so a process killed at any point leaves the previous or the new state.
 *
 * What was read stays mapped, and counts as our memory, for as long as nobody
 * says otherwise: after large values, or many, it is given up at the end of the
 * reading. It stays in the page cache, for the next. Writing reads as well: the
 * pages that it copies, and the list of those that are free. Where they lie only
 * LMDB knows, so at rest it is made to map the file anew.
 *
 * A data file that is there is whole: LMDB writes the two meta pages of a new
 * one with a call that a signal may end after the first, so it does that under
 * another name, and rename(2) gives the file its own.
 *
 * A data file that is shorter than its meta page says would end this process
 * with SIGBUS at the first touch of a missing page. It is extended with zeros
 * when it is opened: a page of zeros is no LMDB page and reads as corruption,
 * which is an error and not a signal.
 */

#include "vault/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lmdb.h>

#include "src/base/diag.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/log.h"

enum { PAGE_BYTES = 4096 };

static const size_t map_max = (size_t)64 << 30;

struct store {
	MDB_env *env;
	MDB_dbi dbi;
	MDB_txn *read; /* reset between reads */
	size_t map_bytes;
	bool reading;
	uintptr_t low, high; /* values that this reading saw lie between */
};

struct store_txn {
	struct store *store;
	MDB_txn *txn;
};

/* Every MDB code ends here. */
static int store_error(int code)
{
	if (code == MDB_SUCCESS)
		return 0;
	if (code == MDB_NOTFOUND)
		return STORE_E_ABSENT;
	if (code == MDB_MAP_FULL)
		return STORE_E_FULL;
	log_debug("LMDB: %s", mdb_strerror(code));
	switch (code) {
	case MDB_TXN_FULL:
		return err_origin(-EFBIG);
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_INCOMPATIBLE:
		return err_origin(-EUCLEAN);
	default:
		return err_origin(code > 0 ? -code : -EIO);
	}
}

static MDB_val val_of(struct span s)
{
	/* LMDB takes no const, and writes through neither */
	return (MDB_val){ s.len, (void *)(uintptr_t)s.ptr };
}

static struct span span_of_val(MDB_val v)
{
	return span_of(v.mv_data, v.mv_size);
}

/* See "shorter than its meta page says" above. */
static int file_extend(struct store *s)
{
	struct stat st;
	MDB_envinfo info;
	MDB_stat stat;
	off_t whole;
	int fd;

	if (mdb_env_get_fd(s->env, &fd) || fstat(fd, &st) != 0 ||
	    mdb_env_info(s->env, &info) || mdb_env_stat(s->env, &stat))
		return err_origin(-EIO);
	whole = (off_t)((info.me_last_pgno + 1) * stat.ms_psize);
	if (st.st_size < whole && ftruncate(fd, whole) != 0)
		return err_origin(-errno);
	return 0;
}

static int database_open(struct store *s)
{
	MDB_txn *txn;
	int r;

	r = store_error(mdb_txn_begin(s->env, NULL, MDB_RDONLY, &txn));
	if (r)
		return r;
	r = store_error(mdb_dbi_open(txn, NULL, 0, &s->dbi));
	if (r) {
		mdb_txn_abort(txn);
		return r;
	}
	mdb_txn_reset(txn); /* kept for every read to come */
	s->read = txn;
	return 0;
}

static int environment_open(struct store *s, const char *path)
{
	int r;

	r = store_error(mdb_env_create(&s->env));
	if (r)
		return r;
	/* a store that has grown keeps the larger size by itself */
	r = store_error(mdb_env_set_mapsize(s->env, s->map_bytes));
	if (!r)
		r = store_error(mdb_env_open(s->env, path,
					     MDB_NOSUBDIR | MDB_NOLOCK |
						     MDB_NOTLS | MDB_NORDAHEAD,
					     0600));
	if (!r)
		r = file_extend(s);
	if (!r)
		r = database_open(s);
	return r;
}

static int folder_sync(const char *folder)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = 0;

	if (fd < 0)
		return err_origin(-errno);
	if (fsync(fd) != 0)
		r = err_origin(-errno);
	(void)fd_close(fd);
	return r;
}

/* A new data file, whole or not there: what one that was killed left under the
 * other name is nobody's. */
static int data_make(const char *folder, const char *path, size_t map_bytes)
{
	struct store *s;
	char draft[4104];
	int r;

	(void)snprintf(draft, sizeof(draft), "%s.new", path);
	if (unlink(draft) != 0 && errno != ENOENT)
		return err_origin(-errno);
	s = must_alloc(sizeof(*s));
	s->map_bytes = map_bytes;
	r = environment_open(s, draft);
	if (!r)
		r = store_error(mdb_env_sync(s->env, 1));
	store_free(s);
	if (r)
		return r;
	if (rename(draft, path) != 0)
		return err_origin(-errno);
	return folder_sync(folder);
}

int store_open(const char *folder, bool create, size_t map_bytes,
	       struct store **ret, struct diag *d)
{
	struct store *s;
	MDB_envinfo info;
	char path[4096];
	int r = 0;

	if (snprintf(path, sizeof(path), "%s/data.mdb", folder) >=
	    (int)sizeof(path))
		return err_origin(-ENAMETOOLONG);
	map_bytes = MAX(map_bytes, (size_t)STORE_MAP_MIN);
	if (access(path, F_OK) != 0) {
		if (!create || errno != ENOENT)
			return -errno;
		r = data_make(folder, path, map_bytes);
	}

	s = must_alloc(sizeof(*s));
	s->map_bytes = map_bytes;
	if (!r)
		r = environment_open(s, path);
	if (r) {
		store_free(s);
		(void)diag_set(d, 0, 0, "%s could not be opened: %s", path,
			       r == -EUCLEAN ? "it is no intact LMDB file"
					     : err_text(r));
		return r < 0 ? r : err_origin(-EIO);
	}
	must(mdb_env_info(s->env, &info) == 0);
	s->map_bytes = info.me_mapsize;
	*ret = s;
	return 0;
}

struct store *store_free(struct store *s)
{
	if (!s)
		return NULL;
	if (s->read)
		mdb_txn_abort(s->read);
	if (s->env)
		mdb_env_close(s->env);
	free(s);
	return NULL;
}

int store_read_begin(struct store *s)
{
	int r;

	must(!s->reading);
	r = store_error(mdb_txn_renew(s->read));
	if (r)
		return r;
	s->reading = true;
	s->low = UINTPTR_MAX;
	s->high = 0;
	return 0;
}

static void saw(struct store *s, struct span value)
{
	uintptr_t at = (uintptr_t)value.ptr;

	s->low = MIN(s->low, at);
	s->high = MAX(s->high, at + value.len);
}

/* A page or two are needed again at once. */
static void give_up_pages(const struct store *s)
{
	uintptr_t low = s->low & ~(uintptr_t)(PAGE_BYTES - 1);

	if (s->high > low + 2 * (uintptr_t)PAGE_BYTES)
		(void)madvise((void *)low, s->high - low, MADV_DONTNEED);
}

void store_read_end(struct store *s)
{
	must(s->reading);
	mdb_txn_reset(s->read);
	s->reading = false;
	give_up_pages(s);
}

static int find(MDB_txn *txn, MDB_dbi dbi, struct span key, struct span *ret)
{
	MDB_val k = val_of(key), v;
	int r = store_error(mdb_get(txn, dbi, &k, &v));

	if (!r)
		*ret = span_of_val(v);
	return r;
}

int store_find(struct store *s, struct span key, struct span *ret)
{
	int r;

	must(s->reading);
	r = find(s->read, s->dbi, key, ret);
	if (!r)
		saw(s, *ret);
	return r;
}

int store_txn_find(struct store_txn *t, struct span key, struct span *ret)
{
	return find(t->txn, t->store->dbi, key, ret);
}

int store_each(struct store *s, store_each_fn *fn, void *ctx)
{
	MDB_cursor *cursor;
	MDB_val k, v;
	int r;

	must(s->reading);
	r = store_error(mdb_cursor_open(s->read, s->dbi, &cursor));
	if (r)
		return r;
	while (!(r = store_error(mdb_cursor_get(cursor, &k, &v, MDB_NEXT)))) {
		saw(s, span_of_val(v));
		r = fn(ctx, span_of_val(k), span_of_val(v));
		if (r)
			break;
	}
	mdb_cursor_close(cursor);
	return r == STORE_E_ABSENT ? 0 : r;
}

/* Without the map nothing could be read: better begin anew. */
void store_rest(struct store *s)
{
	must(!s->reading);
	must(mdb_env_set_mapsize(s->env, s->map_bytes) == MDB_SUCCESS);
}

static int map_grow(struct store *s)
{
	size_t bytes = s->map_bytes * 2;
	int r;

	if (bytes > map_max)
		return err_origin(-ENOSPC);
	r = store_error(mdb_env_set_mapsize(s->env, bytes));
	if (!r)
		s->map_bytes = bytes;
	return r;
}

static int write_once(struct store *s, store_write_fn *fn, void *ctx)
{
	struct store_txn t = { .store = s };
	int r;

	r = store_error(mdb_txn_begin(s->env, NULL, 0, &t.txn));
	if (r)
		return r;
	r = fn(ctx, &t);
	if (r) {
		mdb_txn_abort(t.txn);
		return r;
	}
	return store_error(mdb_txn_commit(t.txn)); /* frees it either way */
}

int store_write(struct store *s, store_write_fn *fn, void *ctx)
{
	int r;

	must(!s->reading);
	while ((r = write_once(s, fn, ctx)) == STORE_E_FULL) {
		r = map_grow(s);
		if (r)
			return r;
	}
	return r;
}

int store_put(struct store_txn *t, struct span key, struct span value)
{
	MDB_val k = val_of(key), v = val_of(value);

	return store_error(mdb_put(t->txn, t->store->dbi, &k, &v, 0));
}

int store_delete(struct store_txn *t, struct span key)
{
	MDB_val k = val_of(key);
	int r = store_error(mdb_del(t->txn, t->store->dbi, &k, NULL));

	return r == STORE_E_ABSENT ? 0 : r;
}
