/* SPDX-License-Identifier: Apache-2.0 */
/* path.c - what a client means by a path */

#include "src/execd/files/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/base/chars.h"
#include "src/base/diag.h"
#include "src/execd/files/identity.h"
#include "src/execd/users.h"

enum { LINKS_MAX = 40, NAME_BYTES = 256 };

/* A path that is being written. */
struct out {
	char *dst;
	size_t len;
	bool full; /* sticky */
};

static void out_put(struct out *o, struct span s)
{
	if (o->full || s.len >= PATH_BYTES - o->len) {
		o->full = true;
		return;
	}
	memcpy(o->dst + o->len, s.ptr, s.len);
	o->len += s.len;
	o->dst[o->len] = '\0';
}

/* -- expansion ------------------------------------------------------------ */

/* "~" or "~user" off the front of *text. */
static int home_put(const struct identity *as, struct out *o, struct span *text,
		    struct diag *d)
{
	bool other = as && as->given;
	struct span name;
	struct user user;
	const char *home;

	if (!span_starts(*text, SPAN("~")))
		return 0;
	*text = span_from(*text, 1);
	name = span_of(text->ptr, span_find(*text, '/'));
	*text = span_from(*text, name.len);

	home = name.len || other ? NULL : getenv("HOME");
	if (home && *home) {
		out_put(o, span_str(home));
		return 0;
	}
	if (name.len ? !users_by_name(name, &user)
		     : !users_by_id(other ? as->uid : geteuid(), &user))
		return diag_set(d, 0, 0,
				"found the home of \"%.*s\", expected a user "
				"of /etc/passwd",
				(int)MIN(name.len, 64), name.ptr);
	out_put(o, span_str(user.home));
	return 0;
}

static bool is_name_byte(char c)
{
	return char_is_alnum(c) || c == '_';
}

/* The name behind a '$'; *ret_len: bytes of it in the text, braces included.
 * SPAN_NONE: the '$' means itself. */
static struct span variable_name(struct span s, size_t *ret_len)
{
	size_t len = 0;

	if (span_starts(s, SPAN("{"))) {
		len = span_find(s, '}');
		*ret_len = len + 1;
		return len > 1 && len < s.len ? span_of(s.ptr + 1, len - 1)
					      : SPAN_NONE;
	}
	while (len < s.len && is_name_byte(s.ptr[len]))
		len++;
	*ret_len = len;
	return len ? span_of(s.ptr, len) : SPAN_NONE;
}

static bool variable_is_secret(const char *name)
{
	return !strncmp(name, "EXECD_", 6) || !strcmp(name, "JUPYTER_TOKEN");
}

/* The variable at the front of *text, which is behind a '$'. */
static int variable_put(struct out *o, struct span *text, struct diag *d)
{
	char name[NAME_BYTES];
	const char *value;
	struct span found;
	size_t len;

	if (span_starts(*text, SPAN("$"))) {
		*text = span_from(*text, 1);
		out_put(o, SPAN("$"));
		return 0;
	}
	found = variable_name(*text, &len);
	if (!found.ptr) {
		out_put(o, SPAN("$"));
		return 0;
	}
	*text = span_from(*text, len);
	value = span_copy(found, name, sizeof(name)) &&
				!variable_is_secret(name)
			? getenv(name)
			: NULL;
	if (!value)
		return diag_set(d, 0, 0,
				"found the variable \"%.*s\", which is not set "
				"(\"$$\" is a dollar sign)",
				(int)MIN(found.len, 64), found.ptr);
	out_put(o, span_str(value));
	return 0;
}

static int expand(const struct identity *as, struct out *o, struct span text,
		  struct diag *d)
{
	size_t plain;
	int r;

	r = home_put(as, o, &text, d);
	while (!r && text.len) {
		plain = span_find(text, '$');
		out_put(o, span_of(text.ptr, plain));
		text = span_from(text, plain);
		if (text.len) {
			text = span_from(text, 1);
			r = variable_put(o, &text, d);
		}
	}
	return r;
}

/* Takes ".", ".." and empty segments out of an absolute path. */
static void clean(const char *path, char *dst)
{
	struct span rest = span_str(path), segment;
	size_t len = 0;

	while (rest.len) {
		segment = span_cut(&rest, '/');
		if (!segment.len || span_eq(segment, SPAN(".")))
			continue;
		if (span_eq(segment, SPAN(".."))) {
			while (len && dst[--len] != '/')
				;
			continue;
		}
		dst[len++] = '/';
		memcpy(dst + len, segment.ptr, segment.len);
		len += segment.len;
	}
	if (!len)
		dst[len++] = '/';
	dst[len] = '\0';
}

static int too_long(struct diag *d)
{
	(void)diag_set(d, 0, 0, "found a path longer than %d bytes",
		       PATH_BYTES - 1);
	return -ENAMETOOLONG;
}

int path_expand_as(const struct identity *as, struct span text,
		   char dst[PATH_BYTES], struct diag *d)
{
	char expanded[PATH_BYTES], whole[PATH_BYTES];
	struct out o = { .dst = expanded };
	int r;

	expanded[0] = whole[0] = '\0';
	if (!text.len)
		return diag_set(d, 0, 0, "found an empty path");
	if (memchr(text.ptr, '\0', text.len))
		return diag_set(d, 0, 0, "found a path with a NUL in it");
	r = expand(as, &o, text, d);
	if (r)
		return r;
	if (o.full)
		return too_long(d);

	o = (struct out){ .dst = whole };
	if (expanded[0] != '/') {
		if (!getcwd(whole, sizeof(whole) - 1)) {
			(void)diag_set(d, 0, 0,
				       "found a relative path, and the working "
				       "directory is gone");
			return -ENOENT;
		}
		o.len = strlen(whole);
		out_put(&o, SPAN("/"));
	}
	out_put(&o, span_str(expanded));
	if (o.full)
		return too_long(d);
	clean(whole, dst);
	return 0;
}

int path_expand(struct span text, char dst[PATH_BYTES], struct diag *d)
{
	return path_expand_as(identity_current(), text, dst, d);
}

/* -- parts ---------------------------------------------------------------- */

const char *path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void path_parent(const char *path, char dst[PATH_BYTES])
{
	size_t len = (size_t)(path_base(path) - path);

	len -= len > 1;
	memcpy(dst, path, len);
	dst[len] = '\0';
}

int path_follow(char path[PATH_BYTES])
{
	char target[PATH_BYTES], joined[PATH_BYTES];
	struct out o = { .dst = joined };
	unsigned i;
	ssize_t n;

	for (i = 0; i < LINKS_MAX; i++) {
		n = readlink(path, target, sizeof(target));
		if (n < 0)
			return 0; /* no link, or nothing: who opens it sees */
		if ((size_t)n == sizeof(target))
			return -ENAMETOOLONG;
		o.len = 0;
		if (target[0] != '/')
			out_put(&o, span_of(path,
					    (size_t)(path_base(path) - path)));
		out_put(&o, span_of(target, (size_t)n));
		if (o.full)
			return -ENAMETOOLONG;
		/* not cleaned: ".." behind a link is another directory */
		memcpy(path, joined, o.len + 1);
	}
	return -ELOOP;
}
