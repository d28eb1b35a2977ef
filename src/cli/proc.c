/* SPDX-License-Identifier: Apache-2.0 */
/* proc.c - run another program to its end, and find programs */

#include "src/cli/proc.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/buf.h"
#include "src/base/err.h"
#include "src/role/tool.h"

enum { OUTPUT_MAX = 16 * 1024, TIMEOUT_MS = 60000 };

int proc_status(int wait_status)
{
	if (WIFEXITED(wait_status))
		return WEXITSTATUS(wait_status);
	return 128 + WTERMSIG(wait_status);
}

bool proc_find(const char *name, char *ret_path, size_t size)
{
	struct span rest = span_str(getenv("PATH")), folder;
	int len;

	if (!rest.len)
		rest = SPAN("/usr/sbin:/usr/bin:/sbin:/bin");
	if (strchr(name, '/'))
		return span_copy(span_str(name), ret_path, size);
	while (rest.len) {
		folder = span_cut(&rest, ':');
		len = snprintf(ret_path, size, "%.*s/%s", SPAN_FMT(folder),
			       name);
		if (len > 0 && (size_t)len < size && !access(ret_path, X_OK))
			return true;
	}
	return false;
}

int proc_run(const char *const *argv, struct span input)
{
	struct buf output CLEANUP(buf_fini) = BUF_INIT(OUTPUT_MAX);
	const char *words[PROC_WORDS_MAX + 1] = { 0 };
	char path[PATH_MAX];
	struct span said;
	unsigned i;
	int r;

	if (!proc_find(argv[0], path, sizeof(path))) {
		fprintf(stderr, "sallyport: there is no %s in PATH\n", argv[0]);
		return -ENOENT;
	}
	words[0] = path;
	for (i = 1; argv[i]; i++) {
		must(i < PROC_WORDS_MAX);
		words[i] = argv[i];
	}
	r = tool_run(words, input, &output, TIMEOUT_MS);
	said = buf_peek(&output);
	if (r && said.len)
		fprintf(stderr, "%s: %.*s", argv[0], SPAN_FMT(said));
	return r;
}
