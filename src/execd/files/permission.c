/* SPDX-License-Identifier: Apache-2.0 */
/* permission.c - permissions of the contract, read and set */

#include "src/execd/files/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/diag.h"
#include "src/execd/users.h"
#include "src/text/json.h"

enum { MODE_DIGITS_MAX = 7777 };

/* The decimal digits of v as octal ones; false: one of them is 8 or 9, or
 * there are too many. */
static bool mode_from(uint64_t v, mode_t *ret)
{
	mode_t mode = 0;
	unsigned shift;

	if (v > MODE_DIGITS_MAX)
		return false;
	for (shift = 0; v; v /= 10, shift += 3) {
		if (v % 10 > 7)
			return false;
		mode |= (mode_t)(v % 10) << shift;
	}
	*ret = mode;
	return true;
}

static int mode_parse(const struct json *object, struct permission *p,
		      struct diag *d)
{
	const struct json *j = json_find(object, "mode");
	uint64_t v;

	if (!j || json_kind(j) == JSON_KIND_NULL)
		return 0;
	if (!json_u64(j, &v) || !mode_from(v, &p->mode))
		return diag_set(d, 0, 0,
				"\"mode\": expected octal digits as a number, "
				"such as 644, up to 7777");
	p->has_mode = v;
	return 0;
}

/* A text that is there and not empty: 1; 0: not given. */
static int name_get(const struct json *object, const char *name,
		    struct span *ret, struct diag *d)
{
	const struct json *j = json_find(object, name);

	if (!j || json_kind(j) == JSON_KIND_NULL)
		return 0;
	if (json_want(j, JSON_KIND_STRING, name, d))
		return -EINVAL;
	*ret = json_text(j);
	return ret->len ? 1 : 0;
}

/* An id written as a number, when it is no name. */
static bool id_parse(struct span s, uint32_t *ret)
{
	uint64_t v;

	if (!span_parse_u64(s, &v) || v >= UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	return true;
}

static int owner_parse(const struct json *object, struct permission *p,
		       struct diag *d)
{
	struct span name;
	struct user user;
	int r;

	r = name_get(object, "owner", &name, d);
	if (r <= 0)
		return r;
	if (users_by_name(name, &user))
		p->uid = user.uid;
	else if (!id_parse(name, &p->uid))
		return diag_set(d, 0, 0,
				"\"owner\": found \"%.*s\", expected a user of "
				"/etc/passwd or a number",
				(int)MIN(name.len, 64), name.ptr);
	return 0;
}

static int group_parse(const struct json *object, struct permission *p,
		       struct diag *d)
{
	struct span name;
	int r;

	r = name_get(object, "group", &name, d);
	if (r <= 0)
		return r;
	if (!groups_by_name(name, &p->gid) && !id_parse(name, &p->gid))
		return diag_set(d, 0, 0,
				"\"group\": found \"%.*s\", expected a group "
				"of /etc/group or a number",
				(int)MIN(name.len, 64), name.ptr);
	return 0;
}

int permission_parse(const struct json *object, struct permission *ret,
		     struct diag *d)
{
	struct permission p = PERMISSION_NONE;
	int r;

	r = json_want(object, JSON_KIND_OBJECT, "permission", d);
	if (!r)
		r = mode_parse(object, &p, d);
	if (!r)
		r = owner_parse(object, &p, d);
	if (!r)
		r = group_parse(object, &p, d);
	if (!r)
		*ret = p;
	return r;
}

static bool has_owner(const struct permission *p)
{
	return p->uid != (uid_t)-1 || p->gid != (gid_t)-1;
}

int permission_set_fd(const struct permission *p, int fd)
{
	if (has_owner(p) && fchown(fd, p->uid, p->gid))
		return -errno;
	return p->has_mode && fchmod(fd, p->mode) ? -errno : 0;
}

int permission_set_path(const struct permission *p, const char *path)
{
	if (has_owner(p) && chown(path, p->uid, p->gid))
		return -errno;
	if (p->has_mode && chmod(path, p->mode))
		return -errno;
	/* nothing was asked: the file has to be there nevertheless */
	if (!has_owner(p) && !p->has_mode &&
	    faccessat(AT_FDCWD, path, F_OK, AT_EACCESS))
		return -errno;
	return 0;
}

unsigned permission_decimal(mode_t mode)
{
	unsigned v = 0, place;

	mode &= 07777;
	for (place = 1; mode; mode >>= 3, place *= 10)
		v += (mode & 7) * place;
	return v;
}
