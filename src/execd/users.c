/* SPDX-License-Identifier: Apache-2.0 */
/* users.c - passwd(5) and group(5), kept as text with two tables of its lines
 *
 * The files belong to the image, and the workload may write what it likes into
 * them: a line that is not of the form is skipped, and of a file larger than
 * FILE_MAX_BYTES nothing is believed. Every file of a list may have another
 * owner, so a name is not looked for from the beginning: a table of hashes says
 * at which line it stands, another one does so for numbers.
 */

#include "src/execd/users.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/map.h"
#include "src/execd/whole.h"

enum { FILE_MAX_BYTES = 1024 * 1024, FIELDS_MAX = 7 };

/* Lines by their names, or by their numbers: open addressing. */
struct index {
	uint32_t *slots; /* where the line begins, + 1; 0: free */
	size_t size;	 /* a power of two, twice the lines and more; or 0 */
};

/* A line, cut at its colons; fields that are not there are empty. */
struct row {
	struct span fields[FIELDS_MAX];
	uint32_t id;
};

/* What a file said when it was last looked at. */
struct table {
	const char *path;
	/* Is the row one at all? Sets its id. */
	bool (*fits)(struct row *row);
	struct buf text;
	struct index names, ids;
	struct timespec changed;
	ino_t inode;
	off_t size;
};

enum { PASSWD_NAME = 0, PASSWD_UID = 2, PASSWD_GID = 3, PASSWD_HOME = 5 };
enum { GROUP_NAME = 0, GROUP_GID = 2, GROUP_MEMBERS = 3 };

static bool user_fits(struct row *row);
static bool group_fits(struct row *row);

static struct table passwd = { .path = "/etc/passwd",
			       .fits = user_fits,
			       .text = BUF_INIT(FILE_MAX_BYTES) };
static struct table group = { .path = "/etc/group",
			      .fits = group_fits,
			      .text = BUF_INIT(FILE_MAX_BYTES) };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- rows ----------------------------------------------------------------- */

/* The next line that is a row; false at the end. */
static bool row_next(struct span *text, struct row *row)
{
	struct span line;
	unsigned i;

	while (text->len) {
		line = span_cut(text, '\n');
		if (!line.len || line.ptr[0] == '#')
			continue;
		for (i = 0; i < FIELDS_MAX; i++)
			row->fields[i] = SPAN("");
		for (i = 0; i < FIELDS_MAX && line.len; i++)
			row->fields[i] = span_cut(&line, ':');
		if (row->fields[0].len)
			return true;
	}
	return false;
}

/* uid or gid; (uint32_t)-1 means "none" to the kernel and is no id. */
static bool id_parse(struct span s, uint32_t *ret)
{
	uint64_t v;

	if (!span_parse_u64(s, &v) || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static bool is_text(struct span s, size_t size)
{
	return s.len < size && !span_has(s, '\0');
}

static bool user_fits(struct row *row)
{
	uint32_t gid;

	return id_parse(row->fields[PASSWD_UID], &row->id) &&
	       id_parse(row->fields[PASSWD_GID], &gid) &&
	       is_text(row->fields[PASSWD_NAME], USERS_NAME_SIZE) &&
	       is_text(row->fields[PASSWD_HOME], USERS_HOME_SIZE);
}

static bool group_fits(struct row *row)
{
	return id_parse(row->fields[GROUP_GID], &row->id) &&
	       is_text(row->fields[GROUP_NAME], USERS_NAME_SIZE);
}

/* -- the tables ----------------------------------------------------------- */

static size_t count_lines(struct span text)
{
	size_t count = 1;

	for (; text.len; count++)
		(void)span_cut(&text, '\n');
	return count;
}

static void index_init(struct index *x, size_t lines)
{
	for (x->size = 16; x->size < 2 * lines;)
		x->size *= 2;
	x->slots = must_alloc(x->size * sizeof(*x->slots));
}

static void index_fini(struct index *x)
{
	free(x->slots);
	*x = (struct index){ 0 };
}

/* By the name, or by the id when name.ptr is NULL: the slot where it is, with
 * *row, or the free one where it would be. */
static uint32_t *index_find(const struct table *t, struct span name,
			    uint32_t id, struct row *row)
{
	const struct index *x = name.ptr ? &t->names : &t->ids;
	const struct span all = buf_peek(&t->text);
	struct span key = name.ptr ? name : span_of(&id, sizeof(id)), rest;
	size_t at = (size_t)map_hash(key);

	for (;; at++) {
		at &= x->size - 1;
		if (!x->slots[at])
			return &x->slots[at];
		rest = span_from(all, x->slots[at] - 1);
		must(row_next(&rest, row) && t->fits(row));
		if (name.ptr ? span_eq(row->fields[0], name) : row->id == id)
			return &x->slots[at];
	}
}

/* The first line with a name or a number is the one that counts. */
static void table_index(struct table *t)
{
	const struct span all = buf_peek(&t->text);
	struct span rest = all;
	struct row row, other;
	uint32_t *slot, at;

	index_init(&t->names, count_lines(all));
	index_init(&t->ids, count_lines(all));
	while (row_next(&rest, &row)) {
		if (!t->fits(&row))
			continue;
		at = (uint32_t)(row.fields[0].ptr - all.ptr) + 1;
		slot = index_find(t, row.fields[0], 0, &other);
		if (!*slot)
			*slot = at;
		slot = index_find(t, SPAN_NONE, row.id, &other);
		if (!*slot)
			*slot = at;
	}
}

static bool table_is_fresh(const struct table *t, const struct stat *st)
{
	return t->names.size && t->inode == st->st_ino &&
	       t->size == st->st_size &&
	       t->changed.tv_sec == st->st_ctim.tv_sec &&
	       t->changed.tv_nsec == st->st_ctim.tv_nsec;
}

static void table_forget(struct table *t)
{
	buf_fini(&t->text);
	index_fini(&t->names);
	index_fini(&t->ids);
}

/* Its text of now; with the lock. */
static struct span table_read(struct table *t)
{
	struct stat st;
	int r;

	if (stat(t->path, &st))
		st = (struct stat){ 0 };
	if (table_is_fresh(t, &st))
		return buf_peek(&t->text);

	table_forget(t);
	t->inode = st.st_ino;
	t->size = st.st_size;
	t->changed = st.st_ctim;
	r = st.st_ino ? whole_read(t->path, &t->text) : 0;
	if (r)
		buf_clear(&t->text);
	if (r == -EACCES || r == -EPERM) {
		/* this thread may be a user who may not: the next may */
		t->inode = 0;
		t->size = -1;
	}
	table_index(t);
	return buf_peek(&t->text);
}

/* With the lock; the row is good as long as that is held. */
static bool table_find(struct table *t, struct span name, uint32_t id,
		       struct row *row)
{
	(void)table_read(t);
	return *index_find(t, name, id, row) != 0;
}

/* -- users ---------------------------------------------------------------- */

/* By the name, or by the id when name.ptr is NULL. */
static bool user_find(struct span name, uid_t uid, struct user *ret)
{
	struct row row;
	uint32_t gid;
	bool found;

	must(pthread_mutex_lock(&lock) == 0);
	found = table_find(&passwd, name, uid, &row);
	if (found) {
		must(span_copy(row.fields[PASSWD_NAME], ret->name,
			       sizeof(ret->name)) &&
		     span_copy(row.fields[PASSWD_HOME], ret->home,
			       sizeof(ret->home)) &&
		     id_parse(row.fields[PASSWD_GID], &gid));
		ret->uid = row.id;
		ret->gid = gid;
	}
	(void)pthread_mutex_unlock(&lock);
	return found;
}

bool users_by_name(struct span name, struct user *ret)
{
	return name.len && user_find(name, 0, ret);
}

bool users_by_id(uid_t uid, struct user *ret)
{
	return user_find(SPAN_NONE, uid, ret);
}

void users_name(uid_t uid, char dst[USERS_NAME_SIZE])
{
	struct user u;

	if (users_by_id(uid, &u))
		memcpy(dst, u.name, sizeof(u.name));
	else
		(void)snprintf(dst, USERS_NAME_SIZE, "%u", (unsigned)uid);
}

/* -- groups --------------------------------------------------------------- */

bool groups_by_name(struct span name, gid_t *ret)
{
	struct row row;
	bool found;

	if (!name.len)
		return false;
	must(pthread_mutex_lock(&lock) == 0);
	found = table_find(&group, name, 0, &row);
	if (found)
		*ret = row.id;
	(void)pthread_mutex_unlock(&lock);
	return found;
}

void groups_name(gid_t gid, char dst[USERS_NAME_SIZE])
{
	struct row row;

	must(pthread_mutex_lock(&lock) == 0);
	if (table_find(&group, SPAN_NONE, gid, &row))
		must(span_copy(row.fields[GROUP_NAME], dst, USERS_NAME_SIZE));
	else
		(void)snprintf(dst, USERS_NAME_SIZE, "%u", (unsigned)gid);
	(void)pthread_mutex_unlock(&lock);
}

static bool has_member(struct span members, struct span user)
{
	while (members.len)
		if (span_eq(span_trim(span_cut(&members, ',')), user))
			return true;
	return false;
}

unsigned groups_of(const char *user, gid_t *dst, unsigned max)
{
	struct span text;
	struct row row;
	unsigned count = 0;

	must(pthread_mutex_lock(&lock) == 0);
	text = table_read(&group);
	while (count < max && row_next(&text, &row))
		if (has_member(row.fields[GROUP_MEMBERS], span_str(user)) &&
		    id_parse(row.fields[GROUP_GID], &dst[count]))
			count++;
	(void)pthread_mutex_unlock(&lock);
	return count;
}

/* -- tests ---------------------------------------------------------------- */

static void table_reset(struct table *t, const char *path)
{
	table_forget(t);
	t->path = path;
}

void users_set_files(const char *passwd_path, const char *group_path)
{
	must(pthread_mutex_lock(&lock) == 0);
	table_reset(&passwd, passwd_path);
	table_reset(&group, group_path);
	(void)pthread_mutex_unlock(&lock);
}
