/* SPDX-License-Identifier: Apache-2.0 */
/* mounts.c - is what is mounted here what was meant to be?
 *
 * A line of mountinfo: id, parent, device, root, mount point, and what does not
 * matter here, with single spaces between. A blank, a tab, a line end and a
 * backslash in a path are a backslash and three octal digits.
 */

#include "src/execd/init/mounts.h"

#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/base/log.h"
#include "src/execd/whole.h"

enum {
	WORDS_MAX = 4096,
	MOUNTINFO_MAX = 16 * 1024 * 1024,
	PATH_SIZE = 4096,
	NAMES_LEAST = 3,
};

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* False: it is too long. */
static bool unescape(struct span text, char *dst, size_t size)
{
	size_t i, at = 0;

	for (i = 0; i < text.len; i++) {
		if (at + 1 >= size)
			return false;
		dst[at] = text.ptr[i];
		if (text.ptr[i] == '\\' && text.len - i > 3 &&
		    is_octal(text.ptr[i + 1]) && is_octal(text.ptr[i + 2]) &&
		    is_octal(text.ptr[i + 3])) {
			dst[at] = (char)((text.ptr[i + 1] - '0') << 6 |
					 (text.ptr[i + 2] - '0') << 3 |
					 (text.ptr[i + 3] - '0'));
			i += 3;
		}
		at++;
	}
	dst[at] = '\0';
	return true;
}

bool mounts_find(struct span mountinfo, struct span path, char *dst,
		 size_t size)
{
	char point[PATH_SIZE];
	struct span line, root;
	bool found = false;
	unsigned i;

	while (mountinfo.len) {
		line = span_cut(&mountinfo, '\n');
		for (i = 0; i < 3; i++)
			(void)span_cut(&line, ' ');
		root = span_cut(&line, ' ');
		if (!unescape(span_cut(&line, ' '), point, sizeof(point)) ||
		    !span_eq(span_str(point), path))
			continue;
		/* later lines lie above */
		found = unescape(root, dst, size);
	}
	return found;
}

static unsigned names_of(struct span path)
{
	unsigned count = 0;
	size_t i;

	for (i = 0; i < path.len; i++)
		count += path.ptr[i] == '/';
	return count;
}

bool mounts_is(struct span root, struct span folder)
{
	return root.len && root.len <= folder.len && root.ptr[0] == '/' &&
	       names_of(root) >= NAMES_LEAST &&
	       span_eq(root, span_from(folder, folder.len - root.len));
}

/* -- looking -------------------------------------------------------------- */

static NORETURN void refuse(struct span path, const char *why)
{
	log_error("%.*s %s: nothing runs here", SPAN_FMT(path), why);
	exit(MOUNTS_EXIT);
}

static void confirm(struct span text)
{
	struct buf mountinfo CLEANUP(buf_fini) = BUF_INIT(MOUNTINFO_MAX);
	struct span path = span_cut(&text, ':');
	char root[PATH_SIZE];
	struct statfs fs;

	if (statfs("/proc", &fs) || fs.f_type != PROC_SUPER_MAGIC ||
	    whole_read("/proc/self/mountinfo", &mountinfo))
		refuse(path, "cannot be looked at: there is no /proc");
	if (!mounts_find(buf_peek(&mountinfo), path, root, sizeof(root)))
		refuse(path, "has nothing mounted");
	if (!mounts_is(span_str(root), text))
		refuse(path, "is not the folder that was to be mounted");
}

void mounts_confirm(char **argv)
{
	static const char flag[] = "--" MOUNTS_FLAG;
	unsigned i;

	for (i = 1; i < WORDS_MAX && argv[i] && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], flag))
			confirm(span_str(argv[i + 1] ? argv[i + 1] : ""));
}
