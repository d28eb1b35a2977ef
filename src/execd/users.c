/* SPDX-License-Identifier: Apache-2.0 */
/* users.c - passwd(5) and group(5), kept as text and searched line by line
 *
 * The files belong to the image, and the workload may write what it likes into
 * them: a line that is not of the form is skipped, and of a file larger than
 * FILE_MAX_BYTES nothing is believed.
 */

#include "src/execd/users.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/execd/whole.h"

enum { FILE_MAX_BYTES = 4 * 1024 * 1024, FIELDS_MAX = 7 };

/* What a file said when it was last looked at. */
struct table {
	const char *path;
	struct buf text;
	struct timespec changed;
	ino_t inode;
	off_t size;
};

static struct table passwd = { .path = "/etc/passwd",
			       .text = BUF_INIT(FILE_MAX_BYTES) };
static struct table group = { .path = "/etc/group",
			      .text = BUF_INIT(FILE_MAX_BYTES) };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A line, cut at its colons; fields that are not there are empty. */
struct row {
	struct span fields[FIELDS_MAX];
	unsigned count;
};

enum { PASSWD_NAME = 0, PASSWD_UID = 2, PASSWD_GID = 3, PASSWD_HOME = 5 };
enum { GROUP_NAME = 0, GROUP_GID = 2, GROUP_MEMBERS = 3 };

/* -- the files ------------------------------------------------------------ */

static bool table_is_fresh(const struct table *t, const struct stat *st)
{
	return t->inode == st->st_ino && t->size == st->st_size &&
	       t->changed.tv_sec == st->st_ctim.tv_sec &&
	       t->changed.tv_nsec == st->st_ctim.tv_nsec;
}

/* Its text of now; with the lock. */
static struct span table_read(struct table *t)
{
	struct stat st;

	if (stat(t->path, &st))
		st = (struct stat){ 0 };
	if (table_is_fresh(t, &st))
		return buf_peek(&t->text);

	buf_clear(&t->text);
	t->inode = st.st_ino;
	t->size = st.st_size;
	t->changed = st.st_ctim;
	if (st.st_ino && whole_read(t->path, &t->text)) {
		/* a thread may be a user who may not read it: the next may */
		t->inode = 0;
		buf_clear(&t->text);
	}
	return buf_peek(&t->text);
}

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
		row->count = i;
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

/* -- users ---------------------------------------------------------------- */

static bool user_from(const struct row *row, struct user *ret)
{
	struct user u;

	if (!span_copy(row->fields[PASSWD_NAME], u.name, sizeof(u.name)) ||
	    !id_parse(row->fields[PASSWD_UID], &u.uid) ||
	    !id_parse(row->fields[PASSWD_GID], &u.gid) ||
	    !span_copy(row->fields[PASSWD_HOME], u.home, sizeof(u.home)))
		return false;
	*ret = u;
	return true;
}

/* By the name, or by the id when name.ptr is NULL. */
static bool user_find(struct span name, uid_t uid, struct user *ret)
{
	struct span text;
	struct row row;
	struct user u;
	bool found = false;

	must(pthread_mutex_lock(&lock) == 0);
	text = table_read(&passwd);
	while (!found && row_next(&text, &row)) {
		if (!user_from(&row, &u))
			continue;
		found = name.ptr ? span_eq(row.fields[PASSWD_NAME], name)
				 : u.uid == uid;
	}
	(void)pthread_mutex_unlock(&lock);
	if (found)
		*ret = u;
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
	struct span text;
	struct row row;
	bool found = false;

	must(pthread_mutex_lock(&lock) == 0);
	text = table_read(&group);
	while (name.len && !found && row_next(&text, &row))
		found = span_eq(row.fields[GROUP_NAME], name) &&
			id_parse(row.fields[GROUP_GID], ret);
	(void)pthread_mutex_unlock(&lock);
	return found;
}

void groups_name(gid_t gid, char dst[USERS_NAME_SIZE])
{
	struct span text;
	struct row row;
	bool found = false;
	gid_t found_gid;

	must(pthread_mutex_lock(&lock) == 0);
	text = table_read(&group);
	while (!found && row_next(&text, &row))
		found = id_parse(row.fields[GROUP_GID], &found_gid) &&
			found_gid == gid &&
			span_copy(row.fields[GROUP_NAME], dst, USERS_NAME_SIZE);
	(void)pthread_mutex_unlock(&lock);
	if (!found)
		(void)snprintf(dst, USERS_NAME_SIZE, "%u", (unsigned)gid);
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
	buf_fini(&t->text);
	*t = (struct table){ .path = path, .text = BUF_INIT(FILE_MAX_BYTES) };
}

void users_set_files(const char *passwd_path, const char *group_path)
{
	must(pthread_mutex_lock(&lock) == 0);
	table_reset(&passwd, passwd_path);
	table_reset(&group, group_path);
	(void)pthread_mutex_unlock(&lock);
}
