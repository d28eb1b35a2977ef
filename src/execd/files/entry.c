/* SPDX-License-Identifier: Apache-2.0 */
/* entry.c - one file as JSON */

#include "src/execd/files/entry.h"

#include <errno.h>
#include <fcntl.h>

#include "src/base/clock.h"
#include "src/execd/files/path.h"
#include "src/execd/files/permission.h"
#include "src/text/json.h"
#include "src/wire/bytes.h"

int entry_stat(int dir_fd, const char *name, struct statx *ret)
{
	if (statx(dir_fd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
		  STATX_BASIC_STATS | STATX_BTIME, ret))
		return -errno;
	return 0;
}

static const char *type_of(const struct statx *st)
{
	if (S_ISREG(st->stx_mode))
		return "file";
	if (S_ISDIR(st->stx_mode))
		return "directory";
	return S_ISLNK(st->stx_mode) ? "symlink" : "other";
}

/* Times before 1970 are told as 1970, after 9999 as its end. */
static void time_put(struct json_out *o, const char *name,
		     const struct statx_timestamp *t)
{
	const int64_t last = 253402300799; /* 9999-12-31T23:59:59 */
	int64_t seconds = MAX(0, MIN(t->tv_sec, last));
	char text[CLOCK_TEXT_SIZE];

	clock_text((uint64_t)seconds * 1000 + t->tv_nsec / 1000000, text,
		   sizeof(text));
	json_put_str(o, name, text);
}

/* A file system that knows no birth: its last change of state is the nearest
 * thing that is never before it. */
static const struct statx_timestamp *birth_of(const struct statx *st)
{
	return st->stx_mask & STATX_BTIME ? &st->stx_btime : &st->stx_ctime;
}

static void names_look_up(struct entry_names *n, const struct statx *st)
{
	if (!n->has_owner || n->uid != st->stx_uid) {
		users_name(st->stx_uid, n->owner);
		n->uid = st->stx_uid;
		n->has_owner = true;
	}
	if (!n->has_group || n->gid != st->stx_gid) {
		groups_name(st->stx_gid, n->group);
		n->gid = st->stx_gid;
		n->has_group = true;
	}
}

static void escaped_put(struct json_out *o, struct span path)
{
	static const char hex[] = "0123456789ABCDEF";
	char text[3 * PATH_BYTES];
	size_t i, len = 0;

	for (i = 0; i < path.len && len + 3 <= sizeof(text); i++) {
		if (byte_is(path.ptr[i], BYTE_UNRESERVED) ||
		    path.ptr[i] == '/') {
			text[len++] = path.ptr[i];
			continue;
		}
		text[len++] = '%';
		text[len++] = hex[(unsigned char)path.ptr[i] >> 4];
		text[len++] = hex[(unsigned char)path.ptr[i] & 15];
	}
	json_put_text(o, "path_escaped", span_of(text, len));
}

void entry_put(struct entry_names *names, struct json_out *o, struct span path,
	       const struct statx *st)
{
	names_look_up(names, st);
	json_open_object(o, NULL);
	json_put_text(o, "path", path);
	if (!json_is_utf8(path))
		escaped_put(o, path);
	json_put_str(o, "type", type_of(st));
	json_put_u64(o, "size", st->stx_size);
	time_put(o, "modified_at", &st->stx_mtime);
	time_put(o, "created_at", birth_of(st));
	json_put_str(o, "owner", names->owner);
	json_put_str(o, "group", names->group);
	json_put_u64(o, "mode", permission_decimal(st->stx_mode));
	json_close(o);
}
