/* SPDX-License-Identifier: Apache-2.0 */
/* env.c - the environment of a program to start
 *
 * How it works: "NAME=value" strings in an array, found by a map from the name
 * to the place, because a request may bring tens of thousands of them.
 */

#include "src/execd/process/env.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/chars.h"
#include "src/base/err.h"
#include "src/base/fd.h"
#include "src/base/map.h"

enum { VALUE_BYTES_MAX = 128 * 1024 };

struct env {
	char **entries; /* with a NULL behind the last */
	size_t count, size;
	struct map places; /* name -> index + 1 */
};

extern char **environ;

/* -- the table ------------------------------------------------------------ */

static size_t place_find(const struct env *v, struct span name)
{
	return (size_t)(uintptr_t)map_find(&v->places, name);
}

static void place_set(struct env *v, struct span name, size_t place)
{
	(void)map_set(&v->places, name, (void *)(uintptr_t)place);
}

static struct span entry_name(const char *entry)
{
	struct span all = span_str(entry);

	return span_of(all.ptr, span_find(all, '='));
}

static char *entry_make(struct span name, struct span value)
{
	char *entry = must_alloc(name.len + value.len + 2);

	memcpy(entry, name.ptr, name.len);
	entry[name.len] = '=';
	if (value.len)
		memcpy(entry + name.len + 1, value.ptr, value.len);
	return entry;
}

int env_set(struct env *v, struct span name, struct span value)
{
	size_t place;

	if (!name.len || span_has(name, '=') || span_has(name, '\0') ||
	    span_has(value, '\0'))
		return -EINVAL;
	place = place_find(v, name);
	if (place) {
		free(v->entries[place - 1]);
		v->entries[place - 1] = entry_make(name, value);
		return 0;
	}
	if (v->count + 2 > v->size) {
		v->size = v->size ? 2 * v->size : 64;
		v->entries =
			must_realloc(v->entries, v->size * sizeof(*v->entries));
	}
	v->entries[v->count++] = entry_make(name, value);
	v->entries[v->count] = NULL;
	place_set(v, name, v->count);
	return 0;
}

void env_unset(struct env *v, struct span name)
{
	size_t place = place_find(v, name);
	char *last;

	if (!place)
		return;
	free(v->entries[place - 1]);
	(void)map_take(&v->places, name);
	last = v->entries[--v->count];
	if (place - 1 != v->count) {
		v->entries[place - 1] = last;
		place_set(v, entry_name(last), place);
	}
	v->entries[v->count] = NULL;
}

const char *env_get(const struct env *v, const char *name)
{
	size_t place = place_find(v, span_str(name));

	return place ? v->entries[place - 1] + strlen(name) + 1 : NULL;
}

const char *const *env_list(struct env *v)
{
	static const char *const none[] = { NULL };

	return v->count ? (const char *const *)v->entries : none;
}

/* -- $NAME ---------------------------------------------------------------- */

static size_t name_len(struct span s)
{
	size_t i = 0;
	char c;

	for (; i < s.len; i++) {
		c = s.ptr[i];
		if (c != '_' && !char_is_letter(c) && !(i && char_is_digit(c)))
			break;
	}
	return i;
}

/* Takes "$NAME" or "${NAME}" from the front of *s; SPAN_NONE: it is neither. */
static struct span name_take(struct span *s)
{
	struct span rest = span_from(*s, 1), name;
	bool braced = span_starts(rest, SPAN("{"));

	rest = span_from(rest, braced);
	name = span_of(rest.ptr, name_len(rest));
	rest = span_from(rest, name.len);
	if (!name.len || (braced && !span_starts(rest, SPAN("}"))))
		return SPAN_NONE;
	*s = span_from(rest, braced);
	return name;
}

int env_expand(const struct env *v, struct span text, struct buf *out)
{
	struct span name;
	size_t run, place;
	int r = 0;

	while (text.len && !r) {
		run = span_find(text, '$');
		r = buf_put(out, span_of(text.ptr, run));
		text = span_from(text, run);
		if (r || !text.len)
			break;
		name = name_take(&text);
		if (!name.ptr) {
			r = buf_put(out, SPAN("$"));
			text = span_from(text, 1);
			continue;
		}
		place = place_find(v, name);
		if (place)
			r = buf_put_str(out,
					v->entries[place - 1] + name.len + 1);
	}
	return r;
}

/* -- where it comes from -------------------------------------------------- */

static void take_environ(struct env *v)
{
	struct span name;
	char **at;

	for (at = environ; at && *at; at++) {
		name = entry_name(*at);
		if ((span_starts(name, SPAN("EXECD_")) &&
		     !span_eq(name, SPAN("EXECD_ENVS"))) ||
		    span_eq(name, SPAN("JUPYTER_TOKEN")) || !(*at)[name.len])
			continue;
		(void)!env_set(v, name, span_str(*at + name.len + 1));
	}
}

/* Length of the text up to the quote that ends it; text.len when none does. A
 * backslash protects what follows, but not in single quotes. */
static size_t quoted_len(struct span text, char quote)
{
	size_t i;

	for (i = 0; i < text.len && text.ptr[i] != quote; i++)
		if (quote == '"' && text.ptr[i] == '\\' && i + 1 < text.len)
			i++;
	return i;
}

static char unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

/* What stands in double quotes: \n, \r, \t, any other escaped character for
 * itself, $NAME where the $ is not escaped. 0 or -ENOBUFS. */
static int take_escaped(const struct env *v, struct span text, struct buf *out)
{
	char c;
	size_t run;
	int r = 0;

	while (text.len && !r) {
		run = span_find(text, '\\');
		r = env_expand(v, span_of(text.ptr, run), out);
		text = span_from(text, run);
		if (r || text.len < 2)
			break;
		c = unescape(text.ptr[1]);
		r = buf_put(out, span_of(&c, 1));
		text = span_from(text, 2);
	}
	return r ? r : buf_put(out, text);
}

/* Cuts a line off *rest. */
static struct span line_cut(struct span *rest)
{
	struct span line = span_cut(rest, '\n');

	if (line.len && line.ptr[line.len - 1] == '\r')
		line.len--;
	return line;
}

/* The value of an entry, which begins *rest: quoted, over several lines if need
 * be, or a line. Cuts off the line that it ends on. 0 or -ENOBUFS. */
static int take_value(const struct env *v, struct span *rest, struct buf *out)
{
	char quote = rest->len ? rest->ptr[0] : '\0';
	struct span inner = span_from(*rest, 1), after;
	size_t len;

	if (quote == '"' || quote == '\'') {
		len = quoted_len(inner, quote);
		after = span_from(inner, len + 1);
		if (len < inner.len && !span_trim(line_cut(&after)).len) {
			*rest = after;
			inner.len = len;
			return quote == '"' ? take_escaped(v, inner, out)
					    : buf_put(out, inner);
		}
	}
	return env_expand(v, span_trim(line_cut(rest)), out);
}

/* One entry of the file; a line that is no NAME=value is passed over. False:
 * it is more than *left bytes, which is counted down. */
static bool take_entry(struct env *v, struct span *rest, size_t *left)
{
	struct buf value = BUF_INIT(VALUE_BYTES_MAX);
	struct span after = *rest, line = line_cut(&after), name;
	size_t sign = span_find(line, '='), bytes = 0;

	name = span_trim(span_of(line.ptr, sign));
	if (span_starts(name, SPAN("export ")))
		name = span_trim(span_from(name, 7));
	if (sign == line.len || span_starts(name, SPAN("#"))) {
		*rest = after;
		return true;
	}
	*rest = span_from(*rest, (size_t)(line.ptr - rest->ptr) + sign + 1);
	if (!take_value(v, rest, &value))
		bytes = name.len + buf_len(&value) + 2;
	if (bytes && bytes <= *left)
		(void)!env_set(v, name, buf_peek(&value));
	buf_fini(&value);
	if (bytes > *left)
		return false;
	*left -= bytes;
	return true;
}

void env_take_text(struct env *v, struct span text)
{
	size_t left = ENV_ENTRIES_MAX;

	while (text.len && take_entry(v, &text, &left))
		;
}

/* The workload may have put anything there: only a regular file is read, and
 * opening one never waits. */
static void take_file(struct env *v, const char *path)
{
	int fd CLEANUP_FD =
		open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct buf bytes = BUF_INIT(ENV_FILE_MAX);
	struct stat st;
	ssize_t n = 1;
	char *room;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return;
	while (n > 0 && !buf_reserve(&bytes, 4096, &room)) {
		n = read(fd, room, 4096);
		if (n > 0)
			buf_commit(&bytes, (size_t)n);
	}
	env_take_text(v, buf_peek(&bytes));
	buf_fini(&bytes);
}

struct env *env_new_empty(void)
{
	struct env *v = must_alloc(sizeof(*v));

	map_init(&v->places);
	return v;
}

struct env *env_new(void)
{
	struct env *v = env_new_empty();
	const char *path = getenv("EXECD_ENVS");

	take_environ(v);
	if (path && path[0])
		take_file(v, path);
	return v;
}

struct env *env_free(struct env *v)
{
	size_t i;

	if (!v)
		return NULL;
	for (i = 0; i < v->count; i++)
		free(v->entries[i]);
	free(v->entries);
	map_fini(&v->places);
	free(v);
	return NULL;
}
