/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - what a session remembers between two runs, told by its shell
 *
 * How it works: the shell tells its state in an exit trap, so that "exit 3"
 * loses nothing, and once more behind the command, because the command may have
 * set an exit trap of its own. bash writes to a high descriptor number that
 * scripts do not use for themselves. Other shells know single digits only; they
 * open the same descriptor by its path, and where there is no /proc they are
 * given digit 9.
 *
 * "command" keeps functions of the session with such names out of it; traces
 * (set -x) of our lines go nowhere.
 */

#include "src/execd/session/state.h"

#include "src/base/buf.h"
#include "src/base/err.h"

enum { CHANNEL_HIGH = 173, CHANNEL_DIGIT = 9 };

int state_channel(const struct state_way *way)
{
	return way->bash || way->proc ? CHANNEL_HIGH : CHANNEL_DIGIT;
}

static void tell_put(struct buf *out, const struct state_way *way,
		     const char *mark)
{
	const char *functions = way->bash ? "command export -pf; " : "";

	must(!buf_putf(out,
		       "{ set +eux; { command echo %s; command pwd; "
		       "command echo %s; command export -p; %s"
		       "command printf %%s %s; } ",
		       mark, mark, functions, mark));
	if (way->bash || !way->proc)
		must(!buf_putf(out, ">&%d", state_channel(way)));
	else
		must(!buf_putf(out, ">|/proc/self/fd/%d", CHANNEL_HIGH));
	must(!buf_put_str(out, "; } 2>/dev/null"));
}

void state_before_put(struct buf *out, const struct state_way *way,
		      const char *mark)
{
	must(!buf_put_str(out, "trap '"));
	tell_put(out, way, mark);
	must(!buf_put_str(out, "' EXIT; "));
}

void state_after_put(struct buf *out, const struct state_way *way,
		     const char *mark)
{
	/* the status goes through: it is that of the command */
	must(!buf_put_str(out, "\n{ set -- \"$?\"; } 2>/dev/null\n"));
	tell_put(out, way, mark);
	must(!buf_put_str(out, "\nexit \"$1\""));
}

/* -- reading -------------------------------------------------------------- */

/* Cuts what stands before the mark; SPAN_NONE: it does not come. */
static struct span cut_at_mark(struct span *s, struct span mark)
{
	const char *at =
		s->len ? memmem(s->ptr, s->len, mark.ptr, mark.len) : NULL;
	struct span before;

	if (!at)
		return SPAN_NONE;
	before = span_of(s->ptr, (size_t)(at - s->ptr));
	*s = span_from(*s, before.len + mark.len);
	return before;
}

static bool state_next(struct span *rest, struct span mark, struct state *ret)
{
	struct span before, cwd, exports;

	before = cut_at_mark(rest, mark);
	if (!before.ptr || !span_starts(*rest, SPAN("\n")))
		return false;
	*rest = span_from(*rest, 1);
	cwd = cut_at_mark(rest, mark);
	if (!cwd.ptr || !span_ends(cwd, SPAN("\n")) ||
	    !span_starts(*rest, SPAN("\n")))
		return false;
	cwd.len--;
	*rest = span_from(*rest, 1);
	exports = cut_at_mark(rest, mark);
	if (!exports.ptr || !span_starts(cwd, SPAN("/")))
		return false;
	*ret = (struct state){ .cwd = cwd, .exports = exports };
	return true;
}

bool state_read(struct span bytes, const char *mark, struct state *ret)
{
	struct state found;
	bool any = false;

	if (span_has(bytes, '\0'))
		return false;
	while (state_next(&bytes, span_str(mark), &found)) {
		*ret = found;
		any = true;
	}
	return any;
}

void state_clean_cwd(char *path)
{
	struct span rest = span_str(path + 1), part;
	size_t len = 0;

	must(path[0] == '/');

	/* What is written is never longer than what was read of it. */
	while (rest.len) {
		part = span_cut(&rest, '/');
		if (!part.len || span_eq(part, SPAN(".")))
			continue;
		if (span_eq(part, SPAN(".."))) {
			while (len && path[--len] != '/')
				;
			continue;
		}
		path[len++] = '/';
		memmove(path + len, part.ptr, part.len);
		len += part.len;
	}
	if (!len)
		path[len++] = '/';
	path[len] = '\0';
}
